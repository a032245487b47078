"""The exercises of a day in the form in which nbgrader and otter-grader want them.

nbgrader takes the notebook in solutions/ as its source, as it is. For otter each exercise gets a test file as a teacher
would write it: the answer is run on the rungs of our ladder, visible and hidden, and `np.allclose` compares what comes
out with stored numbers.
"""

import copy
import json
import pprint
from pathlib import Path

from course_utils.answer_key.key import COURSE, checks_of
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.checks.kernel.outcome import as_json

OTTER_START = "import otter\n\ngrader = otter.Notebook()"
OTTER_HEAD = '''\
import numpy as np
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.rungs import evidence_for
from otter.test_files import test_case

OK_FORMAT = False
name = {grade_id!r}
points = {points}
all_or_nothing = {all_or_nothing}
USES = {uses!r}


def holds(env, expected, hidden, only=None):
    """The answer gives the expected numbers, on its own or with right answers to the exercises that it uses."""
    try:
        compare(env, expected, hidden, only)
    except AssertionError:
        if not USES:
            raise
        own = dict(env)
        for used in USES:
            env.update(all_exercises({day})[used].reference)
        try:
            compare(env, expected, hidden, only)
        finally:
            env.update(own)


def compare(env, expected, hidden, only):
    """The expected numbers, rung by rung."""
    outcomes = evidence_for({day}, {grade_id!r}, env, hidden=hidden).outcomes
    for outcome, rung in zip(outcomes, expected, strict=True):
        if only is None or rung["rung"] == only:
            assert not outcome.error, f"{{rung['rung']}}: {{outcome.error}}"
            for part, wanted in rung["values"].items():
                given = outcome.values[part]
                assert [*given.shape] == wanted["shape"], f"{{rung['rung']}}: {{part}} has another shape"
                numbers = given.entries, np.array(wanted["numbers"], float)
                assert np.allclose(*numbers, rtol={rtol}, atol={atol}), f"{{rung['rung']}}: {{part}} is wrong"
'''
OTTER_CASE = """

@test_case(name={label!r}, points={points}, hidden={hidden})
def case_{number}(env):
    holds(env, EXPECTED[{hidden}], {hidden}, {only!r})
"""


def nbgrader_source(day: int) -> str:
    """Return the text of the notebook that nbgrader takes as its source."""
    return COURSE.path(day).read_text(encoding="utf-8")


def otter_tests(day: int) -> dict[str, str]:
    """Return the test files of a day for otter, by grade_id."""
    return {grade_id: otter_test(day, grade_id) for grade_id in all_exercises(day)}


def otter_test(day: int, grade_id: str) -> str:
    """Return the test file of one exercise: a function earns all or nothing, each entry by hand its share."""
    exercise = all_exercises(day)[grade_id]
    by_hand = find_ladder(day, grade_id).by_hand
    if by_hand:
        names = find_ladder(day, grade_id).names
        cases = [(name, exercise.points / len(names), False, name) for name in names]
    else:
        cases = [("visible inputs", None, False, None), ("hidden inputs", None, True, None)]
    expected = {hidden: as_json(judge_of(day, grade_id).reference(hidden))["outcomes"] for _, _, hidden, _ in cases}
    head = OTTER_HEAD.format(
        day=day,
        grade_id=grade_id,
        points=exercise.points,
        all_or_nothing=not by_hand,
        uses=exercise.uses,
        rtol=exercise.rtol,
        atol=exercise.atol,
    )
    body = "".join(
        OTTER_CASE.format(number=number, label=label, points=points, hidden=hidden, only=only)
        for number, (label, points, hidden, only) in enumerate(cases)
    )
    return f"{head}\n\nEXPECTED = {pprint.pformat(expected, width=100, compact=True, sort_dicts=False)}\n{body}"


def otter_notebook(data: bytes, day: int) -> bytes:
    """Return a submission as a student of an otter course would have sent it.

    Each check cell that is as it was given becomes `grader.check(…)`, and the notebook begins with otter's own cell. A
    check cell that was changed stays as it is, and so does a file that is no notebook.
    """
    try:
        notebook = json.loads(data)
        cells = copy.deepcopy(notebook["cells"])
        checks_by_id = _visible_checks(day)
        for cell in cells:
            grade_id = checks_by_id.get("".join(cell["source"])) if _is_check(cell) else None
            if grade_id:
                cell["source"] = f'grader.check("{grade_id}")'
        start = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": OTTER_START}
        if (notebook["nbformat"], notebook.get("nbformat_minor", 0)) >= (4, 5):
            start["id"] = "otter"
        return json.dumps(notebook | {"cells": [start, *cells]}).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return data


def write_otter_tests(day: int, folder: Path) -> None:
    """Write a test file for each exercise of a day into `folder`."""
    folder.mkdir(parents=True)
    for grade_id, text in otter_tests(day).items():
        (folder / f"{grade_id}.py").write_text(text, encoding="utf-8")


def _visible_checks(day: int) -> dict[str, str]:
    """Return the grade_id of each check cell, by the source that a student is given and by that of the solution."""
    official = COURSE.notebook(day)
    return {
        cell.source: grade_id
        for notebook in (official, release_exercise(official))
        for grade_id, cell in checks_of(notebook).items()
    }


def _is_check(cell: dict) -> bool:
    return bool(cell.get("metadata", {}).get("nbgrader", {}).get("grade"))
