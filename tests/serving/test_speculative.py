"""Speculative sampling: its law in exact fractions and over 100,000 draws, its expected length, and when it loses."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.serving.costs import RECORDED, StepCost
from course_utils.serving.speculative import (
    Bigrams,
    accept,
    best_length,
    draw,
    expected_tokens,
    frequencies,
    overlap,
    residual,
    resulting_law,
    speculate,
    speculative_draws,
    speed_up,
    survivals,
    total_variation,
)

law = settings(deadline=None, max_examples=150, derandomize=True)
LONG = pytest.mark.thorough("12,000 texts are written in rounds of drafts")
P = (0.5, 0.3, 0.2)
Q = (0.2, 0.3, 0.5)


@st.composite
def laws(draw):
    """p and q over the same 2 to 5 tokens, in fractions; some tokens have probability 0."""
    size = draw(st.integers(2, 5))
    counts = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    return [[Fraction(n, sum(chosen)) for n in chosen] for chosen in (draw(counts), draw(counts))]


def exact_law(p, q, from_p):
    """The rule carried out for each draft, refused and kept, in fractions."""
    left = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    after = p if from_p or not sum(left) else [each / sum(left) for each in left]
    distribution = [Fraction(0)] * len(p)
    for drafted, chance in enumerate(q):
        if chance:
            acceptance = min(Fraction(1), p[drafted] / chance)
            distribution[drafted] += chance * acceptance
            for token, share in enumerate(after):
                distribution[token] += chance * (1 - acceptance) * share
    return distribution


# --- one token ------------------------------------------------------------------------------------------------------


@given(laws())
@law
def test_the_rule_gives_p_in_exact_fractions_and_the_functions_agree(both):
    p, q = both
    assert exact_law(p, q, from_p=False) == p
    as_floats = [np.array([float(each) for each in x]) for x in both]
    np.testing.assert_allclose(resulting_law(*as_floats), as_floats[0], atol=1e-12)
    wrong = [float(each) for each in exact_law(p, q, from_p=True)]
    np.testing.assert_allclose(resulting_law(*as_floats, from_p=True), wrong, atol=1e-12)
    shared = sum(map(min, p, q))
    assert overlap(*as_floats) == pytest.approx(float(shared))
    assert total_variation(*as_floats) == pytest.approx(float(1 - shared))


@given(laws(), st.integers(0, 63))
@law
def test_a_draft_is_kept_when_the_coin_is_below_p_over_q(both, coin):
    p, q = both
    coin = Fraction(coin, 64)
    for token, chance in enumerate(q):
        ratio = p[token] / chance if chance else None
        if ratio is not None and abs(coin - ratio) > 1e-9:
            accepted = accept([float(x) for x in p], [float(x) for x in q], token, float(coin))
            assert accepted == (coin < min(Fraction(1), ratio))


def test_the_rule_by_hand():
    assert residual(P, Q).tolist() == [1, 0, 0]
    assert residual((0.6, 0.3, 0.1), (0.3, 0.2, 0.5)) == pytest.approx([0.75, 0.25, 0])
    assert overlap(P, Q) == pytest.approx(0.7)
    assert accept(P, Q, [0, 1, 2, 2, 2], [0.99, 0.99, 0.39, 0.41, 0.99]).tolist() == [True, True, True, False, False]
    assert accept((1.0, 0.0), (0.5, 0.5), 1, 0.0) == False  # noqa: E712 a NumPy bool; what p never says is refused
    assert residual(P, P).tolist() == list(P)
    assert total_variation((1, 0), (0, 1)) == 1


def test_rows_are_taken_together():
    p, q = np.array([P, Q]), np.array([Q, P])
    assert accept(p, q, [2, 2], [0.5, 0.5]).tolist() == [False, True]
    assert residual(p, q).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert draw(p, [0.45, 0.45]).tolist() == [0, 1]


def test_a_coin_draws_the_token_whose_share_it_falls_into():
    assert draw((0.25, 0.0, 0.5, 0.25, 0.0), [0, 0.24, 0.25, 0.74, 0.75, np.nextafter(1, 0)]).tolist() == [
        0,
        0,
        2,
        2,
        3,
        3,
    ]
    short = np.full(10, 0.1)
    short[-1] -= 1e-7  # a sum a little below 1 loses no coin
    assert draw(short, np.nextafter(1, 0)) == 9


@pytest.mark.parametrize(("p", "q"), [(P, Q), ((0.4, 0.3, 0.15, 0.1, 0.05), (0.15, 0.25, 0.4, 0.1, 0.1))])
def test_100_000_draws_have_the_law_p_and_the_popular_mistake_has_not(p, q):
    """100,000 draws from p itself lie up to 0.005 away; the mistake lies where its law says."""
    right, accepted = speculative_draws(p, q, 100_000, np.random.default_rng(0))
    wrong, _ = speculative_draws(p, q, 100_000, np.random.default_rng(0), from_p=True)
    assert total_variation(frequencies(right, len(p)), p) < 0.005
    off = total_variation(resulting_law(p, q, from_p=True), p)
    assert off > 0.1
    assert total_variation(frequencies(wrong, len(p)), p) == pytest.approx(off, abs=0.005)
    assert accepted.mean() == pytest.approx(overlap(p, q), abs=0.008)


def test_what_is_no_distribution_and_no_draft_of_q_is_refused():
    with pytest.raises(ValueError, match="p is no distribution"):
        accept((0.5, 0.6), (0.5, 0.5), 0, 0.5)
    with pytest.raises(ValueError, match="q is no distribution"):
        residual((0.5, 0.5), (1.5, -0.5))
    with pytest.raises(ValueError, match="same vocabulary"):
        overlap((0.5, 0.5), (1.0,))
    with pytest.raises(ValueError, match="drawn from q"):
        accept((0.5, 0.5), (1.0, 0.0), 1, 0.5)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        accept((0.5, 0.5), (0.5, 0.5), 2, 0.5)
    with pytest.raises(ValueError, match="coins"):
        accept((0.5, 0.5), (0.5, 0.5), 1, 1.0)
    with pytest.raises(TypeError, match="whole numbers"):
        accept((0.5, 0.5), (0.5, 0.5), 1.0, 0.5)


# --- several tokens -------------------------------------------------------------------------------------------------

TARGET = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.3, 0.3, 0.4]])  # a row for the last token
DRAFTER = np.array([[0.3, 0.3, 0.4], [0.2, 0.6, 0.2], [0.6, 0.2, 0.2]])


def target(tokens, n):
    return TARGET[np.asarray(tokens[len(tokens) - n :])]


def drafter(tokens):
    return DRAFTER[tokens[-1]]


@pytest.mark.parametrize(
    ("gamma", "n", "most"), [(3, 3000, 0.04), *(pytest.param(gamma, 12_000, 0.02, marks=LONG) for gamma in (0, 1, 3))]
)
def test_rounds_write_texts_with_the_law_of_the_target(gamma, n, most):
    """The first three tokens of n texts, against the 27 products of the target's probabilities."""
    rng = np.random.default_rng(gamma)
    counts = np.zeros((3, 3, 3))
    for _ in range(n):
        text = [1]
        while len(text) < 4:
            text.extend(speculate(target, drafter, text, gamma, rng).tokens)
        counts[tuple(text[1:4])] += 1
    exact = TARGET[1][:, None, None] * TARGET[:, :, None] * TARGET
    assert total_variation((counts / n).ravel(), exact.ravel()) < most  # 12,000 draws of 27 kinds lie about 0.016 away


def test_a_round_asks_the_target_once_and_says_what_it_kept():
    asked = []

    def counted(tokens, n):
        asked.append((tuple(tokens), n))
        return target(tokens, n)

    rng = np.random.default_rng(0)
    lengths = set()
    for number in range(200):
        done = speculate(counted, drafter, (0, 2), 3, rng)
        assert asked[number] == ((0, 2, *done.drafted), 4)
        assert len(done.tokens) == done.accepted + 1 and done.tokens[:-1] == done.drafted[: done.accepted]
        np.testing.assert_array_equal(done.q, DRAFTER[[2, *done.drafted[:-1]]])
        np.testing.assert_array_equal(done.p, TARGET[[2, *done.drafted]])
        if done.accepted < 3:
            left = residual(done.p[done.accepted], done.q[done.accepted])
            assert left[done.tokens[-1]] > 0  # what comes after a refusal is from the remainder
        lengths.add(len(done.tokens))
    assert lengths == {1, 2, 3, 4}


def test_a_drafter_that_is_the_target_is_always_right_and_one_that_says_the_impossible_never():
    rng = np.random.default_rng(0)
    assert speculate(target, lambda tokens: TARGET[tokens[-1]], [0], 5, rng).accepted == 5
    sure = speculate(lambda tokens, n: np.tile([1.0, 0.0], (n, 1)), lambda tokens: np.array([0.0, 1.0]), [0], 5, rng)
    assert (sure.accepted, sure.tokens) == (0, (0,))


def test_bad_rounds_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least one token"):
        speculate(target, drafter, [], 2, rng)
    with pytest.raises(ValueError, match="a row after each prefix"):
        speculate(lambda tokens, n: TARGET[:1], drafter, [0], 2, rng)
    with pytest.raises(ValueError, match="gamma is -1"):
        speculate(target, drafter, [0], -1, rng)


def test_bigrams_count_what_followed_what():
    bigrams = Bigrams([0, 1, 0, 1, 2, 0], 3, smoothing=0.5)
    np.testing.assert_allclose(bigrams([2, 0]), [0.5 / 3.5, 2.5 / 3.5, 0.5 / 3.5])
    np.testing.assert_allclose(bigrams([1]), [1.5 / 3.5, 0.5 / 3.5, 1.5 / 3.5])
    np.testing.assert_allclose(bigrams.table.sum(axis=1), 1)
    several = Bigrams([[0, 1, 0], [1, 2, 0]], 3, smoothing=0.5)  # no pair runs from one text to the next
    np.testing.assert_allclose(several([0]), [0.5 / 2.5, 1.5 / 2.5, 0.5 / 2.5])
    for tokens, vocabulary, smoothing in (([0], 3, 1), ([0, 3], 3, 1), ([0, -1], 3, 1), ([0, 1], 3, 0)):
        with pytest.raises(ValueError):
            Bigrams(tokens, vocabulary, smoothing)
    with pytest.raises(ValueError, match="the token before"):
        bigrams([])


# --- is it worth it -------------------------------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(0, 12))
@law
def test_expected_tokens_are_the_formula_and_the_sum_over_where_it_stops(twentieths, gamma):
    alpha = Fraction(twentieths, 20)
    stops = sum(alpha**i * (1 - alpha) * (i + 1) for i in range(gamma)) + alpha**gamma * (gamma + 1)
    assert expected_tokens(float(alpha), gamma) == pytest.approx(float(stops))
    if alpha < 1:
        assert stops == (1 - alpha ** (gamma + 1)) / (1 - alpha)
    else:
        assert stops == gamma + 1
    assert expected_tokens(float(alpha), gamma) == pytest.approx(1 + survivals(float(alpha), gamma).sum())


def test_simulated_rounds_write_as_many_tokens_as_expected():
    rng = np.random.default_rng(0)
    alpha = 0.7
    gamma = 4
    rounds = [speculate(lambda tokens, n: np.tile(P, (n, 1)), lambda tokens: np.array(Q), [0], gamma, rng)
              for _ in range(4000)]  # fmt: skip
    assert np.mean([len(done.tokens) for done in rounds]) == pytest.approx(expected_tokens(alpha, gamma), abs=0.1)


def test_speculation_wins_alone_and_loses_in_a_large_batch():
    """Alone the weights are read either way; in a batch of 256 every refused draft is arithmetic for nothing."""
    assert speed_up(RECORDED.cost, 0.7, 4) > 2.5
    assert speed_up(RECORDED.cost, 0.7, 4, batch=256, T=100) < 1
    assert speed_up(RECORDED.cost, 0.3, 4, batch=64, T=100) < 1
    by_batch = [speed_up(RECORDED.cost, 0.7, 4, batch=batch) for batch in (1, 4, 16, 64, 256)]
    assert by_batch == sorted(by_batch, reverse=True)
    assert speed_up(RECORDED.cost, 0.7, 0, batch=8) == 1


def test_speed_up_by_hand():
    """1.75 tokens in 10 + 3 · 1 + 2 · 0.5 = 14 s in place of one in 11 s."""
    assert speed_up(StepCost(10, 1, 0), 0.5, 2, drafting=0.5) == pytest.approx(1.75 / 14 * 11)


@given(st.lists(st.lists(st.integers(1, 19), max_size=3), min_size=1, max_size=4), st.integers(1, 300))
@law
def test_the_best_length_is_the_best_of_all_choices_of_prefixes(kept, tenths):
    """Each request with the chances of its drafts one after another; every way to verify so many of each is tried."""
    cost = StepCost(tenths / 10, 1.0, 0.0)
    survival = [np.cumprod([n / 20 for n in chances]) for chances in kept]
    best = max(
        (len(kept) + sum(s[:n].sum() for s, n in zip(survival, chosen, strict=True))) / cost(len(kept) + sum(chosen))
        for chosen in itertools.product(*(range(len(s) + 1) for s in survival))
    )
    result = best_length(np.concatenate(survival), len(kept), cost)
    assert result.rate == pytest.approx(best)
    assert result.rate == pytest.approx(result.tokens / cost(len(kept) + result.drafts))


def test_the_busier_the_machine_the_fewer_drafts_it_verifies():
    one = survivals(0.7, 7)
    chosen = [best_length(np.tile(one, n), n, RECORDED.cost).drafts / n for n in (1, 16, 64, 256)]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] == 7 and chosen[-1] < 2
    assert best_length([], 3, RECORDED.cost).drafts == 0
    assert best_length([0.0, 0.0], 1, lambda tokens: 1.0).drafts == 0  # of equals the fewest
    with pytest.raises(ValueError, match="probability"):
        best_length([1.1], 1, RECORDED.cost)
    with pytest.raises(ValueError, match="waiting is 0"):
        best_length([0.5], 0, RECORDED.cost)
    for refused in (expected_tokens, survivals):
        with pytest.raises(ValueError, match="alpha"):
            refused(1.5, 2)
