"""Waiting times from a log: by hand, against NumPy, and Little's law in fractions."""

import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.serving.costs import StepCost
from course_utils.serving.latency import (
    MEASURES,
    Mean,
    Percentiles,
    capacity,
    gaps,
    goodput,
    keeps,
    little,
    percentile,
    summary,
    sweep,
    tpot,
    ttft,
)
from course_utils.serving.simulate import Log, Served, simulate
from course_utils.serving.traffic import Lengths, poisson

law = settings(deadline=None, max_examples=150, derandomize=True)
COST = StepCost(1e-2, 1e-4, 0.0)
SHORT = {"prompts": Lengths(20, 0.5, 100), "answers": Lengths(10, 0.5, 50)}
# a: first token after 2, then gaps 1 and 3.  b: after 1, gap 4.  c: one token, after 5.
LOG = Log(2, (Served("a", 0, 0, (2, 3, 6)), Served("b", 1, 1, (2, 6)), Served("c", 3, 4, (8,))), ())


def test_one_request_by_hand():
    assert ttft(1.0, (3.0, 4.0, 8.0)) == 2
    assert gaps((3.0, 4.0, 8.0)) == [1, 4]
    assert tpot((3.0, 4.0, 8.0)) == 2.5
    assert gaps((3.0,)) == [] and tpot((3.0,)) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 100))
@law
def test_percentiles_are_numpys(values, q):
    assert percentile(values, q) == pytest.approx(float(np.percentile(values, q)), rel=1e-9, abs=1e-9)


def test_percentiles_by_hand():
    assert percentile([40, 10, 30, 20], 50) == 25
    assert percentile([10, 20, 30, 40, 50], 95) == pytest.approx(48)  # place 3.8: four fifths of the way from 40 to 50
    assert percentile([7], 99) == 7
    assert Percentiles.of(range(101)) == (50, 95, 99)


def test_a_log_in_numbers():
    text = summary(LOG)
    assert (text.requests, text.seconds, text.throughput) == (3, 8, 6 / 8)
    assert text.ttft.p50 == 2 and text.tpot.p50 == 3 and text.gap.p50 == 3 and text.largest_gap == 4
    only_one = summary(Log(1, (Served("c", 3, 4, (8,)),), ()))
    assert (only_one.tpot, only_one.gap, only_one.largest_gap) == (None, None, None)


def test_goodput_counts_those_who_kept_both_promises():
    for ttft_at_most, gap_at_most, within in ((5, 4, 3), (2, 4, 2), (2, 3, 1), (1, 4, 1), (5, 0.5, 1), (0.5, 9, 0)):
        assert goodput(LOG, ttft_at_most, gap_at_most) == within / 8


# --- Little's law ---------------------------------------------------------------------------------------------------


def test_littles_law_by_hand():
    """Present: one from 0 to 1, two from 1 to 3, one from 3 to 6: an area of 8 in 6 seconds, 4 for each of two."""
    result = little([0, 1], [3, 6])
    assert result == (8 / 6, 2 / 6, 4)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), min_size=1, max_size=30))
@law
def test_littles_law_is_exact_and_its_number_is_what_one_counts(rows):
    arrivals = [Fraction(start, 7) for start, _ in rows]
    finishes = [Fraction(start + length, 7) for start, length in rows]
    result = little(arrivals, finishes)
    assert result.number == result.rate * result.time
    ticks = range(min(s for s, _ in rows), max(s + n for s, n in rows))  # between two sevenths nothing changes
    assert result.number == Fraction(sum(s <= tick < s + n for tick in ticks for s, n in rows), len(ticks))


def test_littles_law_holds_for_a_simulated_server():
    log = simulate(poisson(200, 30.0, seed=1, **SHORT), COST, 4)
    result = little([served.arrival for served in log.served], [served.finish for served in log.served])
    assert result.number == pytest.approx(result.rate * result.time, rel=1e-12)
    assert result.number > 1


# --- sweeps ---------------------------------------------------------------------------------------------------------


def test_a_mean_has_the_standard_error_of_the_books():
    values = [3.0, 5.0, 4.0, 9.0]
    assert Mean.of(values) == pytest.approx((5.25, statistics.stdev(values) / 2))
    assert Mean.of([2.0]) == (2.0, 0.0)


def test_waiting_stays_short_below_the_capacity_and_grows_without_end_above():
    most = capacity(COST, 4, n=300, **SHORT)
    low, high = sweep([0.5 * most, 1.5 * most], [0, 1, 2], COST, 4, n=300, **SHORT)
    assert low["ttft_p95"].mean < 0.1 < 1 < high["ttft_p95"].mean
    assert high["ttft_p95"].mean - low["ttft_p95"].mean > 5 * (high["ttft_p95"].error + low["ttft_p95"].error)
    assert low["use"].mean < 0.7 < 0.9 < high["use"].mean
    assert high["goodput"].mean < low["goodput"].mean
    twice = sweep([1.5 * most], [0, 1, 2], COST, 4, n=600, **SHORT)[0]
    assert twice["ttft_p95"].mean > 1.5 * high["ttft_p95"].mean
    assert list(low) == ["rate", *MEASURES]


def test_a_sweep_is_of_the_logs_that_one_would_simulate():
    (row,) = sweep([40.0], [5], COST, 4, n=100, budget=16, **SHORT)
    log = simulate(poisson(100, 40.0, 5, **SHORT), COST, 4, budget=16)
    text = summary(log)
    assert row["ttft_p95"] == (text.ttft.p95, 0) and row["gap_p99"] == (text.gap.p99, 0)
    assert row["throughput"] == (text.throughput, 0) and row["goodput"] == (goodput(log, 1.0, 0.1), 0)
    assert row["kept"].mean == pytest.approx(sum(keeps(each, 1.0, 0.1) for each in log.served) / 100)


def test_a_server_bears_what_its_steps_allow():
    """Ten tokens after a prompt of one, all alike: four slots and 10 steps for each four requests."""
    alike = {"prompts": Lengths(1, 0, 1), "answers": Lengths(10, 0, 10)}
    assert capacity(COST, 4, n=80, **alike) == pytest.approx(4 / (10 * COST(4)))


def test_what_is_no_log_is_refused():
    with pytest.raises(ValueError, match="no token came"):
        ttft(0, ())
    with pytest.raises(ValueError, match="before the arrival"):
        ttft(2, (1,))
    with pytest.raises(ValueError, match="times go back"):
        gaps((2, 1))
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)
    with pytest.raises(ValueError, match="from 0 to 100"):
        percentile([1], 101)
    with pytest.raises(ValueError, match="nothing to count"):
        summary(Log(1, (), ()))
    with pytest.raises(ValueError, match="1 arrivals and 2 finishes"):
        little([0], [1, 2])
    with pytest.raises(ValueError, match="before it arrives"):
        little([0, 3], [1, 2])
    with pytest.raises(ValueError, match="no length"):
        little([1, 1], [1, 1])
    with pytest.raises(ValueError, match="at least one"):
        Mean.of([])
