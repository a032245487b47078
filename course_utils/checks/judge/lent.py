"""Right answers that a check lends to an exercise, in place of earlier answers that do not pass yet.

They come from the course's own library, which a student's edition contains as well, so that a check lends the same in
every edition. The grader lends the reference answers. What is lent takes no more than the statement of its exercise
says: an answer that passes only because it was lent something lenient would fail with the learner's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.loader import lazy

if TYPE_CHECKING:
    from torch import Tensor

STEP = 1e-30  # of a derivative by the complex step, which takes no difference and so loses no digits


def lent_functions(day: int) -> Mapping[str, Callable]:
    """Return the functions that the checks of a day can lend, by name."""
    lending = {
        1: _functions_of_day_1,
        2: _functions_of_day_2,
        3: _functions_of_day_3,
        4: _functions_of_day_4,
        5: _functions_of_day_5,
    }
    lent = lending[day]() if day in lending else {}
    for name, function in lent.items():
        function.__qualname__ = name  # by which Python's errors call it
    return lent


def _functions_of_day_1() -> Mapping[str, Callable]:
    from course_utils.attention import lists  # here, since the page loads no module that its day does not need

    def softmax_row(row: Sequence[float]) -> list[float]:
        if any(np.ndim(entry) for entry in row):
            raise TypeError("softmax_row takes one row of numbers, and got a list of rows")
        return lists.softmax(row)

    def scores(Q: Sequence, K: Sequence) -> list[list[float]]:
        return [[lists.dot(query, key) for key in K] for query in Q]

    def scale_scores(S: Sequence, d_k: int) -> list[list[float]]:
        if any(np.ndim(row) != 1 for row in S):
            raise TypeError("scale_scores takes a list of rows of numbers")
        return (np.asarray(S, dtype=float) * d_k**-0.5).tolist()

    return {"softmax_row": softmax_row, "scores": scores, "scale_scores": scale_scores}


def _functions_of_day_2() -> Mapping[str, Callable]:
    from course_utils.attention import arrays

    def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
        _require_arrays("softmax", x)
        return arrays.softmax(x, axis)

    def attention_backward(q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray) -> tuple[np.ndarray, ...]:
        _require_arrays("attention_backward", q, k, v, do)
        if do.shape[-2:] != (q.shape[-2], v.shape[-1]):
            shapes = f"{do.shape}, and n and d_v are {q.shape[-2]} and {v.shape[-1]}"
            raise ValueError(f"attention_backward takes do of shape (…, n, d_v), and got one of shape {shapes}")
        return _gradients(q, k, v, do)

    return {"softmax": softmax, "attention_backward": attention_backward}


def _require_arrays(name: str, *arrays: object) -> None:
    for each in arrays:
        if not isinstance(each, np.ndarray):
            raise TypeError(f"{name} takes NumPy arrays, and got {type(each).__name__}")


def _gradients(q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the gradients of sum(do · output) with respect to q, k and v, entry by entry: exact, and slow."""

    def loss(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> complex:
        logits = q @ k.swapaxes(-1, -2) * k.shape[-1] ** -0.5
        exps = np.exp(logits - logits.real.max(axis=-1, keepdims=True))
        return complex((do * ((exps @ v) / exps.sum(axis=-1, keepdims=True))).sum())

    inputs = [np.asarray(x, dtype=complex) for x in (q, k, v)]
    gradients = []
    for x in inputs:
        gradient = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            x[place] += 1j * STEP
            gradient[place] = loss(*inputs).imag / STEP
            x[place] -= 1j * STEP
        gradients.append(gradient)
    return tuple(gradients)


def _functions_of_day_3() -> Mapping[str, Callable]:
    masks = lazy("course_utils.attention.masks")  # it needs PyTorch, and `tells_right` does not
    tensors = lazy("course_utils.attention.tensors")

    def causal_mask(n: int) -> Tensor:
        return masks.causal(n)

    def padding_mask(lengths: Tensor, m: int) -> Tensor:
        return masks.padding(lengths, m)

    def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
        return tensors.softmax(scores.masked_fill(~mask, -np.inf))

    return {"causal_mask": causal_mask, "padding_mask": padding_mask, "masked_softmax": masked_softmax}


def _functions_of_day_4() -> Mapping[str, Callable]:
    from course_utils.costs import counts

    multihead = lazy("course_utils.attention.multihead")  # it needs PyTorch, and `layer_flops` does not

    def split_heads(x: Tensor, n_heads: int) -> Tensor:
        return multihead.split_heads(x, n_heads)

    def merge_heads(x: Tensor) -> Tensor:
        return multihead.merge_heads(x)

    def layer_flops(T: int, d_model: int, d_ff: int) -> tuple[int, int, int]:
        projections, core, feed_forward = counts.layer_flops(1, d_model, d_ff=d_ff)
        return T * projections, T * T * core, T * feed_forward  # of no tokens too, as a learner's own

    return {"split_heads": split_heads, "merge_heads": merge_heads, "layer_flops": layer_flops}


def _functions_of_day_5() -> Mapping[str, Callable]:
    from course_utils.costs import memory

    def kv_cache_bytes(
        n_layers: int, n_kv_heads: int, d_head: int, n_tokens: int, batch: int = 1, bytes_per_value: int = 2
    ) -> float:
        of_a_token = memory.kv_cache_bytes(n_layers, n_kv_heads, d_head, 1, 1, bytes_per_value)
        return n_tokens * batch * of_a_token  # of no tokens too, as a learner's own

    return {"kv_cache_bytes": kv_cache_bytes}
