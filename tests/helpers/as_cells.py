"""Answers as cells of a notebook, and the official notebook graded with such cells in it."""

import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import nbformat

from course_utils.answer_key.key import COURSE
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.grading.grade import grade_notebook

POINTS = int(sum(question.points for question in COURSE.exercises(1)))  # points of day 1
AT_HAND = {"math", "np", "torch", "nn", "F", "triton", "tl"}
IMPORTS = "import math\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn"


def graded(day, folder, answers):
    """The official notebook, graded with the given sources in its answer cells."""
    notebook = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(day))))
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in answers:
            cell.source = answers[grade_id]
    path = folder / f"day{day}_ada.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return grade_notebook(path)


def sources(registry, day, grade_id):
    """The answers in a registry as cells: those that need nothing but themselves and what a notebook imports."""
    import_module(f"variants.day{day}")  # registers its answers
    for answer in registry.get((day, grade_id), []):
        named = answer if isinstance(answer, Mapping) else dict.fromkeys(find_ladder(day, grade_id).names, answer)
        if all(map(_stands_alone, named.values())):
            cells = [f"{_source(part)}\n\n{name} = {part.__name__}" for name, part in named.items()]
            yield "\n\n".join([IMPORTS, *cells])


def _stands_alone(answer):
    answer = _typed(answer)
    if not (inspect.isfunction(answer) or inspect.isclass(answer)) or not answer.__name__.isidentifier():
        return False
    world = vars(sys.modules[answer.__module__])
    codes = [part.__code__ for part in _functions(answer)]
    elsewhere = {name for code in codes for name in _names(code) if name in world}
    bases = {base.__module__.partition(".")[0] for base in getattr(answer, "__bases__", ())}
    modules = {name for name in elsewhere if isinstance(world[name], ModuleType)}
    closed = all(part.__closure__ is None or part.__code__.co_freevars == ("__class__",) for part in _functions(answer))
    return elsewhere - {answer.__name__} == modules and modules <= AT_HAND and closed and bases <= {"builtins", "torch"}


def _functions(answer):
    return filter(inspect.isfunction, vars(answer).values()) if inspect.isclass(answer) else [answer]


def _source(answer):
    lines = textwrap.dedent(inspect.getsource(_typed(answer))).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ")))
    return "\n".join(["@triton.jit"] * (answer is not _typed(answer)) + lines[start:])


def _typed(answer):
    """The function that was typed in, also where Triton has made a kernel of it."""
    return getattr(answer, "fn", answer)


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names(constant)
