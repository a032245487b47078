"""What a docstring lists under Args or Attributes has the name that the code has."""

import ast
import inspect
import re

import pytest

from course_utils.course import ROOT

PACKAGE = ROOT / "course_utils"
SECTION = re.compile(r"^(Args|Attributes):\n((?:(?: .*)?\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): ", re.MULTILINE)


def listed(docstring):
    """Return the names that the sections of a docstring list."""
    sections = SECTION.findall(inspect.cleandoc(docstring) + "\n")
    entries = [entry for _, section in sections for entry in ENTRY.findall(section)]
    return [name.lstrip("*") for entry in entries for name in entry.split(", ")]


def parameters(function):
    """Return the names of a function's parameters."""
    every = function.args
    own = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return {each.arg for each in own if each is not None}


def attributes(node):
    """Return the names that a class has: fields, methods, the parameters of `__init__`, and what is set on self."""
    names = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            names |= {each.name} | (parameters(each) if each.name == "__init__" else set())
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            names.add(each.attr)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
    return names


def strangers(path):
    """Yield the names in a module's docstrings that the function or the class beside them does not have."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            known = attributes(node) if isinstance(node, ast.ClassDef) else parameters(node)
            for name in listed(ast.get_docstring(node) or ""):
                if name not in known:
                    yield f"{path}:{node.lineno}: {node.name} has no {name!r}"


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}))
def test_arguments_and_attributes_have_their_names_in_docstrings(room):
    top = PACKAGE / room
    assert [line for path in ([top] if top.is_file() else sorted(top.rglob("*.py"))) for line in strangers(path)] == []


def test_a_name_that_the_code_does_not_have_is_found(tmp_path):
    module = tmp_path / "module.py"
    docstring = '    """Run.\n\n    Args:\n        source: Code.\n        given: No name.\n    """\n'
    module.write_text(f"def run(source, *, provided):\n{docstring}")
    assert [line.partition(": ")[2] for line in strangers(module)] == ["run has no 'given'"]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_an_entry_begins_in_lower_case_but_for_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for _, section in SECTION.findall(inspect.cleandoc(ast.get_docstring(node) or "") + "\n"):
                capital = re.search(
                    r"^    \w+: (?:The|An?|If|Whether|How|What|Why|Number|Folder|As|By) .*", section, re.MULTILINE
                )
                assert not capital, capital[0]
