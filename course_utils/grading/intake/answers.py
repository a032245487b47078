"""Extract the answers from a submitted notebook: the source of its answer cells and of the code that they use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from course_utils.answer_key.key import COURSE, AnswerKey, OfficialExercise
from course_utils.checks.cells import defines, definitions, is_unanswered, may_define
from course_utils.checks.complete_answer import complete_answer
from course_utils.errors import Unreadable
from course_utils.grading.intake.submitted_notebook import CodeCell, SubmittedNotebook

LONG = 5  # lines of a function that two people hardly write alike
MANY = 3  # so many such answers are needed
LESSON = "this is the lesson; hand in the notebook of the same name from exercises/"


def read_answers(notebook: SubmittedNotebook, exercises: Sequence[OfficialExercise]) -> dict[str, str]:
    """Return the answers in a submitted notebook by grade_id, without exercises that are unanswered or still the stub.

    The nbgrader grade_id or the cell id assigns a cell to an exercise; without either, the name that the cell defines
    does. If several cells answer an exercise, the last one counts; so does a further try in a cell between the answer's
    and its check. The code that the answer uses from other cells is put before it, and what cells between it and its
    check change in it is put below. If a cell of another exercise defines the answer, only the defining statements are
    taken.

    Raises:
        Unreadable: it is a lesson, or holds another day's exercises or none.
    """
    _verify_day(notebook, exercises)
    cells = notebook.cells
    answers = {}
    ids = {each.grade_id for each in exercises}
    checks = {f"check_{each}" for each in ids}
    sources = [cell.source for cell in cells]
    for exercise in exercises:
        place, source = _answer_cell(exercise, cells, ids)
        if source:
            # the cells that go with the answer, up to its check or another answer
            others = checks | ids - {exercise.grade_id}
            end = next((i for i in range(place + 1, len(cells)) if cells[i].ids & others), place + 1)
            # a further try there takes the answer's place
            for i in range(place + 1, end):
                if defines(sources[i], exercise.names) and not _is_blank(sources[i], exercise):
                    place = i
                    source = sources[i]
            # what the answer uses of the other cells; of its own, if only the defining statements were taken
            above = sources[:place] if source == sources[place] else sources[: place + 1]
            after = [each for each in sources[place + 1 : end] if not _is_blank(each, exercise)]
            below = sources[end:]
            answers[exercise.grade_id] = complete_answer(
                source, above, after, below, exercise.names, exercise.known
            ).source
    return answers


def longer_code(answers: Mapping[str, str]) -> str:
    """Return a hash of the longer functions among the answers, without comments and spacing; "" if they are few.

    The text is not parsed, because this runs beside the results of a whole class.
    """
    longer = {}
    for grade_id, source in answers.items():
        lines = [line for line in re.sub("#.*", "", source).splitlines() if line.strip()]
        if len(lines) >= LONG and any(line.startswith("def ") for line in lines):
            longer[grade_id] = "".join("".join(lines).split())
    return hashlib.sha256(json.dumps(sorted(longer.items())).encode()).hexdigest() if len(longer) >= MANY else ""


def days_of(notebook: SubmittedNotebook, exercises: Mapping[int, list[OfficialExercise]]) -> list[int]:
    """Return the days whose exercises are in a notebook, of those whose exercises are given."""
    days = list[int]()
    for day, exercises_of_day in exercises.items():
        with contextlib.suppress(Unreadable):
            _verify_day(notebook, exercises_of_day)
            days.append(day)
    return days


def is_fresh(notebook: SubmittedNotebook, exercises: list[OfficialExercise]) -> bool:
    """Return whether a notebook holds a day's exercises as they were given out.

    The text is compared and not parsed, because many files are searched.
    """
    known = {each.grade_id for each in exercises}
    stubs = {each.stub.strip() for each in exercises}
    return all(
        cell.source.strip() in stubs
        for cell in notebook.cells
        if cell.ids & known or any(_may_define(cell.source, each) for each in exercises)
    )


def _answer_cell(exercise: OfficialExercise, cells: Sequence[CodeCell], known: set[str]) -> tuple[int, str]:
    """Return the index and the source of the cell that answers an exercise; the source is empty if no cell does."""
    filled = [i for i, cell in enumerate(cells) if not _is_blank(cell.source, exercise)]
    marked = [i for i in filled if exercise.grade_id in cells[i].ids]
    defined = defines if exercise.by_hand else may_define
    defining = [i for i in filled if i not in marked and defined(cells[i].source, exercise.names)]
    own = [i for i in marked if defines(cells[i].source, exercise.names)]
    for candidates in (own, [i for i in defining if not cells[i].ids & known]):
        if candidates:
            return candidates[-1], cells[candidates[-1]].source
    lodged = [(i, definitions(cells[i].source, exercise.names)) for i in defining]  # in cells of other exercises
    sources = [(i, source) for i, source in lodged if source] or [(i, cells[i].source) for i in marked]
    return sources[-1] if sources else (0, "")


def _is_blank(source: str, exercise: OfficialExercise) -> bool:
    return is_unanswered(source, exercise.stub, exercise.names)


def _may_define(source: str, exercise: OfficialExercise) -> bool:
    return may_define(source, exercise.names, exercise.by_hand)


def _verify_day(notebook: SubmittedNotebook, exercises: Sequence[OfficialExercise]) -> None:
    """Raise Unreadable if a notebook does not hold these exercises."""
    name = notebook.name
    cells = notebook.cells
    known = {exercise.grade_id for exercise in exercises}
    answered = {cell.answers for cell in cells if cell.answers}
    foreign = answered - known
    if len(foreign) > len(answered & known):
        raise Unreadable(f"{name}: the exercises of another day ({', '.join(sorted(foreign)[:3])}, …)")
    if notebook.is_lesson and not any(cell.ids & known for cell in cells):  # it may define what an exercise asks for
        raise Unreadable(f"{name}: {LESSON}")
    if not any(cell.ids & known or any(_may_define(cell.source, each) for each in exercises) for cell in cells):
        raise Unreadable(f"{name}: none of the day's exercises is in it ({', '.join(sorted(known)[:3])}, …)")


def day_in_cells(notebook: SubmittedNotebook, answer_key: AnswerKey = COURSE) -> int:
    """Return the first day whose exercises are in a notebook. Raises Unreadable if no day's exercises are."""
    if days := days_of(notebook, {day: answer_key.exercises(day) for day in answer_key.days()}):
        return days[0]
    if notebook.is_lesson:
        raise Unreadable(f"{notebook.name}: {LESSON}")
    raise Unreadable(f"{notebook.name}: neither its name nor its cells say which day it belongs to; pass --day")
