"""Right answers and keys in a kernel: how they come into it, what is left of them, and what it may be quoted with."""

import pytest
from hostile.entries import CHECKS
from test_grading import UNSHIFTED, outcome, submission

from course_utils.answer_key.key import COURSE, check_parts, checks_of, reference_answers
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import NOT_FILLED_IN, UNWRITTEN
from course_utils.checks.kernel.outcome import Evidence, Outcome, as_json, evidence_of, read_evidence
from course_utils.checks.kernel.result_numbers import NOTHING
from course_utils.grading.grade import grade_notebook
from course_utils.grading.notebook.attempts import evidence_in
from course_utils.grading.redact import LEFT_OUT, OTHER_KIND, kind_of, lent_cell, stopped_at, without_text
from course_utils.sandbox.grading_kernel import GradingKernel
from course_utils.sandbox.limits import Limits, Start

EVIDENCE = pytest.mark.thorough("the right evidence of every day but the first quoted without its text")
KEY = "ab" * 32
SETUP = "from course_utils.checks import checks_for\ncheck = checks_for(day=1)"
SEARCH = """
import gc, linecache, sys
def held(sign):
    texts = [str(list(linecache.cache.values())), str(In)]
    texts += [str(each) for each in gc.get_objects() if isinstance(each, (dict, list, tuple)) and len(each) < 9]
    return sum(sign in text for text in texts)
"""
AT_LINE = ", at line 2 of your cell: return row[1]"
SOURCES = ["\n\ndef f(row):\n    return row[1]", "x = 1"]


@pytest.fixture
def kernel():
    kernel = GradingKernel(Limits(cell_seconds=60), 120, Start())
    kernel.wait_until_ready()
    assert kernel.run(SETUP) is None
    yield kernel
    kernel.stop()


def message(graded, grade_id):
    return next(each.message for each in graded.exercises if each.id == grade_id)


# In the kernel ------------------------------------------------------------------------------------------------------


def test_a_lent_answer_works_and_its_source_cannot_be_read(kernel):
    assert kernel.run("import math") is None
    assert kernel.run("before = set(globals()) | {'before', 'softmax_row'}") is None
    right = reference_answers(COURSE.notebook(1))["softmax_row"]
    assert kernel.run(lent_cell(right)) is None
    assert kernel.run("assert softmax_row([1, 1]) == [0.5, 0.5] and set(globals()) == before") is None
    assert kernel.run("import inspect; inspect.getsource(softmax_row)").startswith("OSError")
    assert kernel.run("import linecache; assert 'exps = ' + '[' not in str(linecache.cache) + str(In)") is None


@pytest.mark.parametrize("raises", [False, True])
def test_a_seed_is_there_for_its_check_only(kernel, raises):
    other = "".join(reversed(KEY[:8]))
    assert kernel.run(f"{CHECKS}\nimport sys\nused = []") is None
    looks = """
def scores(Q, K):
    frame = sys._getframe()
    while frame.f_code is not evidence["gather"].__code__:
        frame = frame.f_back
    used.append(len(frame.f_locals["seed"]))
    if END:
        raise KeyboardInterrupt
"""
    assert kernel.run(looks.replace("END", str(raises))) is None
    kernel.answer_once(KEY)
    ends = kernel.run("check('scores', hidden=True, seed=...)")
    assert (ends or "").startswith("KeyboardInterrupt" if raises else "")
    assert kernel.run("assert set(used) == {64}") is None
    assert kernel.run(SEARCH + f"assert not held({other!r}[::-1])") is None
    assert kernel.run(f"kept = {KEY!r}\nassert held('ab' * 9)") is None  # the search finds one that is there


def test_a_seed_stands_in_no_cell_and_is_told_once(kernel):
    hook = """
from IPython import get_ipython
told, ip = [], get_ipython()
ip.events.register("pre_run_cell", lambda info: told.append(info.raw_cell))
def scores(Q, K):
    raise ValueError
"""
    assert kernel.run(f"{CHECKS}{hook}") is None
    kernel.answer_once(KEY)
    assert kernel.run("check('scores', hidden=True, seed=...)") is None
    assert kernel.run("again = evidence['_grader_connection']()('seed')") is None
    assert kernel.run(f"assert again == '\\n' and not [cell for cell in told if {KEY[:9]!r} in cell][:-1]") is None


def test_evidence_is_shown_as_it_is_whatever_an_answer_does_to_the_publisher(kernel):
    patched = """
from IPython import get_ipython
publisher, shown = get_ipython().display_pub, []
publisher.register_hook(lambda message: shown.append(message))
publisher.publish = type(publisher).publish = lambda *args, **kwargs: shown.append(args)
def scores(Q, K):
    return [[sum(a * b for a, b in zip(q, k)) for k in K] for q in Q]
"""
    assert kernel.run(patched) is None
    request = kernel.execute_cell_input("check('scores')", allow_stdin=False)
    messages = []
    while not messages or messages[-1]["content"].get("execution_state") != "idle":
        message = kernel.get_message("iopub")
        messages += [message] if message["parent_header"].get("msg_id") == request else []
    evidence = [evidence_of(each["content"]) for each in messages if each["msg_type"] == "display_data"]
    assert [(each.exercise, len(each.outcomes) > 3) for each in evidence] == [("scores", True)]
    assert kernel.run("assert shown == []") is None


# What is quoted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "quoted"),
    [
        ("ValueError: the key is 123", f"ValueError: {LEFT_OUT}"),
        ("ValueError", "ValueError"),
        (f"KeyError: 1{AT_LINE}", f"KeyError: {LEFT_OUT}{AT_LINE}"),
        (f"KeyError{AT_LINE}", f"KeyError{AT_LINE}"),
        ("KeyError, at line 1 of your cell: return row[1]", f"KeyError: {LEFT_OUT}"),
        ("KeyError: x, at line 2 of your cell: peak = max(row)", f"KeyError: {LEFT_OUT}"),
        ("peak = max(row)", OTHER_KIND),
        ("peak: max(row)", f"{OTHER_KIND}: {LEFT_OUT}"),
        ("NameError: name 'row' is not defined", "NameError: name 'row' is not defined"),
        ("NameError: name 'peak' is not defined", f"NameError: {LEFT_OUT}"),
        ("unreadable: the text 'peak = max'", "unreadable: "),
        (f"unreadable: {NOTHING}", f"unreadable: {NOTHING}"),
        (f"NotImplementedError: {UNWRITTEN}", f"NotImplementedError: {UNWRITTEN}"),
        ("NotImplementedError", "NotImplementedError"),
        ("NotImplementedError: peak", f"NotImplementedError: {LEFT_OUT}"),
        (f"NotImplementedError: peak {NOT_FILLED_IN}", f"NotImplementedError: r {NOT_FILLED_IN}"),
    ],
)  # fmt: skip
def test_of_an_error_the_kind_and_the_students_own_line_are_quoted(error, quoted):
    (outcome,) = without_text(Evidence("", False, [Outcome("r", error=error)]), SOURCES).outcomes
    assert outcome == Outcome("r", error=quoted)


@pytest.mark.parametrize("shape", [["peak"], "peak", {"peak": 1}, [1] * 9, [112, 101, 97, 10**6], [-1], [[1]]])
def test_an_odd_shape_is_not_quoted_and_still_wrong(shape):
    odd = {"outcomes": [{"rung": "r", "values": {"weights": {"shape": shape, "numbers": []}}}, "odd", {"rung": 7}]}
    assert without_text(read_evidence(odd), ()).outcomes == [Outcome("r")]


@pytest.mark.parametrize("outcomes", [None, 7, "peak", {"rung": 1}])
def test_evidence_without_a_list_of_outcomes_has_none(outcomes):
    assert without_text(read_evidence({"outcomes": outcomes}), ()) == Evidence("", False, [], [])


@pytest.mark.parametrize(
    "day", days_with_exercises()[:1] + [pytest.param(d, marks=EVIDENCE) for d in days_with_exercises()[1:]]
)
def test_right_evidence_loses_nothing_without_its_text(day):
    for grade_id in reference_answers(COURSE.notebook(day)):
        evidence = judge_of(day, grade_id).reference()
        assert as_json(without_text(evidence, ())) == as_json(evidence)


def test_only_known_kinds_are_named():
    assert [kind_of(error) for error in ("TypeError: x", "TypeError", "KeyError, at line 2", "Peak: x", "")] == [
        "TypeError", "TypeError", "KeyError", OTHER_KIND, OTHER_KIND
    ]  # fmt: skip


@pytest.mark.parametrize("day", days_with_exercises())
def test_a_check_is_run_in_the_parts_that_it_has(day):
    for grade_id, cell in checks_of(COURSE.notebook(day)).items():
        visible, *hidden = check_parts(cell)
        assert (visible.source, [each.source for each in hidden]) in (
            (f'check("{grade_id}")', [f'check("{grade_id}", hidden=True)']),
            (f'check("{grade_id}")', []),
        )
        labels = [[evidence.hidden for evidence in evidence_in(part.outputs)] for part in (visible, *hidden)]
        assert labels == [[False], [True]][: len(labels)]
        assert sum(len(part.outputs) for part in (visible, *hidden)) == len(cell.outputs)


# In a grade ---------------------------------------------------------------------------------------------------------


def test_an_error_is_quoted_where_nothing_was_lent_and_on_hidden_inputs_only_its_kind_if_it_is_known(tmp_path):
    odd = """
calls = []
def scale_scores(S, d_k):
    import sys
    frame = sys._getframe()
    while frame is not None:
        if frame.f_locals.get("hidden") is True:
            raise type("TheInputIs" + str(S)[:9], (Exception,), {})("the input is")
        frame = frame.f_back
    return [[s / math.sqrt(d_k) for s in row] for row in S]
"""
    slips = {
        "softmax_row": UNSHIFTED,
        "scores": "def scores(Q, K):\n    raise ValueError('Q has ' + str(len(Q)))",
        "scale_scores": odd,
        "find_the_bug": "raise ValueError('mine')",
    }
    graded = grade_notebook(submission(tmp_path, slips))
    assert outcome(graded) == {"softmax_row": "failed", **dict.fromkeys(list(slips)[1:], "error")}
    assert "it raised ValueError: Q has 1, at line 2 of your cell: raise ValueError" in message(graded, "scores")
    assert message(graded, "find_the_bug").startswith("The answer cell raised ValueError: mine")
    assert OTHER_KIND in message(graded, "scale_scores")
    assert "put is" not in message(graded, "scale_scores") and "TheInput" not in message(graded, "scale_scores")


BESIDE_A_LENT_ONE = {
    "raise ValueError('my own words')": "ValueError: my own words, at line 2 of your cell: raise",
    "raise ValueError(softmax_row([0, 1])[0])": f"ValueError: {LEFT_OUT}, at line 2 of your cell: raise",
    "return softmax(Q), V": "NameError: name 'softmax' is not defined, at line 2",
}


def test_beside_a_lent_answer_an_error_is_quoted_as_it_was_without_if_it_is_the_same(tmp_path):
    users = ["attention_lists", "soft_lookup", "find_the_bug"]
    heads = ["def attention_lists(Q, K, V)", "def soft_lookup(Q, K, V, T)", "def broken_attention(Q, K, V)"]
    bodies = zip(users, heads, BESIDE_A_LENT_ONE, strict=True)
    slips = {name: f"{head}:\n    {body}" for name, head, body in bodies}
    slips["softmax_row"] = UNSHIFTED.replace("math.exp(x)", "math.exp(x - 1e3)")
    graded = grade_notebook(submission(tmp_path, slips))
    for name, quoted in zip(users, BESIDE_A_LENT_ONE.values(), strict=True):
        assert outcome(graded)[name] == "error"
        assert quoted in message(graded, name)


@pytest.mark.parametrize(
    ("trace", "sentence"),
    [
        ("\x1b[32m----> 2\x1b[39m     while 1: pass\n", " It was at line 2 of your cell: while 1: pass"),
        ("----> 2     while 1: pass\n---> 40     wait()\n", " It was at line 2 of your cell: while 1: pass"),
        ("----> 1     while 1: pass", ""),
        ("----> 2     the inputs are 1 and 2", ""),
        ("----> 0 ", ""),
        ("", ""),
    ],
)
def test_a_traceback_tells_no_more_than_which_line_of_the_answer_ran(trace, sentence):
    assert stopped_at(trace, "\ndef f():\n    while 1: pass\n") == sentence
