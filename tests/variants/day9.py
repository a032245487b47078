"""Day 9: tokens, a sampler, losses and training, as people write them."""

from collections import Counter
from itertools import chain, pairwise

from . import right, wrong

# merge_step ---------------------------------------------------------------------------------------------------------


@right(9, "merge_step")
def merge_by_a_counter(tokens, new):
    counts = Counter(pairwise(tokens))
    most = max(counts.values())
    pair = min(each for each in counts if counts[each] == most)
    merged = []
    i = 0
    while i < len(tokens):
        if i + 1 < len(tokens) and (tokens[i], tokens[i + 1]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return pair, merged


@right(9, "merge_step")
def merge_by_sorting(tokens, new):
    pairs = [(tokens[i], tokens[i + 1]) for i in range(len(tokens) - 1)]
    first, second = sorted(pairs, key=lambda pair: (-pairs.count(pair), pair[0], pair[1]))[0]
    merged = []
    for token in tokens:
        if merged and merged[-1] == first and token == second:
            merged[-1] = new
        else:
            merged.append(token)
    return [first, second], merged


@right(9, "merge_step")
def merge_on_a_copy(tokens, new):
    tokens = list(tokens)
    counts = {}
    for pair in pairwise(tokens):
        counts[pair] = counts.get(pair, 0) + 1
    best = None
    for pair, count in counts.items():
        if best is None or count > counts[best] or (count == counts[best] and pair < best):
            best = pair
    place = 0
    while place < len(tokens) - 1:
        if tokens[place] == best[0] and tokens[place + 1] == best[1]:
            tokens[place : place + 2] = [new]
        place += 1
    return best, tokens


@wrong(9, "merge_step")
def merge_in_place(tokens, new):
    pair, tokens[:] = merge_by_a_counter(tokens, new)
    return pair, tokens


@wrong(9, "merge_step")
def merge_as_text(tokens, new):
    """Numbers are replaced in a text of numbers, where 1 2 is found in 1 25 too."""
    pair, _ = merge_by_a_counter(tokens, new)
    text = " ".join(map(str, tokens)).replace(" ".join(map(str, pair)), str(new))
    return pair, [int(each) for each in text.split()]


# encode_decode ------------------------------------------------------------------------------------------------------


def encode_by_the_lowest_rank(text, merges):
    """As tokenizers do it: whichever pair in the text has the lowest rank goes first."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens = list(text)
    while len(tokens) > 1:
        rank = min(ranks.get(pair, len(merges)) for pair in pairwise(tokens))
        if rank == len(merges):
            break
        merged = []
        for token in tokens:
            if merged and (merged[-1], token) == merges[rank]:
                merged[-1] = 256 + rank
            else:
                merged.append(token)
        tokens = merged
    return tokens


def decode_from_a_table(tokens, merges):
    table = {byte: bytes([byte]) for byte in range(256)}
    for rank, (one, other) in enumerate(merges):
        table[256 + rank] = table[one] + table[other]
    return b"".join(table[token] for token in tokens)


def encode_merge_by_merge(text, merges):
    tokens = list(text)
    for i, pair in enumerate(merges):
        place = 0
        while place < len(tokens) - 1:
            if (tokens[place], tokens[place + 1]) == tuple(pair):
                tokens[place : place + 2] = [256 + i]
            place += 1
    return tokens


def decode_by_recursion(tokens, merges):
    def spell(token):
        if token < 256:
            return [token]
        first, second = merges[token - 256]
        return spell(first) + spell(second)

    return bytes(chain.from_iterable(map(spell, tokens)))


def decode_by_undoing_the_last_merge_first(tokens, merges):
    spelled = list(tokens)
    for number in reversed(range(len(merges))):
        parts = []
        for token in spelled:
            parts += merges[number] if token == number + 256 else [token]
        spelled = parts
    return bytearray(spelled)


def encode_into_a_new_list(text, merges):
    tokens = [int(byte) for byte in text]
    for i in range(len(merges)):
        first, second = merges[i]
        merged, place = [], 0
        while place < len(tokens):
            if tokens[place : place + 2] == [first, second]:
                merged.append(256 + i)
                place += 2
            else:
                merged.append(tokens[place])
                place += 1
        tokens = merged
    return tokens


right(9, "encode_decode")({"encode": encode_by_the_lowest_rank, "decode": decode_from_a_table})
right(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_by_recursion})
right(9, "encode_decode")({"encode": encode_into_a_new_list, "decode": decode_by_undoing_the_last_merge_first})


def decode_as_text(tokens, merges):
    return decode_from_a_table(tokens, merges).decode("utf-8", "replace")


def encode_and_use_up_the_merges(text, merges):
    tokens = list(text)
    number = 256
    while merges:
        pair = merges.pop(0)
        tokens = encode_merge_by_merge(tokens, [(-1, -1)] * (number - 256) + [pair])
        number += 1
    return tokens


def decode_with_a_table_that_stays(tokens, merges, table={}):  # noqa: B006  # the mistake
    for rank, pair in enumerate(merges):
        word = [table.get(part, bytes([part % 256])) for part in pair]
        table.setdefault(256 + rank, b"".join(word))
    return b"".join(table.get(token, bytes([token % 256])) for token in tokens)


wrong(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_as_text})
wrong(9, "encode_decode")({"encode": encode_and_use_up_the_merges, "decode": decode_from_a_table})
wrong(9, "encode_decode")({"encode": encode_merge_by_merge, "decode": decode_with_a_table_that_stays})
