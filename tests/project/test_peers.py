"""The benchmark against nbgrader and otter: what it hands them, how it reads their scores, and the page it writes."""

import json
import sys
import types
from pathlib import Path

import nbformat
import pytest

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.grading.intake.answers import read_answers
from course_utils.grading.intake.submitted_notebook import read_notebook

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from peers import where
from peers.conversion import otter_notebook, otter_test
from peers.graders import NbGrader, Otter, Ours, read_results
from peers.outcome import judge, page, totals
from peers.sandbox import Run
from peers.students import filled, twenty

HERE = Path(sys.executable)
REFERENCE = reference_answers(COURSE.notebook(1))


# What the peers are given -------------------------------------------------------------------------------------------


def test_twenty_students_send_twenty_different_notebooks_of_the_day():
    questions = COURSE.exercises(1)
    answers = [read_answers(read_notebook(data, name), questions) for name, data in twenty().items()]
    assert len({json.dumps(each) for each in answers}) == 20
    assert sum(not each for each in answers) == 1
    assert sum(0 < len(each) < len(questions) for each in answers) == 3


def test_a_students_checks_become_otters():
    cells = json.loads(otter_notebook(filled({}), 1))["cells"]
    assert "otter.Notebook()" in cells[0]["source"]
    graded = [cell for cell in cells[1:] if cell["metadata"].get("nbgrader", {}).get("grade")]
    assert [cell["source"] for cell in graded] == [f'grader.check("{name}")' for name in REFERENCE]


@pytest.mark.parametrize("edition", ["student", "official"])
def test_a_check_that_was_edited_stays_as_the_student_left_it(edition):
    notebook = release_exercise(COURSE.notebook(1)) if edition == "student" else COURSE.notebook(1)
    notebook = nbformat.from_dict(json.loads(json.dumps(notebook)))
    check = next(cell for cell in notebook.cells if cell.id == "check_scores")
    check.source = "pass"
    cells = json.loads(otter_notebook(nbformat.writes(notebook).encode(), 1))["cells"]
    sources = {cell.get("id"): "".join(cell["source"]) for cell in cells}
    assert (sources["check_scores"], sources["check_softmax_row"]) == ("pass", 'grader.check("softmax_row")')


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"cells": [null], "nbformat": 4}', b"[" * 100_000])
def test_what_is_no_notebook_goes_to_otter_as_it_is(data):
    assert otter_notebook(data[:200_000], 1) == data[:200_000]


class Case:
    """What otter's decorator keeps of a test."""

    def __init__(self, name, points, hidden):
        self.points = points
        self.hidden = hidden

    def __call__(self, function):
        self.run = function
        return self


@pytest.fixture
def cases(monkeypatch):
    """cases(day, grade_id): the cases of a test file, as otter would collect them, and the points of the file."""
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", types.SimpleNamespace(test_case=Case))

    def collect(day, grade_id):
        namespace = {}
        exec(otter_test(day, grade_id), namespace)
        return [value for value in namespace.values() if isinstance(value, Case)], namespace["points"]

    return collect


@pytest.mark.parametrize("grade_id", list(all_exercises(1)))
def test_otters_tests_pass_the_reference_and_no_known_mistake(cases, grade_id):
    exercise = all_exercises(1)[grade_id]
    tests, points = cases(1, grade_id)
    assert points == exercise.points
    for test in tests:
        test.run(dict(exercise.reference))
    for mistake in exercise.mistakes:
        answer = mistake.answer
        env = dict(answer) if isinstance(answer, dict) else dict.fromkeys(exercise.reference, answer)
        assert any(_fails(test, env) for test in tests), mistake.name


def test_each_entry_by_hand_earns_its_share_in_otter(cases):
    tests, points = cases(1, "by_hand_two")
    assert (sum(test.points for test in tests), len(tests)) == (points, 2)
    half = {**all_exercises(1)["by_hand_two"].reference, "delayed_output": [0, 0]}
    assert [_fails(test, half) for test in tests] == [False, True]


def test_otter_too_lends_a_right_answer_for_one_that_failed(cases):
    world = {"softmax_row": None, "scores": None, "scale_scores": None}
    exec(REFERENCE["attention_lists"], world)
    for test in cases(1, "attention_lists")[0]:
        assert not _fails(test, world)
    assert world["softmax_row"] is None


def _fails(test, env):
    try:
        test.run(env)
    except (AssertionError, TypeError):
        return True
    return False


# How scores are read ------------------------------------------------------------------------------------------------


def test_scores_are_read_where_each_grader_leaves_them(tmp_path):
    def put(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    put("out/grades.json", json.dumps({"submissions": [{"student": "ada", "score": 23.0}]}))
    put("grades.csv", "assignment,student_id,score\nday1,ada,21.5\nday1,bob,0.0\n")
    put("autograded/ada/day1/x.ipynb", "{}")
    put("out/ada/results.json", json.dumps({"tests": [{"name": "Public Tests"}, {"score": 2.0}, {"score": 0.5}]}))
    expected = {Ours(HERE): 23.0, NbGrader(HERE): 21.5, Otter(HERE): 2.5}
    for grader, score in expected.items():
        assert grader.scores(read_results(tmp_path, grader.results), ["ada", "bob"]) == {"ada": score, "bob": None}


def test_no_results_are_no_grades():
    for grader in (Ours(HERE), NbGrader(HERE), Otter(HERE)):
        assert grader.scores({}, ["ada"]) == {"ada": None}


# What is said of a hostile submission -------------------------------------------------------------------------------

WELL = Run(0, False, 9.0)


@pytest.mark.parametrize(
    ("run", "score", "neighbour", "message"),
    [
        (WELL, 19.0, 25.0, []),
        (WELL, 25.0, 25.0, ["earned 6 too many"]),
        (WELL, 15.5, 25.0, ["lost 3.5"]),
        (WELL, 19.0, 24.0, ["another's grade changed"]),
        (Run(1, False, 9.0), 19.0, 25.0, []),
        (Run(1, False, 9.0), None, None, ["no grade", "lost 19", "batch aborted"]),
        (Run(-9, False, 9.0), None, 25.0, ["grader killed", "lost 19"]),
        (Run(None, False, 9.0, lost=True), None, None, ["grader killed", "lost 19", "batch aborted"]),
        (Run(None, True, 60.2, ["python"]), None, None, ["hung, stopped after 60 s", "lost 19"]),
        (Run(0, False, 9.0, ["sleep 100"]), 19.0, 25.0, ["left a process"]),
        (Run(0, False, 9.0, [], ["/tmp/hx1-x", "/tmp/home/.cache/y"]), 19.0, 25.0, ["left a file"]),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else "",
)
def test_what_went_wrong_is_told(run, score, neighbour, message):
    assert judge(run, score, 19.0, neighbour, 25.0, "hx1") == message


def test_a_submission_that_deserves_nothing_may_be_refused():
    assert judge(Run(1, False, 9.0), None, 0.0, 25.0, 25.0, "hx1") == []


FOUND = [
    {"ours": [], "peer": ["earned 6 too many", "left a file"]},
    {"ours": [], "peer": ["earned 2 too many"]},
    {"ours": [], "peer": ["does not apply"]},
]


def test_totals_count_an_entry_once_for_each_thing_that_went_wrong():
    counted = totals(FOUND)
    assert counted["ours"] == {"as deserved": 3}
    assert counted["peer"] == {"earned too many points": 2, "left a file": 1, "does not apply": 1}


def test_the_page_has_the_totals_and_says_how_many_were_treated_as_they_deserve():
    text = page(FOUND, "# Title\n", "It means this.\n", "## Again\n")
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Title", "## Totals", "## Again"]
    assert "| does not apply | 0 | 1 |" in text
    assert "- peer treated 0 of 2 submissions as they deserve." in text


def test_the_page_has_the_times_of_the_last_run_with_device_versions_and_date():
    about = {"date": "2026-01-02T03:04:05+00:00", "device": "a machine", "cores": 2, "python": "3.11", "torch": "2.13"}
    seconds = {"ours": [0.3, 0.2, 0.25], "peer": [3.0]}
    ratios = {"ours": 1.0, "peer": 12.0}
    graders = {"ours": "course grade", "peer": "peer (version 1)"}
    speed = {"environment": about, "submissions": 20, "jobs": 2, "graders": graders}
    text = page(FOUND, "# Title\n", "", "", speed | {"seconds_a_submission": seconds, "ratio_to_ours": ratios})
    assert "on 2026-01-02, 20 harmless submissions" in text
    assert "a machine, 2 cores, Python 3.11, torch 2.13." in text
    assert "| course grade | 0.25 | 1.0 |" in text
    assert "| peer (version 1) | 3.00 | 12.0 |" in text


# Where the time goes ------------------------------------------------------------------------------------------------


def test_a_step_inside_a_step_is_counted_once(monkeypatch):
    ticks = iter([0, 1, 4, 10])
    monkeypatch.setattr(where.time, "perf_counter", lambda: next(ticks))
    clock = where.Clock()
    with clock.step("checks"), clock.step("comparing"), clock.step("answer cells"):
        pass
    assert clock.seconds == {"checks": 7, "comparing": 3, where.REST: -10}


def test_the_steps_on_the_clock_are_there():
    for owner, functions in where.STEPS.values():
        assert all(callable(getattr(owner, function)) for function in functions)
