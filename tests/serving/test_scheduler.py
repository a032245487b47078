"""What the scheduler promises: budget, order, progress of the oldest, blocks, and a reason for everything."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.serving.prefixes import PrefixCache
from course_utils.serving.scheduler import Note, Scheduler
from course_utils.serving.traffic import Request

law = settings(deadline=None, max_examples=150, derandomize=True)


def run(scheduler, requests, each_step=lambda planned: None):
    """Each request is added at the step of its arrival; returns the plans, one a step."""
    plans = []
    coming = sorted(requests, key=lambda request: request.arrival)
    while coming or scheduler.unfinished:
        while coming and coming[0].arrival <= scheduler.step:
            scheduler.add(coming.pop(0))
        planned = scheduler.plan()
        assert planned or not scheduler.unfinished, "somebody advances, or this would never end"
        each_step(planned)
        scheduler.advance(planned)
        plans.append(planned)
    return plans


def requests_of(*sizes):
    return [Request(name, 0, *size) for name, size in zip("abcdefgh", sizes, strict=False)]


# --- by hand --------------------------------------------------------------------------------------------------------


def test_three_requests_in_two_slots_by_hand():
    """a gets 2 tokens, b 5 and c 3. Statically c waits for b, which takes 8 steps; continuously it takes a's slot."""
    requests = requests_of((2, 2), (2, 5), (2, 3))
    first = [[("a", 2), ("b", 2)], [("a", 1), ("b", 1)]]
    static = run(Scheduler(9, 4, 9, n_slots=2, static=True), requests)
    assert static == [*first, *[[("b", 1)]] * 3, [("c", 2)], *[[("c", 1)]] * 2]
    continuous = run(Scheduler(9, 4, 9, n_slots=2), requests)
    assert continuous == [*first, [("b", 1), ("c", 2)], *[[("b", 1), ("c", 1)]] * 2]


def test_a_prompt_in_chunks_lets_others_go_on():
    requests = [Request("a", 0, 2, 9), Request("b", 1, 7, 2)]
    plans = run(Scheduler(9, 4, 4), requests)
    assert plans[:3] == [[("a", 2)], [("a", 1), ("b", 3)], [("a", 1), ("b", 3)]]
    assert plans[3:5] == [[("a", 1), ("b", 1)]] * 2
    whole = run(Scheduler(9, 4, 4, chunked=False), requests)
    assert whole[:3] == [[("a", 2)], [("a", 1), ("b", 7)], [("a", 1), ("b", 1)]], "above the budget, but in one piece"


def test_a_decode_without_a_block_preempts_the_latest_and_the_notes_say_so():
    scheduler = Scheduler(3, 2, 9)
    plans = run(scheduler, requests_of((2, 3), (2, 3), (1, 1)))
    assert plans == [
        [("a", 2), ("b", 2), ("c", 1)],
        [("a", 1)],  # c is done; a takes its block, and b finds none
        [("a", 1)],
        [("b", 3)],  # its prompt and the token that it had
        [("b", 1)],
    ]
    assert scheduler.notes[3:] == [
        Note(1, "a", "decode", "decodes go first"),
        Note(1, "b", "preempted", "b needs a block, none is free, and it arrived last"),
        Note(2, "a", "decode", "decodes go first"),
        Note(2, "b", "wait", "blocks that it needs: 2, that are free: 1"),
        Note(3, "b", "prefill", "tokens 1 to 3 of 3"),
        Note(4, "b", "decode", "decodes go first"),
    ]
    assert (scheduler.again, scheduler.moved) == (2, 0)


def test_who_is_swapped_computes_nothing_again_and_its_blocks_move_twice():
    scheduler = Scheduler(3, 2, 9, swap=True)
    plans = run(scheduler, requests_of((2, 3), (2, 3), (1, 1)))
    assert plans[3:] == [[("b", 1)], [("b", 1)]]
    assert (scheduler.again, scheduler.moved) == (0, 2)


def test_an_older_one_that_needs_a_block_takes_it_from_the_latest():
    scheduler = Scheduler(4, 2, 9)
    plans = run(scheduler, requests_of((2, 4), (1, 2), (4, 2)))
    assert plans[:2] == [[("a", 2), ("b", 1), ("c", 4)], [("a", 1), ("b", 1)]]
    assert scheduler.notes[3] == Note(1, "c", "preempted", "a needs a block, none is free, and it arrived last")


def test_the_plans_are_the_same_without_notes():
    requests = requests_of((2, 3), (2, 3), (1, 1))
    quiet = Scheduler(3, 2, 9, explain=False)
    scheduler = Scheduler(3, 2, 9)
    assert run(quiet, requests) == run(scheduler, requests)
    assert quiet.notes == [] != scheduler.notes


def test_reasons_to_wait():
    def waits(scheduler, *sizes):
        for request in requests_of(*sizes):
            scheduler.add(request)
        scheduler.plan()
        return [(note.name, note.why) for note in scheduler.notes if note.did == "wait"]

    assert waits(Scheduler(9, 2, 3), (2, 1), (2, 1), (1, 1)) == [("c", "the budget of 3 tokens is used")]
    assert waits(Scheduler(9, 2, 9, n_slots=1), (2, 1), (2, 1), (1, 1)) == [
        ("b", "every slot is taken: 1"),
        ("c", "b is before it"),
    ]
    assert waits(Scheduler(3, 2, 9), (3, 1), (3, 1), (1, 1)) == [
        ("b", "blocks that it needs: 2, that are free: 1"),
        ("c", "b is before it"),
    ]
    static = Scheduler(9, 2, 9, static=True)
    static.add(Request("x", 0, 1, 2))
    static.advance(static.plan())
    assert waits(static, (2, 1)) == [("a", "the batch is not over")]


def test_a_static_batch_reserves_all_its_blocks():
    scheduler = Scheduler(4, 2, 9, static=True)
    plans = run(scheduler, requests_of((2, 4), (2, 4)))
    assert plans == [[("a", 2)], *[[("a", 1)]] * 3, [("b", 2)], *[[("b", 1)]] * 3]


def test_a_cached_beginning_is_not_computed():
    cache = PrefixCache(4, 2)
    cache.serve([1, 2, 3, 4])
    shared = cache.lookup([1, 2, 3, 4])

    def cached(name):
        for block in shared:
            cache.share(block)
        return list(shared)

    scheduler = Scheduler(4, 2, 9, blocks=cache, cached=cached)
    assert run(scheduler, requests_of((4, 1), (4, 1))) == [[("a", 2), ("b", 2)]]
    assert cache.n_free == 4


def test_of_a_beginning_that_is_cached_the_end_is_evicted_first():
    cache = PrefixCache(4, 1)
    scheduler = Scheduler(4, 1, 9, blocks=cache)
    scheduler.add(Request("a", 0, 3, 1))
    planned = scheduler.plan()
    cache.keep([1, 2, 3], scheduler.running[0].table)
    scheduler.advance(planned)
    for left in (3, 2, 1, 0):  # the first block that is allocated was empty
        cache.allocate()
        assert len(cache.lookup([1, 2, 3, 4])) == left


def test_a_request_may_end_before_it_has_all_its_tokens():
    scheduler = Scheduler(4, 2, 9)
    scheduler.add(Request("a", 0, 3, 5))
    scheduler.advance(scheduler.plan())
    scheduler.finish("a")
    assert scheduler.unfinished == [] and scheduler.blocks.n_free == 4
    with pytest.raises(ValueError, match="'a' is not running"):
        scheduler.finish("a")


# --- laws -----------------------------------------------------------------------------------------------------------


def draw(seed):
    """A scheduler's sizes, and requests that fit into its pool."""
    rng = random.Random(seed)
    requests = []
    step = 0
    for number in range(rng.randint(1, 9)):
        step += rng.choice([0, 0, 1, 3])
        requests.append(Request(f"r{number}", step, rng.randint(1, 20), rng.randint(1, 12)))
    block_size = rng.randint(1, 6)
    largest = max(-(-(request.prompt + request.new - 1) // block_size) for request in requests)
    options = {
        "n_slots": rng.choice([None, 1, 2, 4]),
        "chunked": rng.random() < 0.7,
        "static": rng.random() < 0.3,
        "swap": rng.random() < 0.5,
    }
    return Scheduler(largest + rng.choice([0, 0, 1, 3, 20]), block_size, rng.randint(1, 12), **options), requests


@law
@given(st.integers(0, 10**6))
def test_what_holds_in_every_step(seed):
    scheduler, requests = draw(seed)
    computed = Counter()
    blocks = scheduler.blocks

    def hold(planned):
        counts = dict(planned)
        unfinished = [each.request.name for each in scheduler.unfinished]
        decoding = {each.request.name for each in scheduler.running if each.decodes}
        arrival = {request.name: i for i, request in enumerate(requests)}
        assert len(counts) == len(planned) and all(n >= 1 for n in counts.values())
        if scheduler.chunked:
            assert sum(counts.values()) <= scheduler.budget
        order = [name in decoding for name, _ in planned]
        assert order == sorted(order, reverse=True) or scheduler.swap, "decodes first"
        assert unfinished == sorted(unfinished, key=arrival.get), "first come, first served"
        assert unfinished[:1] == [name for name in unfinished[:1] if name in counts], "the oldest always advances"
        notes = [note.name for note in scheduler.notes if note.step == scheduler.step]
        assert sorted(notes) == sorted(unfinished), "one reason for each request and step"
        assert all(note.did in ("decode", "prefill") for note in scheduler.notes[-len(notes) :] if note.name in counts)
        held = [block for each in scheduler.running for block in each.table]
        assert len(held) == len(set(held)) == blocks.n_blocks - blocks.n_free, "no block in two tables, none lost"
        for each in scheduler.running:
            assert len(each.table) * scheduler.block_size >= each.computed + counts.get(each.request.name, 0)
        assert scheduler.n_slots is None or len(scheduler.running) <= scheduler.n_slots
        computed.update(counts)

    plans = run(scheduler, requests, hold)
    assert scheduler.unfinished == [] and blocks.n_free == blocks.n_blocks
    asked = sum(request.prompt + request.new - 1 for request in requests)
    assert sum(computed.values()) == asked + scheduler.again, "all is computed once, but for what preemption lost"
    assert len(plans) == scheduler.step
    if scheduler.swap or scheduler.static:
        assert scheduler.again == 0
    if not scheduler.swap:
        assert scheduler.moved == 0


@law
@given(st.integers(0, 10**6))
def test_a_static_batch_takes_nobody_in_until_it_is_over(seed):
    _, requests = draw(seed)
    scheduler = Scheduler(200, 4, 8, n_slots=3, static=True)
    observed = []

    def hold(planned):
        names = {each.request.name for each in scheduler.running}
        if observed and names & observed[-1]:
            assert names <= observed[-1]
        observed.append(names)

    run(scheduler, requests, hold)


def test_the_laws_met_preemption_both_ways():
    kinds = Counter()
    for seed in range(150):
        scheduler, requests = draw(seed)
        run(scheduler, requests)
        kinds.update(again=scheduler.again > 0, moved=scheduler.moved > 0)
    assert min(kinds["again"], kinds["moved"]) > 10


# --- what is refused ------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused():
    scheduler = Scheduler(4, 2, 8)
    scheduler.add(Request("a", 3, 5, 4))
    with pytest.raises(ValueError, match="'a' already"):
        scheduler.add(Request("a", 3, 1, 1))
    with pytest.raises(ValueError, match=r"'b' has 6 \+ 4 tokens, all but the last to be stored, but the pool has 8"):
        scheduler.add(Request("b", 3, 6, 4))
    with pytest.raises(ValueError, match="'b' came at 2, before 3"):
        scheduler.add(Request("b", 2, 1, 1))
    for size in (0, 1.5):
        with pytest.raises((ValueError, TypeError), match="new is"):
            scheduler.add(Request("b", 3, 1, size))
    for name in ("n_blocks", "block_size", "budget", "n_slots"):
        with pytest.raises(ValueError, match=f"{name} is 0"):
            Scheduler(**{"n_blocks": 1, "block_size": 1, "budget": 1} | {name: 0})
    with pytest.raises(ValueError, match="n_blocks is 3 but the pool has 4"):
        Scheduler(3, 2, 8, blocks=PrefixCache(4, 2))
