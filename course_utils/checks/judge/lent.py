"""Right answers that a check lends to an exercise, in place of earlier answers that do not pass yet.

They come from the course's own library, which a student's edition contains as well, so that a check lends the same in
every edition. The grader lends the reference answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from course_utils.loader import lazy

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
    return lending[day]() if day in lending else {}


def _functions_of_day_1() -> Mapping[str, Callable]:
    from course_utils.attention import lists  # here, since the page loads no module that its day does not need

    return {
        "softmax_row": lambda row: lists.softmax(row),
        "scores": lambda Q, K: [[lists.dot(query, key) for key in K] for query in Q],
        "scale_scores": lambda S, d_k: (np.asarray(S, dtype=float) * d_k**-0.5).tolist(),
    }


def _functions_of_day_2() -> Mapping[str, Callable]:
    from course_utils.attention import arrays

    return {"softmax": arrays.softmax, "attention_backward": _gradients}


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
    from course_utils.attention import masks, tensors

    return {
        "causal_mask": lambda n: masks.causal(n),
        "padding_mask": lambda lengths, m: masks.padding(lengths, m),
        "masked_softmax": lambda scores, mask: tensors.softmax(scores.masked_fill(~mask, -np.inf)),
    }


def _functions_of_day_4() -> Mapping[str, Callable]:
    from course_utils.costs import counts

    multihead = lazy("course_utils.attention.multihead")  # it needs PyTorch, and `layer_flops` does not
    return {
        "split_heads": multihead.split_heads,
        "merge_heads": multihead.merge_heads,
        "layer_flops": lambda T, d_model, d_ff: tuple(counts.layer_flops(T, d_model, d_ff=d_ff)),
    }


def _functions_of_day_5() -> Mapping[str, Callable]:
    from course_utils.costs import memory

    def kv_cache_bytes(
        n_layers: int, n_kv_heads: int, d_head: int, n_tokens: int, batch: int = 1, bytes_per_value: int = 2
    ) -> float:
        return memory.kv_cache_bytes(n_layers, n_kv_heads, d_head, n_tokens, batch, bytes_per_value)

    return {"kv_cache_bytes": kv_cache_bytes}
