"""What is said of wrong numbers in general is true of them, and is said only where it is."""

import numpy as np
import pytest

from course_utils.checks.diagnosis.hand_relations import relate_by_hand
from course_utils.checks.diagnosis.relation_types import JudgedRungs
from course_utils.checks.diagnosis.relations import relate
from course_utils.checks.judge.verdict import Tolerance, close
from course_utils.checks.kernel.evidence import BAD_RESULT
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.result_numbers import NOTHING, as_numbers

LADDER = Ladder(("f",), ("weights",))
SIZES = [(2, 3, 5), (4, 3, 2), (3, 3, 3), (2, 5, 7)]  # queries, keys, width


def drawn():
    rng = np.random.default_rng(7)
    return [(rng.standard_normal((n, d)), rng.standard_normal((m, d)), d) for n, m, d in SIZES]


def softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def scores_of(q, k, d):
    return q @ k.T / np.sqrt(d)


def weights_of(q, k, d):
    return softmax(scores_of(q, k, d))


def with_a_wrong_first_row(q, k, d):
    return scores_of(q, k, d) * (np.arange(len(q)) > 0)[:, None]


def outcome(name, value):
    if isinstance(value, str):
        return Outcome(name, error=value)
    return Outcome(name, {"weights": as_numbers(value)})


def relation_of(right, wrong, inputs=None, ladder=LADDER, names=("q", "k", "d"), scaled=None, hidden=False):
    """Return the relation between a wrong function and the right one, on the same inputs."""
    inputs = inputs or drawn()
    rungs = [Rung(f"step {i}", args) for i, args in enumerate(inputs)]
    expected = [outcome(rung.name, right(*rung.args)) for rung in rungs]
    actual = [outcome(rung.name, wrong(*rung.args)) for rung in rungs]
    near = Tolerance(0.0, 1e-6)
    held = [close(a.values.get("weights"), b.values["weights"], near) for a, b in zip(actual, expected, strict=True)]
    assert not all(held)
    wrong_parts = [() if ok else ("weights",) for ok in held]
    return relate(ladder, JudgedRungs(rungs, actual, expected, wrong_parts), names, scaled, hidden=hidden)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("times 2", scores_of, lambda q, k, d: 2 * scores_of(q, k, d)),
        ("times √d", scores_of, lambda q, k, d: q @ k.T),
        ("times 1 / √d", scores_of, lambda q, k, d: q @ k.T / d),
        ("times k.shape[−2]", scores_of, lambda q, k, d: len(k) * scores_of(q, k, d)),
        ("too large by 3", scores_of, lambda q, k, d: scores_of(q, k, d) + 3),
        ("opposite sign", scores_of, lambda q, k, d: -scores_of(q, k, d)),
        ("squared", scores_of, lambda q, k, d: scores_of(q, k, d) ** 2),
        ("exponential taken", scores_of, lambda q, k, d: np.exp(scores_of(q, k, d))),
        ("transposed", scores_of, lambda q, k, d: scores_of(q, k, d).T),
        ("rows backwards", scores_of, lambda q, k, d: scores_of(q, k, d)[:, ::-1]),
        ("shifted by one to the right", scores_of, lambda q, k, d: np.roll(scores_of(q, k, d), 1, -1)),
        ("first one for all", scores_of, lambda q, k, d: np.tile(scores_of(q[:1], k, d), (len(q), 1))),
        ("the last entry missing", scores_of, lambda q, k, d: scores_of(q, k, d)[:, :-1]),
        ("another order", scores_of, lambda q, k, d: np.sort(scores_of(q, k, d).ravel()).reshape(len(q), len(k))),
        ("an axis of length 1 too many", scores_of, lambda q, k, d: scores_of(q, k, d)[None]),
        ("summed over the last axis", scores_of, lambda q, k, d: scores_of(q, k, d).sum(-1)),
        ("all zeros", scores_of, lambda q, k, d: np.zeros((len(q), len(k)))),
        ("q returned unchanged", lambda q, k, d: 2 * q - 1, lambda q, k, d: q),
        ("rounded to 2 decimals", scores_of, lambda q, k, d: scores_of(q, k, d).round(2)),
        ("computed in float32", lambda q, k, d: 1e5 * q, lambda q, k, d: (1e5 * q).astype(np.float32)),
        ("scores times √d", weights_of, lambda q, k, d: softmax(q @ k.T)),
        ("scores times 2", weights_of, lambda q, k, d: softmax(2 * scores_of(q, k, d))),
        ("columns sum to 1, not rows", weights_of, lambda q, k, d: softmax(scores_of(q, k, d), 0)),
        ("a factor for each row", scores_of, lambda q, k, d: scores_of(q, k, d) * np.arange(2, len(q) + 2)[:, None]),
        ("rows do not sum to 1", weights_of, lambda q, k, d: np.tanh(np.exp(scores_of(q, k, d)))),
        ("uniform rows", weights_of, lambda q, k, d: np.full((len(q), len(k)), 1 / len(k))),
        ("all weight on the best", weights_of, lambda q, k, d: np.eye(len(k))[scores_of(q, k, d).argmax(-1)]),
        ("the first row only is wrong", scores_of, with_a_wrong_first_row),
        ("one axis of another length", scores_of, lambda q, k, d: np.ones((len(q) + 1, len(k)))),
        ("nothing returned", scores_of, lambda q, k, d: f"{BAD_RESULT}: {NOTHING}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_relation_is_found(name, right, wrong):
    assert relation_of(right, wrong).name == name


def test_where_some_rows_are_nan_columns_that_sum_to_1_are_still_named():
    def down_the_columns(q, k, d):
        return softmax(scores_of(q, k, d), 0) * (1.0 if d < 7 else np.nan)

    assert relation_of(weights_of, down_the_columns).name == "columns sum to 1, not rows"


def test_where_a_relation_holds_on_some_steps_only_the_sentence_says_so():
    turn = iter(range(9))

    def mostly_twice(q, k, d):
        return (2 * scores_of(q, k, d), np.full((len(q), len(k)), np.nan))[next(turn) == 5]

    relation = relation_of(scores_of, mostly_twice, six())
    assert relation.message == "On 5 of the 6 steps where it is wrong, every number is 2 times the right one."


def test_numbers_of_a_simulation_are_said_to_be_near():
    rng = np.random.default_rng(1)
    relation = numbers(lambda T, d, width: T * d, lambda T, d, width: T * d * (1 + 0.01 * rng.standard_normal()))
    assert relation.name == "near the right numbers"
    assert numbers(lambda T, d, width: T * d, lambda T, d, width: T * d * 1.0123 + 0.1) is None


def test_right_only_for_squares():
    inputs = [*drawn(), *((q[:2], k[:2], d) for q, k, d in drawn()[:2])]
    squares_only = relation_of(
        scores_of, lambda q, k, d: scores_of(q, k, d) + (len(q) != len(k)) * np.sin(9 * q @ k.T), inputs
    )
    assert squares_only.name == "right only where the matrices have the same number of rows"


def test_where_rungs_differ_in_what_is_wrong_nothing_is_said():
    odd = iter(range(9))

    def unrelated(q, k, d):
        turn = next(odd)
        return [2 * scores_of(q, k, d), scores_of(q, k, d).T, scores_of(q, k, d) + 1, np.sin(q @ k.T)][turn % 4]

    assert relation_of(scores_of, unrelated) is None


def test_a_single_number_is_no_proof_of_a_relation():
    one = [(np.ones((1, 2)), np.full((1, 2), 0.7), 2)]
    relation = relation_of(scores_of, lambda q, k, d: scores_of(q, k, d) ** 2 + 0.123, one)
    assert relation is None


def test_what_is_right_up_to_a_step_is_said_to_be_so():
    counted = iter(range(9))

    def wrong(q, k, d):
        return scores_of(q, k, d) + (next(counted) > 1) * np.sin(17 * (q @ k.T))

    relation = relation_of(scores_of, wrong, drawn() + drawn()[:2])
    assert relation.message == "Right up to “step 1”; wrong from “step 2” on."


# Errors and kinds of inputs -----------------------------------------------------------------------------------------

WIDE = (
    ("where d is 5 or more", "where it is less", lambda q, k, d: d >= 5),
    ("with few keys", "with many", lambda q, k, d: len(k) < 5),
)
SHAPES = "RuntimeError: The size of tensor a ({}) must match the size of tensor b (3), at line 2 of your cell: a + b"


def six():
    return drawn() + drawn()[:2]


def unrelated(q, k, d):
    return np.sin(9 * q @ k.T) + 7


def test_one_kind_of_error_is_named_without_its_numbers():
    relation = relation_of(scores_of, lambda q, k, d: SHAPES.format(len(q) + 3))
    assert relation.name == "raises RuntimeError: The size of tensor a (…) must match the size of tensor b (…)"


def test_the_text_of_an_error_on_hidden_inputs_is_not_told():
    assert relation_of(scores_of, lambda q, k, d: SHAPES.format(7), hidden=True).name == "raises RuntimeError"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("operands could not be broadcast together with shapes (3,4) (5,) ", "(3, 4) and (5,)"),
        (
            "operands could not be broadcast together with remapped shapes [original->remapped]: (3,4)->(3,newaxis,4) "
            "(5,2)->(2,5)",
            "(3, 4) and (5, 2)",
        ),
        ("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x2)", "(3, 4) and (5, 2)"),
        ("shapes (3,4) and (5,2) not aligned: 4 (dim 1) != 5 (dim 0)", "(3, 4) and (5, 2)"),
    ],
)
def test_two_shapes_that_do_not_fit_are_told_and_the_name_is_the_same_for_all(text, shapes):
    relation = relation_of(scores_of, lambda q, k, d: f"ValueError: {text}, at line 2 of your cell: a + b")
    assert relation.name == "raises ValueError: shapes that do not fit"
    assert relation.message == f"On “step 0” two shapes do not fit together: {shapes}."


def test_an_error_on_few_of_the_wrong_steps_is_not_what_went_wrong():
    relation = relation_of(scores_of, lambda q, k, d: SHAPES.format(7) if len(q) == 4 else unrelated(q, k, d))
    assert relation is None


@pytest.mark.parametrize(
    ("name", "wrong_where"),
    [
        ("wrong where d is 5 or more", lambda q, k, d: d >= 5),
        ("right only where d is 5 or more", lambda q, k, d: d < 5),
        ("wrong where d is 5 or more and with few keys", lambda q, k, d: d >= 5 and len(k) < 5),
        ("wrong from “step 2” on", None),
    ],
)
def test_a_ladder_names_kinds_of_inputs_that_a_slip_goes_with(name, wrong_where):
    ladder = Ladder(("f",), ("weights",), cases=WIDE)
    inputs, turn = [*six(), *six()], iter(range(99))
    if wrong_where is None:
        inputs, wrong_where = six(), lambda q, k, d: next(turn) > 1
    relation = relation_of(
        scores_of, lambda q, k, d: (unrelated if wrong_where(q, k, d) else scores_of)(q, k, d), inputs, ladder
    )
    assert relation.name == name


def test_what_is_right_on_few_steps_only_is_said():
    turn = iter(range(9))
    wrong = relation_of(
        scores_of, lambda q, k, d: (unrelated if next(turn) not in (1, 3) else scores_of)(q, k, d), six()
    )
    assert wrong.name == "right only on “step 1” and “step 3”"


def test_a_result_without_numbers_is_said_to_be_so():
    assert relation_of(scores_of, lambda q, k, d: np.full((len(q), len(k)), np.nan)).name == "NaN comes out"


def test_of_several_parts_those_that_are_right_are_named():
    ladder, rungs = Ladder(("f",), ("o", "lse")), [Rung(f"step {i}", args) for i, args in enumerate(drawn())]

    def outcomes(o, lse):
        parts = [{"o": as_numbers(o(*args)), "lse": as_numbers(lse(*args))} for args in drawn()]
        return [Outcome(rung.name, values) for rung, values in zip(rungs, parts, strict=True)]

    actual, expected = outcomes(unrelated, scores_of), outcomes(scores_of, scores_of)
    relation = relate(ladder, JudgedRungs(rungs, actual, expected, [{"o"}] * 4), ("q", "k", "d"))
    assert (relation.name, relation.message) == ("o wrong, lse right", "Right on these steps: lse. Not right: o.")
    both_wrong = JudgedRungs(rungs, outcomes(unrelated, unrelated), expected, [{"o", "lse"}] * 4)
    assert relate(ladder, both_wrong, ("q", "k", "d")) is None


@pytest.mark.parametrize(("scale", "name"), [(lambda d: d**0.5, "scores times √d"), (lambda d: 3.0, "scores times 3")])
def test_attention_for_scores_times_a_factor_is_named(scale, name):
    def attention(factor):
        return lambda q, k, d: softmax(factor * q @ k.T) @ np.cos(k)

    inputs = [(q, k, d) for q, k, d in six() if len(k) > 2]
    relation = relation_of(attention(1.0), lambda q, k, d: attention(scale(d))(q, k, d), inputs, scaled=attention)
    assert relation.name == name
    assert (
        relation_of(attention(1.0), lambda q, k, d: np.sin(attention(1.0)(q, k, d)) + 2, inputs, scaled=attention)
        is None
    )


def test_weights_in_the_right_ratio_are_not_said_to_be_of_other_scores():
    def masked(keep):
        return lambda q, k, d: softmax(np.where(keep(len(k)), scores_of(q, k, d), -np.inf))

    relation = relation_of(masked(lambda m: np.arange(m) > 0), masked(lambda m: np.arange(m) < m - 1), drawn())
    assert relation.name == "other entries are 0"


def test_rows_of_two_numbers_are_not_said_to_be_of_other_scores():
    narrow = [(q[:, :2], k[:2, :2], 2) for q, k, _ in drawn()]

    def other_weights(q, k, d):
        numbers = np.sin(weights_of(q[:1], k, d))
        return numbers / numbers.sum()

    relation = relation_of(weights_of, other_weights, [(q[:1], k, d) for q, k, d in narrow])
    assert "scores" not in getattr(relation, "name", "")


def test_three_small_whole_numbers_are_no_ground_for_a_factor_or_a_term_made_of_sizes():
    inputs = [(np.zeros((1, 8)), np.zeros((2, 3)), 3), (np.zeros((2, 3)), np.zeros((2, 3)), 4)]
    for wrong in (lambda q, k, d: np.array(2.0), lambda q, k, d: np.array(1.0 * d - len(q)), lambda q, k, d: 2.0 * d):
        assert relation_of(lambda q, k, d: np.array(1.0 * d), wrong, inputs) is None
    inputs.append((np.zeros((3, 3)), np.zeros((2, 3)), 7))
    assert relation_of(lambda q, k, d: np.array(1.0 * d), lambda q, k, d: np.array(2.0 * d), inputs) is None
    inputs.append((np.zeros((4, 3)), np.zeros((2, 3)), 9))
    assert relation_of(lambda q, k, d: np.array(1.0 * d), lambda q, k, d: np.array(2.0 * d), inputs).name == "times 2"


# Numbers of a formula -----------------------------------------------------------------------------------------------

COUNTS = [(64, 16, 2), (100, 8, 4), (37, 24, 2), (500, 3, 1), (8, 128, 4), (75, 75, 8)]


def numbers(right, wrong):
    return relation_of(right, wrong, COUNTS, names=("T", "d", "width"))


def bytes_of(T, d, width):
    return (4 * T * d + 2 * T * T) * width


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("too small by T · d · width", lambda T, d, width: (3 * T * d + 2 * T * T) * width),
        ("2 · d² · width too much, 2 · T² · width too little", lambda T, d, width: (4 * T * d + 2 * d * d) * width),
        ("T · d too much, T · d · width too little", lambda T, d, width: bytes_of(T, d, width) - T * d * (width - 1)),
        ("4 · T · d", lambda T, d, width: 4 * T * d),
        ("times 8", lambda T, d, width: 8 * bytes_of(T, d, width)),
    ],
)
def test_terms_too_much_or_too_little_are_named(name, wrong):
    assert numbers(bytes_of, wrong).name == name


@pytest.mark.parametrize(
    "wrong",
    [
        lambda T, d, width: bytes_of(T, d, width) * 1.01 + 3.3 * T,
        lambda T, d, width: (T % 7) * d + width,
        lambda T, d, width: bytes_of(T, d, width) + 0.317 * T * d,
        lambda T, d, width: 1e-6 * bytes_of(T, d, width) + 1,
    ],
)
def test_a_term_that_is_not_plain_is_not_made_up(wrong):
    assert "too" not in getattr(numbers(bytes_of, wrong), "name", "")


def test_a_formula_holds_where_an_optional_argument_is_given_too():
    ladder = Ladder(("f",), ("weights",), quantities=lambda rung: dict(zip("Tdw", (*rung.args, 2), strict=False)))
    inputs = [(64, 16), (100, 8), (37, 24), (500, 3), (8, 128, 4)]

    def without_a_token(T, d, w=2):
        return (T - 1) * d * w

    relation = relation_of(lambda T, d, w=2: T * d * w, without_a_token, inputs, ladder, names=("T", "d", "w"))
    assert relation.name == "too small by d · w"


def test_a_share_too_much_is_named():
    relation = numbers(lambda T, d, width: T / width, lambda T, d, width: T / width * (1 + 1 / (4 * d)))
    assert relation.name == "(1 + 1/4 / d) times the right one"
    assert numbers(lambda T, d, width: T / width, lambda T, d, width: T / width * (1 + 0.123 / d**1.7)) is None


def squares():
    rng = np.random.default_rng(3)
    return [(rng.random((2 * p, 2 * p)), p) for p in (2, 4, 7, 5)]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("weights[i, i − period], over their number", lambda w, p: np.diagonal(w, -p).mean()),
        (
            "weights[i, i − period + 1] without its last entry, over their number",
            lambda w, p: np.diagonal(w, 1 - p)[:-1].sum() / p,
        ),
        ("weights[i, i] without its first period entries, over their number", lambda w, p: np.diagonal(w)[p:].mean()),
    ],
)
def test_the_mean_along_a_diagonal_is_named(name, wrong):
    right = lambda w, p: np.diagonal(w, 1 - p)[1:].mean()  # noqa: E731
    assert relation_of(right, wrong, squares(), names=("weights", "period")).name == name
    assert relation_of(right, lambda w, p: wrong(w, p) ** 2, squares(), names=("weights", "period")) is None


# Numbers by hand ----------------------------------------------------------------------------------------------------

WEIGHTS, OUTPUT = [0.248, 0.25, 0.502], [1.2, 0.4]


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        ([0.2, 0.2, 0.5], "weights: rounded to 1 decimal"),
        ([0.25, 0.25, 0.51], "weights: nearly right"),
        ([0.502, 0.25, 0.248], "weights: backwards"),
        ([0.25, 0.502, 0.248], "weights: another order"),
        ([0.248, 0.25, 0.6], "weights: one number wrong"),
        ([24.8, 25.0, 50.2], "weights: in percent"),
        ([-0.248, -0.25, -0.502], "weights: opposite sign"),
        ([0.333, 0.333, 0.333], "weights: all alike"),
        ([0.6, 0.6, 1.1], "weights: does not sum to 1"),
        ([0.15, 0.15, 0.7], "weights: the largest too large"),
        ([0.3, 0.3, 0.4], "weights: the largest too small"),
        ([0.6, 0.3, 0.1], "weights: the largest at another place"),
        ([0.248, 0.752], "weights: too few numbers"),
        (0.5, "weights: a number for a list"),
        ([[0.248, 0.25, 0.502]], "weights: another shape"),
    ],
)
def test_an_entry_by_hand_is_named_by_what_is_wrong_with_it(weights, name):
    entries, right = (np.array(weights), np.array(OUTPUT)), (np.array(WEIGHTS), np.array(OUTPUT))
    relation = relate_by_hand(("weights", "output"), entries, right, (False, True))
    assert relation.name == name
    assert not any(f"{x:g}" in relation.message for x in WEIGHTS)


@pytest.mark.parametrize(
    ("given", "name"),
    [(32, "n: a factor"), (8, "n: a factor"), (90.5, "n: a root"), (65, "n: a little off"), (50, None)],
)
def test_a_number_by_hand_is_off_by_a_factor_or_nothing_is_said(given, name):
    relation = relate_by_hand(("n",), [np.array(given)], [np.array(64.0)], [False])
    assert (relation and relation.name) == name


def test_entries_in_each_others_place():
    entries, right = [np.array(3.0), np.array(7.0)], [np.array(7.0), np.array(3.0)]
    assert relate_by_hand(("a", "b"), entries, right, [False, False]).name == "a: b in its place, b: a in its place"


def test_the_number_of_another_wrong_entry_is_not_given_away():
    right = [np.array(7.0), np.array(4.5)]
    assert relate_by_hand(("a", "b"), [np.array(4.5), np.array(4.5)], right, [False, True]).name == "a: b in its place"
    assert relate_by_hand(("a", "b"), [np.array(4.5), np.array(10.0)], right, [False, False]) is None
