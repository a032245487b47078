"""An answer that never ends is stopped by the check, which says where it was; an interrupt stays the learner's."""

import linecache
import signal
import sys
import textwrap
import threading
import time

import nbformat
import pytest
from nbclient import NotebookClient

from course_utils.checks import NotYet, checks_for
from course_utils.checks.examination import examine
from course_utils.checks.interactive import SAME_ANSWER
from course_utils.checks.judge import time_limit
from course_utils.checks.judge.time_limit import TimeLimit
from course_utils.checks.kernel.evidence import IN_A_CELL, gather

RIGHT = """\
import math

def softmax_row(row):
    e = [math.exp(x - max(row)) for x in row]
    return [x / sum(e) for x in e]
"""
SETUP = (
    "from course_utils.checks import checks_for\nfrom course_utils.checks.judge import time_limit\n"
    "time_limit.ANSWER_SECONDS = 0.5\ncheck = checks_for(day=1)"
)
ENDLESS = {
    "a loop": """
        while True:
            pass
        """,
    "a generator": "return [x for x in iter(int, 1)]",
    "errors that are caught": """
        while True:
            try:
                float("x")
            except:
                pass
        """,
    "a stop that is caught": """
        while True:
            try:
                while True:
                    pass
            except:
                pass
        """,
    "a stop that is caught a call further up": """
        def spin():
            while True:
                pass
        while True:
            try:
                spin()
            except BaseException:
                pass
        """,
    "a stop that is turned into another error": """
        try:
            while True:
                pass
        except BaseException:
            raise ValueError
        """,
    "a stop that is passed over at the end": """
        while True:
            try:
                while True:
                    pass
            finally:
                continue
        """,
}
PRINTING = {
    "prints": "while True: print('round and round')",
    "prints to stderr": "import sys\nwhile True: print('round', file=sys.stderr)",
    "prints whatever is raised": """
        while True:
            try:
                print('round' * 1000)
            except:
                pass
        """,
}


def cell(source, number):
    """The names that a cell defines, with the file name and the lines that it has in a notebook."""
    name = f"ipykernel_7/{number}.py"
    assert IN_A_CELL.search(name)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def answer(body):
    return "def softmax_row(row):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(time_limit, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(time_limit, "WALL", 3000)  # a busy machine may give it little of the processor


@pytest.mark.parametrize("how", ENDLESS)
def test_an_answer_without_end_is_stopped_and_the_rung_and_the_line_are_told(how, impatient):
    _, verdict = examine(1, "softmax_row", cell(answer(ENDLESS[how]), 1))
    assert (verdict.status, verdict.share) == ("timeout", 0.0)
    assert verdict.message.startswith("Stopped after 0.2 seconds of work on “one entry takes all the weight”: look for")
    (number, line) = verdict.message.partition("It was at line ")[2].split(" of your cell: ")
    assert answer(ENDLESS[how]).splitlines()[int(number) - 1].strip() == line


@pytest.mark.parametrize("how", PRINTING)
def test_an_answer_that_prints_without_end_is_stopped_before_the_page_is_full(how, monkeypatch, capsys):
    monkeypatch.setattr(time_limit, "MAX_PRINTED_CHARS", 10_000)
    _, verdict = examine(1, "softmax_row", cell(answer(PRINTING[how]), 2))
    assert verdict.message.startswith("Stopped after printing 10,000 characters on “one entry")
    assert "print('round" in verdict.message or "file=sys.stderr" in verdict.message
    out, err = capsys.readouterr()
    assert 0 < len(out + err) <= 10_000


@pytest.mark.parametrize(
    "body",
    [ENDLESS["a loop"], ENDLESS["a stop that is caught"], PRINTING["prints"], "return 1"],
    ids=["a loop", "a stop that is caught", "prints", "an end"],
)
def test_all_is_afterwards_as_it_was(body, impatient, monkeypatch, capsys):
    monkeypatch.setattr(time_limit, "MAX_PRINTED_CHARS", 10_000)
    mine, streams = (lambda number, frame: None), (sys.stdout, sys.stderr)
    before = signal.signal(signal.SIGPROF, mine), sys.gettrace()
    try:
        signal.setitimer(signal.ITIMER_PROF, 1000, 50)
        examine(1, "softmax_row", cell(answer(body), 3))
        assert signal.getsignal(signal.SIGPROF) is mine
        remaining, interval = signal.setitimer(signal.ITIMER_PROF, 0)
        assert 900 < remaining < 1100 and interval == 50
        assert sys.gettrace() is before[1] and (sys.stdout, sys.stderr) == streams
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before[0])


def test_waiting_is_no_work_and_that_of_other_threads_does_not_count(impatient):
    beside = threading.Thread(target=_work, args=(3 * time_limit.ANSWER_SECONDS,))
    with TimeLimit() as limit:
        beside.start()
        gather(1, "softmax_row", {"softmax_row": lambda row: beside.join()})
    assert limit.message == "" and not beside.is_alive()


def _work(seconds):
    """Keep this thread busy for some seconds of its processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_an_interrupt_of_the_learners_goes_through():
    def softmax_row(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examine(1, "softmax_row", {"softmax_row": softmax_row})


def test_only_an_answer_is_stopped_and_not_the_check_around_it(impatient):
    with TimeLimit() as limit:
        _work(2 * time_limit.ANSWER_SECONDS)
    assert limit.message == ""


def test_outside_the_main_thread_an_answer_is_tried_without_a_limit():
    verdicts = []
    other = threading.Thread(target=lambda: verdicts.append(examine(1, "softmax_row", cell(RIGHT, 6))[1]))
    other.start()
    other.join()
    assert verdicts[0].status == "passed"


def test_an_earlier_answer_without_end_costs_a_later_exercise_nothing(impatient):
    uses = "def attention_lists(Q, K, V):\n    return [softmax_row(q) for q in Q]\n"
    own = cell(answer(ENDLESS["a loop"]) + uses, 7)
    assert examine(1, "attention_lists", own)[1].status != "timeout"


def test_a_cell_that_was_not_run_since_the_last_check_is_told():
    check = checks_for(day=1)
    own = {"In": ["", "def softmax_row(row): return row"], "check": check, "softmax_row": lambda row: row}

    def message_now():
        own["In"].append("check('softmax_row')")
        with pytest.raises(NotYet) as caught:
            exec("check('softmax_row')", own)
        return str(caught.value)

    first, second = message_now(), message_now()
    assert second == f"{first}\n\n{SAME_ANSWER}"
    own["In"].append("def softmax_row(row): return row")
    assert message_now() == first
    own["softmax_row"] = lambda row: None  # something else that it depends on has changed
    assert SAME_ANSWER not in message_now()


@pytest.fixture(scope="module")
def kernel():
    """Runs cells in one kernel, where patience is short. Returns the outputs of each."""
    client = NotebookClient(nbformat.v4.new_notebook(), allow_errors=True, timeout=300)

    def run(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *sources)]
        for cell in cells:
            client.nb.cells.append(cell)
            client.execute_cell(cell, len(client.nb.cells) - 1)
        return [cell.outputs for cell in cells[1:]]

    with client.setup_kernel():
        yield run


def messages_in(cells):
    """What the card says in each cell that fails, "" for others; below it one line points to the card."""
    messages = []
    for outputs in cells:
        failed = outputs and outputs[-1].get("ename") == "NotYet"
        card, error = (outputs[0], outputs[-1]) if failed else ({}, {})
        messages.append(card.get("data", {}).get("text/plain", ""))
        assert not card or error.get("traceback", []) == ["softmax_row has not passed yet; the card above says why."]
    return messages


def test_in_a_notebook_the_message_stands_alone_and_the_kernel_goes_on(kernel):
    _, stopped, _, passed = kernel(
        answer(ENDLESS["a stop that is caught"]), "check('softmax_row')", RIGHT, "check('softmax_row')"
    )
    (said,) = messages_in([stopped])
    assert stopped[-1].ename == "NotYet" and "KeyboardInterrupt" not in said and "Traceback" not in said
    assert "on “one entry takes all the weight”" in said and "at line 4 of your" in said
    assert passed[0].data["text/plain"].startswith("softmax_row: passed")


def test_of_an_answer_whose_cell_failed_the_former_one_is_not_tried(kernel):
    endless = answer(ENDLESS["a stop that is caught"])
    for broken, error in ((RIGHT.replace(":", "", 1), "SyntaxError"), (f"undefined\n{RIGHT}", "NameError")):
        _, _, said = messages_in(kernel(endless, broken, "check('softmax_row')"))
        assert f"Its cell failed when it was last run, and defined nothing: {error}" in " ".join(said.split())
    *_, said = messages_in(kernel(f"{RIGHT}\nundefined", "check('softmax_row')"))
    assert said == ""  # it was defined before the cell failed, and passes


def test_an_answer_whose_cell_has_not_run_is_not_tried_and_its_check_says_what_to_run():
    for name, defined in (("softmax_row", "softmax_row"), ("by_hand_three", "score_33")):
        with pytest.raises(NotYet) as caught:
            exec(f"check({name!r})", {"check": checks_for(day=1)})
        said = " ".join(str(caught.value).split())
        assert said.endswith(
            f"No cell that has run in this kernel defines {defined}. Run the answer cell, then this check."
        )


def test_an_answer_that_was_stopped_is_not_tried_again_until_another_cell_was_run(kernel):
    endless = answer(ENDLESS["a stop that is caught"])
    counted = "tried = []\n" + endless.replace(
        "def softmax_row(row):\n", "def softmax_row(row):\n    tried.append(1)\n"
    )
    assert "tried.append" in counted
    told = "assert len(tried) == 1, len(tried)"
    _, first, second, none, again = messages_in(
        kernel(counted, "check('softmax_row')", "check('softmax_row')", told, "check('softmax_row')")
    )
    assert SAME_ANSWER not in first and SAME_ANSWER in second and none == "" and "Stopped after" in again


def test_helper_cells_of_an_answer_that_passed_are_stopped_too(kernel):
    helper = """
import os
def make():
    while "again" in os.environ:
        pass
    os.environ["again"] = "1"
    return sum
total = make()
"""
    *_, said = messages_in(kernel(helper, RIGHT.replace("sum(", "total("), "check('softmax_row')"))
    assert "the cells that it uses do not finish in time. Stopped after 0.5 seconds of work" in " ".join(said.split())


def test_an_answer_that_waits_is_stopped_by_the_clock(monkeypatch):
    monkeypatch.setattr(time_limit, "WALL", 1)
    with TimeLimit(0.2) as limit:
        tried = time_limit.runs_answer("a pause")(lambda: signal.pause())
        tried()
    assert limit.message.startswith("Stopped after 0.2 seconds by the clock")
