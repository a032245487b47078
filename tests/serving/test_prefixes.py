"""A prefix cache and a radix tree against what they promise, by hand and over random calls."""

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.attention.blocks import CacheFull
from course_utils.serving.prefixes import PrefixCache, RadixTree, chain_hashes

law = settings(deadline=None, max_examples=60, derandomize=True)
CALLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 10**6)), max_size=40)


def prompt(rng, longest=12):
    """Two tokens only, so that beginnings are often shared."""
    return [rng.randrange(2) for _ in range(rng.randint(1, longest))]


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_name_stands_for_all_tokens_up_to_its_block():
    names = chain_hashes([1, 2, 3, 4, 1, 2, 9], 2)
    assert len(names) == 3 and len(set(names)) == 3  # the last block is not full, and has no name
    assert names[0] != names[2], "the same tokens after others are another prefix"
    assert chain_hashes([1, 2, 3, 4, 1, 2], 2) == names
    changed = chain_hashes([7, 2, 3, 4, 1, 2], 2)
    assert not set(changed) & set(names), "a change at the beginning changes every name"
    assert chain_hashes([12, 3], 2) != chain_hashes([1, 23], 2)
    assert chain_hashes([1], 2) == chain_hashes([], 2) == []


def test_names_are_the_same_in_every_process():
    call = "from course_utils.serving.prefixes import chain_hashes; print(chain_hashes(range(8), 4)[1])"
    run = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == chain_hashes(range(8), 4)[1]


def test_the_room_needs_no_torch():
    names = ("events", "paged", "prefixes", "prefix_traffic", "scheduler")
    call = f"import sys\nfor name in {names}: __import__('course_utils.serving.' + name)\nprint('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


# --- blocks ---------------------------------------------------------------------------------------------------------


def held(cache, tokens):
    """A table for the tokens as a request would make it: shared as far as cached, the rest allocated, all kept."""
    table = cache.lookup(tokens)
    for block in table:
        cache.share(block)
    while len(table) * cache.block_size < len(tokens):
        table.append(cache.allocate())
    cache.keep(tokens, table)
    return table


def let_go(cache, table):
    for block in reversed(table):
        cache.release(block)


def test_what_was_kept_is_found_after_it_was_let_go():
    cache = PrefixCache(8, 2)
    table = held(cache, [1, 2, 3, 4, 5])
    assert cache.lookup([1, 2, 3, 4, 5]) == table[:2]
    let_go(cache, table)
    assert (cache.n_free, cache.n_cached) == (8, 2)
    assert cache.lookup([1, 2, 3, 9]) == table[:1] and cache.lookup([9, 2, 3, 4, 5]) == []
    again = held(cache, [1, 2, 3, 4, 6, 7])
    assert again[:2] == table[:2] and cache.references(table[0]) == 1


@pytest.mark.parametrize("length", [1, 2, 4, 6])
def test_a_prompt_that_is_cached_whole_leaves_a_token_to_compute(length):
    cache = PrefixCache(8, 2)
    tokens = list(range(length))
    let_go(cache, held(cache, tokens))
    assert len(cache.lookup(tokens)) * 2 == max(0, length - 2) // 2 * 2
    assert cache.lookup([*tokens, 9]) == cache.lookup([*tokens, 8])
    assert len(cache.lookup([*tokens, 9])) == length // 2
    assert cache.lookup([]) == []


def test_a_duplicate_stays_nameless_and_goes_with_its_table():
    """Two requests compute the same prompt at once: both tables stay readable, one block has the name."""
    cache = PrefixCache(4, 2)
    first, second = ([cache.allocate()] for _ in range(2))
    cache.keep([1, 2], first)
    cache.keep([1, 2], second)
    assert cache.references(first[0]) == cache.references(second[0]) == 1
    others = {cache.allocate(), cache.allocate()}
    assert others == {0, 1, 2, 3} - {*first, *second}, "none is given away while it is read"
    let_go(cache, second)
    assert cache.n_free == 1 and cache.lookup([1, 2, 3]) == first


def test_the_least_recently_used_goes_first_and_the_end_before_the_beginning():
    cache = PrefixCache(4, 1)
    let_go(cache, held(cache, [1, 2]))
    let_go(cache, held(cache, [5, 6]))
    let_go(cache, held(cache, [1, 2, 3][:2]))  # used again
    cache.allocate()
    assert len(cache.lookup([5, 6, 0])) == 1 and len(cache.lookup([1, 2, 0])) == 2
    cache.allocate()
    assert len(cache.lookup([5, 6, 0])) == 0 and len(cache.lookup([1, 2, 0])) == 2
    cache.allocate()
    assert len(cache.lookup([1, 2, 0])) == 1


def test_what_a_table_holds_is_never_evicted():
    cache = PrefixCache(2, 2)
    table = held(cache, [1, 2, 3, 4])
    with pytest.raises(CacheFull, match="tables hold all 2"):
        cache.allocate()
    let_go(cache, table[1:])
    assert cache.allocate() == table[1] and cache.lookup([1, 2, 3, 4, 5]) == table[:1]


def test_what_does_not_fit_is_refused():
    cache = PrefixCache(3, 2)
    block = cache.allocate()
    with pytest.raises(ValueError, match="tokens fill 2 blocks but the table has 1"):
        cache.keep([1, 2, 3, 4], [block])
    cache.keep([1, 2], [block])
    cache.release(block)
    with pytest.raises(ValueError, match="held by no table"):
        cache.release(block)
    with pytest.raises(ValueError, match="held by no table"):
        cache.keep([1, 2], [block])
    with pytest.raises(ValueError, match="cannot be shared"):
        cache.share(2)
    with pytest.raises(CacheFull):
        cache.serve(list(range(9)))
    assert cache.n_free == 3


@law
@given(CALLS, st.integers(1, 3), st.integers(4, 12))
def test_a_block_holds_the_tokens_that_its_name_says(calls, block_size, n_blocks):
    """Tables come and go; what a lookup gives was written with these tokens, and never since."""
    cache = PrefixCache(n_blocks, block_size)
    written = {}
    tables = []
    for kind, seed in calls:
        rng = random.Random(seed)
        if kind == 0 and tables:
            let_go(cache, tables.pop(rng.randrange(len(tables))))
            continue
        tokens = prompt(rng)
        table = cache.lookup(tokens)
        assert len(table) * block_size < len(tokens)
        for i, block in enumerate(table):
            assert written[block] == tokens[: (i + 1) * block_size]
            cache.share(block)
        others = {block for other in tables for block in other}
        try:
            while len(table) * block_size < len(tokens):
                block = cache.allocate()
                assert block not in others | set(table)
                table.append(block)
                written[block] = tokens[: len(table) * block_size]
        except CacheFull:
            assert len(others | set(table)) == n_blocks
            let_go(cache, table)
            continue
        if kind == 1:
            cache.keep(tokens, table)
        tables.append(table)
        assert cache.n_free == n_blocks - len({block for other in tables for block in other})
    for table in tables:
        let_go(cache, table)
    assert cache.n_free == n_blocks
    assert sorted(cache.allocate() for _ in range(n_blocks)) == list(range(n_blocks))


# --- the tree -------------------------------------------------------------------------------------------------------


def test_a_node_is_split_where_two_sequences_part():
    tree = RadixTree(10)
    assert tree.serve([1, 2, 3, 4]) == 0
    assert tree.serve([1, 2, 5]) == 2
    assert tree.n_cached == 5 and len(tree.root.children) == 1
    upper = tree.root.children[1]
    assert upper.tokens == (1, 2) and {node.tokens for node in upper.children.values()} == {(3, 4), (5,)}
    assert tree.match([1, 2, 3, 4, 9])[0] == [0, 1, 2, 3] and tree.match([7])[0] == []


def test_the_tree_too_leaves_a_token_to_compute():
    tree = RadixTree(10)
    tree.serve([1, 2, 3])
    assert len(tree.match([1, 2, 3])[0]) == 2 and len(tree.match([1])[0]) == 0 and tree.match([]) == ([], tree.root)
    assert tree.serve([1, 2, 3]) == 2
    assert tree.n_cached == 3 and tree.n_free == 7, "the slot that was computed again was given back"


def test_insert_says_which_slots_to_read_from_now_on():
    """Two requests computed the same beginning: the second one reads the tree's slots, and then lets its own go."""
    tree = RadixTree(8)
    first = tree.allocate(3)
    second = tree.allocate(4)
    assert tree.insert([1, 2, 3], first) == first
    stored = tree.insert([1, 2, 3, 4], second)
    assert stored == [*first, second[3]]
    tree.release(second[:3])
    assert (tree.n_cached, tree.n_free) == (4, 4)
    with pytest.raises(ValueError, match=f"slot {second[3]} is free, in the tree"):
        tree.release([second[3]])


def test_leaves_go_least_recently_used_first_and_never_while_locked():
    tree = RadixTree(6)
    for tokens in ([1, 2, 3], [1, 2, 4], [5, 6]):
        tree.serve(tokens)
    assert tree.n_free == 0
    _, node = tree.match([1, 2, 3, 9])
    tree.lock(node)
    assert tree.evict(1) == [3], "the 4 after 1, 2"
    assert sorted(tree.evict(9)) == [4, 5], "then 5, 6, and nothing that is locked"
    assert tree.n_locked == tree.n_cached == 3
    with pytest.raises(CacheFull, match="4 slots are needed but 3 can be had"):
        tree.allocate(4)
    tree.unlock(node)
    assert sorted(tree.evict(1)) == [2] and sorted(tree.evict(1)) == [0, 1] and tree.evict(1) == []
    assert tree.n_free == 6
    with pytest.raises(ValueError, match="not locked"):
        tree.unlock(node)


def test_a_lock_outlives_a_split():
    tree = RadixTree(8)
    tree.serve([1, 2, 3, 4])
    slots, node = tree.match([1, 2, 3, 4, 9])
    tree.lock(node)
    tree.match([1, 2, 9])  # splits the node that is locked
    assert tree.n_locked == 4 and tree.evict(8) == []
    assert tree.match([1, 2, 3, 4, 9])[0] == slots
    tree.unlock(node)
    assert tree.n_locked == 0 and sorted(tree.evict(8)) == sorted(slots)


@law
@given(CALLS, st.integers(13, 40))
def test_a_slot_holds_the_token_that_the_tree_says(calls, n_slots):
    tree = RadixTree(n_slots)
    written = {}
    running = []
    for kind, seed in calls:
        rng = random.Random(seed)
        if kind == 0 and running:
            tokens, matched, own, node = running.pop(rng.randrange(len(running)))
            stored = tree.insert(tokens, matched + own)
            assert [written[slot] for slot in stored] == [tokens[: i + 1] for i in range(len(tokens))]
            assert tree.match([*tokens, 2])[0] == stored, "what is read from now on is the tree's"
            tree.release([a for a, b in zip(matched + own, stored, strict=True) if a != b])
            tree.unlock(node)
        else:
            tokens = prompt(rng)
            matched, node = tree.match(tokens)
            assert len(matched) < len(tokens)
            assert [written[slot] for slot in matched] == [tokens[: i + 1] for i in range(len(matched))]
            tree.lock(node)
            try:
                own = tree.allocate(len(tokens) - len(matched))
            except CacheFull:
                tree.unlock(node)
                continue
            in_use = {slot for _, a, b, _ in running for slot in a + b}
            assert not in_use & set(own)
            written |= {slot: tokens[: len(matched) + i + 1] for i, slot in enumerate(own)}
            running.append((tokens, matched, own, node))
        assert tree.n_free + tree.n_cached + sum(len(own) for _, _, own, _ in running) == n_slots
    for _, _, own, node in running:
        tree.release(own)
        tree.unlock(node)
    assert tree.n_locked == 0 and sorted(tree.allocate(n_slots)) == list(range(n_slots))


def test_the_tree_refuses_what_does_not_fit():
    tree = RadixTree(3)
    with pytest.raises(ValueError, match="2 tokens and 1 slots"):
        tree.insert([1, 2], [0])
    with pytest.raises(ValueError, match="slot 0 is free"):
        tree.release([0])
    with pytest.raises(CacheFull):
        tree.serve([1, 2, 3, 4])
    assert tree.n_free == 3
