"""The engine against `generate`: every request gets token for token what it would get alone."""

import random
from collections import Counter
from functools import cache as remember

import pytest
import torch

from course_utils.models.decoder import Decoder, generate
from course_utils.serving.engine import Engine
from course_utils.serving.events import Event, Times, token_times

WORDS = 29
ALL = pytest.mark.thorough("200 sets of requests go through the engine, in place of 12")
KINDS = ("preemptions", "hits", "full_hits", "chunks", "together")

pytestmark = pytest.mark.usefixtures("one_thread")


@remember
def decoder(window=None, n_layers=2):
    """Two layers in float64, with weights large enough that it matters who attends to whom."""
    torch.manual_seed(0)
    model = Decoder(WORDS, d_model=32, n_layers=n_layers, n_heads=4, n_kv_heads=2, window=window).double()
    with torch.no_grad():
        for block in model.blocks:
            for layer in (block.attention.q_proj, block.attention.k_proj, block.attention.v_proj):
                layer.weight *= 3
    return model.requires_grad_(False)


def alone(tokens, n_new, window=None):
    """What a request gets from the model by itself, everything computed again at every step."""
    return generate(decoder(window), torch.tensor([tokens]), n_new)[0].tolist()


def draw_set(seed):
    """Sizes of an engine, and requests as (steps to wait before it comes, name, prompt, n_new).

    Most prompts begin like others, some are exactly full blocks of a prompt that was there before, and some are equal.
    The pool has room for the largest request and little more.
    """
    rng = random.Random(seed)
    block_size = rng.randint(1, 8)
    bases = [[rng.randrange(WORDS) for _ in range(24)] for _ in range(2)]
    requests = []
    for number in range(rng.randint(2, 7)):
        kind = rng.random()
        base = rng.choice(bases)
        if kind < 0.3:  # a whole number of blocks
            prompt = base[: rng.randint(1, max(1, 16 // block_size)) * block_size]
        elif kind < 0.8:  # a beginning that others have, and an end of its own
            prompt = base[: rng.randint(1, 16)] + [rng.randrange(WORDS) for _ in range(rng.randint(0, 6))]
        else:
            prompt = [rng.randrange(WORDS) for _ in range(rng.randint(1, 20))]
        requests.append((rng.choice([0, 0, 0, 1, 2, 5]), f"r{number}", prompt, rng.randint(1, 9)))
    largest = max(-(-(len(prompt) + n_new - 1) // block_size) for _, _, prompt, n_new in requests)
    sizes = {
        "n_blocks": largest + rng.choice([0, 0, 0, 1, 2, largest]),
        "block_size": block_size,
        "budget": rng.choice([1, 2, 3, 5, 8, 16, 64]),
        "n_slots": rng.choice([None, None, 1, 2, 4]),
        "chunked": rng.random() < 0.8,
        "prefix_cache": rng.random() < 0.8,
    }
    return sizes, requests


def serve(engine, requests, each_step=lambda: None):
    for wait, name, prompt, n_new in requests:
        for _ in range(wait):
            engine.step()
            each_step()
        engine.submit(name, prompt, n_new)
    while engine.scheduler.unfinished:
        engine.step()
        each_step()
        assert engine.scheduler.notes[-1].step < 1000, "this would never end"
    return engine.run()


def nothing_lost(engine):
    """At the end no block is held, every block can be had, and each once."""
    n_blocks = engine.blocks.n_blocks
    assert engine.n_held == 0 and engine.blocks.n_free == n_blocks
    assert sorted(engine.blocks.allocate() for _ in range(n_blocks)) == list(range(n_blocks))


def tables_are_sound(engine):
    """Each block counts the tables that name it, in every step, and no request holds more blocks than its tokens."""
    held = Counter(block for each in engine.scheduler.running for block in each.table)
    assert all(engine.blocks.references(block) == held[block] for block in range(engine.blocks.n_blocks))


def happened(engine, requests):
    """How often each of the difficult things took place in a run."""
    size = engine.scheduler.block_size
    prompts = {name: len(prompt) for _, name, prompt, _ in requests}
    observed = Counter(event.kind for event in engine.events)
    reused = {event.name: event.n for event in engine.events if event.kind == "admitted"}
    chunks = Counter(event.name for event in engine.events if event.kind == "prefill")
    return Counter(
        preemptions=observed["preempted"],
        hits=sum(n > 0 for n in reused.values()),
        full_hits=sum(prompts[name] % size == 0 and reused[name] == prompts[name] - size for name in reused if size > 1)
        + sum(reused[name] == prompts[name] - 1 for name in reused if size == 1 and prompts[name] > 1),
        chunks=sum(n > 1 for n in chunks.values()),
        together=max(Counter(e.step for e in engine.events if e.kind in ("token", "prefill")).values()) > 1,
    )


def check_sets(seeds, **options):
    total = Counter()
    for seed in seeds:
        sizes, requests = draw_set(seed)
        engine = Engine(decoder(), **{**sizes, **options})
        served = serve(engine, requests, lambda engine=engine: tables_are_sound(engine))
        expected = {name: alone(prompt, n_new) for _, name, prompt, n_new in requests}
        assert served == expected, f"set {seed}: {sizes}, {requests}"
        nothing_lost(engine)
        total += happened(engine, requests)
    return total


@pytest.mark.parametrize("sets", [12, pytest.param(200, marks=ALL)])
def test_sets_of_requests_get_token_for_token_what_each_gets_alone(sets):
    total = check_sets(range(sets))
    assert min(total[kind] for kind in KINDS) >= sets // 4, total


def test_swapping_and_static_batches_change_no_token_either():
    swapped = check_sets(range(200, 208), swap=True)
    static = check_sets(range(220, 224), static=True)
    assert swapped["preemptions"] > 1 and static["preemptions"] == 0 and static["hits"] > 1


# --- by hand --------------------------------------------------------------------------------------------------------


def test_the_log_of_two_requests_in_a_pool_that_is_too_small():
    engine = Engine(decoder(), n_blocks=3, block_size=2, budget=3, prefix_cache=False)
    engine.submit("a", [1, 2], 3)
    engine.submit("b", [3, 4, 5], 2)
    assert engine.run() == {"a": alone([1, 2], 3), "b": alone([3, 4, 5], 2)}
    assert engine.events == [
        Event(0, "a", "arrived", 2),
        Event(0, "b", "arrived", 3),
        Event(0, "a", "admitted", 0),
        Event(0, "b", "admitted", 0),
        Event(0, "a", "prefill", 2),
        Event(0, "a", "token"),
        Event(0, "b", "prefill", 1),
        Event(1, "b", "preempted", 1),
        Event(1, "a", "token"),
        Event(2, "a", "token"),
        Event(2, "a", "finished", 3),
        Event(3, "b", "admitted", 0),
        Event(3, "b", "prefill", 3),
        Event(3, "b", "token"),
        Event(4, "b", "token"),
        Event(4, "b", "finished", 2),
    ]


def test_times_follow_from_the_log():
    log = [
        Event(0, "a", "arrived", 2),
        Event(0, "a", "token"),
        Event(2, "b", "arrived", 1),
        Event(2, "a", "token"),
        Event(3, "b", "token"),
    ]
    assert token_times(log) == {"a": Times(0, (1, 3)), "b": Times(2, (4,))}
    assert token_times(log, [0.5, 1, 2, 4]) == {"a": Times(0, (0.5, 3.5)), "b": Times(1.5, (7.5,))}
    assert token_times(log[:1]) == {"a": Times(0, ())} and token_times([]) == {}
    with pytest.raises(ValueError, match="seconds has 3 steps but the log has 4"):
        token_times(log, [1, 1, 1])
    with pytest.raises(ValueError, match="'a' got a token but never arrived"):
        token_times(log[1:])


def test_a_step_says_who_got_a_token():
    engine = Engine(decoder(), n_blocks=9, block_size=2, budget=3)
    assert engine.step() == [] and engine.events == []
    engine.submit("a", [1, 2], 2)
    engine.submit("b", [3, 4], 1)
    assert [engine.step() for _ in range(2)] == [["a"], ["a", "b"]]
    assert engine.run() == {"a": alone([1, 2], 2), "b": alone([3, 4], 1)}


def test_a_prompt_that_is_cached_whole_is_served():
    """Full blocks, all of them cached: one block is computed again, for the sake of the output at its last token."""
    engine = Engine(decoder(), n_blocks=9, block_size=2, budget=9)
    for name in "ab":
        engine.submit(name, [1, 2, 3, 4], 3)
        engine.run()
    assert engine.run()["a"] == engine.run()["b"] == alone([1, 2, 3, 4], 3)
    assert [event.n for event in engine.events if event.kind == "admitted"] == [0, 2]
    nothing_lost(engine)


def test_equal_prompts_at_once_are_each_read_until_their_own_end():
    """Both compute the same blocks in one step. The one without the name must not be given away while it is read."""
    engine = Engine(decoder(), n_blocks=7, block_size=2, budget=64)
    prompts = {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": [5, 6]}
    served = serve(engine, [(0, "a", prompts["a"], 4), (0, "b", prompts["b"], 4), (1, "c", prompts["c"], 2)])
    assert served == {name: alone(prompts[name], len(served[name])) for name in prompts}


def test_who_is_preempted_comes_back_in_a_later_step():
    """b's blocks are duplicates of a's. Once they are given back there is room for b, which now shares a's."""
    engine = Engine(decoder(), n_blocks=6, block_size=2, budget=64)
    for name in "ab":
        engine.submit(name, [1, 2, 3, 4, 5], 4)
    assert engine.run() == dict.fromkeys("ab", alone([1, 2, 3, 4, 5], 4))
    moves = [(event.step, *event[1:3]) for event in engine.events if event.kind in ("admitted", "preempted")]
    assert moves == [(0, "a", "admitted"), (0, "b", "admitted"), (2, "b", "preempted"), (3, "b", "admitted")]
    assert ("b", "preempted") in [(note.name, note.did) for note in engine.scheduler.notes if note.step == 2]


def test_prefixes_save_what_is_computed_and_change_no_token():
    prompts = [[*range(12), 20 + i] for i in range(5)]
    counts = []
    replies = []
    for prefix_cache in (False, True):
        engine = Engine(decoder(), 64, 4, 16, prefix_cache)
        replies.append(serve(engine, [(3, str(i), prompt, 2) for i, prompt in enumerate(prompts)]))
        counts.append(sum(event.n for event in engine.events if event.kind == "prefill"))
    assert replies[0] == replies[1]
    assert counts == [5 * 13, 13 + 4 * 1]


def test_a_model_with_a_window_and_one_without_layers_are_served():
    engine = Engine(decoder(window=3), 9, 2, 5)
    engine.submit("a", torch.tensor([1, 2, 3, 4, 5, 6, 7]), 5)
    engine.submit("b", [1, 2, 3, 4, 9], 3)
    assert engine.run() == {"a": alone([1, 2, 3, 4, 5, 6, 7], 5, window=3), "b": alone([1, 2, 3, 4, 9], 3, window=3)}
    flat = decoder(n_layers=0)
    engine = Engine(flat, 9, 2, 5)
    engine.submit("a", [1, 2, 3], 2)
    assert engine.run()["a"] == generate(flat, torch.tensor([[1, 2, 3]]), 2)[0].tolist()


def test_what_does_not_fit_is_refused_and_leaves_the_engine_as_it_was():
    engine = Engine(decoder(), 4, 2, 5)
    for tokens, error, words in (
        ([], ValueError, "give at least one, each from 0 to 28"),
        ([29], ValueError, "from 0 to 28"),
        ([-1], ValueError, "at least 0"),
        ([1.5], TypeError, "whole number"),
        ([1] * 8, ValueError, "make it larger"),
    ):
        with pytest.raises(error, match=words):
            engine.submit("a", tokens, 2)
    engine.submit("a", [1], 2)
    with pytest.raises(ValueError, match="'a' already"):
        engine.submit("a", [2], 2)
    assert engine.run() == {"a": alone([1], 2)}
    with pytest.raises(ValueError, match="budget is 0"):
        Engine(decoder(), 4, 2, 0)
