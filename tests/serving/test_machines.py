"""More machines: what they compute together is what one computes, and the bytes are those that were counted."""

import numpy as np
import pytest
import torch

from course_utils.attention import arrays, tiled
from course_utils.costs.configurations import model
from course_utils.serving.costs import StepCost
from course_utils.serving.latency import gaps, summary
from course_utils.serving.machines import (
    LINKS,
    PartialOutput,
    all_reduce_bytes,
    apart,
    attend,
    handed_over_bytes,
    heads_split_bytes,
    keys_split_bytes,
    merge,
    ring_all_reduce,
    split_heads,
    split_keys,
)
from course_utils.serving.simulate import Served, simulate
from course_utils.serving.traffic import Request, poisson

LLAMA = model("Llama 3 8B")  # 32 layers, d_model 4096, 32 heads of 128, 8 of them keys and values

# --- heads split ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machines", [1, 2, 3, 6])
def test_the_sum_of_what_machines_give_is_the_whole_product(machines):
    rng = np.random.default_rng(machines)
    outputs = rng.normal(size=(6, 5, 4))
    w_o = rng.normal(size=(24, 7))
    parts = split_heads(outputs, w_o, machines)
    assert [part.shape for part in parts] == [(5, 7)] * machines
    whole = sum(outputs[head] @ w_o[4 * head : 4 * head + 4] for head in range(6))
    np.testing.assert_allclose(sum(parts), whole)


@pytest.mark.parametrize("machines", [1, 2, 3, 5, 8])
def test_a_ring_sums_and_sends_what_the_formula_says(machines):
    rng = np.random.default_rng(machines)
    parts = [rng.normal(size=(machines, 6)) for _ in range(machines)]
    before = [part.copy() for part in parts]
    sums, sent = ring_all_reduce(parts)
    for result in sums:
        np.testing.assert_allclose(result, np.sum(before, axis=0))
    assert sent * 8 == pytest.approx(all_reduce_bytes(parts[0].nbytes, machines))
    np.testing.assert_array_equal(parts, before)  # what machines gave stays theirs


def test_bytes_of_split_heads_by_hand():
    """Two sums a layer, of 4096 numbers of two bytes for each token; of two machines each sends that many bytes."""
    assert heads_split_bytes(LLAMA, 1, 2) == 2 * 32 * 4096 * 2 == 524288
    assert heads_split_bytes(LLAMA, 10, 8) == 10 * 524288 * 7 / 4
    assert heads_split_bytes(LLAMA, 10, 1) == 0


# --- keys split -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machines", [1, 2, 3, 7, 12])
def test_attention_with_its_keys_on_several_machines_is_attention(machines):
    """On twelve machines five have no key."""
    rng = np.random.default_rng(machines)
    q, k, v = rng.normal(size=(2, 3, 8)), 3 * rng.normal(size=(2, 7, 8)), rng.normal(size=(2, 7, 5))
    result = split_keys(q, k, v, machines)
    np.testing.assert_allclose(result.o, arrays.attention(q, k, v)[0], atol=1e-12)
    np.testing.assert_allclose(result.lse, arrays.logsumexp(q @ np.swapaxes(k, -1, -2) / np.sqrt(8)), atol=1e-12)


def test_it_is_the_merge_of_day_6():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 8)), rng.normal(size=(10, 8)), rng.normal(size=(10, 5))
    ours = merge(attend(q, k[:4], v[:4]), attend(q, k[4:], v[4:]))
    q, k, v = map(torch.from_numpy, (q, k, v))
    o, lse = tiled.finish(tiled.merge(*(tiled.partial_attention(q, k[s], v[s]) for s in (slice(4), slice(4, 10)))))
    np.testing.assert_allclose(ours.o, o, atol=1e-12)
    np.testing.assert_allclose(ours.lse, lse, atol=1e-12)


def test_no_keys_change_nothing_and_large_scores_are_safe():
    q, k, v = np.ones((1, 2)), np.full((2, 2), 1000.0), np.array([[1.0], [3.0]])
    nothing = attend(q, k[:0], v[:0])
    all_keys = attend(q, k, v)
    assert nothing.o.tolist() == [[0]] and nothing.lse.tolist() == [-np.inf]
    for both in (merge(nothing, all_keys), merge(all_keys, nothing), split_keys(q, k, v, 2)):
        np.testing.assert_allclose(both.o, [[2.0]])
    assert merge(nothing, nothing).o.tolist() == [[0]]


def test_merging_by_hand():
    """Weights e^0 : e^(ln 3), so a quarter of the one and three quarters of the other."""
    result = merge(PartialOutput(np.array([[0.0]]), np.array([0.0])), PartialOutput(np.array([[4.0]]), np.log([3.0])))
    assert result.o.item() == pytest.approx(3)
    assert result.lse.item() == pytest.approx(np.log(4))


def test_bytes_of_split_keys_by_hand_do_not_know_the_context():
    assert keys_split_bytes(LLAMA, 1, 2) == 32 * 32 * 129 * 4 == 528384
    assert keys_split_bytes(LLAMA, 3, 5) == 3 * 4 * 528384
    assert keys_split_bytes(LLAMA, 3, 1) == 0


# --- prefill and decode apart ---------------------------------------------------------------------------------------


def test_a_prompt_hands_over_its_whole_cache():
    assert handed_over_bytes(LLAMA, 1000) == 1000 * 2 * 32 * 8 * 128 * 2 == 131_072_000
    assert LINKS["InfiniBand HDR"].seconds(131_072_000) == pytest.approx(5.24e-3, rel=1e-3)


def test_two_machines_by_hand():
    """Prompts of 4 and 2 take 5 and 3 s, one after another; caches take 0.5 s a token; a decode step takes 1 + B."""
    requests = [Request("a", 0, 4, 3), Request("b", 1, 2, 3), Request("c", 2, 2, 1)]
    log, prefill = apart(requests, StepCost(1.0, 1.0, 0.0), 2, seconds_a_token=0.5)
    assert [(step.start, step.end) for step in prefill] == [(0, 5), (5, 8), (8, 11)]
    # a is there at 7 and decodes alone until 9; b, there at 9, decodes beside it until 12, and then alone
    assert log.served == (Served("a", 0, 0, (5, 9, 12)), Served("b", 1, 5, (8, 12, 14)), Served("c", 2, 8, (11,)))


def test_apart_no_prompt_ever_stops_a_decode():
    requests = poisson(80, 6.0, seed=0)
    cost = StepCost(1e-2, 1e-4, 1e-7)
    both = apart(requests, cost, 8)
    together = simulate(requests, cost, 8)
    for one, other in zip(both.log.served, together.served, strict=True):
        assert one.name == other.name and len(one.times) == len(other.times)
    longest = max(cost(8, 8 * 4096), max(step.duration for step in both.log.steps))
    assert max(max(gaps(served.times[1:]), default=0) for served in both.log.served) <= longest + 1e-9
    assert summary(both.log).gap.p99 < 0.5 * summary(together).gap.p99


def test_what_does_not_divide_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="6 heads on 4 machines"):
        split_heads(rng.normal(size=(6, 5, 4)), rng.normal(size=(24, 7)), 4)
    with pytest.raises(ValueError, match=r"expected \(h · d_head, d_model\) = \(24"):
        split_heads(rng.normal(size=(6, 5, 4)), rng.normal(size=(20, 7)), 2)
    with pytest.raises(ValueError, match="cannot be cut into 3"):
        ring_all_reduce([np.zeros(4)] * 3)
    with pytest.raises(ValueError, match="all of one shape"):
        ring_all_reduce([np.zeros(4), np.zeros(2)])
    with pytest.raises(ValueError, match="32 heads on 3 machines"):
        heads_split_bytes(LLAMA, 1, 3)
    with pytest.raises(ValueError, match="at least 0"):
        apart([], StepCost(1, 1, 1), 2, seconds_a_token=-1)
    with pytest.raises(ValueError, match="one name"):
        apart([Request("a", 0, 1, 1)] * 2, StepCost(1, 1, 1), 2)
    with pytest.raises(ValueError, match="at least 0"):
        LINKS["NVLink 3"].seconds(-1)
