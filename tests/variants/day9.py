"""Day 9: tokens, a sampler, losses and training, as people write them."""

import math
from collections import Counter
from itertools import chain, pairwise

import numpy as np

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


# padded_loss --------------------------------------------------------------------------------------------------------


@right(9, "padded_loss")
def loss_in_loops(logits, targets, lengths):
    total, count = 0.0, 0
    for b in range(len(lengths)):
        for t in range(lengths[b]):
            most = max(logits[b, t])
            total += most + math.log(sum(math.exp(x - most) for x in logits[b, t])) - logits[b, t, targets[b, t]]
            count += 1
    return total / count


@right(9, "padded_loss")
def loss_by_where(logits, targets, lengths):
    real = np.arange(logits.shape[1])[None, :] < np.array(lengths)[:, None]
    logits = np.where(real[:, :, None], logits, 0.0)
    targets = np.where(real, targets, 0)
    most = logits.max(axis=-1)
    sums = most + np.log(np.exp(logits - most[..., None]).sum(axis=-1))
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return ((sums - chosen) * real).sum() / real.sum()


@right(9, "padded_loss")
def loss_row_by_row(logits, targets, lengths):
    losses = []
    for row, words, length in zip(logits, targets, lengths, strict=True):
        row, words = row[:length], words[:length]
        shifted = row - row.max(axis=1, keepdims=True)
        chosen = shifted[np.arange(length), words]
        losses.extend(np.log(np.exp(shifted).sum(axis=1)) - chosen)
    return np.mean(losses)


@right(9, "padded_loss")
def loss_of_what_is_real(logits, targets, lengths):
    keep = np.zeros(targets.shape, dtype=bool)
    for b, length in enumerate(lengths):
        keep[b, :length] = True
    rows, words = logits[keep], targets[keep]
    rows = rows - np.max(rows, axis=-1, keepdims=True)
    return float(np.mean(np.log(np.sum(np.exp(rows), axis=-1)) - rows[range(len(rows)), words]))


@wrong(9, "padded_loss")
def loss_with_the_padding_set_to_zero_in_place(logits, targets, lengths):
    for b, length in enumerate(lengths):
        logits[b, length:], targets[b, length:] = 0, 0
    return loss_of_what_is_real(logits, targets, lengths)


@wrong(9, "padded_loss")
def loss_without_the_impossible(logits, targets, lengths):
    """NaN becomes 0 after the sum, so that all tokens with an impossible word count for nothing, too."""
    logits = np.where(np.isinf(logits).any(axis=-1, keepdims=True), 0.0, logits)
    return loss_of_what_is_real(logits, targets, lengths)


# top_p --------------------------------------------------------------------------------------------------------------


@right(9, "top_p")
def sample_in_a_loop(logits, p, u):
    exps = [math.exp(x - max(logits)) for x in logits]
    shares = [x / sum(exps) for x in exps]
    words = sorted(range(len(shares)), key=lambda word: -shares[word])
    kept, total = [], 0.0
    for word in words:
        kept.append(word)
        total += shares[word]
        if total >= p:
            break
    running = 0.0
    for word in kept:
        running += shares[word] / total
        if running > u:
            return kept, word
    return kept, kept[-1]


@right(9, "top_p")
def sample_by_searching(logits, p, u):
    shares = np.exp(logits - np.max(logits))
    shares = shares / np.sum(shares)
    words = np.argsort(-shares, kind="stable")
    sums = np.cumsum(shares[words])
    words = words[: np.searchsorted(sums, p) + 1]
    sums = np.cumsum(shares[words] / shares[words].sum())
    place = np.searchsorted(sums, u, side="right")
    return words, words[min(place, len(words) - 1)]


@right(9, "top_p")
def sample_by_what_comes_before(logits, p, u):
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    order = np.lexsort((np.arange(len(logits)), -shares))
    sorted_shares = shares[order]
    before = np.cumsum(sorted_shares) - sorted_shares
    keep = before < p
    keep[0] = True
    kept, weights = order[keep], sorted_shares[keep]
    return list(kept), kept[np.argmax(np.cumsum(weights) > u * weights.sum())]


@wrong(9, "top_p")
def sample_with_a_generator(logits, p, u):
    kept, _ = sample_by_searching(logits, p, u)
    return kept, np.random.default_rng(int(u * 1000)).choice(kept)


@wrong(9, "top_p")
def sample_as_a_list_of_one(logits, p, u):
    kept, token = sample_by_searching(logits, p, u)
    return kept, [token]


@wrong(9, "top_p")
def sample_on_the_logits_themselves(logits, p, u):
    logits -= logits.max()
    return sample_by_searching(logits, p, u)


# batch_without_leak -------------------------------------------------------------------------------------------------


@right(9, "batch_without_leak")
def batch_by_stacking(tokens, held_out, part, context, u):
    cut = len(tokens) - held_out
    own = tokens[:cut] if part == "train" else tokens[cut:]
    inputs, targets = [], []
    for each in u:
        start = int(each * (len(own) - context))
        inputs.append(own[start : start + context])
        targets.append(own[start + 1 : start + context + 1])
    return np.stack(inputs), np.stack(targets)


@right(9, "batch_without_leak")
def batch_by_places_in_the_text(tokens, held_out, part, context, u):
    first, end = (0, len(tokens) - held_out) if part == "train" else (len(tokens) - held_out, len(tokens))
    starts = first + np.floor(np.array(u) * (end - first - context)).astype(int)
    places = starts[:, None] + np.arange(context + 1)
    windows = tokens[places]
    return windows[:, :-1], windows[:, 1:]


@right(9, "batch_without_leak")
def batch_of_all_windows(tokens, held_out, part, context, u):
    training, held = np.split(np.asarray(tokens), [len(tokens) - held_out])
    own = held if part == "held out" else training
    every = np.lib.stride_tricks.sliding_window_view(own, context + 1)
    chosen = every[(u * len(every)).astype(int)]
    return [chosen[:, :context].tolist(), chosen[:, 1:].tolist()]


@wrong(9, "batch_without_leak")
def batch_that_shifts_its_last_target_in(tokens, held_out, part, context, u):
    """The last target of a window is its first input, as a roll makes it."""
    inputs, _ = batch_by_stacking(tokens, held_out, part, context, u)
    return inputs, np.roll(inputs, -1, axis=1)


@wrong(9, "batch_without_leak")
def batch_with_a_share_in_place_of_a_number(tokens, held_out, part, context, u):
    return batch_by_stacking(tokens, int(len(tokens) * 0.1) if held_out else 0, part, context, u)


# first_checks -------------------------------------------------------------------------------------------------------


def surprises(logits, words):
    """The losses of the words (…) that rows of logits (…, V) are for."""
    most = logits.max(axis=-1, keepdims=True)
    sums = np.log(np.exp(logits - most).sum(axis=-1)) + most[..., 0]
    return sums - np.take_along_axis(logits, words[..., None], axis=-1)[..., 0]


@right(9, "first_checks")
def checks_token_by_token(model, tokens, vocabulary):
    logits = model(tokens)
    loss = surprises(logits[:, :-1], tokens[:, 1:]).mean()
    causal, apart = True, True
    B, T = tokens.shape
    for b in range(B):
        for t in range(T):
            changed = tokens.copy()
            changed[b, t] = (changed[b, t] + 1) % vocabulary
            off = np.abs(model(changed) - logits).max(axis=-1)
            causal = causal and bool((off[b, :t] < 1e-4).all())
            off[b] = 0
            apart = apart and bool((off < 1e-4).all())
    return bool(abs(loss - math.log(vocabulary)) <= 0.1), causal, apart


@right(9, "first_checks")
def checks_with_new_ends(model, tokens, vocabulary):
    before = model(tokens)
    near = np.isclose(surprises(before[:, :-1], tokens[:, 1:]).mean(), np.log(vocabulary), rtol=0, atol=0.1)
    causal = True
    for t in range(1, tokens.shape[1]):
        others = np.concatenate([tokens[:, :t], (tokens[:, t:] + 1) % vocabulary], axis=1)
        causal &= np.allclose(model(others)[:, :t], before[:, :t], rtol=0, atol=1e-5)
    apart = True
    for b in range(len(tokens)):
        others = np.array([row if i == b else (row + 1) % vocabulary for i, row in enumerate(tokens)])
        apart &= np.allclose(model(others)[b], before[b], rtol=0, atol=1e-5)
    return near, causal, apart


@right(9, "first_checks")
def checks_with_beginnings_and_single_rows(model, tokens, vocabulary):
    """Other questions to the same end: single rows alone, and changes of one token each."""
    logits = model(tokens)
    near = abs(np.mean(surprises(logits[:, :-1], tokens[:, 1:])) - np.log(vocabulary)) < 0.1
    moved = (tokens + 1) % vocabulary
    leaks = []
    for t in range(1, tokens.shape[1]):
        changed = tokens.copy()
        changed[:, t] = moved[:, t]
        leaks.append(np.abs(model(changed)[:, :t] - logits[:, :t]).max())
    mixes = []
    for b in range(tokens.shape[0]):
        changed = tokens.copy()
        changed[b] = moved[b]
        off = np.abs(model(changed) - logits)
        off[b] = 0
        mixes.append(off.max())
    return [bool(near), bool(max(leaks) < 1e-4), bool(max(mixes) < 1e-4)]


@wrong(9, "first_checks")
def checks_as_numbers(model, tokens, vocabulary):
    return [float(each) for each in checks_token_by_token(model, tokens, vocabulary)]


@wrong(9, "first_checks")
def checks_with_the_rows_in_another_order(model, tokens, vocabulary):
    """Rows that exchange their places say nothing of rows that mix evenly."""
    near, causal, _ = checks_token_by_token(model, tokens, vocabulary)
    turned = model(tokens[::-1])[::-1]
    return near, causal, bool(np.allclose(turned, model(tokens), atol=1e-5))
