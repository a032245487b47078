"""The ladders of day 9: the test inputs of each exercise; no answers.

Sizes differ wherever they can, and coincide where a wrong axis would fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.result_numbers import BadResult, describe
from course_utils.checks.kernel.small import Draft, Drawn, Small

AS_IT_WAS = "what it is given stays as it was"
COPY = "The answer is right but writes into its arguments, which the caller still needs. Work on a copy."
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
}
