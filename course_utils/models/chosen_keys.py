"""How well cheap scores find the keys that a trained head attends to: the second layer of the model of `induction`.

An index is a score for each key that costs less than the true one. Its recall is the share of the heaviest keys that it
chooses, and what the chosen keys hold is their share of all weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from course_utils.attention import arrays, multihead
from course_utils.models import induction
from course_utils.models.decoder import put_parts

PERIOD = 30  # tokens that come twice, so that the key to find is 29 places back


@dataclass(frozen=True)
class Choice:
    """What an index finds when it chooses so many keys: recall and weight, a number from 0 to 1 for each count."""

    counts: Sequence[int]
    recall: list[float]
    weight: list[float]


def queries_and_keys(texts: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotated last query of each text in each head, (texts, h, d), and its keys, (texts, h, T, d).

    They are those of the model's second layer, on random pieces of PERIOD tokens, each written twice.
    """
    seen = []

    def listen(q: torch.Tensor, k: torch.Tensor, *options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append((q, k))
        return multihead.grouped_attention(q, k, *options)

    model = induction.load()
    put_parts(model, {"grouped_attention": listen})
    model(induction.repeated(texts, PERIOD))
    q, k = (each.double().numpy() for each in seen[-1])
    return q[:, :, -1], k


def exact(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the scores q·k, not scaled: (texts, h, T)."""
    return np.einsum("bhd,bhtd->bht", q, k)


def directions(k: np.ndarray, count: int) -> np.ndarray:
    """Return the directions in which the keys (texts, h, T, d) of each head are longest: (h, d, count)."""
    _, heads, _, d = k.shape
    pooled = k.swapaxes(0, 1).reshape(heads, -1, d)  # (h, texts · T, d)
    return np.linalg.eigh(pooled.swapaxes(-1, -2) @ pooled)[1][..., -count:]


def cut(q: np.ndarray, k: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return the scores of queries and keys that are cut to directions (h, d, count): (texts, h, T)."""
    return exact(np.einsum("bhd,hdc->bhc", q, to), np.einsum("bhtd,hdc->bhtc", k, to))


def by_block(q: np.ndarray, k: np.ndarray, size: int) -> np.ndarray:
    """Score a block of keys by its mean, the same for each of its keys: (texts, h, T). size divides T."""
    means = k.reshape(*k.shape[:2], -1, size, k.shape[-1]).mean(axis=-2)  # (texts, h, T / size, d)
    return np.repeat(exact(q, means), size, axis=-1)


def latest(k: np.ndarray) -> np.ndarray:
    """Score each key by its position, so that the latest are chosen: (texts, h, T)."""
    return np.broadcast_to(np.arange(k.shape[-2], dtype=float), k.shape[:-1])


def measure(scores: np.ndarray, index: np.ndarray, counts: Sequence[int], d: int) -> Choice:
    """Return what an index (…, T) finds of keys with these scores (…, T), not scaled, in heads of d numbers."""
    weights = arrays.softmax(scores / np.sqrt(d))
    recall, held = [], []
    for count in counts:
        chosen, best = _largest(index, count), _largest(scores, count)
        recall.append(float((chosen & best).sum(axis=-1).mean() / count))
        held.append(float((weights * chosen).sum(axis=-1).mean()))
    return Choice(counts, recall, held)


def compare(counts: Sequence[int] = (4, 8, 12, 16, 24, 32, 48), block: int = 4) -> dict[str, Choice]:
    """Measure each way to choose keys on half of the texts; directions come from the other half."""
    q, k = queries_and_keys()
    half = len(q) // 2
    first, q, k = k[:half], q[half:], k[half:]
    d = q.shape[-1]
    scores = exact(q, k)
    ways = {"exact scores": scores}
    ways |= {f"index of {count} numbers": cut(q, k, directions(first, count)) for count in (8, 4)}
    ways |= {f"means of {block} keys": by_block(q, k, block), "the latest keys": latest(k)}
    return {name: measure(scores, index, counts, d) for name, index in ways.items()}


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    return scores >= np.partition(scores, -count, axis=-1)[..., -count, None]
