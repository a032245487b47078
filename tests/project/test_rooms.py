"""Imports run one way, without cycles, and no room uses another's private names."""

import ast
import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from course_utils import views
from course_utils.course import ROOT
from course_utils.views.shared.base import CourseWidget

PACKAGE = ROOT / "course_utils"
FREE = {"course", "errors", "files", "loader", "notebooks", "time_limits"}  # every room may use them
# Each room may import from itself and from the rooms named here: docs/internals.md draws them.
ROOMS = {
    "course": set(),
    "errors": set(),
    "files": set(),
    "loader": set(),
    "notebooks": set(),
    "time_limits": set(),
    "progress": set(),
    "attention": set(),
    "costs": {"attention"},
    "models": {"attention", "costs"},
    "serving": {"attention", "costs", "models"},
    "views": {"attention", "costs", "guesses", "models", "practice", "progress", "serving"},
    "checks": {"attention", "costs", "views"},
    "days": {"attention", "checks", "costs", "models", "serving", "views"},
    "answers": {"attention", "checks", "costs", "days"},
    "answer_key": {"checks"},
    "authoring": {"answer_key", "costs", "checks", "views"},
    "sandbox": set(),
    "grading": {"answer_key", "checks", "sandbox", "progress"},
    "practice": set(),
    "guesses": set(),
    "cards": {"checks"},
    "parts": {"attention", "checks", "costs", "models", "serving", "views"},
    "learner": {"answer_key", "grading", "progress"},
    "doctor": {"models", "sandbox"},
    "site": {"answer_key", "authoring", "cards", "views"},
    "cli": {"answer_key", "authoring", "cards", "doctor", "sandbox", "grading", "learner", "parts", "practice", "site"},
    "__main__": {"cli"},
    "__init__": set(),
}
IN_GRADING = {  # within it the same: what comes in knows nothing of what goes out
    "intake": {"results"},
    "notebook": {"intake", "redact", "results"},
    "reports": {"intake", "results"},
}
IN_CHECKS = {  # and within the checks: a grading kernel gets `kernel`, and what decides knows nothing of the notebook
    "kernel": set(),
    "diagnosis": {"kernel"},
    "judge": {"kernel", "diagnosis"},
    "examples": {"kernel", "judge"},
    "cells": set(),
    "complete_answer": {"cells"},
    "examination": {"kernel", "judge", "examples"},
    "cell_history": {"cells", "kernel", "judge"},
    "interactive": {"cells", "complete_answer", "cell_history", "examination", "kernel", "judge", "examples"},
    "in_page": {"cells", "examination", "judge", "kernel", "examples"},
    "__init__": {"interactive"},
}
# What imports by a name that it is given: the loader, a package of widgets, and a process beside student code.
BY_NAME = {"course_utils.loader", "course_utils.views", "course_utils.sandbox.inside.forkserver"}
LONGEST = 50  # lines of a function's body, outside the tables of a day
OF_A_DAY = ("course_utils.days.", "course_utils.answers.")


@dataclass(frozen=True)
class Import:
    """That a module names another, at its top or inside a function."""

    module: str
    imported: str
    name: str
    at_top: bool


def module_name(path: Path) -> str:
    """course_utils/grading/run.py -> course_utils.grading.run"""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def imports() -> list[Import]:
    """What all modules import of the course, absolutely or relatively."""
    return [each for module in MODULES for each in imports_of(module)]


def imports_of(module: str) -> list[Import]:
    path = MODULES[module]
    imported = []
    statements = [(ast.parse(path.read_text(encoding="utf-8")), True)]
    while statements:
        node, at_top = statements.pop()
        inner = at_top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        statements += [(each, inner) for each in ast.iter_child_nodes(node) if isinstance(each, HOLD_IMPORTS)]
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
            base = here[: len(here) - node.level + 1] if node.level else []
            names = [(".".join([*base, *filter(None, [node.module])]), alias.name) for alias in node.names]
        else:
            continue
        for source, name in names:
            if source.partition(".")[0] == "course_utils":
                whole = f"{source}.{name}" in MODULES
                target, name = (f"{source}.{name}", "") if whole else (source, name)
                imported.append(Import(module, target, name, at_top))
    return imported


HOLD_IMPORTS = ast.stmt | ast.excepthandler | ast.match_case


def room_of(module: str, depth: int = 1) -> str:
    """The room that a module lies in; of the package itself its __init__."""
    parts = module.split(".")
    return parts[depth] if len(parts) > depth else "__init__"


def test_every_room_is_known_and_imports_run_one_way():
    assert {room_of(module) for module in MODULES} == ROOMS.keys()
    for each in imports():
        room, imported = room_of(each.module), room_of(each.imported)
        allowed = ROOMS[room] | FREE | {room, "__init__"}
        assert imported in allowed, f"{each.module} imports {each.imported}, and {room} knows nothing of {imported}"


def shortest(table: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows of a table of rooms, but for those beside which a longer way leads to the same room."""
    beyond = {room: set().union(*(reached(table, each) for each in table[room])) for room in table}
    return {(room, each) for room in table for each in table[room] - beyond[room]}


def reached(table: dict[str, set[str]], room: str) -> set[str]:
    """The rooms to which arrows lead from a room."""
    return table[room].union(*(reached(table, each) for each in table[room]))


def test_the_pictures_of_the_rooms_are_true():
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    pictures = re.findall(r"^```mermaid\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    drawn = [set(re.findall(r"^ +(\w+) --> (\w+)$", picture, re.MULTILINE)) for picture in pictures]
    in_checks = {room: others for room, others in IN_CHECKS.items() if room != "__init__"}
    assert drawn == [shortest(ROOMS), shortest(in_checks)]


def test_rooms_that_all_may_use_use_none():
    allowed = FREE | {"__init__"}
    assert not [each for each in imports() if room_of(each.module) in FREE and room_of(each.imported) not in allowed]


def test_in_grading_too_imports_run_one_way():
    for each in imports():
        room = room_of(each.module, 2) if room_of(each.module) == "grading" else ""
        if room in IN_GRADING and room_of(each.imported) == "grading":
            imported = room_of(each.imported, 2)
            assert imported in IN_GRADING[room] | {room}, f"{each.module} imports {each.imported}"


def test_in_the_checks_too_imports_run_one_way():
    for each in imports():
        if room_of(each.module) == room_of(each.imported) == "checks":
            room, imported = room_of(each.module, 2), room_of(each.imported, 2)
            assert imported in IN_CHECKS[room] | {room}, f"{each.module} imports {each.imported}"


def test_what_runs_beside_student_code_needs_nothing_of_the_course():
    for each in imports():
        if each.module.startswith("course_utils.sandbox.inside"):
            assert each.imported.startswith("course_utils.sandbox.inside"), each


def test_what_a_grading_kernel_gets_needs_nothing_else():
    from course_utils.sandbox.confinement import kernel_modules

    names = {module_name(path) for path in kernel_modules()}
    for each in imports():
        if each.module in names and each.at_top:
            assert each.imported in names, each


def test_only_the_loader_imports_by_name():
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and (getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
            if called in ("import_module", "__import__") and module not in BY_NAME:
                assert isinstance(node.args[0], ast.Constant), f"{module} imports by name"
                assert not str(node.args[0].value).startswith("course_utils"), f"{module} imports by name"


def named() -> dict[str, set[str]]:
    """What each function of the loader may import, of all days."""
    by_module: dict[str, set[str]] = {}
    for node in ast.parse(MODULES["course_utils.loader"].read_text(encoding="utf-8")).body:
        texts = [
            each for each in ast.walk(node) if isinstance(each, ast.JoinedStr) and isinstance(node, ast.FunctionDef)
        ]
        for text in texts:
            parts = [part.value if isinstance(part, ast.Constant) else r"[\w.]+" for part in text.values]
            fits = re.compile("".join(part if "[" in part else re.escape(part) for part in parts))
            by_module.setdefault(node.name, set()).update(name for name in MODULES if fits.fullmatch(name))
    return by_module


@functools.cache
def imports_by_name() -> dict[str, set[str]]:
    """What a module may import through the loader."""
    may = named()
    reached = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "loader":
                reached.setdefault(module, set()).update(may.get(node.attr, ()))
    return reached


def test_what_is_imported_by_name_is_seen():
    assert imports_by_name()["course_utils.checks.kernel.evidence"] >= {"course_utils.days.day1.given.ladders"}
    assert "course_utils.days.day7.watches" in imports_by_name()["course_utils.checks.judge.promise_verdict"]


def test_no_modules_need_each_other():
    """Also none through an import inside a function, or by name: that only hides a circle."""
    needs: dict[str, set[str]] = {module: set(imports_by_name().get(module, ())) for module in MODULES}
    for each in imports():
        if each.imported != each.module:
            needs[each.module].add(each.imported)
    while leaves := [module for module in needs if not needs[module] & needs.keys()]:
        for module in leaves:
            del needs[module]
    assert not needs, f"these need each other: {', '.join(sorted(needs))}"


def test_no_room_reaches_into_anothers_private_names():
    for each in imports():
        private = each.name.startswith("_") and not each.name.startswith("__")
        if private and room_of(each.imported) not in ("__init__", "__main__"):
            assert each.module == each.imported, f"{each.module} imports {each.name} of {each.imported}"


def test_no_function_is_too_long_to_read_in_one_go():
    long = []
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not module.startswith(OF_A_DAY):
                body = node.body[ast.get_docstring(node) is not None :]
                if body and node.end_lineno - body[0].lineno >= LONGEST:
                    long.append(f"{module}.{node.name}")
    assert long == []


def test_grading_proper_is_a_short_shelf():
    assert len(list((PACKAGE / "grading").glob("*.py"))) <= 12


def test_tests_meet_a_widget_as_its_learner_or_as_its_page_does():
    """What a page is sent is read with `as_page.on_page`, so that a test does not hang on a widget's private traits."""
    offered = [getattr(views, name) for name in views.__all__]
    widgets = [cls for cls in offered if isinstance(cls, type) and issubclass(cls, CourseWidget)]
    own = {name for cls in widgets for name in cls.class_trait_names(sync=True) if name.startswith("_")}
    assert "_result" in own
    folders = [ROOT / "tests" / room for room in ("views", "browser", "learner")]
    for path in itertools.chain.from_iterable(folder.glob("test_*.py") for folder in folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Attribute) and node.attr in own), f"{path.name}, line {node.lineno}"
