"""The ladders of day 9: the test inputs of each exercise; no answers.

Sizes differ wherever they can, and coincide where a wrong axis would fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.kernel.forbidden import LIBRARY_CROSS_ENTROPY, WHOLE_ATTENTION
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import BadResult, describe
from course_utils.checks.kernel.small import FROM_RUNG, Draft, Drawn, Small, one_of, whole
from course_utils.days.day9.given.models import (
    both,
    causal,
    in_row,
    later_tokens,
    next_token,
    one_later_token,
    one_other_row,
    other_rows,
    other_rows_here,
    toy_model,
)
from course_utils.days.shared.given.draws import draw, only_in

AS_IT_WAS = "what it is given stays as it was"
COPY = "The answer is right but writes into its arguments, which the caller still needs. Work on a copy."
IN_FLOAT64 = "The arrays are float64, and float32 keeps about seven digits: keep float64 in every step."
SENTENCE = b"the parcel that we sent arrived"


# One merge ----------------------------------------------------------------------------------------------------------


def merge_step(rng: np.random.Generator) -> list[Rung]:
    def some(count: int, kinds: int) -> list[int]:
        return rng.integers(0, kinds, count).tolist()

    return [
        Rung("two tokens", ([5, 3], 256), "There is one pair, (5, 3), and it becomes the new token.",
            shape_hint="Return the pair and the list of tokens after the merge."),
        Rung("a pair that comes twice", ([1, 2, 3, 1, 2], 256), "The pair (1, 2) comes twice, and both become 256."),
        Rung("the pair at the end", ([5, 1, 2, 6, 1, 2], 256), "The last two tokens are a pair, too."),
        Rung("no pair comes twice", ([3, 1, 2], 256), "(3, 1) and (1, 2) come once each: the smaller one is (1, 2)."),
        Rung("three pairs that come as often", ([7, 8, 1, 2, 7, 8, 1, 2], 256),
            "(7, 8), (8, 1) and (1, 2) come twice. The smallest is the one with the smallest first token."),
        Rung("two pairs with the same first token", ([2, 5, 3, 2, 4, 6, 2, 5, 7, 2, 4], 256),
            "(2, 5) and (2, 4) come twice. Where the first tokens are equal, the second decides."),
        Rung("both orders", ([4, 3, 6, 3, 4, 8, 9, 5, 8, 9], 256), "(4, 3) and (3, 4) are two different pairs."),
        Rung("a pair and its reverse", ([4, 3, 5, 4, 3, 6, 3, 4], 256), "(4, 3) is merged, and (3, 4) stays."),
        Rung("three in a row", ([7, 7, 7], 256), "From the left, the first two sevens become 256 and one is left."),
        Rung("four in a row", ([7, 7, 7, 7], 256), "From the left: two and two."),
        Rung("five in a row among others", ([1, 7, 7, 7, 7, 7, 2], 256),
            "From the left: two, two, and one seven that is left."),
        Rung("a row that counts at each place", ([1, 2, 7, 7, 7], 256),
            "Each place counts: in 7 7 7 the pair (7, 7) comes twice, at two places that overlap."),
        Rung("a pair that comes again right after it", ([1, 2, 1, 2, 1, 3], 256),
            "(1, 2) and (2, 1) come twice each. After a merge the search goes on behind it."),
        Rung("tokens of earlier merges", ([256, 101, 256, 101, 32], 257), "A token above 255 is a token as any other."),
        Rung("numbers of several digits", ([1, 2, 71, 2, 1, 25, 1, 2], 256), "(71, 2) and (1, 25) are other pairs than "
            "(1, 2)."),
        Rung("a sentence", (list(SENTENCE), 256), "Bytes are numbers from 0 to 255: the space is 32."),
        Rung("more tokens of three kinds", (some(14, 3), 256), "Count all pairs of neighbours."),
        Rung("many tokens", (some(200, 6), 300), "Any number of tokens."),
        Rung(AS_IT_WAS, ([1, 2, 1, 2], 256), COPY, changes),
    ]  # fmt: skip


def few_kinds(draft: Draft) -> list[int]:
    """Draw tokens of three kinds, so that pairs come again."""
    return [draft.choose(0, 2) for _ in range(draft.sizes["n"])]


def has_a_pair(tokens: list[int], new: int) -> bool:
    """Return whether there are two tokens or more."""
    return len(tokens) > 1


def repeats(tokens: list[int], new: int) -> bool:
    """Return whether a token comes three times in a row."""
    return any(tokens[i] == tokens[i + 1] == tokens[i + 2] for i in range(len(tokens) - 2))


def ties(tokens: list[int], new: int) -> bool:
    """Return whether two pairs come equally often, and none more often."""
    pairs = [(tokens[i], tokens[i + 1]) for i in range(len(tokens) - 1)]
    counts = sorted(pairs.count(pair) for pair in {*pairs})
    return len(counts) > 1 and counts[-1] == counts[-2]


# Encode and decode ---------------------------------------------------------------------------------------------------


def encode_decode(rng: np.random.Generator) -> list[Rung]:
    def there(name, text, merges, why, measure=None, **more):
        return Rung(name, (text, merges), why, measure, of="encode", **more)

    def back(name, tokens, merges, why, measure=as_bytes, **more):
        return Rung(name, (tokens, merges), why, measure, of="decode", **more)

    letters = bytes(rng.integers(97, 101, 60).tolist())
    merges = some_merges(rng, letters, 12)
    drawn = rng.integers(97, 101 + len(merges), 20)
    tokens = [int(token) if token < 101 else int(token) + 155 for token in drawn]  # letters and merges
    inside = [(116, 104), (256, 101), (257, 32), (97, 116), (32, 258)]
    return [
        there("no merges", b"abc", [], "Without merges the tokens are the bytes: a is 97, b is 98, c is 99.",
            shape_hint="encode returns a list of whole numbers."),
        there("one merge", b"abab", [(97, 98)], "a and b become 256, wherever b follows a."),
        there("a merge of a merge", b"abab", [(97, 98), (256, 256)], "First 256 256, and then these two become 257."),
        there("two merges that want one byte", b"abc", [(98, 99), (97, 98)],
            "The first merge in the list comes first: b c becomes 256, and a is left alone."),
        there("a longer token that comes too late", b"abc", [(98, 99), (97, 98), (257, 99)],
            "257 and 258 can not arise here, since b is part of 256. It is not the longest token that counts."),
        there("a merge that comes up again", b"abcab", [(98, 99), (97, 98), (97, 256)],
            "a b c becomes a 256, later 258. The a b at the end becomes 257."),
        there("three in a row", b"aaa", [(97, 97)], "From the left, without overlap: 256 97."),
        there("five in a row", b"aaaaa", [(97, 97), (256, 256), (257, 97)], "256 256 97, then 257 97, then 258."),
        there("bytes that are no text", bytes([255, 0, 128, 255, 0]), [(255, 0), (128, 256)],
            "Any bytes can be encoded, not only those of a text."),
        there("letters of two bytes", "né né".encode(), [(195, 169), (110, 256)], "The é is two bytes, 195 and 169."),
        there("an empty text", b"", [(97, 98)], "An empty text has no tokens: an empty list."),
        there("a sentence", SENTENCE, inside, "Apply all merges in the order of the list, each wherever its pair is."),
        there("many merges", letters, merges, "Merge number i makes token 256 + i, counted from 0."),
        there(AS_IT_WAS, b"abab", [(97, 98), (256, 256)], COPY, changes),
        back("back, no merges", [97, 98, 99], [], "Tokens up to 255 are bytes.",
            shape_hint="decode returns bytes: bytes(numbers) makes them of a list of numbers."),
        back("back, one merge", [256, 99, 256], [(97, 98)], "Token 256 stands for the two bytes of merge 0."),
        back("back, a merge of a merge", [257, 97], [(97, 98), (256, 256)],
            "257 stands for 256 256, and each of these for a b."),
        back("back, merges that are not alike", [258, 256], [(98, 99), (97, 256), (257, 100)],
            "The left token of a pair comes first: 258 is 257 d, 257 is a 256, and 256 is b c."),
        back("back, bytes that are no text", [256, 128, 257], [(255, 0), (128, 256)],
            "decode returns bytes, whatever they are. They need not be a text."),
        back("back, no tokens", [], [(97, 98)], "No tokens are no bytes: b''."),
        back("back, many merges", tokens, merges, "Undo merges until only bytes are left."),
        back("back, " + AS_IT_WAS, [257, 97], [(97, 98), (256, 256)], COPY, changes),
    ]  # fmt: skip


def some_merges(rng: np.random.Generator, letters: bytes, count: int) -> list[tuple[int, int]]:
    """Draw merges, each of two letters or earlier tokens; no pair comes twice."""
    known = sorted({*letters})
    merges: list[tuple[int, int]] = []
    while len(merges) < count:
        first, second = (int(token) for token in rng.choice(known, 2))
        if (first, second) not in merges:
            known.append(256 + len(merges))
            merges.append((first, second))
    return merges


def as_bytes(decode: Callable, tokens: list[int], merges: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the bytes that tokens stand for as numbers. Raises BadResult for a result of another type."""
    decoded = decode(tokens, merges)
    if not isinstance(decoded, (bytes, bytearray)):
        raise BadResult(f"decode returned {describe(decoded)}; it should return bytes")
    return {"bytes": list(decoded)}


def few_letters(draft: Draft) -> bytes:
    """Draw a short text of the letters a, b and c."""
    return bytes(97 + draft.choose(0, 2) for _ in range(draft.choose(0, 4)))


def few_merges(draft: Draft) -> list[tuple[int, int]]:
    """Draw up to three merges, each of two letters or earlier tokens."""
    merges: list[tuple[int, int]] = []
    for i in range(draft.choose(0, 3)):
        known = [97, 98, 99, *range(256, 256 + i)]
        merges.append((known[draft.choose(0, len(known) - 1)], known[draft.choose(0, len(known) - 1)]))
    return merges


def few_tokens(draft: Draft) -> list[int]:
    """Draw a few numbers of letters and of the first three merges."""
    return [(97, 98, 99, 256, 257, 258)[draft.choose(0, 5)] for _ in range(draft.choose(0, 3))]


def are_known(text: bytes | list[int], merges: list[tuple[int, int]]) -> bool:
    """Return whether no merge comes twice, and all tokens are made."""
    return len({*merges}) == len(merges) and all(token < 256 + len(merges) for token in text)


# The loss with padding ----------------------------------------------------------------------------------------------


def padded_loss(rng: np.random.Generator) -> list[Rung]:
    def batch(lengths: list[int], T: int, V: int, times: float = 1.0, beyond: float = 0.0, ignored: int = 0) -> tuple:
        B = len(lengths)
        logits, targets = times * draw(rng, B, T, V), rng.integers(0, V, (B, T))
        padding = np.arange(T) >= np.array(lengths)[:, None]
        logits[padding] += beyond
        targets[padding] = ignored
        return logits, targets, np.array(lengths)

    impossible, targets, lengths = batch([3, 2], 3, 4)
    impossible[:, :, 1] = -np.inf
    targets[targets == 1] = 2
    far = batch([2, 3], 3, 4)
    far[0][0] += 2000.0
    far[0][1] -= 2000.0
    unlikely = np.array([[[0.0, 60.0, 0.0], [800.0, 0.0, 0.0]]]), np.array([[0, 2]]), np.array([2])
    close = np.array([[[1e8 + 1, 1e8, 0.0], [1e8, 1e8 + 2, 0.0]]]), np.array([[0, 1]]), np.array([2])
    return [
        Rung("one place, two tokens", (np.zeros((1, 1, 2)), np.array([[1]]), np.array([1])),
            "Two tokens with equal logits have the probability 1/2 each: the loss is ln 2.",
            shape_hint="Return one number, the mean loss of the real tokens."),
        Rung("no padding", batch([3, 3], 3, 4),
            "The mean over all six tokens of log-sum-exp minus the target's logit."),
        Rung("one row with padding", batch([2], 4, 3), "The first two tokens are real: the mean is over these two."),
        Rung("rows of different lengths", batch([4, 1, 2], 4, 5),
            "Seven tokens are real. Each counts the same, in whichever row it is: sum over all, divided by 7."),
        Rung("rows of one token", batch([1, 1], 3, 4), "Only the first token of each row is real."),
        Rung("padding with large logits", batch([1, 3], 3, 4, beyond=50.0, ignored=1),
            "What the logits at padding are must not matter."),
        Rung("padding of −∞", batch([1, 2], 3, 4, beyond=-np.inf),
            "At padding all logits are −∞, and log-sum-exp gives NaN there. 0 · NaN is NaN: leave these places out "
            "before the sum."),
        Rung("padding of NaN", batch([3, 1], 3, 4, beyond=np.nan),
            "0 · NaN is NaN: leave these places out, in place of multiplying them by 0."),
        Rung("targets of −100 at padding", batch([2, 1], 3, 4, ignored=-100),
            "A target at padding may be no token at all: take only real places."),
        Rung("targets beyond the vocabulary at padding", batch([1, 2, 3], 3, 4, ignored=999),
            "A target at padding may be no token at all: take only real places."),
        Rung("an impossible token", (impossible, targets, lengths),
            "A token with the logit −∞ has the probability 0, which is fine unless it is the target."),
        Rung("large logits", batch([3, 2], 3, 4, 700.0), "Take the largest logit of each token off before exp."),
        Rung("large logits in one row, small ones in the other", far,
            "The largest logit is that of the token itself: another token's may be thousands away."),
        Rung("targets that are very unlikely", unlikely,
            "The losses are 60 and 800 here. Subtract the target's logit from log-sum-exp: the logarithm of a "
            "probability loses it."),
        Rung("all sizes equal", batch([3, 1, 2], 3, 3), "With equal sizes a wrong axis raises no error: (B, T, V)."),
        Rung("more of everything", batch([5, 2, 7, 1], 7, 6, 2.0), "Any number of rows, places and tokens."),
        Rung("one long row", batch([29], 40, 3), "Any number of places."),
        Rung(AS_IT_WAS, batch([2, 3], 3, 4), COPY, changes),
        Rung("logits that float32 cannot tell apart", close, IN_FLOAT64),
    ]  # fmt: skip


def some_targets(draft: Draft) -> np.ndarray:
    """Draw words of the vocabulary."""
    shape = draft.sizes["B"], draft.sizes["T"]
    return np.array([draft.choose(0, draft.sizes["V"] - 1) for _ in range(shape[0] * shape[1])]).reshape(shape)


def some_lengths(draft: Draft) -> np.ndarray:
    """Draw how many tokens of each row are real."""
    return np.array([draft.choose(1, draft.sizes["T"]) for _ in range(draft.sizes["B"])])


def targets_possible(logits: np.ndarray, targets: np.ndarray, lengths: np.ndarray) -> bool:
    """Return whether no real target has a logit of −∞."""
    inside = np.arange(targets.shape[-1]) < lengths[:, None]
    chosen = np.take_along_axis(logits, targets[:, :, None], axis=2)[:, :, 0]
    return bool(np.isfinite(chosen[inside]).all())


def has_padding(logits: np.ndarray, targets: np.ndarray, lengths: np.ndarray) -> bool:
    """Return whether some places are not real."""
    return bool((lengths < targets.shape[1]).any())


def of_a_batch(rung: Rung) -> dict[str, float]:
    """Return the sizes that a wrong mean may be made of."""
    if len(rung.args) != 3:
        return {}
    B, T, V = rung.args[0].shape
    return {"the number of real tokens": float(rung.args[2].sum()), "B": float(B), "T": float(T), "V": float(V)}


# A sampler ----------------------------------------------------------------------------------------------------------


def top_p(rng: np.random.Generator) -> list[Rung]:
    three, four = np.log([0.6, 0.3, 0.1]), np.log([0.1, 0.35, 0.05, 0.5])
    impossible = np.array([-np.inf, 1.0, -np.inf, 0.5, 0.0])
    two_alike = np.array([1.0, 2.0, 1.0, 2.0, 1.0])
    many = draw(rng, 50)
    return [
        Rung("one token", (np.zeros(1), 0.5, 0.3), "With one token there is nothing to choose.",
            shape_hint="Return the kept tokens, likeliest first, and the drawn one."),
        Rung("the likeliest alone", (three, 0.5, 0.9), "The first token has 0.6, which is enough: it is the only one "
            "that is kept."),
        Rung("the token that brings it to p", (three, 0.8, 0.3), "0.6 is not enough, 0.6 + 0.3 is. The token with "
            "which the sum reaches p is kept, too."),
        Rung("divided by what is kept", (three, 0.8, 0.64), "0.6 of 0.9 is 0.667, which is above 0.64: token 0."),
        Rung("the second of two", (three, 0.8, 0.7), "The running sums are 0.667 and 1. The first above 0.7 is that "
            "of token 1."),
        Rung("u near 1", (three, 0.8, 0.97), "The last running sum is 1, since what is kept is divided by its sum."),
        Rung("tokens that are not in order", (four, 0.8, 0.2), "The likeliest is token 3, then token 1. The running "
            "sums go in this order, and not in that of the vocabulary."),
        Rung("the second of tokens that are not in order", (four, 0.8, 0.75), "Token 3 has 0.5 of 0.85, and the rest "
            "belongs to token 1."),
        Rung("three tokens", (four, 0.9, 0.93), "Tokens 3, 1 and 0 are kept: 0.5, 0.35 and 0.1 of 0.95."),
        Rung("u = 0", (four, 0.9, 0.0), "The first running sum is above 0: the likeliest token."),
        Rung("p = 0", (four, 0.0, 0.6), "At least one token is kept, the likeliest."),
        Rung("a small p", (draw(rng, 6), 0.01, 0.5), "The likeliest token has more than p: it alone is kept."),
        Rung("p = 1", (draw(rng, 6), 1.0, 0.9), "With p = 1 all tokens are kept, likeliest first."),
        Rung("p = 1, and a sum that rounding keeps below it", (np.array([-0.6, 0.0, -2.3, -0.2, -1.2]), 1.0, 0.5),
            "Rounding may keep the sum of all tokens below 1. Then all of them are kept."),
        Rung("equal logits", (np.zeros(4), 0.5, 0.2), "Each token has 1/4. Two of them reach 1/2, and that is enough: "
            "tokens 0 and 1, since the smaller number comes first."),
        Rung("equal logits, and u on a bound", (np.zeros(4), 0.5, 0.5), "The running sums are 1/2 and 1. The first "
            "above 1/2 is that of token 1."),
        Rung("tokens that are equally likely", (two_alike, 0.75, 0.75), "Tokens 1 and 3 come first, then 0, 2 and 4. "
            "Of equally likely tokens the smaller number comes first."),
        Rung("impossible tokens", (impossible, 0.9, 0.9), "A token with the logit −∞ has the probability 0."),
        Rung("large logits", (300 * draw(rng, 5), 0.9, 0.4), "Take the largest logit off before exp."),
        Rung("logits far below 0", (np.array([-2000.0, -2001.0, -1999.5]), 0.9, 0.6), "Take the largest logit off "
            "before exp."),
        Rung("more tokens", (draw(rng, 9), 0.7, 0.55), "Softmax, sort, running sums up to p, and the same for u."),
        Rung("many tokens, a large p", (many, 0.9, 0.82), "Any number of tokens."),
        Rung("many tokens, a smaller p", (many, 0.4, 0.35), "Any number of tokens."),
        Rung("many tokens, close together", (many / 8, 0.6, 0.999), "Any number of tokens."),
        Rung(AS_IT_WAS, (four + 0.0, 0.8, 0.2), COPY, changes),
        Rung("logits that float32 cannot tell apart", (np.array([1e8, 1e8 + 1, 1e8 - 1]), 0.8, 0.3), IN_FLOAT64),
    ]  # fmt: skip


# Batches ------------------------------------------------------------------------------------------------------------


def batch_without_leak(rng: np.random.Generator) -> list[Rung]:
    def text(count: int) -> np.ndarray:
        first = int(rng.integers(0, 50))
        return np.arange(first, first + count)

    def rung(name, count, held_out, part, context, u, why, measure=None, **more):
        return Rung(name, (text(count), held_out, part, context, np.array(u)), why, measure, **more)

    some = rng.random(7).round(3)
    return [
        rung("one window of one", 2, 0, "train", 1, [0.0], "Two tokens: the first is the input, the second the target.",
            shape_hint="Return two arrays of shape (B, context), inputs and targets."),
        rung("all of it in one window", 6, 0, "train", 5, [0.6], "Six tokens have one window of five inputs, whatever "
            "u is."),
        rung("two windows", 5, 0, "train", 3, [0.2, 0.7], "Five tokens have 5 − 3 = 2 windows, at 0 and at 1: half of "
            "all u for each."),
        rung("the first of many", 20, 0, "train", 4, [0.0], "u = 0 is the first window."),
        rung("the last of many", 20, 0, "train", 4, [0.999], "The last of the 16 windows begins at 15: its last target "
            "is the last token."),
        rung("the end of the training part", 20, 8, "train", 3, [0.999, 0.5], "The training part has 12 tokens, and "
            "its last target is the last of these. The one after it is held out."),
        rung("the only window of the training part", 12, 8, "train", 3, [0.9], "The training part has four tokens, "
            "which is one window of three."),
        rung("the part that is held out", 20, 8, "held out", 3, [0.0, 0.999], "The last 8 tokens are held out: tokens "
            "12 to 19 of the text, with windows at 12 to 16."),
        rung("the only window that is held out", 20, 4, "held out", 3, [0.4], "Four tokens are one window of three."),
        rung("a window of one token, held out", 9, 3, "held out", 1, [0.1, 0.6], "Three tokens have two windows of "
            "one."),
        rung("more rows than windows", 8, 2, "train", 4, [0.9, 0.1, 0.6, 0.4, 0.5], "Each u gives a row of its own, "
            "in their order."),
        rung("nothing held out", 9, 0, "train", 2, [0.3, 0.8], "With held_out = 0 all tokens are for training. "
            "tokens[:-0] is empty."),
        rung("all of it held out", 9, 9, "held out", 2, [0.3, 0.8], "With as many held out as there are, none are for "
            "training."),
        rung("half and half", 16, 8, "held out", 2, [0.05, 0.55], "Both parts have eight tokens: the second is held "
            "out."),
        rung("windows that overlap", 12, 2, "train", 4, [0.2, 0.4], "A window begins anywhere, not only at multiples "
            "of the context."),
        rung("as many rows as tokens in one", 30, 9, "train", 3, [0.7, 0.1, 0.45], "With equal sizes a wrong axis "
            "raises no error: rows are windows."),
        rung("a long text", 500, 50, "train", 8, some, "Any length of the text."),
        rung("a long text, held out", 500, 90, "held out", 6, some, "Any length of the text."),
        rung("just below the next window", 13, 0, "train", 3, [0.799, 0.5999], "u times the number of windows is "
            "rounded down."),
        rung(AS_IT_WAS, 12, 4, "train", 3, [0.5], COPY, changes),
    ]  # fmt: skip


def has_windows(tokens: np.ndarray, held_out: int, part: str, context: int, u: np.ndarray) -> bool:
    """Return whether the part has a window."""
    count = held_out if part == "held out" else len(tokens) - held_out
    return held_out <= len(tokens) and count > context


def some_u(draft: Draft) -> np.ndarray:
    """Draw numbers from 0 to below 1, none of them on a bound between windows."""
    return np.array([(0.1, 0.6, 0.9)[draft.choose(0, 2)] for _ in range(draft.sizes["B"])])


def counted(draft: Draft) -> np.ndarray:
    """Return the numbers 1, 2, 3, … as a text."""
    return np.arange(1, 1 + draft.sizes["n"])


# The first checks of the doctor -------------------------------------------------------------------------------------


def first_checks(rng: np.random.Generator) -> list[Rung]:
    seeds = iter(rng.integers(1, 1000, 40).tolist())

    def text(B: int, T: int, V: int, period: int | None = None) -> np.ndarray:
        """Draw tokens of which no two neighbours are alike; they come again after so many places."""
        tokens = np.cumsum(rng.integers(1, V, (B, T)), axis=1) % V
        return tokens if period is None else tokens[:, np.arange(T) % period]

    def rung(name, why, sees=causal, B=2, T=4, V=5, words=None, period=None, zeros=False, **more):
        model = toy_model(words or V, sees, seed=next(seeds), **more)
        tokens = np.zeros((B, T), dtype=int) if zeros else text(B, T, V, period)
        return Rung(name, (model, tokens, V), why, shape_hint="Return three of True and False.")

    return [
        rung("a healthy model", "Nothing is wrong: three times True."),
        rung("a healthy model with many tokens", "Nothing is wrong: three times True.", B=3, T=6, V=40),
        rung("rounding that differs", "Logits that differ by rounding alone count as equal: up to 1e-6.",
            rounding=3e-7),
        rung("logits that are too large", "The first loss is far above ln V, which is the loss of a model that takes "
            "all tokens for equally likely.", size=60.0, B=4, T=6),
        rung("large logits that are all alike", "All logits are about 1,000, so all tokens are equally likely, and the "
            "first loss is ln V. Subtract the largest logit before exp.", offset=1000.0),
        rung("more tokens than there are", "The output is for 40 tokens, and there are five: the first loss is ln 40. "
            "It should be ln of the vocabulary.", words=40),
        rung("a model that repeats itself", "The logits at place t are for token t + 1, and this model has its own "
            "token there.", own=4.0, T=6),
        rung("a first loss that is a little too high", "A first loss 0.5 above ln V is not near: near is within 0.1.",
            own=1.5, T=6),
        rung("a model that never repeats itself", "The logits at place t are for token t + 1. That the own token is "
            "unlikely costs nothing here.", own=-6.0, T=6, V=40,
            period=2),
        rung("a first loss that is too low", "A first loss far below ln V is wrong, too.", own=-9.0, V=2, B=3, T=5),
        rung("no mask", "Each token sees all of its row.", later_tokens),
        rung("one token too far", "Each token sees the next one.", next_token, T=6),
        rung("the first place sees the last token", "Compare the logits at all earlier places, the first included.",
            one_later_token(0, -1), T=6),
        rung("the first place sees the second token", "Change each token but the first in turn, and not only the last.",
            one_later_token(0, 1), T=6),
        rung("a place in the middle sees the next token", "Change each token but the first in turn, and not only the "
            "last.", one_later_token(2, 3), T=7),
        rung("no mask in the last row", "Look at the logits of all rows.", in_row(-1, later_tokens), B=3),
        rung("no mask in the first row", "Look at the logits of all rows.", in_row(0, later_tokens), B=3),
        rung("rows that mix", "Each token sees the tokens of all rows.", other_rows, B=3),
        rung("rows that mix place by place", "As with a mean over the batch: a row changes the others at the same "
            "place.", other_rows_here, B=3),
        rung("the first row sees the last", "Change each row in turn, and look at all others.", one_other_row(0, -1),
            B=4),
        rung("the last row sees the first", "Change each row in turn, and look at all others.", one_other_row(-1, 0),
            B=4),
        rung("a row in the middle sees the one before it", "Change each row in turn, and look at all others.",
            one_other_row(2, 1), B=4),
        rung("rows that mix at the first place", "Change all tokens of a row, and not only its last.",
            one_other_row(0, 1, place=0)),
        rung("rows that mix at the last place", "Change all tokens of a row, and not only its first.",
            one_other_row(1, 0, place=-1)),
        rung("a leak where every token is 0", "Change a token to another one: what is set to 0 may have been 0 before.",
            next_token, zeros=True),
        rung("two illnesses", "No mask, and rows that mix.", both(later_tokens, other_rows_here), B=3),
        rung("three illnesses", "Large logits, no mask, and rows that mix.", both(later_tokens, other_rows), B=3,
            size=80.0),
        rung("a faint leak", "A change of 1e-3 is a leak.", next_token, size=0.02),
        rung("rows that mix a little", "A change of 1e-3 is a leak.", other_rows_here, size=0.02, B=3),
        rung("two places", "With two places there is one later token.", later_tokens, T=2),
        rung("as many rows as places", "With equal sizes a wrong axis raises no error.", next_token, B=4, T=4, V=4),
        rung("rows that mix, as many as places", "With equal sizes a wrong axis raises no error.", other_rows, B=4,
            T=4, V=4),
        Rung(AS_IT_WAS, (toy_model(5, causal), text(2, 4, 5), 5), COPY, changes),
    ]  # fmt: skip


def true_or_false(value: Any) -> Any:
    """Return True or False unchanged. Raises TypeError for anything else."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"each of the three is True or False, and one is {describe(value)}")
    return value


# Assembled and trained ----------------------------------------------------------------------------------------------


def assemble(rng: np.random.Generator) -> list[Rung]:
    def model(V: int, d: int, f: int, embedding: float = 1.0, norms: bool = True, **times: float) -> dict:
        """Draw the weights of a model; times: a factor for the maps of a name, such as o=0.0."""

        def matrix(name: str, rows: int, columns: int) -> np.ndarray:
            return 0.5 * times.get(name, 1.0) * draw(rng, rows, columns)

        def norm() -> np.ndarray:
            return 1 + 0.5 * norms * draw(rng, d)

        weights = {"embedding": embedding * draw(rng, V, d)}
        for layer in (0, 1):
            weights |= {f"{layer}.norm_1": norm()} | {f"{layer}.{name}": matrix(name, d, d) for name in "qkvo"}
            weights |= {f"{layer}.norm_2": norm()} | {f"{layer}.{name}": matrix(name, d, f) for name in ("gate", "up")}
            weights[f"{layer}.down"] = matrix("down", f, d)
        return weights | {"norm": norm()}

    def forward(name, weights, B, T, heads, why, measure=logits_from, **more):
        tokens = rng.integers(0, len(weights["embedding"]), (B, T))
        return Rung(name, (weights, tokens, heads), why, measure, of="logits_of", **more)

    def steps(name, weights, count, B, T, heads, rate, warm_up, why, measure=losses_from, again=False, **more):
        batches = [rng.integers(0, len(weights["embedding"]), (2, B, T)) for _ in range(1 if again else count)]
        batches = batches * count if again else batches
        return Rung(name, (weights, batches, heads, rate, warm_up), why, measure, of="train", **more)

    return [
        forward("blocks that find nothing", model(5, 4, 6, norms=False, o=0, down=0), 1, 1, 1, "o and down are zeros "
            "here: the logits are those of the embedding after the last norm, times the embedding transposed.",
            shape_hint="logits_of returns a tensor (B, T, V) in float64."),
        forward("attention that finds nothing", model(5, 4, 6, o=0), 1, 2, 1, "o is zeros here: each block adds "
            "(SiLU(y gate) · (y up)) down with y = norm_2 of x."),
        forward("a feed-forward network that finds nothing", model(5, 4, 6, down=0), 1, 1, 1, "down is zeros here, and "
            "one token sees itself alone: each block adds (y v) o with y = norm_1 of x."),
        forward("one token", model(5, 4, 6), 1, 1, 1, "The feed-forward network reads the sum of x and what attention "
            "found."),
        forward("several tokens", model(5, 4, 6), 1, 5, 1, "A score is rotated(q) · rotated(k) / √d_head, and later "
            "tokens are blocked before the softmax."),
        forward("two heads", model(6, 8, 5), 1, 4, 2, "Each head has d / heads numbers side by side, and is rotated "
            "and scaled by itself."),
        forward("a batch", model(7, 6, 5), 3, 4, 3, "Rows of a batch do not see each other."),
        forward("all sizes equal", model(4, 4, 4), 4, 4, 2, "With equal sizes a wrong axis raises no error."),
        forward("a long stream", model(5, 4, 6, embedding=50.0), 2, 3, 2, "Each part reads a norm, and adds to the "
            "stream itself."),
        forward("a stream near zero", model(5, 4, 6, embedding=0.003, o=0.01, down=0.01), 2, 3, 2, "eps = 1e-5 is "
            "added to the mean of the squares, and here it counts."),
        forward("large scores", model(5, 4, 6, q=20.0, k=5.0), 2, 6, 2, "Scores may be of any size."),
        forward("a longer text", model(6, 8, 10), 2, 9, 4, "Any number of tokens."),
        forward(AS_IT_WAS, model(5, 4, 6), 2, 3, 2, "The logits are right, but something that was given has changed. "
            "Make new tensors.", keeps_arguments),
        steps("one batch", model(5, 4, 6), 1, 2, 3, 2, 0.01, 1, "The first loss is that of the weights as they were "
            "given: no step has been made.", shape_hint="train returns a list of losses, one for each batch."),
        steps("one step", model(5, 4, 6), 2, 2, 3, 2, 0.01, 1, "The second loss is that after one step with the whole "
            "rate."),
        steps("one step of a warm-up", model(5, 4, 6), 2, 2, 3, 2, 0.03, 3, "The first step of three has a third of "
            "the rate."),
        steps("a whole warm-up", model(5, 4, 6), 4, 2, 3, 2, 0.02, 3, "In the warm-up step number s has s / warm_up of "
            "the rate."),
        steps("the cosine", model(5, 4, 6), 5, 2, 3, 2, 0.05, 1, "After the warm-up the rate falls along half a "
            "cosine, to a tenth at the last step."),
        steps("gradients that need clipping", model(5, 4, 6, embedding=4.0), 4, 2, 4, 2, 0.02, 1, "The norm of all "
            "gradients together is above 1 here: all are multiplied by one factor, so that it is 1."),
        steps("gradients that grow", model(6, 4, 6, embedding=0.05), 6, 2, 4, 2, 0.1, 2, "At first the norm of all "
            "gradients is below 1, and they stay as they are. Later they are clipped."),
        steps("large norms", model(5, 4, 6) | {"norm": np.full(4, 6.0)}, 3, 2, 3, 2, 0.1, 1, "Only weights with two "
            "axes decay, and norms do not."),
        steps("ten steps", model(7, 8, 6), 10, 3, 5, 2, 0.02, 3, "Ten batches, ten losses."),
        steps("six steps on one batch", model(7, 8, 6), 6, 2, 5, 4, 0.1, 2, "The loss of one batch has to fall.",
            again=True),
        steps("train: " + AS_IT_WAS, model(5, 4, 6), 2, 2, 3, 2, 0.02, 1, "The losses are right, but the weights or "
            "the batches that were given have changed. Train copies: weight.clone().", keeps_arguments),
    ]  # fmt: skip


def in_tensors(value: Any) -> Any:
    """Return copies of all arrays in a value as tensors."""
    import torch

    if isinstance(value, dict):
        return {name: in_tensors(each) for name, each in value.items()}
    if isinstance(value, list):
        return [tuple(map(in_tensors, each)) for each in value]  # a batch is inputs and targets
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def logits_from(logits_of: Callable, *args: Any) -> dict[str, Any]:
    """Return the logits of a model for weights and tokens that are given as arrays. Raises BadResult unless float64."""
    return only_in({"logits": logits_of(*in_tensors_each(args))}, "float64")


def losses_from(train: Callable, *args: Any) -> dict[str, Any]:
    """Return the losses of a training whose weights and batches are given as arrays."""
    return {"losses": train(*in_tensors_each(args))}


def in_tensors_each(args: tuple) -> tuple:
    return tuple(map(in_tensors, args))


def keeps_arguments(function: Callable, *args: Any) -> float:
    """Return 0.0 if no tensor that a function is given has changed, and none asks for a gradient; else 1.0."""
    import torch

    given, before = in_tensors_each(args), in_tensors_each(args)
    function(*given)
    pairs = list(zip(_tensors(given), _tensors(before), strict=True))
    return float(any(not torch.equal(a.detach(), b) or a.requires_grad or a.grad is not None for a, b in pairs))


def _tensors(value: Any) -> list[Any]:
    """Return all tensors in a value, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in _tensors(each)]
    return [value] if hasattr(value, "requires_grad") else []


# A training step that is ill ----------------------------------------------------------------------------------------


def find_the_illness(rng: np.random.Generator) -> list[Rung]:
    def step(inputs: list[int], targets: list[int], V: int, d: int, rate: float, times: float = 1.0) -> tuple:
        return times * draw(rng, V, d), times * draw(rng, d, V), np.array(inputs), np.array(targets), rate

    def some(count: int, V: int) -> list[int]:
        return rng.integers(0, V, count).tolist()

    return [
        Rung("one token", step([1], [0], 3, 2, 0.5), "One token was right from the start, and should stay right.",
            shape_hint="Return (loss, E, U): a number and the two new matrices."),
        Rung("tokens that all differ", step([2, 0, 1], [0, 1, 2], 4, 3, 0.5),
            "Here nothing was wrong, and it should stay so."),
        Rung("a token that comes twice", step([1, 1], [0, 2], 3, 2, 0.5), "The loss is right, and one of the two "
            "matrices is not. Compute its gradient by hand, place by place."),
        Rung("a token that comes twice, with one target", step([1, 1], [2, 2], 3, 2, 0.5), "Both places have the same "
            "gradient here."),
        Rung("one token among others twice", step([0, 2, 1, 2], [2, 1, 2, 0], 4, 3, 0.25), "Compare with the text "
            "without its last token."),
        Rung("the same token at all places", step([2, 2, 2, 2, 2], [0, 1, 2, 3, 0], 4, 3, 0.5), "All places read one "
            "row of E."),
        Rung("a rate of 0", step([1, 0, 1], [0, 1, 1], 3, 2, 0.0), "With a rate of 0 nothing changes, and the loss is "
            "the same."),
        Rung("a text", step(some(12, 4), some(12, 4), 4, 3, 0.5), "Each place adds its part to the gradient of its "
            "token's row."),
        Rung("all sizes equal", step(some(4, 4), some(4, 4), 4, 4, 0.5), "With equal sizes a wrong axis raises no "
            "error."),
        Rung("a word that is not in the text", step([0, 0, 1], [1, 0, 1], 5, 2, 1.0), "A row of E whose token is not "
            "read stays as it is."),
        Rung("a longer text", step(some(60, 6), some(60, 6), 6, 4, 0.3), "Any number of tokens."),
        Rung("large logits", step(some(6, 3), some(6, 3), 3, 2, 0.1, 30.0),
            "The softmax was right: leave it as it is."),
        Rung(AS_IT_WAS, step([1, 0, 1], [0, 1, 1], 3, 2, 0.5), COPY, changes),
    ]  # fmt: skip


def some_words(draft: Draft) -> np.ndarray:
    """Draw words of the vocabulary."""
    return np.array([draft.choose(0, draft.sizes["V"] - 1) for _ in range(draft.sizes["n"])])


def has_a_choice(E: np.ndarray, U: np.ndarray, inputs: np.ndarray, targets: np.ndarray, rate: float) -> bool:
    """Return whether there are two words or more, each of two numbers or more."""
    return min(E.shape) > 1


def twice(E: np.ndarray, U: np.ndarray, inputs: np.ndarray, targets: np.ndarray, rate: float) -> bool:
    """Return whether an input comes twice."""
    return len({*inputs.tolist()}) < len(inputs)


LADDERS = {
    "merge_step": Ladder(
        ("merge_step",),
        ("pair", "merged"),
        merge_step,
        cases=(
            ("with a token three times in a row", "without one", repeats),
            ("where two pairs come most often", "where one pair comes most often", ties),
        ),
        small=(Small((Drawn("n", few_kinds),), measures=(None,), fits=has_a_pair),),
    ),
    "encode_decode": Ladder(
        ("encode", "decode"),
        ("tokens",),
        encode_decode,
        small=(
            Small((few_letters, few_merges), measures=(None,), fits=are_known),
            Small((few_tokens, few_merges), measures=(as_bytes,), fits=are_known),
        ),
    ),
    "padded_loss": Ladder(
        ("padded_loss",),
        ("loss",),
        padded_loss,
        forbidden=LIBRARY_CROSS_ENTROPY,
        cases=(("with padding", "without padding", has_padding),),
        quantities=of_a_batch,
        small=(
            Small(
                ("B T V", Drawn("B T", some_targets), Drawn("B", some_lengths)),
                measures=(None,),
                fits=targets_possible,
            ),
        ),
    ),
    "top_p": Ladder(
        ("top_p",),
        ("kept", "token"),
        top_p,
        small=(Small(("V", one_of(0.6, 0.3, 0.85), one_of(0.1, 0.45, 0.8)), measures=(None,)),),
    ),
    "batch_without_leak": Ladder(
        ("batch",),
        ("inputs", "targets"),
        batch_without_leak,
        cases=(
            ("for the part that is held out", "for training", lambda *args: args[2] == "held out"),
            ("with something held out", "with nothing held out", lambda *args: args[1] > 0),
        ),
        small=(
            Small(
                (Drawn("n", counted), whole(0), FROM_RUNG, whole(), Drawn("B", some_u)),
                measures=(None,),
                fits=has_windows,
            ),
        ),
    ),
    "first_checks": Ladder(
        ("first_checks",),
        ("loss", "causal", "apart"),
        first_checks,
        convert=true_or_false,
    ),
    "assemble": Ladder(
        ("logits_of", "train"),
        ("logits",),
        assemble,
        forbidden=WHOLE_ATTENTION,
    ),
    "find_the_illness": Ladder(
        ("ill_step",),
        ("loss", "E", "U"),
        find_the_illness,
        cases=(("where a token comes twice", "where all tokens differ", twice),),
        small=(
            Small(
                ("V d", "d V", Drawn("n", some_words), Drawn("n", some_words), one_of(1.0, 0.5)),
                measures=(None,),
                fits=has_a_choice,
            ),
        ),
    ),
}
