"""The smallest counterexample: found for wrong answers, never for right ones, and told so that it can be pasted."""

import contextlib
import io
import itertools
import math
import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from variants import RIGHT, SLOW, day3

from course_utils.attention import lists
from course_utils.checks import checks_for, examination, interactive
from course_utils.checks.examples import smallest
from course_utils.checks.examples.example_text import BLEND, MASK, SCORES, SOFTMAX, UNSTEADY, describe_example, literal
from course_utils.checks.examples.smallest import count_numbers, find_smallest
from course_utils.checks.interactive import NotYet
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel import evidence
from course_utils.checks.kernel.evidence import find_ladder, gather
from course_utils.checks.kernel.small import Small, draw_args

FUNCTIONS = [
    (day, grade_id)
    for day in days_with_exercises()
    for grade_id in all_exercises(day)
    if not (find_ladder(day, grade_id).by_hand or find_ladder(day, grade_id).duel or find_ladder(day, grade_id).machine)
]
DRAWN = [key for key in FUNCTIONS if find_ladder(*key).small]
OTHER = pytest.mark.thorough("the smallest counterexample is looked for in all exercises and in more answers")
QUICK = [
    pytest.param(day, name, id=f"day{day}-{name}", marks=OTHER if day not in (1, 7) else ())
    for day, name in DRAWN
    if name not in SLOW
]
for number in days_with_exercises():
    import_module(f"variants.day{number}")  # registers its answers
LENT = "import math\nimport numpy as np\nimport torch\n"
LENT += "from course_utils.days.day6 import launch, launch_rows\n"


def namespace_with(day, grade_id, answer):
    """A notebook with this answer, and references for all others of the day."""
    others = {name: f for each in all_exercises(day).values() for name, f in each.reference.items()}
    named = answer if isinstance(answer, dict) else dict.fromkeys(find_ladder(day, grade_id).names, answer)
    return others | named


def example_of(day, grade_id, answer, seconds=10.0):
    """The example, its judge and the text; with more time than a learner is given, for a busy machine."""
    judge, namespace = judge_of(day, grade_id), namespace_with(day, grade_id, answer)
    verdict = judge.judge(gather(day, grade_id, namespace))
    assert verdict.status in ("failed", "error")
    example = find_smallest(judge, namespace, dict(verdict.rungs), seconds)
    return example, judge, describe_example(example, judge) if example else ""


def some_mistakes(day, grade_id, count):
    """About so many of the known mistakes, of those that are judged by what they give."""
    judge = judge_of(day, grade_id)
    mistakes = judge.exercise.mistakes
    for mistake in mistakes[:: max(1, len(mistakes) // count)]:
        if judge.judge(gather(day, grade_id, namespace_with(day, grade_id, mistake.answer))).status != "forbidden":
            yield mistake


def test_the_exercises_without_small_inputs_are_those_that_draw_at_random_or_have_small_ones_anyway():
    at_random = {(2, "dot_product_stats"), (2, "saturation")}
    small_anyway = {(8, "patches_and_back"), (9, "first_checks"), (9, "assemble")} & set(FUNCTIONS)
    assert set(FUNCTIONS) - set(DRAWN) == at_random | small_anyway


@pytest.mark.parametrize(("day", "grade_id"), QUICK)
def test_known_mistakes_have_an_example_and_its_code_runs(day, grade_id):
    """A few of each exercise; the benchmark has all."""
    for mistake in some_mistakes(day, grade_id, 3):
        judge, namespace = judge_of(day, grade_id), namespace_with(day, grade_id, mistake.answer)
        held = dict(judge.judge(gather(day, grade_id, namespace)).rungs)
        failed = [rung for rung in judge.rungs() if not held[rung.name]]
        if all(smallest.small_for(judge.ladder, rung) is None for rung in failed):
            continue  # what fails is how it works, not what it gives
        example = find_smallest(judge, namespace, held, 10.0)
        text = describe_example(example, judge)
        assert text and example.numbers <= count_numbers(failed[0].args), mistake.name
        run_with_a_right_answer(day, grade_id, text)


def run_with_a_right_answer(day, grade_id, text):
    """Run the code that is shown: it must raise nothing of its own."""
    code = "\n".join(line[4:] for line in text.split("\n\n")[1].splitlines())
    right = namespace_with(day, grade_id, RIGHT[day, grade_id][0])
    exec(LENT, right)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, right)


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=OTHER)])
@pytest.mark.parametrize(("day", "grade_id"), QUICK)
def test_right_answers_have_none(day, grade_id, number):
    judge = judge_of(day, grade_id)
    nothing_held = dict.fromkeys((rung.name for rung in judge.rungs()), False)
    answer = RIGHT[day, grade_id][number]
    example = find_smallest(judge, namespace_with(day, grade_id, answer), nothing_held, seconds=0.4)
    assert example is None or not example.drawn, (answer, example)


def test_the_same_answer_has_the_same_example():
    texts = {example_of(3, "causal_attention", day3.attention_in_single_precision_inside)[2] for _ in range(2)}
    assert len(texts) == 1


def attention(scale=True, axis=-1, bias=0, weights_of=lambda w: w, blend=lambda w, v: w @ v):
    def attention_batched(q, k, v):
        scores = q @ np.swapaxes(k, -1, -2) / (math.sqrt(q.shape[-1]) if scale else 1)
        scores = scores + bias * np.arange(k.shape[-2])
        e = np.exp(scores - scores.max(axis=axis, keepdims=True))
        weights = weights_of(e / e.sum(axis=axis, keepdims=True))
        return blend(weights, v), weights

    return attention_batched


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (attention(scale=False), "at the scale: your weights are those of the right scores times"),
        (attention(axis=-2), SOFTMAX),
        (attention(weights_of=lambda w: w / 2), SOFTMAX),
        (attention(blend=lambda w, v: 2 * (w @ v)), BLEND),
        (attention(bias=1), SCORES),
    ],
    ids=["scale", "wrong axis", "not normalised", "blend", "scores"],
)
def test_the_first_step_that_is_wrong_is_named(answer, said):
    assert said in example_of(1, "attention_batched", answer)[2]


def with_the_largest_of_the_column(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    exps = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = exps / exps.sum(axis=-1, keepdims=True)
    return weights @ v, weights


def test_the_bug_half_mended_is_not_said_to_be_in_the_scale():
    text = example_of(1, "find_the_bug", with_the_largest_of_the_column)[2]
    assert SCORES in text and "at the scale" not in text


def test_where_no_known_slip_is_named_the_stage_comes_first():
    verdict = Verdict("failed", 0.0, "It is wrong.", "right only on “one key”")
    check_message = CheckMessage(
        1, "attention_batched", verdict, example=f"The smallest input:\n\n    f(1)\n\n{SOFTMAX}"
    )
    first = examination.put_stage_first(check_message)
    stage = SOFTMAX.removeprefix("They ")
    message = f"On the smallest input below, your numbers and the right ones {stage} It is wrong."
    assert first.verdict.message == message and SOFTMAX not in first.example
    named = replace(check_message, verdict=replace(verdict, mistake="softmax over queries; softmax without max-shift"))
    assert examination.put_stage_first(named) == named


def test_a_mask_that_is_not_kept_is_named():
    def masked(q, k, v, mask):
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights

    assert MASK in example_of(3, "find_the_bug", masked)[2]

    def causal(x, W_q, W_k, W_v):
        q, k, v = x @ W_q, x @ W_k, x @ W_v
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights

    assert MASK in example_of(3, "causal_attention", causal)[2]


def test_the_stepper_gets_a_causal_mask_even_where_large_scores_give_zeros_below_the_diagonal():
    def masked_after(x, W_q, W_k, W_v):
        q, k, v = (torch.as_tensor(x) @ torch.as_tensor(W) for W in (W_q, W_k, W_v))
        weights = torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1).tril()
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ v, weights

    example, _, text = example_of(3, "causal_attention", masked_after)
    assert (example.right.values["weights"].as_array() == np.eye(2)).all()
    assert "mask=[[True, False], [True, True]]" in text


def test_an_answer_that_never_ends_is_left_in_time():
    def loops(row):
        if len(row) == 2:
            while True:
                pass
        return [1.0 for _ in row]

    judge = judge_of(1, "softmax_row")
    held = dict.fromkeys((rung.name for rung in judge.rungs()), False)
    example = find_smallest(judge, {"softmax_row": loops}, held, seconds=0.2)
    assert example is None or example.ran_out


def test_an_answer_that_prints_is_not_heard(capsys):
    def loud(row):
        print(row)
        return [2.0 for _ in row]

    judge = judge_of(1, "softmax_row")
    nothing_held = dict.fromkeys((rung.name for rung in judge.rungs()), False)
    example = find_smallest(judge, {"softmax_row": loud}, nothing_held)
    assert example.numbers == 1 and capsys.readouterr().out == ""


def test_an_answer_that_is_random_is_named():
    draw = random.Random(1)
    assert UNSTEADY in example_of(1, "softmax_row", lambda row: [draw.random() for _ in row])[2]


def test_an_answer_that_raises_now_and_then_is_named():
    counts = itertools.count()

    def moody(row):
        if next(counts) % 2:
            raise ValueError("not now")
        return [1.0 for _ in row]

    assert UNSTEADY in example_of(1, "softmax_row", moody)[2]


def test_an_answer_that_writes_into_its_arguments_is_shown_them_as_they_were():
    def writes(q, k, v):
        q *= 0
        return attention()(q, k, v)

    example, _, text = example_of(1, "attention_batched", writes)
    assert np.abs(example.rung.args[0]).max() > 0 and "q = np.array" in text


def test_nothing_comes_from_hidden_inputs(monkeypatch):
    drawn = evidence.draw_rungs

    def visible(day, grade_id, *, hidden=False, seed=""):
        assert not hidden
        return drawn(day, grade_id, hidden=hidden, seed=seed)

    monkeypatch.setattr(evidence, "draw_rungs", visible)
    monkeypatch.setattr("course_utils.checks.judge.rungs.draw_rungs", visible)
    assert example_of(1, "scores", lambda Q, K: [[0.0 for _ in K] for _ in Q])[2]


def test_nothing_is_written_beside_the_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert example_of(1, "scores", lambda Q, K: [[0.0 for _ in K] for _ in Q])[2]
    assert os.listdir(tmp_path) == []


class TestInTheCheck:
    def message_of(self, day, grade_id, hidden=False, **answers):
        space = {"check": checks_for(day), **answers}
        with pytest.raises(NotYet) as error:
            exec(f"check({grade_id!r}, hidden={hidden})", space)
        return str(error.value)

    def test_it_stands_below_the_advice(self):
        def scores(Q, K):
            return [[-lists.dot(q, k) for k in K] for q in Q]

        message = self.message_of(1, "scores", scores=scores)
        assert re.search(r"The smallest failing input found \(\d numbers\):\n\n    Q = \[\[", message)
        assert message.index("opposite sign") < message.index("The smallest failing input")

    def test_not_where_nothing_is_written_nor_by_hand_nor_of_hidden_inputs(self):
        def stub(Q, K):
            raise NotImplementedError("your code goes here")

        assert "smallest" not in self.message_of(1, "scores", scores=stub)
        assert "smallest" not in self.message_of(1, "by_hand_three", score_33=1.0, weights_3=[1.0, 0.0, 0.0])
        assert "smallest" not in self.message_of(
            1, "scores", hidden=True, scores=lambda Q, K: [[0.0 for _ in K] for _ in Q]
        )

    def test_not_where_the_result_is_no_numbers_at_all(self):
        """The advice says all there is to say: it does not hang on the input."""
        assert "smallest" not in self.message_of(1, "scores", scores=lambda Q, K: "scores")

    def test_a_slip_in_an_earlier_answer_is_not_shown(self):
        """masked_softmax is used by causal_attention; the example of the second shows its own slip."""
        day, grade_id = next((day, grade_id) for day, grade_id in FUNCTIONS if all_exercises(day)[grade_id].uses)
        exercise = all_exercises(day)[grade_id]
        earlier = exercise.uses[0]
        broken = dict.fromkeys(all_exercises(day)[earlier].reference, lambda *args, **named: None)
        wrong = dict.fromkeys(exercise.reference, exercise.mistakes[0].answer)
        space = namespace_with(day, grade_id, wrong) | broken
        _, verdict = examination.examine(day, grade_id, space)
        before = dict(space)
        text = examination.smallest_example(day, grade_id, space, verdict)
        assert text and space == before

    def test_without_references_it_is_the_smallest_rung_that_failed(self, monkeypatch):
        judge = judge_of(1, "scores")
        judge.reference()
        monkeypatch.setattr(smallest, "has_answers", lambda: False)
        nothing_held = dict.fromkeys((rung.name for rung in judge.rungs()), False)
        example = find_smallest(judge, {"scores": lambda Q, K: [[0.0]]}, nothing_held)
        assert not example.drawn
        assert "= [[2.0, 3.0]]\n    " in describe_example(example, judge)

    def test_it_is_not_looked_for_again_where_nothing_was_run_since(self, monkeypatch):
        searches = []

        def search(*args):
            searches.append(args)
            return find_smallest(*args)

        monkeypatch.setattr(examination, "find_smallest", search)
        space = {"check": checks_for(1), "scores": lambda Q, K: [[0.0] * len(K)] * len(Q), "In": ["", "scores = 1"]}
        texts = []
        for _ in range(2):
            with pytest.raises(NotYet) as error:
                exec("check('scores')", space)
            texts.append(str(error.value))
        assert len(searches) == 1 and texts[1] == f"{texts[0]}\n\n{interactive.SAME_ANSWER}"


class TestDraws:
    def choices(self, seed):
        rng = random.Random(seed)
        return lambda least, most: rng.randint(least, most)

    @pytest.mark.parametrize(
        ("day", "grade_id"), [pytest.param(day, name, id=f"day{day}-{name}") for day, name in DRAWN]
    )
    def test_what_is_drawn_is_like_the_rung_and_no_larger(self, day, grade_id):
        ladder, judge = find_ladder(day, grade_id), judge_of(day, grade_id)
        for rung, seed in itertools.product(judge.rungs(), range(3)):
            small = smallest.small_for(ladder, rung)
            if small is None:
                continue
            for cut in (False, True):
                args = draw_args(small, rung.args, self.choices(seed), cut=cut)
                assert len(args) == len(rung.args)
                for drawn, own in zip(args, rung.args, strict=True):
                    if isinstance(own, np.ndarray) and drawn is not own:
                        assert drawn.dtype == own.dtype and drawn.ndim == own.ndim

    def test_axes_of_one_name_have_one_size(self):
        small = Small(("… n h*d", "… m h*d", "=h", "mask …1 n m"))
        rung = (np.ones((2, 3, 6)), np.ones((2, 5, 6)), 2, np.ones((2, 1, 5), dtype=bool))
        for seed in range(20):
            q, k, h, mask = draw_args(small, rung, self.choices(seed))
            assert q.shape[0] == k.shape[0] and q.shape[2] == k.shape[2] and q.shape[2] % h == 0
            assert mask.shape == (q.shape[0], 1, k.shape[1]) and mask.any(axis=-1).all()

    def test_numbers_are_counted(self):
        assert count_numbers((np.ones((2, 3)), [[1, 2]], 4, True, None, "a ?a", b"abc")) == 6 + 2 + 1 + 2 + 3

    @pytest.mark.parametrize(
        ("value", "tensors", "written"),
        [
            (np.array([1.0, -math.inf]), False, "np.array([1.0, -math.inf])"),
            (np.array([[1.0]], dtype=np.float32), False, "np.array([[1.0]], dtype=np.float32)"),
            (np.array([1.0]), True, "torch.tensor([1.0], dtype=torch.float64)"),
            (np.array([True]), True, "torch.tensor([True])"),
            (np.zeros((0, 2)), True, "torch.zeros((0, 2), dtype=torch.float64)"),
            ([[1.0, 2.0]], False, "[[1.0, 2.0]]"),
            ([0.0] * 400, False, "[0.0] * 400"),
            ((), True, "()"),
            ((np.array([1]), 2), True, "(torch.tensor([1]), 2)"),
            ((3,), False, "(3,)"),
            (None, False, "None"),
            (b"a\xff", False, r"b'a\xff'"),
            (np.random.default_rng(0), False, None),
        ],
    )
    def test_values_are_written_as_code(self, value, tensors, written):
        assert literal(value, tensors=tensors) == written


def test_the_search_needs_hypothesis_only_when_it_runs():
    code = "import sys, course_utils.checks; raise SystemExit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
