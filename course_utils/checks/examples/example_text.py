"""Present the smallest input on which an answer is wrong: code to paste, the answer's result and the right one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_utils.checks.examples.smallest import Example, is_blank
from course_utils.checks.judge.exercise_tables import parameters
from course_utils.checks.judge.judge import JudgedExercise
from course_utils.checks.judge.verdict import is_mask, wrong_parts
from course_utils.checks.kernel.evidence import BAD_RESULT
from course_utils.checks.kernel.result_numbers import Numbers

MAX_NUMBERS = 64  # of an input that is shown as code
INDENT = "    "
ROUGH = 1e-2
STEPPER = "Here it is step by step:"  # before the code that draws the example
STAGE = "They first differ at "
SOFTMAX = f"{STAGE}the softmax: each row of weights should sum to 1 over the keys."
UNKNOWN = f"{STAGE}the scores or the softmax: weights come out as NaN."
MASK = f"{STAGE}the mask: a blocked key gets weight."
SCALE = STAGE + "the scale: your weights are those of the right scores times {factor:.3g}."
SCORES = f"{STAGE}the scores or the softmax: each row of weights sums to 1, but they are not the right ones."
BLEND = f"{STAGE}the blend: the weights are right, and the output is not these weights times v."
ORDER = f"{STAGE}the end: the output and the weights have changed places."
UNSTEADY = "It does not give the same result twice: with this input it gave one result and then another."
PROJECTED = ("x", "W_q", "W_k", "W_v")  # the arguments that the stepper takes


def describe_example(example: Example, judge: JudgedExercise, answer: Any = None) -> str:
    """Return the example as text; "" if its input does not fit in a few lines.

    Args:
        answer: the learner's function, whose parameter names the text uses.
    """
    code = as_code(example, judge, answer)
    if not code:
        return ""
    count = f"{example.numbers} number" + ("" if example.numbers == 1 else "s")
    search = "found before time ran out" if example.ran_out else "found"
    lines = [f"The smallest failing input {search} ({count}):", ""]
    lines += [INDENT + line for line in code.splitlines()]
    lines += ["", *_describe_results(example, judge)]
    stage = UNSTEADY if example.unsteady else _first_wrong_stage(example)
    lines += [text for text in (stage, _stepper_code(example, judge)) if text]
    return "\n".join(lines)


def as_code(example: Example, judge: JudgedExercise, answer: Any = None) -> str:
    """Return code to paste below the answer: assignments of the arguments, and the call; "" if it would be too long."""
    rung = example.rung
    ladder = judge.ladder
    small = example.small
    if example.numbers > MAX_NUMBERS:
        return ""
    name = rung.of or ladder.names[0]
    if small is not None and callable(small.code):
        return small.code(name, *rung.args)
    count = len(rung.args)
    known = (small.names if small else ()) or _parameters_of(answer, count) or parameters(judge.day, judge.grade_id)
    names = [*known[:count], *(f"more_{i}" for i in range(len(known), count))]
    lines = []
    for each, value in zip(names, rung.args, strict=True):
        code = literal(value, tensors=ladder.tensors or bool(small and small.tensors))
        if code is None:
            return ""
        lines.append(f"{each} = {code}")
    call = small.code if small and isinstance(small.code, str) and small.code else "{f}({args})"
    masks = "".join(f", {each}" for each in names if each.startswith("mask"))
    for mark, text in (("{f}", name), ("{args}", ", ".join(names)), ("{mask}", masks)):
        call = call.replace(mark, text)
    return "\n".join([*lines, call])


def literal(value: Any, *, tensors: bool = False) -> str | None:
    """Return a value as Python code, with arrays as tensors if asked; None for a value that cannot be written so."""
    if isinstance(value, np.ndarray):
        is_wide = value.dtype.itemsize == 8 or value.dtype == np.dtype(int)  # which has 32 bits in a web page
        usual = value.dtype.kind == "b" or (is_wide and (value.dtype.kind == "i" or not tensors))
        module, function = ("torch", "tensor") if tensors else ("np", "array")
        entries = repr(value.tolist()).replace("-inf", "-math.inf").replace("nan", "math.nan")
        if value.size == 0 or is_blank(value):
            function, entries = "zeros", str(value.shape)
        return f"{module}.{function}({entries}{'' if usual else f', dtype={module}.{value.dtype}'})"
    if is_blank(value):
        return f"[0.0] * {len(value)}"
    if isinstance(value, tuple):
        parts = [literal(part, tensors=tensors) for part in value]
        inside = ", ".join(map(str, parts)) + ("," if len(parts) == 1 else "")
        return None if None in parts else f"({inside})"
    if value is None or isinstance(value, (bool, int, float, str, bytes, list)):
        return repr(value).replace("-inf", "-math.inf")
    as_code: Callable[[], str] | None = getattr(value, "as_code", None)
    return as_code() if as_code else None


def numbers(array: Numbers, figures: int = 4, *, name: str = "") -> str:
    """Return an array as text in brackets, to four digits; one that is named as a mask as True and False."""
    if is_mask(name, array.entries):
        return _nest([str(bool(x)) for x in array.entries], array.shape)
    return _nest([_short(x, figures) for x in array.entries], array.shape)


def _parameters_of(answer: Any, count: int) -> tuple[str, ...]:
    """Return the names of a function's parameters; empty where they are unknown or fewer than `count`."""
    try:
        names = tuple(inspect.signature(answer).parameters)
    except (TypeError, ValueError):
        return ()
    return names if len(names) >= count and all(name.isidentifier() for name in names) else ()


def _first_wrong_stage(example: Example) -> str:
    """Return at which stage attention went wrong first, judged by weights and output; "" if there are no weights."""
    mine = example.outcome.values
    right = example.right.values
    if not {"weights", "output"} <= right.keys() & mine.keys():
        return ""
    my_weights = mine["weights"].as_array()
    my_output = mine["output"].as_array()
    weights = right["weights"].as_array()
    output = right["output"].as_array()
    is_swapped = (my_weights.shape, my_output.shape) == (output.shape, weights.shape)
    if is_swapped and _is_close(my_weights, output) and _is_close(my_output, weights):
        return ORDER
    if my_weights.shape != weights.shape or my_output.shape != output.shape:
        return ""
    if _is_close(my_weights, weights):
        return "" if _is_close(my_output, output) else BLEND
    has_keys = weights.sum(axis=-1) > 0.5  # a row without keys has only zero weights
    if not np.isfinite(my_weights[has_keys]).all():
        return UNKNOWN
    if not _is_close(my_weights[has_keys].sum(axis=-1), np.ones(int(has_keys.sum()))):
        return SOFTMAX
    if (my_weights[_find_blocked(example, weights)] > 0).any():
        return MASK
    factor = _factor_of_scores(my_weights, weights)
    return SCORES if factor is None else SCALE.format(factor=factor)


def _find_blocked(example: Example, weights: np.ndarray) -> np.ndarray:
    """Return which keys a mask among the arguments blocks, or a causal mask; none where there is no mask."""
    blocked = np.zeros(weights.shape, dtype=bool)
    for mask in example.rung.args:
        if isinstance(mask, np.ndarray) and mask.dtype == bool:
            try:
                blocked |= ~np.broadcast_to(mask, weights.shape)
            except ValueError:  # a mask of another shape
                blocked |= weights == 0
    # Weights of two tokens or more that are 0 above the diagonal, and nowhere else, have a causal mask.
    n, m = weights.shape[-2:]
    is_causal = n == m > 1 and not _looks_ahead(weights) and bool(weights[..., np.tri(n, dtype=bool)].all())
    return blocked | (weights == 0) if is_causal else blocked


def _looks_ahead(weights: np.ndarray) -> bool:
    """Return whether any query gives weight to a later token."""
    return bool(np.triu(weights, k=1).any())


def _factor_of_scores(mine: np.ndarray, right: np.ndarray) -> float | None:
    """Return the factor that turns the right scores into those of these weights; None if no factor does, or if any
    two weights have one: it must be that of three different weights, or a root such as √2."""
    if (mine <= 0).any() or (right <= 0).any():
        return None
    # The logarithms of weights, centred in each row, are the centred scores.
    my_scores, right_scores = (
        np.log(weights) - np.log(weights).mean(axis=-1, keepdims=True) for weights in (mine, right)
    )
    if (right_scores**2).sum() < 1e-6:
        return None
    factor = float((my_scores * right_scores).sum() / (right_scores**2).sum())
    if not np.allclose(my_scores, factor * right_scores, atol=1e-3) or factor < 1e-3 or abs(factor - 1) < 1e-3:
        return None
    larger = max(factor, 1 / factor) ** 2
    is_root = round(larger) > 1 and abs(larger - round(larger)) < 1e-2
    return factor if is_root or len(np.unique(np.abs(right_scores).round(6))) > 2 else None


def _describe_results(example: Example, judge: JudgedExercise) -> list[str]:
    """Return lines with the answer's result and the right one, for the parts that differ."""
    outcome = example.outcome
    right = example.right.values
    order = [name for name in (*judge.ladder.returns, *right) if name in right and name != "measure"]
    order = list(dict.fromkeys(order))[:3]
    if outcome.error:
        kind, _, text = outcome.error.partition(": ")
        first = f"The result cannot be read: {text}" if kind == BAD_RESULT else f"It raises {outcome.error}"
        return [first, *(f"{name}: expected {numbers(right[name], name=name)}" for name in order)]
    wrong = wrong_parts(outcome, example.right, judge.tolerance(example.rung.name))
    if not wrong & set(order):
        return [example.rung.hint]
    shared = [name for name in order if name in wrong and name in outcome.values]
    return [_describe_difference(name, outcome.values[name], right[name]) for name in shared]


def _describe_difference(name: str, actual: Numbers, right: Numbers) -> str:
    """Return a line with both results, to as many figures as show that they differ."""
    figures = next((n for n in (4, 6, 8) if numbers(actual, n) != numbers(right, n)), 8)
    mine, wanted = (numbers(array, figures, name=name) for array in (actual, right))
    return f"{name}: got {mine}, expected {wanted}"


def _nest(entries: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return entries[0]
    if math.prod(shape) > MAX_NUMBERS:
        return f"{math.prod(shape)} numbers of shape {tuple(shape)}"
    step = math.prod(shape[1:])
    rows = [_nest(entries[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(rows)}]"


def _short(x: float, figures: int) -> str:
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    return f"{x:.{figures}g}".replace("-", "−")


def _stepper_code(example: Example, judge: JudgedExercise) -> str:
    """Return code that opens the stepper on the example, if the stepper can show it; else ""."""
    args = example.rung.args
    names = parameters(judge.day, judge.grade_id)[: len(args)]
    if example.rung.measure or "weights" not in judge.ladder.returns or any(np.ndim(x) != 2 for x in args):
        return ""
    if tuple(name.lower() for name in names) == ("q", "k", "v"):
        if len(args[0]) != len(args[1]):
            return ""
        inputs = [np.eye(len(args[0])), *args]  # x is the identity, so that W_q is q
    elif names == PROJECTED:
        inputs = list(args)
    else:
        return ""
    matrices = ", ".join(str(np.asarray(x).tolist()) for x in inputs)
    n = len(inputs[0])
    tokens = str([f"token {i}" for i in range(n)])
    if n > 1 and _always_causal(judge):
        tokens += f", mask={np.tri(n, dtype=bool).tolist()}"
    return (
        f"{STEPPER}\n\n"
        f"{INDENT}from course_utils.views import AttentionStepper\n{INDENT}AttentionStepper({matrices}, {tokens})"
    )


def _always_causal(judge: JudgedExercise) -> bool:
    """Return whether right weights never look ahead, on any step; on a single one, large scores may give the same."""
    results = [outcome.values for outcome in judge.reference().outcomes]
    weights = [values["weights"].as_array() for values in results if "weights" in values]
    return not any(_looks_ahead(each) for each in weights if each.ndim > 1)


def _is_close(mine: np.ndarray, right: np.ndarray) -> bool:
    return np.allclose(mine, right, rtol=ROUGH, atol=ROUGH)
