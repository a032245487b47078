"""Tests that learners wrote, graded: in a kernel of their own, by implementations that they cannot see."""

import json

import pytest
from hostile.entries import DUEL, grade_id, in_answers, official, save

from course_utils.authoring.answer_key import COURSE, reference_answers
from course_utils.grading.grade import grade_notebook
from course_utils.grading.results import Settings
from course_utils.sandbox.limits import Limits

BY_EXERCISE_7 = """
def tells_right(f):
    q, k, v = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [-1.0, 2.0]]), np.eye(2)
    return all(np.allclose(a, b, atol=1e-3) for a, b in zip(f(q, k, v), attention_batched(q, k, v)))
"""
WITH_A_HELPER = """
def trial():
    return np.eye(2), np.eye(2), np.eye(2)

def tells_right(f):
    print("tried", f)
    return np.allclose(f(*trial())[1].sum(-1), 1)
"""
QUICK = Settings(limits=Limits(cell_seconds=0.5))
ALONE = "tests of implementations graded that print, are not written or are all that is written"


def graded(folder, sources, day=1, settings=None):
    found = grade_notebook(in_answers(sources, day)(folder), settings=settings)
    return {each.id: each for each in found.exercises}


def test_it_may_use_an_earlier_answer_and_its_points_have_two_decimals_as_platforms_show_them(tmp_path):
    result = graded(tmp_path, {DUEL: BY_EXERCISE_7})[DUEL]
    assert result.status == "failed" and 0.8 < result.score < 4
    assert result.message.startswith("The test catches ") and "keeps all 14 right ones" in result.message
    assert f"{result.score:g}" == f"{result.score:.2f}".rstrip("0") and not result.score.is_integer()


def test_an_earlier_answer_that_is_wrong_costs_it_its_points(tmp_path):
    wrong = "def attention_batched(q, k, v):\n    return np.zeros((3, 2)), np.zeros((3, 2))"
    result = graded(tmp_path, {DUEL: BY_EXERCISE_7, "attention_batched": wrong})[DUEL]
    assert (result.score, result.misconception) == (0, "nothing passes")


@pytest.mark.thorough(ALONE)
def test_what_it_prints_and_its_helpers_do_no_harm(tmp_path):
    result = graded(tmp_path, {DUEL: WITH_A_HELPER})[DUEL]
    assert result.status == "failed" and 0 < result.score < 3


def test_it_meets_nothing_that_other_answers_left(tmp_path):
    leaves = "math.left = True\ndef softmax_row(row):\n    e = [math.exp(x - max(row)) for x in row]\n"
    finds = "def tells_right(f):\n    return not hasattr(math, 'left')\n"
    results = graded(tmp_path, {"softmax_row": leaves + "    return [x / sum(e) for x in e]", DUEL: finds})
    assert results["softmax_row"].status == "passed"
    assert results[DUEL].misconception == "everything passes"


@pytest.mark.thorough(ALONE)
def test_unwritten_it_is_missing_and_nothing_but_itself_suffers(tmp_path):
    results = graded(tmp_path, {"scores": "def scores(Q, K):\n    return 7"})
    assert results[DUEL].status == "missing"
    assert {name for name, each in results.items() if each.status != "passed"} == {DUEL, "scores"}


def test_an_endless_test_runs_out_of_time_alone(tmp_path):
    results = graded(tmp_path, {DUEL: "def tells_right(f):\n    while True:\n        pass"}, settings=QUICK)
    assert results[DUEL].status == "timeout"
    assert {name for name, each in results.items() if each.status != "passed"} == {DUEL}


@pytest.mark.thorough(ALONE)
def test_the_courses_own_test_gets_all_points_where_nothing_else_is_written(tmp_path):
    notebook = official(1, {DUEL: reference_answers(COURSE.notebook(1))[DUEL]})
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution") and grade_id(cell) != DUEL:
            cell["source"] = "raise NotImplementedError"
    found = grade_notebook(save(notebook, tmp_path / "day1_ada.ipynb"))
    assert json.loads(json.dumps(found.as_record()))["score"] == 4
