"""A class of twenty: day 1 solved in several styles, with slips, half done and not at all. Nothing in it is hostile."""

import copy
import sys
from collections.abc import Mapping

import nbformat

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.judge.exercise_tables import all_exercises
from peers.graders import DAY
from peers.venvs import ROOT

UNBALANCED = "def scores(Q, K):\n    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q"


def filled(answers: Mapping[str, str]) -> bytes:
    """Return the student's edition of the day with these answers, by grade_id; the stubs of the others stay."""
    notebook = copy.deepcopy(release_exercise(COURSE.notebook(DAY)))
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(grade_id, cell.source)
    return nbformat.writes(notebook).encode()


def twenty() -> dict[str, bytes]:
    """The file of each student, by name: nine all right, six with slips, three half done, one unfilled, one broken."""
    reference = reference_answers(COURSE.notebook(DAY))
    right = _variants("RIGHT")
    wrong = _variants("WRONG")
    answers = [reference, *(reference | _pick(right, style) for style in range(8))]
    answers += [reference | dict(list(_pick(wrong, slip).items())[slip::6]) for slip in range(6)]
    answers += [dict(list(reference.items())[:done]) for done in (3, 5, 8)]
    answers += [{}, reference | {"scores": UNBALANCED}]
    return {f"student{number:02}": filled(each) for number, each in enumerate(answers, start=1)}


def _variants(registry: str) -> dict[str, list[str]]:
    """Return the answers that the tests keep, as cells, by grade_id."""
    sys.path.append(str(ROOT / "tests"))
    try:
        import as_cells
        import variants
    finally:
        sys.path.remove(str(ROOT / "tests"))
    answers = getattr(variants, registry)
    return {grade_id: list(as_cells.sources(answers, DAY, grade_id)) for grade_id in all_exercises(DAY)}


def _pick(variants: Mapping[str, list[str]], number: int) -> dict[str, str]:
    """Return one answer to each exercise that has any, another one for each number."""
    return {grade_id: cells[number % len(cells)] for grade_id, cells in variants.items() if cells}
