"""Compare the real model with and without the learner's parts: where layer outputs first differ, and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_utils.models.real import Real
from course_utils.parts.notebook import PASSED, Parts

TEXT = "The parcel that we sent to the doctor arrived late, because the post office was closed. The capital of Italy is"
LARGEST = 1e-4  # tolerance relative to a token's vector; two correct float32 attentions differ by up to about 1e-5


@dataclass(frozen=True)
class Comparison:
    """Behaviour of the model on one text, with its own parts and with the learner's.

    Attributes:
        tokens: the text of each token.
        layer: the first layer whose output differs; None if all outputs agree.
        token: the first token at which that output differs; None if all outputs agree.
        size: length of the difference there, divided by the length of the token's vector.
        error: the error that the model raised with the learner's parts; empty if it raised none.
        before: the text that the model writes with its own parts.
        now: the text that it writes with the learner's parts; empty if an error came first.
        failing: each part whose check does not pass, with the reason why its mistake cannot show here, or an empty
            string if no reason is known.
        any_own: whether any of the parts is the learner's.
    """

    tokens: tuple[str, ...]
    layer: int | None
    token: int | None
    size: float
    error: str
    before: str
    now: str
    failing: tuple[tuple[str, str], ...] = ()
    any_own: bool = True

    @property
    def shows(self) -> bool:
        """Whether the learner's parts change anything, or raise an error."""
        return bool(self.error) or self.layer is not None or self.before != self.now

    def __str__(self) -> str:
        if not self.any_own:
            return f"None of these functions is yours yet. With the course's, the model continues: {self.before!r}."
        if not self.shows:
            agree = (
                "With these functions, all layers give the same numbers as with the course's, and the model continues: "
                f"{self.before!r}."
            )
            unseen = "{} does not pass its check, and that does not show here: {}."
            nothing_known = "this text asks for nothing that it does wrong"
            return "\n".join([agree, *(unseen.format(name, why or nothing_known) for name, why in self.failing)])
        lines = []
        if self.layer is not None:
            where = f"layer {self.layer}, token {self.token} ({self.tokens[self.token or 0]!r})"
            lines.append(f"The numbers part first in {where}, by {self.size:.2g} of the vector's length.")
        if self.error:
            lines.append(f"It raised {self.error}.")
        elif self.before == self.now:
            lines.append(f"It writes the same: {self.before!r}.")
        else:
            lines.append(f"It writes {self.now!r}, and with the course's functions {self.before!r}.")
        return "\n".join(lines)


@torch.no_grad()
def compare(
    real: Real,
    parts: Mapping[str, Callable],
    layers: Sequence[int] | None = None,
    text: str = TEXT,
    most: int = 6,
) -> Comparison:
    """Run the model on a text with these parts and without them, and let it write up to `most` more tokens.

    If a part raises an error, the result reports it.

    Args:
        parts: as in `Real.with_parts`. Parts from `mine` are compared with the model that `Slot.compared` describes,
            also if none of them is the learner's.
        layers: as in `Real.with_parts`.

    Raises:
        ValueError: a part or a layer is unknown, or `writes` is given together with `layers`.
    """
    rows = parts.rows if isinstance(parts, Parts) else ()
    plain = real.with_parts({part: f for row in rows for part, f in row.slot.compared.items()}, layers)
    own = plain.with_parts(parts, layers)
    numbers = plain.encode(text)
    expected = _layer_outputs(plain, numbers)
    before = _write(plain, numbers, most)
    layer: int | None = None
    token: int | None = None
    size = 0.0
    error = ""
    now = ""
    try:
        for i, (x, y) in enumerate(zip(_layer_outputs(own, numbers), expected, strict=True)):
            distances = (x - y).norm(dim=-1)[0] / y.norm(dim=-1)[0]  # (T,)
            wrong = ~(distances <= LARGEST)  # NaN counts as wrong
            if wrong.any():
                layer = i
                token = int(wrong.nonzero()[0])
                size = float(distances[token])
                break
        now = _write(own, numbers, most)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}".rstrip(": ")
    tokens = real.tokenizer.texts(numbers[0].tolist())
    failing = [(row.slot.name, row.hidden) for row in rows if row.own and row.report != PASSED]
    any_own = bool(parts)
    return Comparison(tuple(tokens), layer, token, size, error, before, now, tuple(failing), any_own)


def _layer_outputs(real: Real, numbers: Tensor) -> list[Tensor]:
    """Return the output of each layer, (1, T, d_model)."""
    outputs: list[Tensor] = []

    def record(block: torch.nn.Module, inputs: object, output: tuple[Tensor, ...]) -> None:
        outputs.append(output[0])

    handles = [block.register_forward_hook(record) for block in real.model.blocks]
    try:
        real.model(numbers)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def _write(real: Real, numbers: Tensor, most: int) -> str:
    return real.tokenizer.decode(list(real.stream(numbers[0].tolist(), most))) if most else ""
