"""Every day's exercises through the whole grader: each slip costs its own points, and nothing else does."""

import nbformat
import pytest
from as_cells import graded, sources
from variants import RIGHT, WRONG

from course_utils.authoring.cut import release_exercise
from course_utils.authoring.official import COURSE
from course_utils.checks.evidence import find_ladder
from course_utils.checks.exercise import all_exercises, days_with_exercises
from course_utils.grading.grade import grade_notebook

DAYS = days_with_exercises()


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
    functions = [grade_id for grade_id in all_exercises(day) if not find_ladder(day, grade_id).by_hand]
    styles = {grade_id: list(sources(RIGHT, day, grade_id)) for grade_id in functions}
    assert sum(map(bool, styles.values())) >= 0.7 * len(functions)
    result = graded(day, tmp_path, {grade_id: found[-1] for grade_id, found in styles.items() if found})
    assert {each.id: each.message for each in result.exercises if each.status != "passed"} == {}


@pytest.mark.parametrize("parity", [0, 1], ids=["even", "odd"])
@pytest.mark.parametrize("day", DAYS, ids="day{}".format)
def test_each_slip_costs_its_own_points_and_no_others(day, parity, tmp_path):
    slips, exercises = {}, all_exercises(day)
    for grade_id in list(exercises)[parity::2]:
        if find_ladder(day, grade_id).by_hand:
            slips[grade_id] = "\n".join(f"{name} = -1.0" for name in find_ladder(day, grade_id).names)
        elif found := list(sources(WRONG, day, grade_id)):
            slips[grade_id] = found[0]
    assert len(slips) >= len(exercises) // 2 - 1
    result = graded(day, tmp_path, slips)
    assert {each.id for each in result.exercises if each.status == "passed"} == set(exercises) - set(slips)
    assert result.score == sum(exercise.points for grade_id, exercise in exercises.items() if grade_id not in slips)
