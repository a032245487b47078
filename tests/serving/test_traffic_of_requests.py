"""Requests at random: the process and the lengths that they promise, and the same from the same seed."""

import math

import numpy as np
import pytest

from course_utils.serving.traffic import ANSWERS, DOCUMENTS, PROMPTS, THREE, Lengths, Request, poisson, work


def test_arrivals_are_a_poisson_process():
    """Exponential gaps: mean 1 / rate, and as many above their median, ln 2 / rate, as below. Five standard errors."""
    n = 20000
    rate = 4.0
    arrivals = np.array([request.arrival for request in poisson(n, rate, seed=3)])
    gaps = np.diff(arrivals, prepend=0)
    assert (gaps > 0).all()
    assert abs(gaps.mean() - 1 / rate) < 5 / rate / math.sqrt(n)
    assert abs((gaps > math.log(2) / rate).mean() - 0.5) < 5 * 0.5 / math.sqrt(n)
    counts = np.bincount(arrivals.astype(int))[:-1]  # arrivals in each whole second have the variance of their mean
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.1)


def test_another_rate_brings_the_same_requests_in_stretched_time():
    slow = poisson(50, 1.0, seed=7)
    fast = poisson(50, 8.0, seed=7)
    assert [request[2:] for request in slow] == [request[2:] for request in fast]
    np.testing.assert_allclose([r.arrival for r in slow], [8 * r.arrival for r in fast])
    assert poisson(80, 1.0, seed=7)[:50] == slow
    assert poisson(50, 1.0, seed=8) != slow
    assert all(request.arrival == 0 for request in poisson(50, math.inf, seed=7))


@pytest.mark.parametrize("lengths", [PROMPTS, ANSWERS, DOCUMENTS])
def test_lengths_have_their_median_and_their_spread(lengths):
    drawn = lengths.draw(40000, np.random.default_rng(0))
    assert drawn.min() >= 1 and drawn.max() == lengths.longest
    assert np.median(drawn) == pytest.approx(lengths.median, rel=0.03)
    low, high = np.percentile(drawn, [15.87, 84.13])  # one σ of the logarithm to either side
    assert math.log(high / low) == pytest.approx(2 * lengths.spread, rel=0.04)


def test_no_spread_is_one_length():
    assert Lengths(20, 0, 100).draw(5, np.random.default_rng(0)).tolist() == [20] * 5


def test_work_is_what_is_to_read_and_to_write():
    assert work(THREE) == (6, 10)
    assert work([Request("a", 0, 3, 4)]) == (3, 4)


def test_bad_traffic_is_refused():
    for rate in (0, -1, math.nan):
        with pytest.raises(ValueError, match="rate"):
            poisson(3, rate)
    with pytest.raises(ValueError, match="at least 1 token"):
        poisson(3, 1.0, prompts=Lengths(0.5, 1, 10))
    with pytest.raises(TypeError, match="n is"):
        poisson(2.5, 1.0)
