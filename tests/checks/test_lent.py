"""Where a statement says that the check lends an answer, it does: in the notebook, and when it is graded."""

import re

import numpy as np
import pytest
from as_cells import graded

from course_utils.answer_key.key import COURSE, provided_cells, reference_answers
from course_utils.checks.cells import used_names
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.lent import lent_functions
from course_utils.checks.kernel.evidence import all_ladders, find_ladder
from course_utils.course import ROOT
from course_utils.views.drawing import listed

DAYS = days_with_exercises()
WITH_USES = [(day, name) for day in DAYS for name, each in all_exercises(day).items() if each.uses]


def promised():
    """The exercises whose statements say that the check lends an answer."""
    for path in sorted((ROOT / "sources" / "exercises").glob("day*.md")):
        for section in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if re.search(r"\blends?\b", section):
                day = int(re.match(r"day(\d+)", path.name)[1])
                yield day, re.search(r"^  grade_id: (\w+)$", section, re.MULTILINE)[1]


def namespace_of(day, **changed):
    """What the cells define that everybody is given, and the solutions, some of them in other words."""
    namespace, notebook = {}, COURSE.notebook(day)
    for source in [cell.source for cell in provided_cells(notebook)] + [
        *(reference_answers(notebook) | changed).values()
    ]:
        exec(source, namespace)
    return namespace


def untouched(day, used):
    return next(each.stub for each in COURSE.exercises(day) if each.grade_id == used)


def wrong(day, used):
    return "\n".join(f"def {name}(*args, **named):\n    return 7" for name in find_ladder(day, used).names)


def test_what_statements_promise_is_what_exercises_use():
    promises = list(promised())
    assert len(promises) >= 11 and set(promises) <= set(WITH_USES)
    for day, name in WITH_USES:
        order = list(all_ladders(day))
        assert all(order.index(used) < order.index(name) for used in all_exercises(day)[name].uses), name


@pytest.mark.parametrize("day", DAYS)
def test_what_is_lent_is_right_and_takes_its_arguments_by_name(day):
    used = {used for name, each in all_exercises(day).items() for used in each.uses}
    assert {name for each in used for name in find_ladder(day, each).names} == set(lent_functions(day))
    for each in used:
        for hidden in (False, True):
            assert examine(day, each, dict(lent_functions(day)), hidden=hidden)[1].status == "passed", (each, hidden)


BEYOND = {  # calls that the statements do not allow, and on which a learner's own function fails
    "rows for a row": (1, "softmax_row", ([[1.0, 2.0]],)),
    "a row for rows": (1, "scale_scores", ([1.0, 2.0], 4)),
    "three axes for rows": (1, "scale_scores", ([[[1.0]]], 4)),
    "a row for queries": (1, "scores", ([1.0], [[1.0]])),
    "a list for an array": (2, "softmax", ([1.0, 2.0],)),
    "a number for do": (2, "attention_backward", (np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 4)), np.ones(()))),
    "a row for do": (2, "attention_backward", (np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 4)), np.ones((1, 4)))),
}


@pytest.mark.parametrize(("day", "name", "args"), BEYOND.values(), ids=BEYOND)
def test_what_is_lent_takes_no_more_than_the_statement_says(day, name, args):
    with pytest.raises((TypeError, ValueError, IndexError)):
        lent_functions(day)[name](*args)


def test_an_answer_passes_with_what_is_lent_only_if_it_passes_with_right_ones():
    """`attention_lists` gave softmax_row the whole matrix, which the lent function took."""
    whole = "def attention_lists(Q, K, V):\n    weights = softmax_row(scale_scores(scores(Q, K), len(K[0])))\n"
    whole += "    return [[sum(w * x for w, x in zip(row, c)) for c in zip(*V)] for row in weights], weights\n"
    for missing in ((), ("softmax_row",), ("scores", "scale_scores"), ("softmax_row", "scores", "scale_scores")):
        space = namespace_of(1, **{used: untouched(1, used) for used in missing}, attention_lists=whole)
        assert examine(1, "attention_lists", space)[1].status != "passed", missing


def test_only_what_does_not_pass_is_lent():
    """The learner's own softmax_row, which passes, stays where scores does not."""
    right = reference_answers(COURSE.notebook(1))
    row = right["softmax_row"].replace("def softmax_row(row):", "def softmax_row(row):\n    USED.extend(INSIDE)")
    layer = right["attention_lists"].replace("scaled =", "INSIDE[:] = [True]\n    scaled =", 1)
    space = namespace_of(
        1,
        scores=untouched(1, "scores"),
        softmax_row=f"USED, INSIDE = [], []\n{row}",
        attention_lists=layer,
    )
    _, verdict = examine(1, "attention_lists", space)
    assert verdict.status == "passed" and space["USED"]
    assert verdict.message == "Tried with our scores, since yours does not pass yet."


def test_errors_of_what_is_lent_have_its_own_name():
    for name, function in lent_functions(5).items():
        with pytest.raises(TypeError, match=rf"^{name}\(\) missing"):
            function()


@pytest.mark.parametrize("count", [0, 1, 7])
def test_what_is_lent_counts_nothing_as_a_right_answer_does(count):
    assert lent_functions(4)["layer_flops"](count, 8, 16) == namespace_of(4)["layer_flops"](count, 8, 16)
    own = namespace_of(5)["kv_cache_bytes"]
    assert lent_functions(5)["kv_cache_bytes"](2, 4, 8, count, 3, 2) == own(2, 4, 8, count, 3, 2)


@pytest.mark.parametrize("slip", [untouched, wrong])
@pytest.mark.parametrize(("day", "name"), WITH_USES)
def test_an_earlier_answer_that_does_not_pass_is_lent_and_named(day, name, slip):
    uses = all_exercises(day)[name].uses
    called = used_names(reference_answers(COURSE.notebook(day))[name])
    space = namespace_of(day, **{used: slip(day, used) for used in uses})
    for hidden in (False, True):
        _, verdict = examine(day, name, space, hidden=hidden)
        assert verdict.status == "passed", verdict.message
        names = [each for used in uses for each in find_ladder(day, used).names]
        if called & set(names):
            assert verdict.message.startswith(f"Tried with our {listed(names)}, since your")


def test_a_slip_of_its_own_is_told_beside_what_was_lent():
    space = namespace_of(3, causal_mask=wrong(3, "causal_mask"), causal_attention=UNSCALED)
    _, verdict = examine(3, "causal_attention", space)
    assert verdict.mistake and verdict.message.endswith(LENT_A_MASK)
    assert space["causal_mask"](3) == 7


LENT_A_MASK = "Tried with our causal_mask, since yours does not pass yet."
UNSCALED = """
def causal_attention(x, W_q, W_k, W_v):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = (q @ k.T).masked_fill(~causal_mask(len(x)), -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights
"""


@pytest.mark.parametrize(("slip", "used"), [(untouched, ("causal_mask",)), (wrong, ("causal_mask", "masked_softmax"))])
def test_a_class_loses_nothing_on_day_3_but_what_is_not_right(slip, used, tmp_path):
    """`causal_attention` is written with `causal_mask`, and `cross_attention` as its third hint says."""
    result = graded(3, tmp_path, {each: slip(3, each) for each in used})
    assert {each.id for each in result.exercises if each.score < each.max_score} == set(used)


LENDING = pytest.mark.thorough("an earlier answer untouched or wrong, graded, on the days but the third")


@LENDING
@pytest.mark.parametrize("slip", [untouched, wrong])
@pytest.mark.parametrize("day", sorted({day for day, _ in WITH_USES} - {3}))
def test_grading_lends_on_every_day_what_a_statement_says(day, slip, tmp_path):
    used = {each for of, name in WITH_USES if of == day for each in all_exercises(day)[name].uses}
    result = graded(day, tmp_path, {each: slip(day, each) for each in used})
    assert {each.id for each in result.exercises if each.score < each.max_score} == used
