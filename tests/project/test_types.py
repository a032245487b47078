"""Every public function says what it takes and gives; `make lint` lets mypy hold it to that."""

import ast
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch

from course_utils.course import ROOT

PACKAGE = ROOT / "course_utils"
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
# Where mypy takes a function with half of its types, for the reason that stands there.
EXEMPT = [
    name for each in MYPY["overrides"] if not each.get("disallow_incomplete_defs", True) for name in each["module"]
]


def public_functions(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods that others may use, with their names; none inside another function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node, f"{name}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield name + node.name, node
        elif isinstance(node, ast.If | ast.Try):
            yield from public_functions(node, name)


def untyped(function: ast.FunctionDef, method: bool) -> list[str]:
    """The arguments of a function that have no type, and "return" where its result has none."""
    taken = [*function.args.posonlyargs, *function.args.args][method:]
    taken += [*function.args.kwonlyargs, *filter(None, (function.args.vararg, function.args.kwarg))]
    missing = [argument.arg for argument in taken if argument.annotation is None]
    return missing + (["return"] if function.returns is None else [])


def test_every_public_function_says_its_types():
    missing_types = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if any(fnmatch(module, exempt) for exempt in EXEMPT):
            continue
        for called, function in public_functions(ast.parse(path.read_text(encoding="utf-8"))):
            static = any(getattr(each, "id", "") == "staticmethod" for each in function.decorator_list)
            if missing := untyped(function, "." in called and not static):
                missing_types[f"{name}: {called}"] = missing
    assert missing_types == {}
