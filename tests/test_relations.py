"""What is said of wrong numbers in general is true of them, and is said only where it is."""

import numpy as np
import pytest

from course_utils.checks.evidence import NOTHING, UNREADABLE, Ladder, Rung, as_numbers
from course_utils.checks.relations import relate

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
        return {"rung": name, "error": value}
    return {"rung": name, "values": {"weights": as_numbers(value)}}


def found(right, wrong, inputs=None):
    """What is said of a wrong function beside the right one, on the same inputs."""
    inputs = inputs or drawn()
    rungs = [Rung(f"step {i}", args) for i, args in enumerate(inputs)]
    wanted = [outcome(rung.name, right(*rung.args)) for rung in rungs]
    given = [outcome(rung.name, wrong(*rung.args)) for rung in rungs]
    held = [
        "values" in a and a["values"]["weights"]["shape"] == b["values"]["weights"]["shape"]
        and np.allclose(a["values"]["weights"]["numbers"], b["values"]["weights"]["numbers"], 0, 1e-6)
        for a, b in zip(given, wanted, strict=True)
    ]  # fmt: skip
    assert not all(held)
    return relate(LADDER, rungs, given, wanted, [() if ok else ("weights",) for ok in held], ("q", "k", "d"))


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
        ("q as it came", lambda q, k, d: 2 * q - 1, lambda q, k, d: q),
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
        ("nothing returned", scores_of, lambda q, k, d: f"{UNREADABLE}: {NOTHING}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_relation_is_found(name, right, wrong):
    assert found(right, wrong).name == name


def test_right_only_for_squares():
    inputs = [*drawn(), drawn()[2], drawn()[0]]
    squares_only = found(
        scores_of, lambda q, k, d: scores_of(q, k, d) + (len(q) != len(k)) * np.sin(9 * q @ k.T), inputs
    )
    assert squares_only.name == "right only where there are as many queries as keys"


def test_where_rungs_differ_in_what_is_wrong_nothing_is_said():
    odd = iter(range(9))

    def unlike(q, k, d):
        turn = next(odd)
        return [2 * scores_of(q, k, d), scores_of(q, k, d).T, scores_of(q, k, d) + 1, np.sin(q @ k.T)][turn % 4]

    assert found(scores_of, unlike) is None


def test_a_single_number_is_no_proof_of_a_relation():
    one = [(np.ones((1, 2)), np.full((1, 2), 0.7), 2)]
    said = found(scores_of, lambda q, k, d: scores_of(q, k, d) ** 2 + 0.123, one)
    assert said is None


def test_what_is_right_up_to_a_step_is_said_to_be_so():
    counted = iter(range(9))

    def wrong(q, k, d):
        return scores_of(q, k, d) + (next(counted) > 1) * np.sin(17 * (q @ k.T))

    said = found(scores_of, wrong, drawn() + drawn()[:2])
    assert said.message == "Right up to “step 1”; wrong from “step 2” on."
