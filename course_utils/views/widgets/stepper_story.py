"""What the stepper tells: the stages of attention, their matrices, and for each cell the arithmetic that made it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from course_utils.views.shared.call_student_code import call_attention
from course_utils.views.shared.number_text import bracketed, number


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
    given: Any,
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

    def add(name, values, rows, columns, why, role="", text=None, shade=False, expected=None):
        matrices[name] = _matrix(name, values, rows, columns, why, role, text, shade, expected)

    # what was given: X and the three W, or nothing, if Q, K and V were given themselves
    for name, values in given.items():
        rows = tokens if name == "X" else [str(row) for row in range(len(values))]
        add(name, values, rows, features(values), _explain_given(name, values, rows))
    # queries, keys and values, each explained as a product or as given
    for name, values, rows, role in (
        ("Q", q, tokens, "query"),
        ("K", k, key_tokens, "key"),
        ("V", v, key_tokens, "value"),
    ):
        if given:
            why = _explain_product(name, "X", given["X"], f"W_{name}", given[f"W_{name}"], values)
        else:
            why = _explain_given(name, values, rows)
        add(name, values, rows, features(values), why, role)
    # the scores, and what scale and mask make of them
    add("Kᵀ", k.T, features(k), key_tokens, _explain_transpose(k), "key")
    add("scores", scores, tokens, key_tokens, _explain_product("scores", "Q", q, "Kᵀ", k.T, scores))
    add("scaled", scaled, tokens, key_tokens, _explain_scaling(scores, scaled, d_k))
    if mask is not None:
        text = [["✓" if may else "✗" for may in row] for row in mask]
        add("mask", mask, tokens, key_tokens, _explain_mask(mask, tokens, key_tokens), text=text)
        add("masked", masked, tokens, key_tokens, _explain_masked(scaled, mask))
    # weights and output, marked in each cell where theirs differs from the arithmetic
    why = _explain_softmax(before, masked, weights, displayed_weights)
    add("weights", displayed_weights, tokens, key_tokens, why, shade=True, expected=weights)
    why = _explain_output(displayed_weights, v, displayed_output, weights @ v)
    add("output", displayed_output, tokens, features(v), why, "output", expected=weights @ v)

    whose = "" if theirs is None else ", from your function"
    return Story(_stages(matrices, given, d_k, before, whose), matrices, problem, theirs)


def _stages(matrices: dict[str, dict], given: Any, d_k: int, before: str, whose: str) -> list[dict[str, Any]]:
    """The stages one after the other: each with its formula, what it makes, the line that says so, and its steps.

    What is given stands there in one step. Scores come cell by cell, and everything else row by row.
    """

    def line(*items):
        return [{"matrix": item} if item in matrices else {"sign": item} for item in items]

    def stage(name, formula, results, items, steps=None):
        rows = sum(len(matrices[result]["rows"]) for result in results)
        return {"name": name, "formula": formula, "results": results, "line": items, "steps": steps or rows}

    stages = []
    if given:
        formula = f"X: one row per token, d_model = {given['X'].shape[1]} numbers each"
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


def _matrix(name, values, rows, columns, why, role, text, shade, expected):
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
        "why": [[why(r, c)[0] for c in range(m)] for r in range(n)],
        "lit": [[why(r, c)[1] for c in range(m)] for r in range(n)],
        "differs": differs.tolist(),
        "levels": levels,
    }


def _explain_given(name, values, rows):
    def why(r, c):
        whose = f"number {c} of “{rows[r]}”" if name in ("X", "Q", "K", "V") else "a number that training would find"
        return [f"{name}[{r}, {c}] = {number(values[r, c])}", f"given: {whose}"], []

    return why


def _explain_transpose(k):
    def why(r, c):
        return [f"Kᵀ[{r}, {c}] = {number(k[c, r])}", f"the transpose: Kᵀ[{r}, {c}] is K[{c}, {r}]"], [
            ["K", "cell", c, r]
        ]

    return why


def _explain_product(name, left, a, right, b, result):
    def why(r, c):
        lines = [
            f"{name}[{r}, {c}]",
            _dot(a[r], b[:, c], result[r, c]),
            f"row {r} of {left} times column {c} of {right}",
        ]
        return lines, [[left, "row", r], [right, "column", c]]

    return why


def _explain_scaling(scores, scaled, d_k):
    root = number(math.sqrt(d_k))

    def why(r, c):
        step = "" if math.isqrt(d_k) ** 2 == d_k else f" = {number(scores[r, c])} / {root}"
        sums = f"{number(scores[r, c])} / √{d_k}{step} = {number(scaled[r, c])}"
        return [f"scaled[{r}, {c}]", sums, f"the score over √d_k, with d_k = {d_k}"], [["scores", "cell", r, c]]

    return why


def _explain_mask(mask, tokens, key_tokens):
    def why(r, c):
        may = "may attend" if mask[r, c] else "may not attend"
        return [f"mask[{r}, {c}] is {bool(mask[r, c])}", f"“{tokens[r]}” {may} to “{key_tokens[c]}”"], []

    return why


def _explain_masked(scaled, mask):
    def why(r, c):
        if mask[r, c]:
            lines = [f"masked[{r}, {c}] = {number(scaled[r, c])}", "the mask is True here: the scaled score stays"]
        else:
            lines = [f"masked[{r}, {c}] = −∞", "the mask is False here: e^(−∞) = 0, so the key gets no weight"]
        return lines, [["scaled", "cell", r, c], ["mask", "cell", r, c]]

    return why


def _explain_softmax(before, logits, weights, displayed):
    def why(r, c):
        lit = [[before, "row", r]]
        row = logits[r]
        head = f"weights[{r}, {c}]"
        if np.isneginf(row).all():
            lines = [head, "0", "every key is masked for this query: there is nothing to share, so its weights are 0"]
        else:
            largest = row.max()
            shift = largest if abs(row[np.isfinite(row)]).max() > 20 else 0.0
            powers = np.exp(row - shift)
            exponents = [number(value - shift) for value in row]
            below = " + ".join(f"e^{bracketed(e)}" for e in exponents)
            sums = (
                f"e^{bracketed(exponents[c])} / ({below}) = {number(powers[c])} / {number(powers.sum())} "
                f"= {number(weights[r, c])}"
            )
            note = f"softmax along row {r} of {before}"
            if shift:
                note += f", with its largest number, {number(largest)}, taken off first so that no power overflows"
            lines = [head, sums, note]
        return lines + _describe_difference(displayed[r, c], weights[r, c]), lit

    return why


def _explain_output(weights, v, displayed, expected):
    def why(r, c):
        follows = float(weights[r] @ v[:, c])
        lines = [f"output[{r}, {c}]", _dot(weights[r], v[:, c], follows), f"row {r} of weights times column {c} of V"]
        if np.isclose(displayed[r, c], follows, rtol=1e-4, atol=1e-5):
            difference = _describe_difference(displayed[r, c], expected[r, c])
            lines += [f"{difference[0]}, with the right weights"] if difference else []
        else:
            lines += _describe_difference(displayed[r, c], expected[r, c]) or [
                f"your function gives {number(displayed[r, c])}, which is right, though its weights are not"
            ]
        return lines, [["weights", "row", r], ["V", "column", c]]

    return why


def _describe_difference(actual, expected):
    if np.isclose(actual, expected, rtol=1e-4, atol=1e-5):
        return []
    theirs = number(actual)
    right = number(expected)
    if theirs == right:  # as far as they are written: more digits show the difference
        theirs, right = (f"{value:.7g}".replace("-", "−") for value in (actual, expected))
    return [f"your function gives {theirs}; the arithmetic gives {right}"]


def _dot(a, b, result):
    terms = " + ".join(f"{bracketed(number(x))}·{bracketed(number(y))}" for x, y in zip(a, b, strict=True))
    return f"{terms} = {number(result)}"


def _softmax(logits):
    """Along rows; a row of −∞ gives zeros."""
    largest = logits.max(axis=1, keepdims=True)
    powers = np.exp(logits - np.where(np.isfinite(largest), largest, 0.0))
    sums = powers.sum(axis=1, keepdims=True)
    return np.divide(powers, sums, out=np.zeros_like(powers), where=sums > 0)
