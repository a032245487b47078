"""A server in steps: by hand, against schedules found in another way, and by what every schedule has to keep."""

import heapq
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.serving.costs import StepCost
from course_utils.serving.simulate import Part, simulate, timeline
from course_utils.serving.traffic import THREE, Lengths, Request, poisson

law = settings(deadline=None, max_examples=150, derandomize=True)


def one_second(tokens, context):
    return 1.0


@st.composite
def traffic(draw):
    """Some requests with arrivals in quarters of a second, slots and a budget or none."""
    rows = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(1, 9)), min_size=1, max_size=12))
    requests = [Request(f"r{i}", quarter / 4, prompt, new) for i, (quarter, prompt, new) in enumerate(rows)]
    n_slots = draw(st.integers(1, 4))
    return requests, n_slots, draw(st.none() | st.integers(n_slots, 20))


# --- by hand --------------------------------------------------------------------------------------------------------


def test_three_requests_in_two_slots_static():
    """A and B run until B is done at 5; C has to wait, and A's slot with it."""
    log = simulate(THREE, one_second, 2, static=True)
    assert timeline(log).splitlines() == ["A  12......", "B  12345...", "C  .....123"]
    assert log.use == 10 / 16
    assert [served.times for served in log.served] == [(1, 2), (1, 2, 3, 4, 5), (6, 7, 8)]


def test_three_requests_in_two_slots_continuous():
    """C takes A's slot at the third step."""
    log = simulate(THREE, one_second, 2)
    assert timeline(log).splitlines() == ["A  12...", "B  12345", "C  ..123"]
    assert log.use == 1
    assert [(served.admitted, served.first, served.finish) for served in log.served] == [
        (0, 1, 2),
        (0, 1, 5),
        (2, 3, 5),
    ]


def test_three_requests_with_a_budget_of_three_tokens():
    """The first step has room for A's prompt and one token of B's; in the third C's whole prompt goes beside B."""
    log = simulate(THREE, one_second, 2, budget=3)
    assert timeline(log).splitlines() == ["A  12....", "B  P12345", "C  ..123."]
    assert [step.tokens for step in log.steps] == [3, 2, 3, 2, 2, 1]
    assert log.steps[1].parts == (Part("A", 1, 2, True), Part("B", 1, 1, True))


def test_a_step_takes_what_its_tokens_and_their_cache_cost():
    """A prompt of 3 at 0; then tokens that read 3, 4 and 5 of the cache."""
    log = simulate([Request("a", 2.0, 3, 4)], StepCost(1.0, 0.1, 0.01), 1)
    assert log.steps[0].start == 2
    assert [step.duration for step in log.steps] == pytest.approx([1.3, 1.13, 1.14, 1.15])
    assert log.served[0].times == pytest.approx((3.3, 4.43, 5.57, 6.72))


def test_a_long_prompt_stops_those_who_decode_and_a_budget_lets_them_go_on():
    """A step takes a second for each token: beside a prompt of 100 the next token takes 101 s, in chunks of 9 ten."""
    requests = [Request("writes", 0, 1, 30), Request("long", 3, 100, 2)]
    for budget, longest in ((None, 101), (10, 10)):
        log = simulate(requests, lambda tokens, context: float(tokens), 2, budget=budget)
        times = log.served[0].times
        assert max(b - a for a, b in itertools.pairwise(times)) == longest
        assert log.served[1].first > 100


def test_prompts_that_are_cached_already_give_a_token_at_once():
    log = simulate([Request("a", 0, 7, 2)], StepCost(1.0, 1.0, 1.0), 1, prefilled=True)
    assert log.served[0].times == (1 + 1 + 7, 9 + 1 + 1 + 8)


def test_a_static_batch_lets_nobody_in_while_it_runs():
    """B comes when one of two slots is free all along, and waits for A; continuous batching lets it in at 2."""
    requests = [Request("A", 0, 1, 4), Request("B", 1.5, 1, 1)]
    assert timeline(simulate(requests, one_second, 2, static=True)).splitlines() == ["A  1234.", "B  ....1"]
    assert timeline(simulate(requests, one_second, 2)).splitlines() == ["A  1234", "B  ..1."]


def test_the_clock_goes_on_to_the_next_arrival():
    log = simulate([Request("late", 100, 1, 1), Request("early", 5, 1, 2)], one_second, 4)
    assert [step.start for step in log.steps] == [5, 6, 100]
    assert [served.name for served in log.served] == ["late", "early"]


def test_nothing_to_serve_is_an_empty_log():
    log = simulate([], one_second, 2)
    assert log.served == () and log.steps == () and log.use == 0 and timeline(log) == ""


# --- found in another way -------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 6))
@law
def test_steps_are_those_of_list_scheduling_and_of_the_longest_of_each_batch(lengths, n_slots):
    """All there at 0: a slot that is free first takes the next request; or each batch takes as long as its longest."""
    requests = [Request(str(i), 0, 5, new) for i, new in enumerate(lengths)]
    free = [0] * min(n_slots, len(lengths))
    for new in lengths:
        heapq.heapreplace(free, free[0] + new)
    continuous = simulate(requests, one_second, n_slots)
    assert len(continuous.steps) == max(free)
    static = simulate(requests, one_second, n_slots, static=True)
    assert len(static.steps) == sum(max(lengths[i : i + n_slots]) for i in range(0, len(lengths), n_slots))
    for log in (continuous, static):
        assert log.use == pytest.approx(sum(lengths) / (n_slots * len(log.steps)))
    assert len(continuous.steps) <= len(static.steps)


def test_continuous_batching_needs_a_third_of_the_steps_on_random_lengths():
    requests = poisson(300, math.inf, seed=0, answers=Lengths(40, 0.8, 512))
    static, continuous = (simulate(requests, one_second, 8, static=flag) for flag in (True, False))
    assert len(static.steps) / len(continuous.steps) > 2.2
    assert static.use < 0.45 < 0.9 < continuous.use


# --- what every schedule keeps --------------------------------------------------------------------------------------


@given(traffic(), st.booleans())
@law
def test_every_schedule_keeps_its_promises(given_traffic, static):
    requests, n_slots, budget = given_traffic
    budget = None if static else budget
    cost = StepCost(0.5, 0.25, 0.125)
    log = simulate(requests, cost, n_slots, budget, static)
    parts = {request.name: [] for request in requests}
    before = 0.0
    for step in log.steps:
        assert step.start >= before and step.duration == cost(step.tokens, step.context)
        assert 1 <= len(step.parts) <= n_slots and len({part.name for part in step.parts}) == len(step.parts)
        assert budget is None or step.tokens <= budget
        before = step.end
        for part in step.parts:
            assert part.tokens >= 1
            parts[part.name].append((step, part))
    for request, served in zip(requests, log.served, strict=True):
        mine = parts[request.name]
        assert served.name == request.name and served.arrival == request.arrival <= served.admitted <= mine[0][0].start
        assert served.times == tuple(step.end for step, part in mine if part.wrote)
        assert len(served.times) == request.new
        assert sum(part.tokens for _, part in mine) == request.prompt + request.new - 1  # the last is never fed back
        cached = itertools.accumulate((part.tokens for _, part in mine), initial=0)
        assert [part.context for _, part in mine] == list(cached)[:-1]
        assert [part.tokens for _, part in mine if part.wrote][1:] == [1] * (request.new - 1)
    in_order = sorted(log.served, key=lambda served: served.arrival)
    assert [served.admitted for served in in_order] == sorted(served.admitted for served in log.served)


@given(traffic())
@law
def test_no_slot_is_empty_while_a_request_waits(given_traffic):
    requests, n_slots, budget = given_traffic
    log = simulate(requests, StepCost(0.5, 0.25, 0.125), n_slots, budget)
    for step in log.steps:
        inside = sum(served.admitted <= step.start < served.finish for served in log.served)
        waiting = sum(served.arrival <= step.start < served.admitted for served in log.served)
        assert inside == n_slots or not waiting
        if budget is None:
            assert len(step.parts) == inside


@given(traffic())
@law
def test_decodes_go_before_chunks_and_no_budget_is_left_while_a_prompt_waits(given_traffic):
    requests, n_slots, budget = given_traffic
    if budget is None:
        budget = n_slots
    log = simulate(requests, one_second, n_slots, budget)
    prompts = {request.name: request.prompt for request in requests}
    for step in log.steps:
        running = {served.name for served in log.served if served.admitted <= step.start < served.finish}
        cached = {name: sum(p.tokens for s in log.steps if s.end <= step.start for p in s.parts if p.name == name)
                  for name in running}  # fmt: skip
        decoding = {name for name in running if cached[name] >= prompts[name]}
        ran = {part.name: part.tokens for part in step.parts}
        assert decoding <= ran.keys()
        unread = sum(prompts[name] - cached[name] - ran.get(name, 0) for name in running - decoding)
        assert step.tokens == budget or unread == 0


# --- what is refused ------------------------------------------------------------------------------------------------


def test_what_cannot_be_served_is_refused():
    one = Request("a", 0, 2, 2)
    with pytest.raises(ValueError, match="so give 3"):
        simulate([one], one_second, 3, budget=2)
    with pytest.raises(ValueError, match="leave one of them out"):
        simulate([one], one_second, 1, budget=8, static=True)
    with pytest.raises(ValueError, match="one name"):
        simulate([one, one], one_second, 1)
    with pytest.raises(ValueError, match="prompt of a is 0"):
        simulate([one._replace(prompt=0)], one_second, 1)
    with pytest.raises(ValueError, match="new of a is 0"):
        simulate([one._replace(new=0)], one_second, 1)
    with pytest.raises(ValueError, match="n_slots is 0"):
        simulate([one], one_second, 0)
    with pytest.raises(ValueError, match="must be above 0"):
        simulate([one], lambda tokens, context: 0.0, 1)
