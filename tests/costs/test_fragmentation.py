"""The simulation counts slots as one can on paper, loses no request, and its policies differ as they must."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.costs.fragmentation import POLICIES, Request, draw_requests, serve

REQUESTS = [Request(2, 1), Request(1, 3), Request(3, 2)]  # 3, 4 and 5 tokens


def told(trace):
    return [(step.filled, step.reserved, step.running) for step in trace.steps]


def test_reserving_the_longest_by_hand():
    # Room for one piece of 5 and no second one in 9 slots; a request with its last token leaves a step later.
    expected = [(2, 5, 1), (3, 5, 1)]  # 2 + 1 tokens
    expected += [(1, 5, 1), (2, 5, 1), (3, 5, 1), (4, 5, 1)]  # 1 + 3
    expected += [(3, 5, 1), (4, 5, 1), (5, 5, 1)]  # 3 + 2
    assert told(serve(REQUESTS, 9, "longest", longest=5)) == expected


def test_reserving_exactly_by_hand():
    # Pieces 0-2 and 3-6 fill 7 of 9 slots. When the first is freed there are 3 + 2 slots, but not 5 in one piece.
    expected = [(2 + 1, 7, 2), (3 + 2, 7, 2), (3, 4, 1), (4, 4, 1)]
    expected += [(3, 5, 1), (4, 5, 1), (5, 5, 1)]
    assert told(serve(REQUESTS, 9, "exact")) == expected


def test_pages_by_hand():
    # Blocks of 2, four in all. The first takes 1 and the second 1; the third needs 2 with 2 to spare, so it waits.
    trace = serve(REQUESTS, 8, "pages", block_size=2)
    expected = [(2 + 1, 4, 2), (3 + 2, 6, 2)]
    expected += [(3, 4, 1), (4, 4, 1)]  # the first is gone: 2 blocks are free, but one of the three must stay to spare
    expected += [(3, 4, 1), (4, 4, 1), (5, 6, 1)]
    assert told(trace) == expected
    assert trace.again == 0


def test_the_last_to_come_goes_back_when_no_block_is_free_and_its_tokens_count_again():
    # Blocks of 1. With 2 + 2 of 5 slots filled, the first takes the last free one, and the second has to go.
    trace = serve([Request(1, 4), Request(1, 4)], 5, "pages", block_size=1)
    assert told(trace)[:5] == [(2, 2, 2), (4, 4, 2), (3, 3, 1), (4, 4, 1), (5, 5, 1)]
    assert trace.again == 2
    assert [step.waiting for step in trace.steps[:6]] == [0, 0, 1, 1, 1, 0]
    assert told(trace)[5:] == [(2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 5, 1)]


def test_who_was_sent_back_is_the_first_in_line():
    # All three start; the third is sent back with 1 token, then the second with 2, and stands before the third.
    trace = serve([Request(1, 4), Request(1, 4), Request(1, 1)], 5, "pages", block_size=1)
    assert told(trace)[:4] == [(3, 3, 3), (4, 4, 2), (3, 3, 1), (4, 4, 1)]  # else the third would fit beside 3 tokens
    assert trace.again == 1 + 2 + 2  # the third once more, with both its tokens, when the second needs a block


def test_the_means_look_at_the_steps_in_which_somebody_waits():
    trace = serve(REQUESTS, 9, "exact")
    busy = trace.steps[:4]  # the third request is in line
    assert trace.mean_filled == pytest.approx(sum(step.filled for step in busy) / 4 / 9)
    assert trace.mean_reserved == pytest.approx(sum(step.reserved for step in busy) / 4 / 9)
    assert trace.mean_running == pytest.approx(1.5)


def test_with_nobody_in_line_the_means_look_at_all_steps():
    trace = serve([Request(1, 1)], 4, "exact")
    assert trace.mean_filled == pytest.approx((1 + 2) / 2 / 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.builds(Request, st.integers(1, 8), st.integers(1, 12)), min_size=1, max_size=12),
    st.integers(32, 80),
    st.sampled_from(POLICIES),
    st.integers(1, 7),
)
def test_every_request_writes_every_token_and_nothing_is_filled_that_is_not_reserved(requests, n_slots, policy, block):
    trace = serve(requests, n_slots, policy, block_size=block)
    assert all(step.filled <= step.reserved <= n_slots for step in trace.steps)
    assert all(0 < step.running + step.waiting <= len(requests) for step in trace.steps)
    # Each request is seen once with each number of tokens from its prompt to its total, or more often if sent back.
    once = sum(sum(range(request.prompt, request.total + 1)) for request in requests)
    observed = sum(step.filled for step in trace.steps)
    assert observed == once if trace.again == 0 else observed >= once
    if policy == "pages":
        assert all(step.reserved - step.filled < step.running * block for step in trace.steps)
    else:
        assert trace.again == 0


def test_pages_leave_less_than_a_block_a_request_empty_and_run_more_side_by_side():
    requests = draw_requests(120, longest=512, seed=1)
    longest, exact, pages = (serve(requests, 4096, policy, longest=512) for policy in POLICIES)
    assert longest.mean_reserved > 0.99
    assert longest.mean_filled < exact.mean_filled < pages.mean_filled
    assert longest.mean_running < exact.mean_running < pages.mean_running
    assert exact.mean_reserved < 0.95  # what is left is in pieces too small
    assert pages.mean_filled > 0.85


def test_draws_are_the_same_everywhere_and_stay_within_the_longest():
    requests = draw_requests(300, longest=2048, seed=0)
    assert requests[:2] == [Request(433, 669), Request(216, 27)]
    assert all(1 <= r.prompt <= 512 and r.reply >= 1 and r.total <= 2048 for r in requests)
    assert draw_requests(3, 2048, seed=1) != draw_requests(3, 2048, seed=0)
    assert max(r.total for r in draw_requests(2000, longest=8)) <= 8


@pytest.mark.parametrize("policy", POLICIES)
def test_a_request_larger_than_the_store_is_refused_at_once(policy):
    with pytest.raises(ValueError, match="a request needs 9 slots but an empty store has 8"):
        serve([Request(4, 5)], 8, policy, block_size=4)


@pytest.mark.parametrize("policy", ["longest", "exact"])
def test_a_store_that_is_just_large_enough_will_do(policy):
    assert len(serve([Request(4, 5)], 9, policy).steps) == 6


def test_a_store_smaller_than_a_block_holds_nothing():
    with pytest.raises(ValueError, match="an empty store has 0"):
        serve([Request(1, 1)], 8, "pages", block_size=16)


def test_what_cannot_be_served_is_said():
    with pytest.raises(ValueError, match="policy is 'best': it must be one of longest, exact, pages"):
        serve(REQUESTS, 9, "best")
    with pytest.raises(ValueError, match="requests is empty"):
        serve([], 9, "pages")
    with pytest.raises(ValueError, match="a request has 5 tokens but longest is 4"):
        serve(REQUESTS, 9, "longest", longest=4)
    with pytest.raises(ValueError, match="longest is 7"):
        draw_requests(1, 7)
