"""What the stepper tells: the stages of attention and their matrices.

Its text and its picture show them, and what a learner's function returns goes into them. The page computes them anew,
since it has no kernel everywhere, and tells of each cell the arithmetic that made it: stepper_story.js.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from course_utils.views.shared.call_student_code import call_attention
from course_utils.views.shared.number_text import number


class Story(NamedTuple):
    """Stages and matrices as plain data, the problem with somebody's function, and what it gave: (output, weights)."""

    stages: list[Any]
    matrices: dict[str, Any]
    problem: str
    theirs: tuple[np.ndarray, np.ndarray] | None


def tell_story(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    tokens: list[str],
    key_tokens: list[str],
    mask: np.ndarray | None,
    attention: Callable[..., Any] | None,
    kind: Any,
    inputs: Any,
) -> Story:
    """Return the story of queries (n, d_k), keys (m, d_k) and values (m, d_v); stepper_story.js tells it too."""
    # the arithmetic, and in `theirs` what the learner's function makes of the same numbers
    d_k = q.shape[1]
    scores = q @ k.T
    scaled = scores / math.sqrt(d_k)
    masked = scaled if mask is None else np.where(mask, scaled, -np.inf)
    weights = _softmax(masked)
    theirs, problem = (None, "") if attention is None else call_attention(attention, q, k, v, mask, kind)
    problem = problem and f"{problem} The stages show the arithmetic instead."
    # the last two stages show theirs, if there is one; what comes before them has the arithmetic alone
    displayed_output, displayed_weights = (weights @ v, weights) if theirs is None else theirs
    before = "scaled" if mask is None else "masked"  # the stage that softmax takes

    def features(matrix):
        return [str(column) for column in range(matrix.shape[1])]

    matrices = {}

    def add(name, values, rows, columns, role="", text=None, shade=False, expected=None):
        matrices[name] = _matrix(name, values, rows, columns, role, text, shade, expected)

    # what was given: X and the three W, or nothing, if Q, K and V were given themselves
    for name, values in inputs.items():
        rows = tokens if name == "X" else [str(row) for row in range(len(values))]
        add(name, values, rows, features(values))
    # queries, keys and values
    for name, values, rows, role in (
        ("Q", q, tokens, "query"),
        ("K", k, key_tokens, "key"),
        ("V", v, key_tokens, "value"),
    ):
        add(name, values, rows, features(values), role)
    # the scores, and what scale and mask make of them
    add("Kᵀ", k.T, features(k), key_tokens, "key")
    add("scores", scores, tokens, key_tokens)
    add("scaled", scaled, tokens, key_tokens)
    if mask is not None:
        text = [["✓" if may else "✗" for may in row] for row in mask]
        add("mask", mask, tokens, key_tokens, text=text)
        add("masked", masked, tokens, key_tokens)
    # weights and output, marked in each cell where theirs differs from the arithmetic
    add("weights", displayed_weights, tokens, key_tokens, shade=True, expected=weights)
    add("output", displayed_output, tokens, features(v), "output", expected=weights @ v)

    whose = "" if theirs is None else ", from your function"
    return Story(_stages(matrices, inputs, d_k, before, whose), matrices, problem, theirs)


def _stages(matrices: dict[str, dict], inputs: Any, d_k: int, before: str, whose: str) -> list[dict[str, Any]]:
    """The stages one after the other: each with its formula, what it makes, the line that says so, and its steps.

    What is given stands there in one step. Scores come cell by cell, and everything else row by row.
    """

    def line(*items):
        return [{"matrix": item} if item in matrices else {"sign": item} for item in items]

    def stage(name, formula, results, items, steps=None):
        rows = sum(len(matrices[result]["rows"]) for result in results)
        return {"name": name, "formula": formula, "results": results, "line": items, "steps": steps or rows}

    stages = []
    if inputs:
        formula = f"X: one row per token, d_model = {inputs['X'].shape[1]} numbers each"
        stages.append(stage("X", formula, ["X"], line("X"), 1))
        # X stands once: three lines with an X each would be too tall.
        products = line("X", "·", "W_Q", "W_K", "W_V", "=", "Q", "K", "V")
        stages.append(stage("Q, K, V", "Q = X · W_Q,  K = X · W_K,  V = X · W_V", ["Q", "K", "V"], products))
    else:
        stages.append(stage("Q, K, V", "given: queries, keys and values", ["Q", "K", "V"], line("Q", "K", "V"), 1))
    cells = sum(map(len, matrices["scores"]["text"]))
    stages.append(stage("scores", "scores = Q · Kᵀ", ["scores"], line("Q", "·", "Kᵀ", "=", "scores"), cells))
    root = f"/ √{d_k} ="
    stages.append(
        stage("scaled", f"scaled = scores / √d_k, with d_k = {d_k}", ["scaled"], line("scores", root, "scaled"))
    )
    if "mask" in matrices:
        formula = "masked = scaled where the mask is True, −∞ where it is False"
        stages.append(stage("masked", formula, ["masked"], line("scaled", "where", "mask", "=", "masked")))
    formula = f"weights = softmax of {before}, along each row{whose}"
    stages.append(stage("weights", formula, ["weights"], line(before, "softmax →", "weights")))
    formula = f"output = weights · V{whose}"
    stages.append(stage("output", formula, ["output"], line("weights", "·", "V", "=", "output")))
    return stages


def _matrix(name, values, rows, columns, role, text, shade, expected):
    text = text or [[number(value) for value in row] for row in values]
    n, m = np.shape(values)
    differs = np.zeros((n, m), bool) if expected is None else ~np.isclose(values, expected, rtol=1e-4, atol=1e-5)
    levels = np.rint(np.nan_to_num(values).clip(0, 1) * 255).astype(int).tolist() if shade else []
    return {
        "name": name,
        "shape": f"{n}×{m}",
        "role": role,
        "rows": list(rows),
        "columns": list(columns),
        "text": text,
        "differs": differs.tolist(),
        "levels": levels,
    }


def _softmax(logits):
    """Along rows; a row of −∞ gives zeros."""
    largest = logits.max(axis=1, keepdims=True)
    powers = np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))
    sums = powers.sum(axis=1, keepdims=True)
    return np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0)
