"""Present the smallest input on which an answer is wrong: code to paste, the answer's result and the right one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_utils.checks.examples.smallest import Example, is_blank
from course_utils.checks.judge.exercises import parameters
from course_utils.checks.judge.judge import JudgedExercise
from course_utils.checks.judge.verdict import wrong_parts
from course_utils.checks.kernel.evidence import BAD_RESULT
from course_utils.checks.kernel.result_numbers import Numbers

MOST_SHOWN = 64  # most numbers of an input that is shown as code
INDENT = "    "
ROUGH = 1e-2
STAGE = "They part at "
SOFTMAX = f"{STAGE}the softmax: each row of weights should sum to 1 over the keys."
UNKNOWN = f"{STAGE}the scores or in the softmax: weights come out as NaN."
MASK = f"{STAGE}the mask: a blocked key gets weight."
SCALE = STAGE + "the scale: your weights are those of the right scores times {factor:.3g}."
SCORES = f"{STAGE}the scores or in the softmax: each row of weights sums to 1, but they are not the right ones."
BLEND = f"{STAGE}the blend: the weights are right, and the output is not these weights times v."
ORDER = f"{STAGE}the end: the output and the weights have changed places."
UNSTEADY = "It does not give the same twice: with this input it gave one result and then another."
PROJECTED = ("x", "W_q", "W_k", "W_v")  # the arguments that the stepper takes


def tell_example(example: Example, judge: JudgedExercise, answer: Any = None) -> str:
    """Return the example as text; "" where its input does not fit in a few lines.

    Args:
        answer: the learner's function, whose parameter names the text uses.
    """
    code = as_code(example, judge, answer)
    if not code:
        return ""
    count = f"{example.numbers} number" + ("" if example.numbers == 1 else "s")
    found = "found before the time was over" if example.ran_out else "found"
    parts = [f"The smallest input {found} on which it is wrong ({count}):", ""]
    parts += [INDENT + line for line in code.splitlines()]
    parts += ["", *_results(example, judge)]
    step = UNSTEADY if example.unsteady else _first_step(example)
    return "\n".join([*parts, *filter(None, [step, _stepper(example, judge)])])


def as_code(example: Example, judge: JudgedExercise, answer: Any = None) -> str:
    """Return code to paste below the answer: assignments of the arguments, and the call; "" if it would be too long."""
    rung, ladder, small = example.rung, judge.ladder, example.small
    if example.numbers > MOST_SHOWN:
        return ""
    name = rung.of or ladder.names[0]
    if small is not None and callable(small.code):
        return small.code(name, *rung.args)
    named = (small.names if small else ()) or _names(answer, len(rung.args)) or parameters(judge.day, judge.grade_id)
    names = [*named[: len(rung.args)], *(f"more_{i}" for i in range(len(named), len(rung.args)))]
    lines = []
    for each, value in zip(names, rung.args, strict=True):
        written = literal(value, tensors=ladder.tensors or bool(small and small.tensors))
        if written is None:
            return ""
        lines.append(f"{each} = {written}")
    call = small.code if small and isinstance(small.code, str) and small.code else "{f}({args})"
    masks = "".join(f", {each}" for each in names if each.startswith("mask"))
    for mark, text in (("{f}", name), ("{args}", ", ".join(names)), ("{mask}", masks)):
        call = call.replace(mark, text)
    return "\n".join([*lines, call])


def literal(value: Any, *, tensors: bool = False) -> str | None:
    """Return a value as Python code, with arrays as tensors if asked; None for a value that cannot be written so."""
    if isinstance(value, np.ndarray):
        usual = value.dtype.kind in "bi" or (value.dtype.itemsize == 8 and not tensors)
        module, function = ("torch", "tensor") if tensors else ("np", "array")
        entries = repr(value.tolist()).replace("-inf", "-math.inf").replace("nan", "math.nan")
        if value.size == 0 or is_blank(value):
            function, entries = "zeros", str(value.shape)
        return f"{module}.{function}({entries}{'' if usual else f', dtype={module}.{value.dtype}'})"
    if is_blank(value):
        return f"[0.0] * {len(value)}"
    if isinstance(value, tuple):
        written = [literal(part, tensors=tensors) for part in value]
        inside = ", ".join(map(str, written)) + ("," if len(written) == 1 else "")
        return None if None in written else f"({inside})"
    if value is None or isinstance(value, (bool, int, float, str, list)):
        return repr(value).replace("-inf", "-math.inf")
    as_code: Callable[[], str] | None = getattr(value, "as_code", None)
    return as_code() if as_code else None


def numbers(array: Numbers, figures: int = 4) -> str:
    """Return an array as text in brackets, to four digits."""
    return _nested([_short(x, figures) for x in array.entries], array.shape)


def _names(answer: Any, count: int) -> tuple[str, ...]:
    """Return the names of a function's parameters; empty where they are unknown or fewer than `count`."""
    try:
        names = tuple(inspect.signature(answer).parameters)
    except (TypeError, ValueError):
        return ()
    return names if len(names) >= count and all(name.isidentifier() for name in names) else ()


def _first_step(example: Example) -> str:
    """Say at which step attention went wrong first, judged by weights and output; "" where there are no weights."""
    values, wanted = example.gave.values, example.right.values
    if not {"weights", "output"} <= wanted.keys() & values.keys():
        return ""
    (mine, blend), (theirs, output) = (
        (each["weights"].as_array(), each["output"].as_array()) for each in (values, wanted)
    )
    if (mine.shape, blend.shape) == (output.shape, theirs.shape) and _close(mine, output) and _close(blend, theirs):
        return ORDER
    if mine.shape != theirs.shape or blend.shape != output.shape:
        return ""
    if _close(mine, theirs):
        return "" if _close(blend, output) else BLEND
    sees = theirs.sum(axis=-1) > 0.5  # a row without keys has only zero weights
    if not np.isfinite(mine[sees]).all():
        return UNKNOWN
    if not _close(mine[sees].sum(axis=-1), np.ones(int(sees.sum()))):
        return SOFTMAX
    if (mine[_blocked(example, theirs)] > 0).any():
        return MASK
    factor = _factor(mine, theirs)
    return SCORES if factor is None else SCALE.format(factor=factor)


def _blocked(example: Example, weights: np.ndarray) -> np.ndarray:
    """Return which keys a mask among the arguments blocks, or a causal mask; none where there is no mask."""
    blocked = np.zeros(weights.shape, dtype=bool)
    for mask in example.rung.args:
        if isinstance(mask, np.ndarray) and mask.dtype == bool:
            try:
                blocked |= ~np.broadcast_to(mask, weights.shape)
            except ValueError:  # a mask of another form
                blocked |= weights == 0
    return blocked | (weights == 0) if _is_causal(weights) else blocked


def _is_causal(weights: np.ndarray) -> bool:
    """Return whether exactly the entries above the diagonal are 0, for two tokens or more."""
    n, m = weights.shape[-2:]
    return n == m > 1 and bool(((weights == 0) == np.triu(np.ones((n, m), dtype=bool), k=1)).all())


def _factor(mine: np.ndarray, theirs: np.ndarray) -> float | None:
    """Return the factor that turns the right scores into those of these weights; None where no factor does, or where
    any two weights have one: it must be that of three different weights, or a root such as √2."""
    if (mine <= 0).any() or (theirs <= 0).any():
        return None
    own, right = (np.log(weights) - np.log(weights).mean(axis=-1, keepdims=True) for weights in (mine, theirs))
    if (right**2).sum() < 1e-6:
        return None
    factor = float((own * right).sum() / (right**2).sum())
    if not np.allclose(own, factor * right, atol=1e-3) or factor < 1e-3 or abs(factor - 1) < 1e-3:
        return None
    larger = max(factor, 1 / factor) ** 2
    is_root = round(larger) > 1 and abs(larger - round(larger)) < 1e-2
    return factor if is_root or len(np.unique(np.abs(right).round(6))) > 2 else None


def _results(example: Example, judge: JudgedExercise) -> list[str]:
    """Return lines with the answer's result and the right one, for the parts that differ."""
    gave, right = example.gave, example.right.values
    order = [name for name in (*judge.ladder.returns, *right) if name in right and name != "measure"]
    order = list(dict.fromkeys(order))[:3]
    if gave.error:
        kind, _, text = gave.error.partition(": ")
        said = f"It cannot be read: {text}" if kind == BAD_RESULT else f"It raises {gave.error}"
        return [said, *(f"{name}: right is {numbers(right[name])}" for name in order)]
    wrong = wrong_parts(gave, example.right, judge.tolerance(example.rung.name))
    if not wrong & set(order):
        return [example.rung.why]
    return [_differing(name, gave.values[name], right[name]) for name in order if name in wrong and name in gave.values]


def _differing(name: str, gave: Numbers, right: Numbers) -> str:
    """Return a line with both results, to as many figures as show that they differ."""
    figures = next((n for n in (4, 6, 8) if numbers(gave, n) != numbers(right, n)), 8)
    return f"{name}: it gives {numbers(gave, figures)}, right is {numbers(right, figures)}"


def _nested(entries: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return entries[0]
    if math.prod(shape) > MOST_SHOWN:
        return f"{math.prod(shape)} numbers of shape {tuple(shape)}"
    step = math.prod(shape[1:])
    rows = [_nested(entries[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(rows)}]"


def _short(x: float, figures: int) -> str:
    return "−∞" if x == -math.inf else "∞" if x == math.inf else f"{x:.{figures}g}".replace("-", "−")


def _stepper(example: Example, judge: JudgedExercise) -> str:
    """Return code that opens the stepper on the example, where the stepper can show it; else ""."""
    args = example.rung.args
    names = parameters(judge.day, judge.grade_id)[: len(args)]
    if example.rung.measure or "weights" not in judge.ladder.returns or any(np.ndim(x) != 2 for x in args):
        return ""
    if tuple(name.lower() for name in names) == ("q", "k", "v"):
        if len(args[0]) != len(args[1]):
            return ""
        given = [np.eye(len(args[0])), *args]  # x is the identity, so that W_q is q
    elif names == PROJECTED:
        given = list(args)
    else:
        return ""
    matrices = ", ".join(str(np.asarray(x).tolist()) for x in given)
    n = len(given[0])
    tokens = str([f"token {i}" for i in range(n)])
    if n > 1 and _is_causal(example.right.values["weights"].as_array()):
        tokens += f", mask={np.tri(n, dtype=bool).tolist()}"
    return (
        "Step by step it is this:\n\n"
        f"{INDENT}from course_utils.views import AttentionStepper\n{INDENT}AttentionStepper({matrices}, {tokens})"
    )


def _close(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return np.allclose(mine, theirs, rtol=ROUGH, atol=ROUGH)
