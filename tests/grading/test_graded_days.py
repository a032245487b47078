"""Every day's exercises through the whole grader: each slip costs its own points, and nothing else does."""

import nbformat
import pytest
from as_cells import graded, sources
from hostile.entries import DUEL
from variants import RIGHT, WRONG

from course_utils.answer_key.key import COURSE
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.grading.grade import grade_notebook

DAYS = days_with_exercises()
OTHERS = pytest.mark.thorough("the days but the first and the newest through the whole grader, and all solutions")
EACH_DAY = pytest.mark.parametrize(
    "day", [pytest.param(day, id=f"day{day}", marks=[OTHERS] * (day not in (DAYS[0], DAYS[-1]))) for day in DAYS]
)


@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_an_unfilled_notebook_scores_nothing(day, tmp_path):
    path = tmp_path / f"day{day}_new.ipynb"
    nbformat.write(release_exercise(COURSE.notebook(day)), path)
    result = grade_notebook(path)
    assert (result.score, result.max_score) == (0, sum(e.points for e in all_exercises(day).values()))
    assert {each.status for each in result.exercises} == {"missing"}


@OTHERS
@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_the_solutions_score_full_marks_and_are_left_as_they_were(day):
    path = COURSE.path(day)
    before = path.read_bytes(), path.stat().st_mtime_ns
    result = grade_notebook(path)
    assert (result.status, result.score) == ("passed", result.max_score)
    assert [each.id for each in result.exercises] == list(all_exercises(day))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("parity", [0, 1], ids=["even", "odd"])
@EACH_DAY
def test_each_slip_costs_its_own_points_and_no_others(day, parity, tmp_path):
    """Every second exercise has a slip, the others right answers of another style, where there are some. The test of
    implementations is left out: `test_duel_grading.py` has its slips, and some take as long as all others together."""
    exercises = all_exercises(day)
    styles = {}
    slips = {DUEL: ""} if DUEL in exercises else {}
    for place, grade_id in enumerate(exercises):
        if grade_id == DUEL:
            continue
        slip = place % 2 == parity
        by_hand = find_ladder(day, grade_id).by_hand
        if slip and by_hand:
            slips[grade_id] = "\n".join(f"{name} = -1.0" for name in find_ladder(day, grade_id).names)
        elif not by_hand and (variants := list(sources(WRONG if slip else RIGHT, day, grade_id))):
            (slips if slip else styles)[grade_id] = variants[0 if slip else -1]
    assert len(slips) >= len(exercises) // 2 - 1
    result = graded(day, tmp_path, styles | slips)
    messages = {each.id: each.message for each in result.exercises if each.status != "passed"}
    assert {grade_id: message for grade_id, message in messages.items() if grade_id not in slips} == {}
    assert messages.keys() == slips.keys()
    assert result.score == sum(exercise.points for grade_id, exercise in exercises.items() if grade_id not in slips)


@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_most_exercises_have_a_right_answer_of_another_style(day):
    functions = [grade_id for grade_id in all_exercises(day) if not find_ladder(day, grade_id).by_hand]
    assert sum(any(sources(RIGHT, day, grade_id)) for grade_id in functions) >= 0.7 * len(functions)
