"""Tests that learners wrote, graded: in a kernel of their own, by implementations that they cannot see."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hostile.entries import DUEL, grade_id, in_answers, official, save

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.grading.grade import grade_notebook
from course_utils.grading.intake.collect import Submission
from course_utils.grading.results import Graded, Settings
from course_utils.grading.workers import Worker
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
    grade = grade_notebook(in_answers(sources, day)(folder), settings=settings)
    return {each.id: each for each in grade.exercises}


def test_it_may_use_an_earlier_answer_and_its_points_have_two_decimals_as_platforms_show_them(tmp_path):
    result = graded(tmp_path, {DUEL: BY_EXERCISE_7})[DUEL]
    assert result.status == "failed" and 0.8 < result.score < 4
    assert result.message.startswith("The test catches ") and "keeps all 14 right ones" in result.message
    assert f"{result.score:g}" == f"{result.score:.2f}".rstrip("0") and not result.score.is_integer()


def test_an_earlier_answer_that_is_wrong_costs_it_its_points(tmp_path):
    wrong = "def attention_batched(q, k, v):\n    return np.zeros((3, 2)), np.zeros((3, 2))"
    result = graded(tmp_path, {DUEL: BY_EXERCISE_7, "attention_batched": wrong})[DUEL]
    assert (result.score, result.mistake) == (0, "nothing passes")


@pytest.mark.thorough(ALONE)
def test_what_it_prints_and_its_helpers_do_no_harm(tmp_path):
    result = graded(tmp_path, {DUEL: WITH_A_HELPER})[DUEL]
    assert result.status == "failed" and 0 < result.score < 3


def test_it_meets_nothing_that_other_answers_left(tmp_path):
    leaves = "math.left = True\ndef softmax_row(row):\n    e = [math.exp(x - max(row)) for x in row]\n"
    finds = "def tells_right(f):\n    return not hasattr(math, 'left')\n"
    results = graded(tmp_path, {"softmax_row": leaves + "    return [x / sum(e) for x in e]", DUEL: finds})
    assert results["softmax_row"].status == "passed"
    assert results[DUEL].mistake == "everything passes"


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
    grade = grade_notebook(save(notebook, tmp_path / "day1_ada.ipynb"))
    assert json.loads(json.dumps(grade.as_record()))["score"] == 4


MANY_CALLS = """
def tells_right(f):
    if not own_test(f):
        return False
    q, k, v = np.eye(2), np.eye(2), np.array([[1.0], [2.0]])
    share = math.exp(2**-0.5) / (1 + math.exp(2**-0.5))
    return all(abs(f(q, k, v)[1][0, 0] - share) < 1e-3 for _ in range(@MANY@))
"""


@pytest.mark.thorough("tests that make about as many calls as they may, graded by a worker with little time")
@pytest.mark.parametrize(("many", "earns"), [(9_900, True), (17_000, False)])
def test_a_test_of_many_calls_costs_its_own_exercise_and_no_other(many, earns, tmp_path):
    own = reference_answers(COURSE.notebook(1))[DUEL].replace("tells_right", "own_test")
    path = in_answers({DUEL: own + MANY_CALLS.replace("@MANY@", str(many))})(tmp_path)
    worker = Worker(tmp_path / "worker")
    worker.start()
    try:
        worker.give(Submission("ada", path, 1), replace(Settings(), worker_cpu_seconds=8))
        while not isinstance(graded := worker.take(), Graded):
            pass
    finally:
        worker.stop()
    results = {each.id: each for each in graded.exercises}
    assert {name for name, each in results.items() if each.status != "passed"} == (set() if earns else {DUEL})
    assert earns or "may be called 10,000 times" in results[DUEL].message


def test_the_time_of_a_block_is_not_counted_and_all_other_time_is():
    source = (
        "import resource, time\n"
        "from course_utils.sandbox.limits import exclude_from_limit\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 2, resource.RLIM_INFINITY))\n"
        "def work(seconds):\n    end = time.process_time() + seconds\n    while time.process_time() < end: pass\n"
        "with exclude_from_limit(60): work(3)\n"
        "print('held', flush=True)\nwork(4)\nprint('never')"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (ended.stdout, ended.returncode < 0) == ("held\n", True)
