"""Four kinds of prompts, and the hit rates that they must have."""

import pytest

from course_utils.attention.blocks import CacheFull
from course_utils.serving.prefix_traffic import (
    KINDS,
    changed_at_the_beginning,
    chat_turns,
    few_shot,
    hit_rate,
    one_system_prompt,
    unrelated,
)
from course_utils.serving.prefixes import PrefixCache, RadixTree

CACHES = {"blocks": lambda slots: PrefixCache(slots // 16, 16), "tree": RadixTree}


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_prompts(kind):
    assert KINDS[kind](seed=3) == KINDS[kind](seed=3) != KINDS[kind](seed=4)
    assert all(0 <= token < 1000 for prompt in KINDS[kind](seed=3) for token in prompt)


def test_what_the_kinds_share():
    turns = chat_turns(n_users=2, n_turns=3, first=5, turn=2)
    assert sorted(map(len, turns)) == [5, 5, 7, 7, 9, 9]
    assert all(any(later[: len(turn)] == turn for later in turns[i + 1 :]) for i, turn in enumerate(turns[:4]))
    system = one_system_prompt(n=4, system=6, question=2)
    assert len({tuple(p[:6]) for p in system}) == 1 and len({tuple(p) for p in system}) == 4
    shots = few_shot(n_tasks=3, n_questions=4, examples=6, question=2)
    assert len(shots) == 12 and len({tuple(p[:6]) for p in shots}) == 3
    assert len({p[0] for p in unrelated(n=5, length=3)}) > 1


def test_a_tree_finds_every_shared_token_and_blocks_only_full_ones():
    """With room for all: one system prompt of 200 tokens is found by 47 of 48, in 12 blocks of 16 or token by token."""
    prompts = one_system_prompt(vocabulary=10**9)
    room = 10**5 // 16 * 16
    assert hit_rate(CACHES["tree"](room), prompts) == 47 * 200 / (48 * 240)
    assert hit_rate(CACHES["blocks"](room), prompts) == 47 * 192 / (48 * 240)
    turns = chat_turns(vocabulary=10**9)
    assert hit_rate(CACHES["tree"](room), turns) == 8 * sum(range(60, 260, 40)) / (8 * sum(range(60, 300, 40)))


@pytest.mark.parametrize("cache", CACHES)
def test_one_changed_token_at_the_beginning_costs_everything(cache):
    for kind, draw in KINDS.items():
        prompts = draw(vocabulary=10**9)
        before, after = (hit_rate(CACHES[cache](16_000), p) for p in (prompts, changed_at_the_beginning(prompts)))
        assert after == 0 and (before > 0.5 or kind == "unrelated texts")


@pytest.mark.parametrize("cache", CACHES)
def test_a_smaller_cache_finds_less(cache):
    rates = [hit_rate(CACHES[cache](slots), chat_turns()) for slots in (480, 960, 1920, 3840)]
    assert rates == sorted(rates) and rates[0] < rates[-1] / 2


def test_changed_prompts_differ_in_their_first_token_only():
    prompts = [[1, 2], [1, 3], []]
    assert changed_at_the_beginning(prompts) == [[4, 2], [5, 3], []]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="no token"):
        hit_rate(RadixTree(4), [[]])
    with pytest.raises(CacheFull):
        hit_rate(RadixTree(4), [[1, 2, 3, 4, 5]])
    with pytest.raises(ValueError, match="turn is 0"):
        chat_turns(turn=0)
