"""Byte-level byte-pair encoding: from text to the token numbers that a language model reads, and back.

The tokenizer cuts a text into pieces, mostly words with the space before them, and each piece into its bytes. Then it
merges neighbours, always the pair that training learned first, until no two neighbours form a learned pair. Because
every byte is a token too, no text is unknown, unless the vocabulary lacks some byte.

Source:
    Sennrich et al. 2016, section 3.2; Radford et al. 2019 (GPT-2), section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import jinja2.sandbox
import regex

# Patterns that cut a text into pieces before merging, by their names in GGUF files. No pair is merged across a cut.
ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"
WORDS = r" ?\p{L}+"
OTHERS = r" ?[^\s\p{L}\p{N}]+"
CUTS = {
    "gpt-2": rf"{ENDINGS}|{WORDS}| ?\p{{N}}+|{OTHERS}|\s+(?!\S)|\s+",
    "smollm": rf"{ENDINGS}|{WORDS}|\p{{N}}|{OTHERS}|\s+(?![^\s\p{{N}}])|\s+",  # one digit per piece
}
MAX_CACHED_PIECES = 100_000  # pieces whose tokens are cached


def byte_letters() -> dict[int, str]:
    """Return the printable letter that stands for each byte in byte-level vocabularies; byte 32, a space, is Ġ."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


class Tokenizer:
    """Byte-level BPE tokenizer with a given vocabulary and merges.

    Args:
        tokens: vocabulary in order of token number from 0, written in `byte_letters`.
        merges: pairs "left right", in the order in which they were learned.
        special: tokens that ordinary text is never encoded to, such as the end of a turn.
        cut: name of a pattern in CUTS.
        template: the model's chat template in Jinja; empty if it has none.

    Raises:
        ValueError: `cut` is unknown, or a merge makes no token of the vocabulary.
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
        self.tokens = tuple(tokens)
        self.numbers = {token: number for number, token in enumerate(tokens)}
        self.special = {token: self.numbers[token] for token in special}
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(merges)}
        missing = [pair for pair in self.ranks if len(pair) != 2 or "".join(pair) not in self.numbers]
        if missing:
            raise ValueError(
                f"{len(missing)} merges make no token of the vocabulary, the first {' + '.join(missing[0])}"
            )
        self.template = template
        self._letters = byte_letters()
        self._bytes = {letter: byte for byte, letter in self._letters.items()}
        self._cut = regex.compile(CUTS[cut])
        self._any_special = regex.compile("|".join(map(regex.escape, self.special)) or r"(?!)")
        self._of_piece = lru_cache(MAX_CACHED_PIECES)(self._merged)

    def __len__(self) -> int:
        return len(self.tokens)

    def pieces(self, text: str) -> list[str]:
        """Return the pieces of a text; joined, they give the text again."""
        return self._cut.findall(text)

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Return the token numbers of a text.

        Args:
            special: whether the names of special tokens in the text are encoded as these tokens.

        Raises:
            ValueError: the vocabulary lacks a byte, as SmolLM2's lacks some control characters.
        """
        if not special:
            return [number for piece in self.pieces(text) for number in self._of_piece(piece)]
        numbers = []
        end = 0
        for match in self._any_special.finditer(text):
            numbers += [*self.encode(text[end : match.start()]), self.special[match.group()]]
            end = match.end()
        return numbers + self.encode(text[end:])

    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text of tokens, without special ones; bytes that form no valid UTF-8 become �."""
        return b"".join(map(self.bytes_of, numbers)).decode(errors="replace")

    def bytes_of(self, number: int) -> bytes:
        """Return the bytes of one token; a special token has none."""
        token = self.tokens[number]
        return b"" if token in self.special else bytes(self._bytes[letter] for letter in token)

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """Return the text of each token for display; a special token appears by its name."""
        return [
            self.tokens[number] if self.tokens[number] in self.special else self.decode([number]) for number in numbers
        ]

    def chat(self, message: str) -> list[int]:
        """Return the token numbers of a chat prompt: the model's template, filled with one user message.

        Args:
            message: the user's message; the names of special tokens in it are encoded as plain text.

        Raises:
            ValueError: the model has no chat template.
        """
        if not self.template:
            raise ValueError("this model has no chat template: it continues texts, so encode one")
        mark = "\N{OBJECT REPLACEMENT CHARACTER}"
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        messages: list[Mapping[str, str]] = [{"role": "user", "content": mark}]
        filled = environment.from_string(self.template).render(messages=messages, add_generation_prompt=True)
        before, after = filled.split(mark)
        return self.encode(before, special=True) + self.encode(message) + self.encode(after, special=True)

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
