"""Grading one notebook: what counts, what does not, and what no submission can do."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from as_cells import POINTS
from hostile.entries import CHECKS
from in_process import course
from typer.testing import CliRunner

from course_utils.answer_key.key import COURSE, OfficialExercise, provided_cells, reference_answers
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.cells import same_code
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.cli import app
from course_utils.course import day_of
from course_utils.errors import Unreadable
from course_utils.grading.grade import grade_notebook
from course_utils.grading.intake.answers import day_in_cells, read_answers
from course_utils.grading.intake.submitted_notebook import read_notebook
from course_utils.grading.notebook.notebook_kernels import NotebookKernels
from course_utils.grading.reports.feedback import feedback_page
from course_utils.grading.reports.report import as_junit
from course_utils.grading.results import Settings
from course_utils.sandbox import confinement, grading_kernel
from course_utils.sandbox.confinement import write_kernel_library
from course_utils.sandbox.limits import Limits

ROOT = Path(__file__).parents[2]
QUICK = Settings(limits=Limits(cell_seconds=0.8))
RIGHT_SCALE = "def scale_scores(S, d_k):\n    return [[s / math.sqrt(d_k) for s in row] for row in S]"
EVEN = "def softmax_row(row):\n    return [0.3 for x in row]"
UNSHIFTED = "def softmax_row(row):\n    e = [math.exp(x) for x in row]\n    return [x / sum(e) for x in e]"


@cache
def unfilled():
    """Not the file in exercises/, which a learner may have solved."""
    return release_exercise(COURSE.notebook(1))


def submission(folder, answers=(), change=None, name="day1_ada.ipynb"):
    """A file with all answers right but those given; `change` may do anything else to the notebook."""
    notebook = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(1))))
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in dict(answers):
            cell.source = dict(answers)[grade_id]
    if change:
        change(notebook)
    path = folder / name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def outcome(graded):
    """What became of the exercises that did not pass."""
    return {each.id: each.status for each in graded.exercises if each.status != "passed"}


def result(graded, grade_id):
    """What became of one exercise."""
    return next(each for each in graded.exercises if each.id == grade_id)


# Honest work --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slips(tmp_path_factory):
    """The grade of a notebook with many slips: each costs its own exercise."""
    answers = {
        "by_hand_three": "score_33 = 3\nweights_3 = [0.114, 0.042, 0.844]",
        "softmax_row": UNSHIFTED,
        "scores": "def scores(Q, K):\n    return my_dots(Q, K)",
        "scale_scores": f"from torch.nn.functional import scaled_dot_product_attention as lib\n{RIGHT_SCALE}",
        "attention_batched": "def attention_batched(q, k, v):\n    return input('?')",
        "soft_lookup": "raise KeyboardInterrupt",
        "self_attention": "def self_attention(x, W_q, W_k, W_v):\n    return lib(x @ W_q, x @ W_k, x @ W_v), None",
        "find_the_bug": "def broken_attention(q, k, v):\n    return [np.empty(2**25) for _ in range(40)]",
    }
    return grade_notebook(submission(tmp_path_factory.mktemp("slips"), answers))


def test_each_slip_costs_its_own_exercise(slips):
    errors = dict.fromkeys(["scores", "attention_batched", "soft_lookup", "find_the_bug"], "error")
    failed = dict.fromkeys(["by_hand_three", "softmax_row"], "failed")
    assert outcome(slips) == {**errors, **failed, "self_attention": "forbidden"}


def test_a_slip_is_named(slips):
    slip = result(slips, "softmax_row")
    assert slip.mistake == "softmax without max-shift"
    assert "max(row)" in slip.message


def test_of_two_entries_by_hand_each_earns_its_share(slips):
    entries = result(slips, "by_hand_three")
    assert (entries.score, entries.mistake) == (1, "no scaling")


def test_a_helper_that_no_cell_defines_is_explained(slips):
    message = result(slips, "scores").message
    assert "name 'my_dots' is not defined" in message and message.endswith(
        "No cell of the notebook defines it by that name."
    )


def test_memory_that_grows_step_by_step_ends_at_the_limit(slips):
    assert "MemoryError" in result(slips, "find_the_bug").message


@pytest.mark.parametrize("blank", ["", "# later", "\n\n"])
def test_an_emptied_answer_cell_is_missing(tmp_path, blank):
    emptied = dict.fromkeys((question.grade_id for question in COURSE.exercises(1)), blank)
    assert set(outcome(grade_notebook(submission(tmp_path, emptied))).values()) == {"missing"}


def test_untidy_answers_that_are_right_score_full_marks(tmp_path):
    """A thread that is left running, prints and a failing trial in the cell, and the roundings of the notebook. The
    file is left as it was."""
    leaves = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    answers = {
        "by_hand_three": "score_33 = 3\nweights_3 = (0.178, 0.0879, 0.7337)",
        "scores": leaves + "def scores(Q, K):\n    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]",
        "scale_scores": f"{RIGHT_SCALE}\nprint('S is', 1)\nscale_scores(1, 2)",
    }
    path = submission(tmp_path, answers)
    before = path.read_bytes(), path.stat().st_mtime_ns
    graded = grade_notebook(path)
    assert (outcome(graded), graded.score, graded.max_score, graded.status) == ({}, POINTS, POINTS, "passed")
    assert [each.id for each in graded.exercises] == [question.grade_id for question in COURSE.exercises(1)]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_what_cannot_run_is_told_as_it_was_raised_and_what_uses_it_is_lent_a_right_one_and_only_that(tmp_path):
    answers = {
        "softmax_row": f"one = 1 / 0\n{EVEN}",
        "scores": "def scores(Q, K)\n    return Q",
        "attention_batched": "def attention_batched(q, k, v):\n    a = 1\n      return a",
        "find_the_bug": "def broken_attention(q, k, v):\n    return attention_batched(q, k, v)",
    }
    messages = {
        "softmax_row": "ZeroDivisionError: division by zero",
        "scores": "SyntaxError: expected ':' (line 1)",
        "attention_batched": "IndentationError: unexpected indent (line 3)",
    }
    graded = grade_notebook(submission(tmp_path, answers))
    assert outcome(graded) == dict.fromkeys(answers, "error")
    assert {name: result(graded, name).message for name in messages} == {
        name: f"The answer cell raised {message}" for name, message in messages.items()
    }
    kinds = [result(graded, name).mistake for name in messages]
    assert kinds == [f"raises {messages['softmax_row']}", None, None]  # what is no Python is no slip with a name


def test_what_builds_on_a_failed_answer_shares_one_kernel_and_the_rest_goes_on_in_its_own(tmp_path, monkeypatch):
    launch = NotebookKernels.launch
    launched = []
    monkeypatch.setattr(NotebookKernels, "launch", lambda kernels: launched.append(1) or launch(kernels))
    graded = grade_notebook(submission(tmp_path, {"softmax_row": EVEN}))
    assert outcome(graded) == {"softmax_row": "failed"}  # attention_lists and soft_lookup were lent one
    assert len(launched) == 3  # and one for the test of implementations


def test_an_answer_that_fails_beside_a_lent_one_leaves_nothing_behind(tmp_path):
    breaks = "def attention_lists(q, k, v):\n    math.exp = None\n    return softmax_row(q)"
    answers = {"softmax_row": EVEN, "attention_lists": breaks}
    assert outcome(grade_notebook(submission(tmp_path, answers))).keys() == answers.keys()


# Where the answers are found ----------------------------------------------------------------------------------------


def notebook_in(path):
    return read_notebook(path.read_bytes(), path.name)


def test_answers_are_found_by_name_where_the_ids_were_lost(tmp_path):
    def lose_ids(notebook):
        for number, cell in enumerate(notebook.cells):
            cell.metadata = {}
            cell["id"] = f"cell-{number}"

    statuses = [
        read_answers(notebook_in(submission(tmp_path, change=change)), COURSE.exercises(1))
        for change in (None, lose_ids)
    ]
    assert statuses[0] == statuses[1] and statuses[0].keys() == {question.grade_id for question in COURSE.exercises(1)}


def test_of_a_half_done_notebook_what_is_done_counts_and_of_an_answer_given_twice_the_last(tmp_path):
    """One new cell stands below the untouched stub, the other is a copy of the answer cell."""

    def change(notebook):
        stubs = {cell.id: cell.source for cell in unfilled().cells}
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") in {"softmax_row", "scores", "find_the_bug"}:
                cell.source = stubs[cell.id]
        copied = next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "scale_scores")
        notebook.cells.append({**copied, "source": "def scale_scores(S, d_k):\n    return 0"})
        notebook.cells.append({"cell_type": "code", "metadata": {}, "source": UNSHIFTED, "outputs": []})

    graded = grade_notebook(submission(tmp_path, change=change))
    missing = dict.fromkeys(["scores", "find_the_bug"], "missing")
    assert outcome(graded) == {"softmax_row": "failed", **missing, "scale_scores": "failed"}
    lost = sum(question.points for question in COURSE.exercises(1) if question.grade_id in outcome(graded))
    assert graded.score == graded.max_score - lost


@pytest.mark.parametrize("source", ["f = lambda row: row", "class f:\n    pass", "def f(row:"])
def test_an_answer_is_found_by_name_however_the_function_is_defined(tmp_path, source):
    cells = [{"cell_type": "code", "source": text} for text in (source, "f = f(1)\ndef g(f): pass")]
    (tmp_path / "x.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    asked = [OfficialExercise("f", 1.0, ("f",), "def f(): pass")]
    assert read_answers(notebook_in(tmp_path / "x.ipynb"), asked) == {"f": source}


def test_entries_by_hand_may_be_set_in_one_line(tmp_path):
    (tmp_path / "x.ipynb").write_text(
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "a, b = 1, 2"}]})
    )
    asked = [OfficialExercise("f", 1.0, ("a", "b"), "a = None", by_hand=True)]
    assert read_answers(notebook_in(tmp_path / "x.ipynb"), asked)


def test_comments_and_spacing_do_not_make_a_stub_an_answer():
    assert same_code("def f():\n    raise E  # todo", "# mine\ndef f():\n\n    raise E")
    assert not same_code("def f():\n    return 1", "def f():\n    return 2")


# What a submission brings along is not believed ---------------------------------------------------------------------


def test_files_beside_the_submission_take_no_part_and_its_cells_see_no_answers_and_no_secrets(tmp_path, monkeypatch):
    trap = tmp_path / "trap"
    code = f"import pathlib; pathlib.Path({str(trap)!r}).touch()"
    for name in ("conftest.py", "sitecustomize.py", "numpy.py", "math.py"):
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.setenv("COURSE_TEST_TOKEN", "hush")
    monkeypatch.chdir(tmp_path)
    spy = """
import os
from importlib import import_module as find
assert not hasattr(check, "__globals__") and not hasattr(check, "__wrapped__")
def scale_scores(S, d_k):
    assert "COURSE_TEST_TOKEN" not in os.environ
    assert not os.path.exists("solutions")
    for name in ("checks.judge", "checks.interactive", "answers", "days.day1.duel"):
        try:
            find("course_utils." + name)
        except ImportError:
            continue
        raise AssertionError(name)
    return [[s / d_k**0.5 for s in row] for row in S]
"""
    assert outcome(grade_notebook(submission(tmp_path, {"scale_scores": spy}))) == {}
    assert not trap.exists()
    assert os.environ["PYTEST_ADDOPTS"] == "--collect-only"


def test_the_kernel_gets_what_is_given_and_nothing_else(tmp_path):
    write_kernel_library(tmp_path)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")}
    may = re.compile(
        r"inside/\w+\.py|course_utils/(__init__|loader|checks/__init__|checks/kernel/\w+"
        r"|days/__init__|days/\w+/__init__|days/\w+/given/\w+)\.py"
    )
    assert [name for name in files if not may.fullmatch(name)] == []
    assert {f"course_utils/days/day{day}/given/ladders.py" for day in days_with_exercises()} < files


# Cells that run for ever, exit, flood or crash ----------------------------------------------------------------------

HOSTILE = {
    "softmax_row": ("def softmax_row(row):\n    while True:\n        pass", "timeout"),
    "scores": ("import os\nos._exit(0)", "killed"),
    "scale_scores": ("while True:\n    print('x' * 1000)", "killed"),
    "by_hand_three": ("raise SystemExit", "error"),
    "attention_batched": (
        "def attention_batched(q, k, v):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)",
        "killed",
    ),
    "soft_lookup": ("def soft_lookup(query, keys, values, temperature):\n    return (", "error"),
    "self_attention": (
        "def self_attention(x, *W):\n    return torch.nn.functional.scaled_dot_product_attention(x, x, x), x",
        "forbidden",
    ),
}


def test_hostile_cells_cost_their_own_exercise_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(grading_kernel, "LOST_SECONDS", 0.3)  # spent on each flood, and decides over messages only
    reported = []
    graded = grade_notebook(
        submission(tmp_path, {i: s for i, (s, _) in HOSTILE.items()}), settings=QUICK, on_result=reported.append
    )
    assert outcome(graded) == {grade_id: status for grade_id, (_, status) in HOSTILE.items()}
    assert all(each.message for each in graded.exercises if each.status != "passed")
    assert [each.id for each in reported] == [question.grade_id for question in COURSE.exercises(1)]


ERRORS = {
    "softmax_row": "class E(Exception):\n    def __str__(self): raise self\ndef softmax_row(row): raise E",
    "scores": "def scores(Q, K): raise ValueError('\\x1b[31m\\x9b[red]|\\u202e\\ufffe\\ud800\\x00' + 'x' * 10**6)",
    "scale_scores": "def scale_scores(S, d_k): raise GeneratorExit",
    "soft_lookup": "def soft_lookup(*given):\n    return " + "+".join(["1"] * 1500),
    "by_hand_three": "score_33 = 10**5000\nweights_3 = [float('inf')] * 3",
    "by_hand_two": """
class A:
    def __array__(self, *rest, **named): raise KeyboardInterrupt
order_output = delayed_output = A()
""",
    "attention_batched": "def attention_batched(q, k, v):\n    return attention_batched(q, k, v)",
    "self_attention": "%a\n" * 700,
    "find_the_bug": CHECKS
    + """
evidence["as_line"] = __import__("json").dumps
evidence["gather"] = lambda day, name, names, hidden=False: {
    "exercise": name, "hidden": hidden, "outcomes": [{"rung": [1]}, 7]
}
def broken_attention(q, k, v): return 1, 2
""",
}


@pytest.mark.thorough("hostile errors and evidence in one notebook")
def test_hostile_errors_and_evidence_cost_their_own_exercise_and_give_clean_messages(tmp_path):
    graded = grade_notebook(submission(tmp_path, ERRORS), settings=QUICK)
    assert set(outcome(graded)) == set(ERRORS)
    assert all(each.message.isprintable() and len(each.message) < 700 for each in graded.exercises)
    ElementTree.fromstring(as_junit([graded]))


LOOP = "while True: i = (i + 1) % 7"
WHERE = {
    "said": (f"\ndef softmax_row(row):\n    i = 0\n    {LOOP}", f" It was at line 3 of your cell: {LOOP}"),
    "not said": (
        f"import signal\ndef softmax_row(row):\n    i = signal.signal(2, signal.SIG_IGN) and 0\n    {LOOP}",
        "",
    ),
}


@pytest.mark.parametrize("where", WHERE)
def test_an_endless_loop_is_named_by_its_line_unless_it_cannot_be_interrupted(tmp_path, where):
    answer, message = WHERE[where]
    graded = grade_notebook(submission(tmp_path, {"softmax_row": answer}), settings=QUICK)
    (stopped,) = (each for each in graded.exercises if each.id == "softmax_row")
    assert (stopped.status, stopped.message) == ("timeout", f"The cell worked for more than 0.8 s.{message}")


DRIP = "def drip():\n    while True:\n        print('.', flush=True)\n        time.sleep(0.3)\n"
BUSY = """
import threading, time
from ipykernel.kernelapp import IPKernelApp
IPKernelApp.instance().kernel._publish_status = lambda *a, **k: None
IPKernelApp.instance().kernel._publish_status_and_flush = lambda *a, **k: None
"""


@pytest.mark.thorough("a cell whose output drips is ended when it has waited for too long")
def test_a_drip_of_output_does_not_hold_the_grader_nor_does_a_kernel_that_stays_busy(tmp_path):
    answers = {
        "soft_lookup": f"import time\ndef soft_lookup(): pass\n{DRIP}drip()",
        "find_the_bug": f"{BUSY}{DRIP}threading.Thread(target=drip).start()\ndef broken_attention(): pass",
    }
    patient = Settings(limits=Limits(cell_seconds=1.5, idle_seconds=4))
    assert outcome(grade_notebook(submission(tmp_path, answers), settings=patient)) == dict.fromkeys(answers, "timeout")


def test_what_an_answer_that_passes_leaves_behind_costs_no_other_exercise(tmp_path):
    alarm = """
import signal
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(600)
def self_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
"""
    late = (
        "import signal\nif signal.getitimer(signal.ITIMER_REAL)[0]:\n    signal.setitimer(signal.ITIMER_REAL, 1e-6)\n"
    )
    right = reference_answers(COURSE.notebook(1))["find_the_bug"]
    answers = {"self_attention": alarm, "find_the_bug": late + right}
    assert outcome(grade_notebook(submission(tmp_path, answers))) == {}


def test_a_kernel_that_does_not_start_is_said_to_be_nobodys_fault(tmp_path):
    graded = grade_notebook(submission(tmp_path), settings=Settings(limits=Limits(memory_bytes=2**24)))
    assert set(outcome(graded).values()) == {"error"}
    assert all("no kernel starts" in each.message for each in graded.exercises)


def test_a_given_cell_that_fails_is_said_to_be_nobodys_fault(tmp_path, monkeypatch):
    official = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(1))))
    provided_cells(official)[0].source = "raise OSError('no torch here')"
    path = submission(tmp_path)
    monkeypatch.setattr("course_utils.answer_key.key.AnswerKey.notebook", lambda self, day: official)
    graded = grade_notebook(path)
    assert all("OSError: no torch here" in each.message for each in graded.exercises)


def test_an_interrupt_stops_the_grading(tmp_path):
    def interrupt(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_notebook(submission(tmp_path), on_result=interrupt)


def test_when_the_time_of_the_notebook_is_up_the_rest_is_timeout_and_what_passed_stays(tmp_path):
    endless = "def self_attention(*args): pass\nwhile True: pass"
    short = Settings(seconds=1.5, limits=Limits(cell_seconds=60))
    graded = grade_notebook(submission(tmp_path, {"self_attention": endless}), settings=short)
    late = ["self_attention", "find_the_bug", "attention_batched", "tells_right"]
    assert outcome(graded) == dict.fromkeys(late, "timeout")
    assert {each.message for each in graded.exercises[-4:]} == {"The time for the whole notebook was used up."}
    assert graded.score == 17


@pytest.mark.thorough("a notebook graded while six other processes want the processors")
def test_a_machine_that_is_busy_with_other_things_costs_nobody_a_point(tmp_path):
    """The answer works for 2 of its 3 seconds, while six others want the same processors."""
    slow = "import time\nwhile time.process_time() < 2: pass\n" + RIGHT_SCALE
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        graded = grade_notebook(
            submission(tmp_path, {"scale_scores": slow}), settings=Settings(limits=Limits(cell_seconds=3))
        )
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert graded.score == graded.max_score


# Files that are no submission ---------------------------------------------------------------------------------------

BROKEN = {
    "missing": (None, "no such file"),
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "truncated": (lambda: nbformat.writes(unfilled()).encode()[:5000], "cut off"),
    "text": (b"hello", "not JSON"),
    "binary": (b"\x89PNG\r\n\x1a\n\xff\xfe", "UTF-8"),
    "deep": (b"[" * 100_000, "nested"),
    "list": (b"[1, 2]", "not a notebook"),
    "object": (b'{"cells": []}', "not a notebook"),
    "no cells": (b'{"nbformat": 4, "cells": "x"}', "without cells"),
    "old": (b'{"nbformat": 3, "worksheets": []}', "format 3"),
    "future": (b'{"nbformat": 5, "cells": []}', "format 5"),
    "number": (b'{"nbformat": 4' + b"0" * 9000 + b"}", ""),
    "too much code": (
        lambda: json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "x" * 19_000}] * 120}).encode(),
        "code",
    ),
    "strange cells": (b'{"nbformat": 4, "cells": [1, null, {"cell_type": "code", "source": 7}]}', "exercises"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_submission_is_unreadable_in_one_line(tmp_path, kind):
    content, reason = BROKEN[kind]
    path = tmp_path / "day1_x.ipynb"
    if content is not None:
        path.write_bytes(content() if callable(content) else content)
    graded = grade_notebook(path)
    assert (graded.status, graded.score, graded.max_score) == ("unreadable", 0, POINTS)
    assert reason in graded.message
    assert "\n" not in graded.message


@pytest.mark.parametrize("lesson", sorted((ROOT / "notebooks").glob("day*.ipynb")), ids=lambda path: path.stem)
@pytest.mark.parametrize("name", ["", "mine.ipynb"], ids=["by its name", "renamed"])
def test_a_lesson_in_place_of_the_exercises_is_named_as_such(tmp_path, lesson, name):
    path = tmp_path / (name or lesson.name)
    path.write_bytes(lesson.read_bytes())
    graded = grade_notebook(path)
    message = "this is the lesson; hand in the notebook of the same name from exercises/"
    assert (graded.status, graded.message) == ("unreadable", f"{path.name}: {message}")
    page = " ".join(feedback_page(graded, COURSE).split())
    assert "Open your notebook from the folder <code>exercises/</code>" in page


def test_a_hostile_file_name_stays_one_line_that_can_be_printed(tmp_path):
    path = tmp_path / os.fsdecode(b"day1_\xff\x1b[31m\n.ipynb")
    path.touch()
    assert grade_notebook(path).message.isprintable()


def test_a_folder_or_a_pipe_is_unreadable(tmp_path):
    os.mkfifo(tmp_path / "day1_pipe.ipynb")
    (tmp_path / "day1_folder.ipynb").mkdir()
    for name in ("pipe", "folder"):
        assert grade_notebook(tmp_path / f"day1_{name}.ipynb").status == "unreadable"


def test_another_days_notebook_is_unreadable(tmp_path):
    def rename(notebook):
        for cell in notebook.cells:
            grading = cell.metadata.get("nbgrader")
            if grading and "find_the_bug" not in grading["grade_id"]:
                grading["grade_id"] = f"other_{grading['grade_id']}"
                cell["id"] = grading["grade_id"]

    assert "another day" in grade_notebook(submission(tmp_path, change=rename)).message


def test_the_day_is_read_from_the_name_or_the_cells(tmp_path):
    assert (day_of("day12_x.ipynb"), day_of("ada.ipynb")) == (12, None)
    assert day_in_cells(notebook_in(submission(tmp_path))) == 1
    with pytest.raises(Unreadable, match="--day"):
        day_in_cells(read_notebook(b'{"nbformat": 4, "cells": []}', "x.ipynb"))


def test_odd_cells_among_good_ones_are_passed_over(tmp_path):
    path = tmp_path / "x.ipynb"
    cells = [
        None,
        {"cell_type": "code"},
        {"cell_type": "code", "source": ["a", 1]},
        {"cell_type": "code", "metadata": 3, "source": "def f(): return 1"},
    ]
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    asked = [OfficialExercise("f", 1.0, ("f",), "def f(): pass")]
    assert read_answers(notebook_in(path), asked) == {"f": "def f(): return 1"}


# The command --------------------------------------------------------------------------------------------------------


def test_the_command_grades_and_reports_and_too_few_points_give_status_1(tmp_path):
    nbformat.write(unfilled(), tmp_path / "day1_ada.ipynb")
    arguments = ["grade", "day1_ada.ipynb", "--out", "grades", "--cold"]
    code, output, _ = course(*arguments, cwd=tmp_path)
    assert (code, f"0 of {POINTS} points" in output) == (0, True)
    (graded,) = json.loads((tmp_path / "grades" / "grades.json").read_text())["submissions"]
    assert (graded["student"], graded["score"]) == ("day1_ada", 0)
    code, _, complaint = course(*arguments, "--fail-under", "1", cwd=tmp_path)
    assert (code, complaint) == (1, f"course: 0 of {POINTS} points, below 1 %\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.ipynb"], "no such file"),
        (["day1_x.ipynb", "--day", "2", "--cold"], "the exercises of another day"),
        (["day1_x.ipynb", "--day", "99"], "no exercises for day 99"),
        (["day1_x.ipynb", "--day", "0"], "no exercises for day 0"),
        (["day1_x.ipynb", "--day", "one"], "--day"),
        (["day1_x.ipynb", "--fail-under", "101"], "--fail-under"),
        (["day1_x.ipynb", "--timeout", "0"], "--timeout"),
        (["day1_x.ipynb", "--out", "day1_x.ipynb"], "no reports can be written there"),
        (["--frobnicate"], "--frobnicate"),
        ([], "give the notebooks"),
        (["notes.md"], "notes.md is not a notebook: give files that end in .ipynb, or folders or zips of them"),
        (["nowhere"], "no such file"),
        (["nowhere.zip"], "no such file"),
        (["day1_x.ipynb", "--bundle", "."], "not a grader's bundle"),
        (["day1_x.ipynb", "--out", "o", "--gradebook", "nope.csv"], "nope.csv: no such file"),
        (["day1_x.ipynb", "--out", "o", "--gradebook", "."], "this is a folder, not a gradebook"),
    ],
)
def test_a_wrong_command_gets_one_line_and_status_2(tmp_path, arguments, message):
    nbformat.write(unfilled(), tmp_path / "day1_x.ipynb")
    (tmp_path / "notes.md").write_text("# Notes")
    code, _, complaint = course("grade", *arguments, cwd=tmp_path)
    assert code == 2
    assert message in complaint
    assert complaint.count("\n") == 1, complaint


def test_a_file_that_is_no_notebook_is_refused_before_the_grader_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "notes.md").write_text("# Notes")
    monkeypatch.setitem(sys.modules, "course_utils.grading.run", None)
    assert course("grade", "notes.md", cwd=tmp_path)[0] == 2


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_confinement_that_is_asked_for_and_cannot_be_had_is_an_error(tmp_path, monkeypatch, start):
    monkeypatch.setattr(confinement, "_find_obstacle", lambda level: "bubblewrap is not installed")
    path = submission(tmp_path, {})
    arguments = ["grade", str(path), "--require-confinement", *(["--cold"] if start == "cold" else [])]
    ended = CliRunner().invoke(app, arguments)
    assert isinstance(ended.exception, confinement.NotConfined) and "is not installed" in str(ended.exception)
