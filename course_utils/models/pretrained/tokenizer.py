"""Byte-level byte-pair encoding: text to the numbers that a language model reads, and back.

A text is cut into pieces, words with the space before them for the most part, and each piece into its bytes. Then
neighbours are merged, the pair that was learned first always first, until no two neighbours make a learned pair. Since
every byte is a token of its own, no text is unknown. Source: Sennrich et al. 2016, section 3.2; Radford et al. 2019
(GPT-2), section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import jinja2.sandbox
import regex

# How a text is cut before merging, by the name that GGUF files give it. No pair is merged across a cut.
ENDINGS, WORDS, OTHERS = "'s|'t|'re|'ve|'m|'ll|'d", r" ?\p{L}+", r" ?[^\s\p{L}\p{N}]+"
CUTS = {
    "gpt-2": rf"{ENDINGS}|{WORDS}| ?\p{{N}}+|{OTHERS}|\s+(?!\S)|\s+",
    "smollm": rf"{ENDINGS}|{WORDS}|\p{{N}}|{OTHERS}|\s+(?![^\s\p{{N}}])|\s+",  # digits one by one
}
MOST_KEPT = 100_000  # pieces whose tokens are remembered


def byte_letters() -> dict[int, str]:
    """A printable letter for each byte, as vocabularies of this kind are written: 32, a space, is Ġ."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


class Tokenizer:
    """The tokens of a vocabulary, numbered from 0, and the pairs that make them.

    tokens are written in `byte_letters`. merges are pairs "left right", those learned first at the front. special are
    the tokens that no text makes, such as the end of a turn. cut names one of CUTS. template is the model's chat
    template, in Jinja, or empty. Raises ValueError for another cut, or merges that do not belong to the tokens.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Iterable[str],
        special: Iterable[str] = (),
        cut: str = "smollm",
        template: str = "",
    ) -> None:
        if cut not in CUTS:
            raise ValueError(f"the text is cut as {cut!r}, and this tokenizer knows {' and '.join(CUTS)}")
        self.tokens, self.numbers = tuple(tokens), {token: number for number, token in enumerate(tokens)}
        self.special = {token: self.numbers[token] for token in special}
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(merges)}
        missing = [pair for pair in self.ranks if len(pair) != 2 or "".join(pair) not in self.numbers]
        if missing:
            raise ValueError(
                f"{len(missing)} merges make no token of the vocabulary, the first {' + '.join(missing[0])}"
            )
        self.template, self._letters = template, byte_letters()
        self._bytes = {letter: byte for byte, letter in self._letters.items()}
        self._cut = regex.compile(CUTS[cut])
        self._any_special = regex.compile("|".join(map(regex.escape, self.special)) or r"(?!)")
        self._of_piece = lru_cache(MOST_KEPT)(self._merged)

    def __len__(self) -> int:
        return len(self.tokens)

    def pieces(self, text: str) -> list[str]:
        """The text, cut into pieces; put together they are the text."""
        return self._cut.findall(text)

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The numbers of a text's tokens. With special, the names of special tokens in it stand for these tokens.

        Raises ValueError for a byte that the vocabulary lacks, such as some control characters in SmolLM2's.
        """
        if not special:
            return [number for piece in self.pieces(text) for number in self._of_piece(piece)]
        numbers, end = [], 0
        for found in self._any_special.finditer(text):
            numbers += [*self.encode(text[end : found.start()]), self.special[found.group()]]
            end = found.end()
        return numbers + self.encode(text[end:])

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of tokens; special ones are left out, and bytes that are no letter yet are shown as �."""
        return b"".join(map(self.bytes_of, numbers)).decode(errors="replace")

    def bytes_of(self, number: int) -> bytes:
        """The bytes of one token, none for a special one."""
        token = self.tokens[number]
        return b"" if token in self.special else bytes(self._bytes[letter] for letter in token)

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """Each token by itself, to be shown: a special one by its name."""
        return [
            self.tokens[number] if self.tokens[number] in self.special else self.decode([number]) for number in numbers
        ]

    def chat(self, said: str) -> list[int]:
        """The numbers with which a model that answers is asked: its template filled with one turn of a user's.

        Special tokens named in what was said are plain text. Raises ValueError where the model has no template.
        """
        if not self.template:
            raise ValueError("this model has no chat template: it continues texts, so encode one")
        mark = "\N{OBJECT REPLACEMENT CHARACTER}"
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        messages: list[Mapping[str, str]] = [{"role": "user", "content": mark}]
        filled = environment.from_string(self.template).render(messages=messages, add_generation_prompt=True)
        before, after = filled.split(mark)
        return self.encode(before, special=True) + self.encode(said) + self.encode(after, special=True)

    def _merged(self, piece: str) -> list[int]:
        parts = [self._letters[byte] for byte in piece.encode()]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            first = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if first not in self.ranks:
                break
            i = pairs.index(first)
            parts[i : i + 2] = ["".join(first)]
        missing = [part for part in parts if part not in self.numbers]
        if missing:
            raise ValueError(f"{piece!r} has the byte {self._bytes[missing[0]]:#04x}, for which there is no token")
        return [self.numbers[part] for part in parts]
