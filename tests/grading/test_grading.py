"""Grading one notebook: what counts, what does not, and what no submission can do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from hostile.entries import CHECKS
from in_process import course
from typer.testing import CliRunner

from course_utils.authoring.cut import release_exercise
from course_utils.authoring.official import COURSE, Question, given_cells
from course_utils.cli import app
from course_utils.course import day_of
from course_utils.errors import Unreadable
from course_utils.grading import plugin
from course_utils.grading.grade import Settings, grade_notebook
from course_utils.grading.intake.answers import day_in_cells, read_answers, same_code
from course_utils.grading.reports.report import as_junit
from course_utils.sandbox import confinement, kernel
from course_utils.sandbox.confinement import write_kernel_library
from course_utils.sandbox.limits import Limits

ROOT = Path(__file__).parents[2]
UNFILLED = release_exercise(COURSE.notebook(1))  # not the file in exercises/, which a learner may have solved
IDS = [question.grade_id for question in COURSE.questions(1)]
QUICK = Settings(limits=Limits(cell_seconds=1.5, idle_seconds=2.5))
RIGHT_SCALE = "def scale_scores(S, d_k):\n    return [[s / math.sqrt(d_k) for s in row] for row in S]"
EVEN = "def softmax_row(row):\n    return [0.3 for x in row]"
UNSHIFTED = "def softmax_row(row):\n    e = [math.exp(x) for x in row]\n    return [x / sum(e) for x in e]"


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


# Honest work --------------------------------------------------------------------------------------------------------


def test_the_solutions_score_full_marks_and_are_left_as_they_were():
    path = ROOT / "solutions" / "day1_attention_by_hand.ipynb"
    before = path.read_bytes(), path.stat().st_mtime_ns
    graded = grade_notebook(path)
    assert (graded.score, graded.max_score, graded.status) == (31, 31, "passed")
    assert [each.id for each in graded.exercises] == IDS
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_one_slip_costs_its_own_exercise_and_is_named(tmp_path):
    graded = grade_notebook(submission(tmp_path, {"softmax_row": UNSHIFTED}))
    assert outcome(graded) == {"softmax_row": "failed"}
    assert graded.score == 29
    slip = next(each for each in graded.exercises if each.id == "softmax_row")
    assert slip.misconception == "softmax without max-shift"
    assert "max(row)" in slip.message


def test_the_notebook_and_the_grader_take_the_same_roundings(tmp_path):
    entries = "score_33 = 2\nweights_3 = (0.248, 0.248, 0.504)"
    assert grade_notebook(submission(tmp_path, {"by_hand_three": entries})).score == 31


@pytest.mark.parametrize("blank", ["", "# later", "\n\n"])
def test_an_emptied_answer_cell_is_missing(tmp_path, blank):
    graded = grade_notebook(submission(tmp_path, dict.fromkeys(IDS, blank)))
    assert set(outcome(graded).values()) == {"missing"}


def test_a_forbidden_call_brought_by_another_answer_costs_the_exercise_that_makes_it(tmp_path):
    answers = {
        "scores": "from torch.nn.functional import scaled_dot_product_attention as lib\n"
        "def scores(Q, K):\n    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]",
        "self_attention": "def self_attention(x, W_q, W_k, W_v):\n    return lib(x @ W_q, x @ W_k, x @ W_v), None",
    }
    assert outcome(grade_notebook(submission(tmp_path, answers))) == {"self_attention": "forbidden"}


def test_a_thread_that_one_answer_leaves_costs_the_others_nothing(tmp_path):
    leaves = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    scores = "def scores(Q, K):\n    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]"
    assert outcome(grade_notebook(submission(tmp_path, {"scores": leaves + scores}))) == {}


def test_asking_for_input_is_an_error_and_not_an_answer_still_to_come(tmp_path):
    asks = {"scores": "def scores(Q, K):\n    return input('?')", "soft_lookup": "raise KeyboardInterrupt"}
    graded = grade_notebook(submission(tmp_path, asks))
    assert outcome(graded) == dict.fromkeys(asks, "error")


def test_an_exercise_that_uses_a_failed_one_is_lent_a_right_one_and_only_that(tmp_path):
    blanks = dict.fromkeys(["softmax_row", "scores", "attention_batched"], "raise ValueError('not mine')")
    lazy = {"find_the_bug": "def broken_attention(q, k, v):\n    return attention_batched(q, k, v)"}
    graded = grade_notebook(submission(tmp_path, blanks | lazy))
    assert outcome(graded) == dict.fromkeys([*blanks, *lazy], "error")


def test_what_builds_on_a_failed_answer_shares_one_kernel_and_the_rest_goes_on_in_its_own(tmp_path, monkeypatch):
    launch, launched = plugin.GradedNotebook.launch, []
    monkeypatch.setattr(plugin.GradedNotebook, "launch", lambda book: launched.append(1) or launch(book))
    graded = grade_notebook(submission(tmp_path, {"softmax_row": EVEN}))
    assert outcome(graded) == {"softmax_row": "failed"}  # attention_lists and soft_lookup were lent one
    assert len(launched) == 3  # and one for the test of implementations


def test_an_answer_cell_that_raises_is_told_by_what_it_raised_and_not_by_what_it_lacks_then(tmp_path):
    told = "ZeroDivisionError: division by zero"
    result = next(
        each
        for each in grade_notebook(submission(tmp_path, {"softmax_row": f"one = 1 / 0\n{EVEN}"})).exercises
        if each.id == "softmax_row"
    )
    assert (result.message, result.misconception) == (f"The answer cell raised {told}", f"raises {told}")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def softmax_row(row)\n    return row", "SyntaxError: expected ':' (line 1)"),
        ("def softmax_row(row):\n    a = 1\n      return a", "IndentationError: unexpected indent (line 3)"),
    ],
)
def test_an_answer_that_is_no_python_is_no_slip_with_a_name(tmp_path, source, told):
    graded = grade_notebook(submission(tmp_path, {"softmax_row": source}))
    (result,) = (each for each in graded.exercises if each.id == "softmax_row")
    assert (result.message, result.misconception) == (f"The answer cell raised {told}", None)


def test_an_answer_that_fails_beside_a_lent_one_leaves_nothing_behind(tmp_path):
    breaks = "def attention_lists(q, k, v):\n    math.exp = None\n    return softmax_row(q)"
    answers = {"softmax_row": EVEN, "attention_lists": breaks}
    assert outcome(grade_notebook(submission(tmp_path, answers))).keys() == answers.keys()


def test_of_two_entries_by_hand_each_earns_its_share(tmp_path):
    graded = grade_notebook(submission(tmp_path, {"by_hand_three": "score_33 = 2\nweights_3 = [0.212, 0.212, 0.576]"}))
    (result,) = (each for each in graded.exercises if each.id == "by_hand_three")
    assert (result.score, result.misconception) == (1, "no scaling")


def test_a_half_done_notebook_gets_what_is_done(tmp_path):
    def unfill(notebook):
        for cell, blank in zip(notebook.cells, UNFILLED.cells, strict=True):
            if cell.metadata.get("nbgrader", {}).get("grade_id") in {"softmax_row", "scores", "find_the_bug"}:
                cell.source = blank.source

    graded = grade_notebook(submission(tmp_path, change=unfill))
    assert outcome(graded) == dict.fromkeys(["softmax_row", "scores", "find_the_bug"], "missing")
    assert graded.score == 25


def test_prints_and_a_failing_trial_in_the_answer_cell_cost_nothing(tmp_path):
    source = """
def scale_scores(S, d_k):
    print("S is", S)
    return [[s / d_k**0.5 for s in row] for row in S]
scale_scores(1, 2)
"""
    assert grade_notebook(submission(tmp_path, {"scale_scores": source})).score == 31


def test_a_helper_that_no_cell_defines_is_explained(tmp_path):
    graded = grade_notebook(submission(tmp_path, {"scores": "def scores(Q, K):\n    return my_dots(Q, K)"}))
    said = next(each.message for each in graded.exercises if each.id == "scores")
    assert "name 'my_dots' is not defined" in said and said.endswith("No cell of the notebook defines it by that name.")


# Where the answers are found ----------------------------------------------------------------------------------------


def test_answers_are_found_by_name_where_the_ids_were_lost(tmp_path):
    def lose_ids(notebook):
        for number, cell in enumerate(notebook.cells):
            cell.metadata, cell["id"] = {}, f"cell-{number}"

    assert grade_notebook(submission(tmp_path, change=lose_ids)).score == 31


def test_an_answer_written_in_a_new_cell_beside_the_untouched_stub_counts(tmp_path):
    def add(notebook):
        notebook.cells.append({"cell_type": "code", "metadata": {}, "source": UNSHIFTED, "outputs": []})

    stub = next(q.stub for q in COURSE.questions(1) if q.grade_id == "softmax_row")
    graded = grade_notebook(submission(tmp_path, {"softmax_row": stub}, add))
    assert outcome(graded) == {"softmax_row": "failed"}


def test_of_a_duplicated_answer_cell_the_last_counts(tmp_path):
    def duplicate(notebook):
        cell = next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "scores")
        notebook.cells.append({**cell, "source": "def scores(Q, K):\n    return 0"})

    assert outcome(grade_notebook(submission(tmp_path, change=duplicate))) == {"scores": "failed"}


@pytest.mark.parametrize("source", ["f = lambda row: row", "class f:\n    pass", "def f(row:"])
def test_an_answer_is_found_by_name_however_the_function_is_defined(tmp_path, source):
    cells = [{"cell_type": "code", "source": text} for text in (source, "f = f(1)\ndef g(f): pass")]
    (tmp_path / "x.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    assert read_answers(
        (tmp_path / "x.ipynb").read_bytes(), "x.ipynb", [Question("f", 1.0, ("f",), "def f(): pass")]
    ) == {"f": source}


def test_entries_by_hand_may_be_set_in_one_line(tmp_path):
    (tmp_path / "x.ipynb").write_text(
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "a, b = 1, 2"}]})
    )
    assert read_answers(
        (tmp_path / "x.ipynb").read_bytes(), "x.ipynb", [Question("f", 1.0, ("a", "b"), "a = None", by_hand=True)]
    )


def test_comments_and_spacing_do_not_make_a_stub_an_answer():
    assert same_code("def f():\n    raise E  # todo", "# mine\ndef f():\n\n    raise E")
    assert not same_code("def f():\n    return 1", "def f():\n    return 2")


# What a submission brings along is not believed ---------------------------------------------------------------------


def test_cells_outputs_points_and_tags_of_the_submission_do_not_count(tmp_path):
    def tamper(notebook):
        for cell in notebook.cells:
            grading = cell.metadata.get("nbgrader", {})
            if grading.get("grade"):
                grading["points"] = 1000
                cell.source, cell.metadata["tags"] = "# NBVAL_SKIP", ["nbval-skip"]
        notebook.cells.insert(
            0, {"cell_type": "code", "metadata": {}, "source": "import os; os._exit(1)", "outputs": []}
        )

    graded = grade_notebook(submission(tmp_path, {"softmax_row": UNSHIFTED}, tamper))
    assert (graded.score, graded.max_score) == (29, 31)


def test_patching_what_the_checks_use_gains_nothing(tmp_path):
    patches = (
        CHECKS
        + """
import IPython.display, numpy
numpy.allclose = numpy.isclose = lambda *a, **k: True
IPython.display.display = lambda *a, **k: None
for name in [name for name in evidence if not name.startswith("__")]:
    evidence[name] = lambda *a, **k: True
check = lambda *a, **k: True
def softmax_row(row):
    return [1.0] * len(row)
"""
    )
    graded = grade_notebook(submission(tmp_path, {"softmax_row": patches}))
    assert outcome(graded) == {"softmax_row": "error"}
    assert graded.score == 29


def test_forged_evidence_gains_nothing(tmp_path):
    forger = """
from IPython.display import display
mime = "application/vnd.course.evidence+json"
for hidden in (False, True):
    display({mime: {"exercise": "softmax_row", "hidden": hidden, "outcomes": []}}, raw=True)
def softmax_row(row):
    display({mime: {"exercise": "softmax_row", "hidden": False, "outcomes": [], "score": 99}}, raw=True)
    return [1.0 / len(row)] * len(row)
"""
    assert outcome(grade_notebook(submission(tmp_path, {"softmax_row": forger}))) == {"softmax_row": "error"}


def test_files_beside_the_submission_take_no_part(tmp_path, monkeypatch):
    trap = tmp_path / "trap"
    code = f"import pathlib; pathlib.Path({str(trap)!r}).touch()"
    for name in ("conftest.py", "sitecustomize.py", "numpy.py", "math.py"):
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    monkeypatch.chdir(tmp_path)
    assert grade_notebook(submission(tmp_path)).score == 31
    assert not trap.exists()
    assert os.environ["PYTEST_ADDOPTS"] == "--collect-only"


def test_the_kernel_gets_no_answers(tmp_path):
    write_kernel_library(tmp_path)
    code = (
        "from course_utils.checks import checks_for; checks_for(1); import course_utils; print(course_utils.__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert found.stdout.startswith(str(tmp_path)), found.stderr
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py"))
    assert files == [
        "course_utils/__init__.py",
        "course_utils/checks/__init__.py",
        "course_utils/checks/code_files.py",
        "course_utils/checks/evidence.py",
        "course_utils/checks/forbidden.py",
        *(f"course_utils/checks/inputs/{path.name}" for path in confinement.INPUTS),
        "course_utils/checks/measures.py",
        "course_utils/checks/recording.py",
        "course_utils/checks/remote.py",
        "course_utils/checks/results.py",
        *(f"inside/{path.name}" for path in sorted(confinement.INSIDE.glob("*.py"))),
    ]


def test_the_answer_cell_sees_no_answers_and_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_TEST_TOKEN", "hush")
    spy = """
import os
from importlib import import_module as find
assert not hasattr(check, "__globals__") and not hasattr(check, "__wrapped__")
def scale_scores(S, d_k):
    assert "COURSE_TEST_TOKEN" not in os.environ
    assert not os.path.exists("solutions")
    for name in ("verdict", "answers", "interactive"):
        try:
            find("course_utils.checks." + name)
        except ImportError:
            continue
        raise AssertionError(name)
    return [[s / d_k**0.5 for s in row] for row in S]
"""
    graded = grade_notebook(submission(tmp_path, {"scale_scores": spy}))
    assert graded.score == 31, outcome(graded)


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
    monkeypatch.setattr(kernel, "LONGEST_END", 0.3)  # spent on each flood, and decides over messages only
    heard = []
    graded = grade_notebook(
        submission(tmp_path, {i: s for i, (s, _) in HOSTILE.items()}), settings=QUICK, on_result=heard.append
    )
    assert outcome(graded) == {grade_id: status for grade_id, (_, status) in HOSTILE.items()}
    assert all(each.message for each in graded.exercises if each.status != "passed")
    assert [each.id for each in heard] == IDS


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
evidence["gather"] = lambda day, name, names, hidden=False: {
    "exercise": name, "hidden": hidden, "outcomes": [{"rung": [1]}, 7]
}
def broken_attention(q, k, v): return 1, 2
""",
}


def test_hostile_errors_and_evidence_cost_their_own_exercise_and_give_clean_messages(tmp_path):
    graded = grade_notebook(submission(tmp_path, ERRORS), settings=QUICK)
    assert set(outcome(graded)) == set(ERRORS)
    assert all(each.message.isprintable() and len(each.message) < 700 for each in graded.exercises)
    ElementTree.fromstring(as_junit([graded]))


def test_a_cell_that_keeps_the_kernel_busy_and_drips_is_timed_as_a_cell(tmp_path):
    busy = """
import threading, time
from ipykernel.kernelapp import IPKernelApp
IPKernelApp.instance().kernel._publish_status = lambda *a, **k: None
IPKernelApp.instance().kernel._publish_status_and_flush = lambda *a, **k: None
def drip():
    while True:
        print(".", flush=True)
        time.sleep(0.3)
threading.Thread(target=drip).start()
def find_the_bug(): pass
"""
    graded = grade_notebook(submission(tmp_path, {"find_the_bug": busy}), settings=QUICK)
    assert outcome(graded) == {"find_the_bug": "timeout"}
    assert graded.seconds < 60


def test_what_an_answer_that_passes_leaves_behind_costs_no_other_exercise(tmp_path):
    alarm = """
import signal
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(2)
def self_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    weights = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
"""
    right = next(
        c.source for c in COURSE.notebook(1).cells if c.metadata.get("nbgrader", {}).get("grade_id") == "find_the_bug"
    )
    late = "import time\ntime.sleep(2.5)\n" + right
    assert grade_notebook(submission(tmp_path, {"self_attention": alarm, "find_the_bug": late})).score == 31


def test_a_slow_drip_of_output_does_not_hold_the_grader(tmp_path):
    drip = "import time\ndef find_it(): pass\nwhile True:\n    print('.', flush=True)\n    time.sleep(0.05)"
    assert outcome(grade_notebook(submission(tmp_path, {"find_the_bug": drip}), settings=QUICK)) == {
        "find_the_bug": "timeout"
    }


def test_a_memory_bomb_costs_its_own_exercise(tmp_path):
    bomb = "def soft_lookup(query, keys, values, temperature):\n    return bytearray(2**40)"
    graded = grade_notebook(submission(tmp_path, {"soft_lookup": bomb}))
    assert outcome(graded) == {"soft_lookup": "error"}


def test_memory_that_grows_step_by_step_ends_at_the_limit(tmp_path):
    grower = "def soft_lookup(query, keys, values, temperature):\n    return [np.empty(2**25) for _ in range(40)]"
    small = Settings(limits=Limits(memory_bytes=2**32))
    graded = grade_notebook(submission(tmp_path, {"soft_lookup": grower}), settings=small)
    assert outcome(graded) == {"soft_lookup": "error"}
    assert "MemoryError" in next(each.message for each in graded.exercises if each.id == "soft_lookup")


def test_a_kernel_that_does_not_start_is_said_to_be_nobodys_fault(tmp_path):
    graded = grade_notebook(submission(tmp_path), settings=Settings(limits=Limits(memory_bytes=2**24)))
    assert set(outcome(graded).values()) == {"error"}
    assert all("no kernel starts" in each.message for each in graded.exercises)


def test_a_given_cell_that_fails_is_said_to_be_nobodys_fault(tmp_path, monkeypatch):
    official = nbformat.from_dict(json.loads(json.dumps(COURSE.notebook(1))))
    given_cells(official)[0].source = "raise OSError('no torch here')"
    path = submission(tmp_path)
    monkeypatch.setattr("course_utils.authoring.official.Official.notebook", lambda self, day: official)
    graded = grade_notebook(path)
    assert all("OSError: no torch here" in each.message for each in graded.exercises)


def test_an_interrupt_stops_the_grading(tmp_path):
    def interrupt(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_notebook(submission(tmp_path), on_result=interrupt)


def test_when_the_time_of_the_notebook_is_up_the_rest_is_timeout_and_what_passed_stays(tmp_path):
    endless = "def soft_lookup(*args): pass\nwhile True: pass"
    short = Settings(seconds=4, limits=Limits(cell_seconds=60))
    graded = grade_notebook(submission(tmp_path, {"soft_lookup": endless}), settings=short)
    assert outcome(graded) == dict.fromkeys(["soft_lookup", "self_attention", "find_the_bug", "tells_right"], "timeout")
    assert {each.message for each in graded.exercises[-4:]} == {"The time for the whole notebook was used up."}
    assert graded.score == 18


def test_waiting_at_nothing_has_a_limit_of_its_own(tmp_path):
    asleep = "import time\ndef scale_scores(S, d_k): time.sleep(60)"
    patient = Settings(limits=Limits(cell_seconds=60, idle_seconds=1.5))
    graded = grade_notebook(submission(tmp_path, {"scale_scores": asleep}), settings=patient)
    assert outcome(graded) == {"scale_scores": "timeout"}
    assert "waited for more than 1.5 s" in next(each.message for each in graded.exercises if each.id == "scale_scores")


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


def test_nothing_is_left_running_or_lying_about(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    child = """
import os, subprocess, sys
for session in (False, True):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(987)"], start_new_session=session)
for _ in range(2000):
    os.mkdir("deeper")
    os.chdir("deeper")
os._exit(1)
"""
    grade_notebook(submission(tmp_path, {"scores": child}))
    assert list((tmp_path / "scratch").iterdir()) == []
    running = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if os.access(p, os.R_OK)]
    assert not any(b"time.sleep(987)" in line for line in running)


# Files that are no submission ---------------------------------------------------------------------------------------

BROKEN = {
    "missing": (None, "no such file"),
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "truncated": (nbformat.writes(UNFILLED).encode()[:5000], "cut off"),
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
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "x" * 19_000}] * 120}).encode(),
        "code",
    ),
    "strange cells": (b'{"nbformat": 4, "cells": [1, null, {"cell_type": "code", "source": 7}]}', "exercises"),
    "lesson": ((ROOT / "notebooks" / "day1_attention_by_hand.ipynb").read_bytes(), "exercises"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_submission_is_unreadable_in_one_line(tmp_path, kind):
    content, reason = BROKEN[kind]
    path = tmp_path / "day1_x.ipynb"
    if content is not None:
        path.write_bytes(content)
    graded = grade_notebook(path)
    assert (graded.status, graded.score, graded.max_score) == ("unreadable", 0, 31)
    assert reason in graded.message
    assert "\n" not in graded.message


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
    assert day_in_cells(submission(tmp_path).read_bytes(), "ada.ipynb") == 1
    with pytest.raises(Unreadable, match="--day"):
        day_in_cells(b'{"nbformat": 4, "cells": []}', "x.ipynb")


def test_odd_cells_among_good_ones_are_passed_over(tmp_path):
    path = tmp_path / "x.ipynb"
    cells = [
        None,
        {"cell_type": "code"},
        {"cell_type": "code", "source": ["a", 1]},
        {"cell_type": "code", "metadata": 3, "source": "def f(): return 1"},
    ]
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    assert read_answers(path.read_bytes(), path.name, [Question("f", 1.0, ("f",), "def f(): pass")]) == {
        "f": "def f(): return 1"
    }


# The command --------------------------------------------------------------------------------------------------------


def test_the_command_grades_and_reports(tmp_path):
    submission(tmp_path, {"softmax_row": UNSHIFTED})
    command = [sys.executable, "-m", "course_utils", "grade", "day1_ada.ipynb"]
    ran = subprocess.run(
        [*command, "--out", "grades", "--fail-under", "92"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ran.returncode, "29 of 31 points" in ran.stdout) == (0, True)
    (graded,) = json.loads((tmp_path / "grades" / "grades.json").read_text())["submissions"]
    assert (graded["student"], graded["score"]) == ("day1_ada", 29)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.ipynb"], "no such file"),
        (["day1_x.ipynb", "--day", "2"], "the exercises of another day"),
        (["day1_x.ipynb", "--day", "99"], "no exercises for day 99"),
        (["day1_x.ipynb", "--day", "0"], "no exercises for day 0"),
        (["day1_x.ipynb", "--day", "one"], "--day"),
        (["day1_x.ipynb", "--fail-under", "101"], "--fail-under"),
        (["day1_x.ipynb", "--timeout", "0"], "--timeout"),
        (["day1_x.ipynb", "--out", "day1_x.ipynb"], "no reports can be written there"),
        (["--frobnicate"], "--frobnicate"),
        ([], "give the notebooks"),
        (["nowhere"], "no such file"),
        (["nowhere.zip"], "no such file"),
        (["day1_x.ipynb", "--bundle", "."], "not a grader's bundle"),
        (["day1_x.ipynb", "--out", "o", "--gradebook", "nope.csv"], "nope.csv: no such file"),
    ],
)
def test_a_wrong_command_gets_one_line_and_status_2(tmp_path, arguments, said):
    nbformat.write(UNFILLED, tmp_path / "day1_x.ipynb")
    code, _, complaint = course("grade", *arguments, cwd=tmp_path)
    assert code == 2
    assert said in complaint
    assert complaint.count("\n") == 1, complaint


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_confinement_that_is_asked_for_and_cannot_be_had_is_an_error(tmp_path, monkeypatch, start):
    monkeypatch.setattr(confinement, "_lacking", lambda level: "bubblewrap is not installed")
    path = submission(tmp_path, {})
    arguments = ["grade", str(path), "--require-confinement", *(["--cold"] if start == "cold" else [])]
    ended = CliRunner().invoke(app, arguments)
    assert isinstance(ended.exception, confinement.NotConfined) and "is not installed" in str(ended.exception)


def test_too_few_points_give_status_1(tmp_path):
    nbformat.write(UNFILLED, tmp_path / "day1_x.ipynb")
    code, _, said = course("grade", "day1_x.ipynb", "--fail-under", "1", cwd=tmp_path)
    assert (code, said) == (1, "course: 0 of 31 points, below 1 %\n")
