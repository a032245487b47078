"""Byte-pair encoding: learn the pairs of tokens that stand side by side most often, and write text with fewer tokens.

The 256 bytes are tokens 0 to 255, so no text is unknown. Merge i makes token 256 + i out of two earlier ones. Text is
cut into words first, a space belonging to the word after it, and no pair is merged across a cut: so each different word
is merged once, however often it stands in the text.

Source: Sennrich et al. 2016, section 3.2, algorithm 1; Radford et al. 2019 (GPT-2), section 2.2, for bytes and cuts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from course_utils.attention.shapes import whole

BYTES = 256
_LETTER = rb"A-Za-z\x80-\xff"  # the bytes of a letter beyond ASCII stay together
_WORDS = re.compile(rb" ?[%b]+| ?[^%b\s]+|\n+|\s" % (_LETTER, _LETTER))
_CACHED_WORDS = 100_000

Pair = tuple[int, int]


def cut(text: bytes) -> list[bytes]:
    """Return the words of a text: letters, or signs, with the space before them; line ends; other spaces one by one.

    Joined they are the text again, whatever its bytes.
    """
    return _WORDS.findall(text)


def train_merges(text: bytes, vocabulary: int) -> list[Pair]:
    """Return the merges that a text teaches, in their order, until there are `vocabulary` tokens with the 256 bytes.

    Each time the pair is merged that stands in the text most often, inside words; of those that are as frequent, the
    smallest pair of numbers. There are fewer merges if no pair is left. Raises ValueError for a vocabulary below 256.
    """
    counts = Counter(cut(text))
    words = [list(word) for word in counts]
    times = list(counts.values())
    frequency: Counter[Pair] = Counter()
    holders: defaultdict[Pair, set[int]] = defaultdict(set)  # the words in which a pair stands, or stood
    for number, word in enumerate(words):
        for pair in pairwise(word):
            frequency[pair] += times[number]
            holders[pair].add(number)
    merges: list[Pair] = []
    while len(merges) < whole("vocabulary", vocabulary, least=BYTES) - BYTES:
        most = max(frequency.values(), default=0)
        if most == 0:
            break
        best = min(pair for pair, count in frequency.items() if count == most)
        for number in holders.pop(best):
            for pair in pairwise(words[number]):
                frequency[pair] -= times[number]
            words[number] = merge(words[number], best, BYTES + len(merges))
            for pair in pairwise(words[number]):
                frequency[pair] += times[number]
                holders[pair].add(number)
        merges.append(best)
    return merges


def merge(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Put the token `new` in the place of each pair, from left to right and without overlap: aaa becomes (aa)a."""
    merged: list[int] = []
    at = 0
    while at < len(tokens):
        if tuple(tokens[at : at + 2]) == pair:
            merged.append(new)
            at += 2
        else:
            merged.append(tokens[at])
            at += 1
    return merged


class BytePairs:
    """A tokenizer with these merges, as `train_merges` gives them; without any, each byte is a token.

    Raises ValueError for a merge of a token that is not made before it.
    """

    def __init__(self, merges: Iterable[Pair] = ()) -> None:
        self.merges = [(int(left), int(right)) for left, right in merges]
        self._bytes = [bytes([byte]) for byte in range(BYTES)]
        for number, (left, right) in enumerate(self.merges):
            if not (0 <= left < len(self._bytes) and 0 <= right < len(self._bytes)):
                raise ValueError(f"merge {number} is {(left, right)}: tokens up to {len(self._bytes) - 1} are there")
            self._bytes.append(self._bytes[left] + self._bytes[right])
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._tokens_of = lru_cache(_CACHED_WORDS)(self._merged)

    @property
    def vocabulary(self) -> int:
        """The number of tokens: 256 and one for each merge."""
        return len(self._bytes)

    def encode(self, text: bytes | str) -> list[int]:
        """Return the tokens of a text; a str is encoded as UTF-8 first."""
        data = text.encode() if isinstance(text, str) else text
        return [token for word in cut(data) for token in self._tokens_of(word)]

    def decode(self, tokens: Iterable[int]) -> bytes:
        """Return the bytes that tokens stand for. Undoes `encode`. Raises ValueError for an unknown token."""
        return b"".join(map(self.bytes_of, tokens))

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of one token. Raises ValueError for an unknown one."""
        if not 0 <= token < self.vocabulary:
            raise ValueError(f"token {token} is unknown: they are numbered from 0 to {self.vocabulary - 1}")
        return self._bytes[token]

    def _merged(self, word: bytes) -> list[int]:
        tokens = list(word)
        while len(tokens) > 1:
            first = min(pairwise(tokens), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if first not in self._ranks:
                break
            tokens = merge(tokens, first, BYTES + self._ranks[first])
        return tokens
