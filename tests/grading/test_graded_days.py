"""Every day's exercises through the whole grader: each slip costs its own points, and nothing else does."""

import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import nbformat
import pytest
from variants import RIGHT, WRONG

from course_utils.authoring.cut import release_exercise
from course_utils.authoring.official import COURSE
from course_utils.checks.evidence import find_ladder
from course_utils.checks.exercise import all_exercises, days_with_exercises
from course_utils.grading.grade import grade_notebook

DAYS = days_with_exercises()
for day in DAYS:
    import_module(f"variants.day{day}")  # registers its answers
AT_HAND = {"math", "np", "torch", "nn", "F"}
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
    for answer in registry.get((day, grade_id), []):
        named = answer if isinstance(answer, Mapping) else dict.fromkeys(find_ladder(day, grade_id).names, answer)
        if all(map(_stands_alone, named.values())):
            cells = [f"{_source(part)}\n\n{name} = {part.__name__}" for name, part in named.items()]
            yield "\n\n".join([IMPORTS, *cells])


def _stands_alone(answer):
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
    lines = textwrap.dedent(inspect.getsource(answer)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ")))
    return "\n".join(lines[start:])


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names(constant)


@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_an_unfilled_notebook_scores_nothing(day, tmp_path):
    path = tmp_path / f"day{day}_new.ipynb"
    nbformat.write(release_exercise(COURSE.notebook(day)), path)
    result = grade_notebook(path)
    assert (result.score, result.max_score) == (0, sum(e.points for e in all_exercises(day).values()))
    assert {each.status for each in result.exercises} == {"missing"}


@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_the_solutions_score_full_marks(day, tmp_path):
    result = graded(day, tmp_path, {})
    assert (result.status, result.score) == ("passed", result.max_score)
    assert [each.id for each in result.exercises] == list(all_exercises(day))


@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_right_answers_of_another_style_score_full_marks(day, tmp_path):
    functions = [grade_id for grade_id in all_exercises(day) if not find_ladder(day, grade_id).entries]
    styles = {grade_id: list(sources(RIGHT, day, grade_id)) for grade_id in functions}
    assert sum(map(bool, styles.values())) >= 0.7 * len(functions)
    result = graded(day, tmp_path, {grade_id: found[-1] for grade_id, found in styles.items() if found})
    assert {each.id: each.message for each in result.exercises if each.status != "passed"} == {}


@pytest.mark.parametrize("parity", [0, 1], ids=["even", "odd"])
@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_each_slip_costs_its_own_points_and_no_others(day, parity, tmp_path):
    slips, exercises = {}, all_exercises(day)
    for grade_id in list(exercises)[parity::2]:
        if find_ladder(day, grade_id).entries:
            slips[grade_id] = "\n".join(f"{name} = -1.0" for name in find_ladder(day, grade_id).names)
        elif found := list(sources(WRONG, day, grade_id)):
            slips[grade_id] = found[0]
    assert len(slips) >= len(exercises) // 2 - 1
    result = graded(day, tmp_path, slips)
    assert {each.id for each in result.exercises if each.status == "passed"} == set(exercises) - set(slips)
    assert result.score == sum(exercise.points for grade_id, exercise in exercises.items() if grade_id not in slips)
