"""What the mask painter says about an attention under a mask: weights, a leak, and what only a wrong one shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from course_utils.attention import masks
from course_utils.views.shared.call_student_code import to_lists
from course_utils.views.shared.number_text import SINGLE, short
from course_utils.views.silence import hide_prints

if TYPE_CHECKING:
    from torch import Tensor


class Measured(NamedTuple):
    """What the attention did under a mask. leak is None for two sequences, and where a problem came first."""

    weights: np.ndarray | None = None
    follows: bool = True  # the output is weights · v
    leak: masks.Leak | None = None
    problem: str = ""


MAX_PROBLEM_LENGTH = 180  # characters of a message from somebody's function


class _NotAttention(Exception):
    """Somebody's function returned what no attention returns."""


def measure(
    attention: Callable[..., Any], inputs: tuple[Tensor, Tensor, Tensor], mask: np.ndarray, crossed: bool
) -> Measured:
    """Weights and leak of this attention under this mask; whatever it raises becomes a message."""
    x, memory, projections = inputs
    may = torch.from_numpy(mask)
    empty = ~may.any(dim=1, keepdim=True)

    def call_with(x, memory, values=None):
        q, k, v = x @ projections[0], memory @ projections[1], memory @ projections[2]
        v = v if values is None else values
        return v, *_answer(attention, attention(q, k, v, may.clone()), len(q), *v.shape)

    def layer(x):  # NaN for a query without keys stays NaN whatever changes: that is no leak
        output = call_with(x, x)[1]
        return output.masked_fill(empty & output.isnan(), 0)

    weights = None
    follows = True
    try:
        with torch.no_grad(), hide_prints():  # a print would come a hundred times
            v, output, weights = call_with(x, memory)
            if weights is None:
                weights = _weights_from_output(call_with, x, memory)
            else:
                follows = torch.allclose(output.float(), weights.float() @ v, atol=1e-3, equal_nan=True)
            return Measured(_array(weights), follows, None if crossed else _worst_leak(layer, x, may))
    except Exception as error:  # anyone's code
        return Measured(_array(weights), follows, None, _describe_error(attention, error))


def rows_measured(
    attention: Callable[..., Any],
    inputs: tuple[Tensor, Tensor, Tensor],
    crossed: bool,
    masks_to_match: Sequence[np.ndarray],
) -> list[dict[str, Any]] | None:
    """Measure, for each row that a mask can have, the attention under a mask of such rows; the page combines them.

    Return a list of 2^m; a row's place counts its keys as bits, the last one as 1: {"weights": (n, m) or None,
    "follows": n booleans, "changes": (n, n) or None}, where changes[i][j] is how far output i moves when token j
    changes. masks_to_match: masks (n, m) whose weights have to be those of their rows. Return None if one of them has
    others, or if the attention fails.
    """
    x, memory, projections = inputs
    m = len(memory)
    rows = []
    for place in range(2**m):
        row = torch.tensor([place >> key & 1 for key in reversed(range(m))]).bool()  # (m,)
        try:
            with torch.no_grad(), hide_prints():
                rows.append(_row_measured(attention, x, memory, projections, row, crossed))
        except Exception:  # anyone's code; a page says then that it needs Python
            return None
    for mask in masks_to_match:
        weights = measure(attention, inputs, mask, True).weights
        of_its_rows = [rows[int(place)]["weights"] for place in mask @ 2 ** np.arange(m)[::-1]]
        if weights is not None and None not in of_its_rows:
            combined = np.array([each[query] for query, each in enumerate(of_its_rows)], dtype=float)
            if not np.allclose(combined, weights, equal_nan=True):
                return None
    return rows


def _row_measured(attention, x, memory, projections, row, crossed):
    may = row.expand(len(x), -1).clone()  # (n, m)

    def call_with(x, memory, values=None):
        q, k, v = x @ projections[0], memory @ projections[1], memory @ projections[2]
        v = v if values is None else values
        return v, *_answer(attention, attention(q, k, v, may.clone()), len(q), *v.shape)

    def layer(x):
        output = call_with(x, x)[1]
        return output if row.any() else output.masked_fill(output.isnan(), 0)

    v, output, weights = call_with(x, memory)
    follows = [True] * len(x)
    if weights is None:
        weights = _weights_from_output(call_with, x, memory)
    else:
        blend = weights.float() @ v
        follows = [
            torch.allclose(mine, theirs, atol=1e-3, equal_nan=True)
            for mine, theirs in zip(output.float(), blend, strict=True)
        ]
    return {
        "weights": None if weights is None else to_lists(_array(weights)),
        "follows": follows,
        "changes": None if crossed else to_lists(masks.future_changes(layer, x).numpy()),
    }


def _worst_leak(layer, x, mask):
    """The worst leak past the mask; where nothing gets past it, the worst of what the mask opens."""
    leak = masks.future_leak(layer, x)
    if leak.i is None or not mask[leak.i, leak.j]:
        return leak
    before = layer(x)

    def past_the_mask(changed):  # an output that may see the changed token stays as it was
        may = mask[:, (changed != x).any(dim=1)].any(dim=1, keepdim=True)  # (n, 1)
        return torch.where(may, before, layer(changed))

    past = masks.future_leak(past_the_mask, x)
    return leak if past.i is None else past


def _weights_from_output(call_with, x, memory):
    """The weights of an attention that returns its output alone: its output where the values are the identity."""
    try:
        return call_with(x, memory, torch.eye(len(memory)))[1]
    except Exception:  # it may want d_v = d_k; then there are no weights to show
        return None


def _array(weights):
    return None if weights is None else weights.double().numpy()


def _answer(attention, returned, n, m, d_v):
    """(output, weights or None) as float tensors on the CPU."""
    output, weights = returned if isinstance(returned, (tuple, list)) and len(returned) == 2 else (returned, None)
    parts: list[torch.Tensor | None] = []
    for part, values, shape in (("output", output, (n, d_v)), ("weights", weights, (n, m))):
        if values is None and part == "weights":
            parts.append(None)
            continue
        try:
            values = torch.as_tensor(values).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            kind = type(values).__name__
            raise _NotAttention(f"returned {kind}: (output, weights) or the output was expected, as tensors") from None
        if values.shape != shape:
            raise _NotAttention(f"returned {part} of shape {tuple(values.shape)}: {shape} was expected")
        parts.append(values if values.dtype.is_floating_point else values.float())
    return parts


def _describe_error(attention, error):
    """What went wrong, in one line of at most MAX_PROBLEM_LENGTH characters."""
    name = name_of(attention)
    if isinstance(error, NotImplementedError):
        message = f"{name} is not written yet"
    elif isinstance(error, _NotAttention):
        message = f"{name} {error}"
    elif isinstance(error, masks.NotFinite):
        message = (
            f"{name} gives NaN or infinity to a query that has keys: fix that first, so that a leak can be measured"
        )
    elif isinstance(error, masks.NotSteady):
        message = f"{name} gives two answers to one input: is there dropout in it, or does it remember something?"
    else:
        message = f"{name} raised {type(error).__name__}: {' '.join(str(error).split())}"
    return message if len(message) <= MAX_PROBLEM_LENGTH else message[: MAX_PROBLEM_LENGTH - 1] + "…"


def all_finite(weights: np.ndarray | None) -> bool:
    return weights is None or bool(np.isfinite(weights).all())


# It does not say where the mask is open: to find that out is a learner's task.
LOOKS_AHEAD = "That is a leak in a causal model, but harmless in an encoder, which only reads."


def verdict_lines(measured: Measured, mask: Any, queries: Sequence[str], name: str) -> list[str]:
    leak = measured.leak
    if leak is None:
        return [
            "no verdict: the queries and the keys are two sequences",
            "No key comes after a query, so the question of a leak has no meaning here.",
        ]
    ahead = int(np.triu(mask, 1).sum())
    if leak.i is None or leak.j is None:
        clean = "no leak: no output sees a later token"
        if measured.weights is not None and not all_finite(measured.weights):
            clean = f"no leak, but {'NaN' if np.isnan(measured.weights).any() else 'infinity'} among the weights"
        if ahead:
            cells = f"{ahead} cell{'s' if ahead > 1 else ''}"
            return [clean, f"Yet the mask opens {cells} above the diagonal. Does {name} use the mask?"]
        return [clean, "The mask blocks every cell above the diagonal."]
    first = queries[leak.i]
    later = queries[leak.j]
    moves = "changes" if np.isfinite(leak.amount) else "becomes NaN or infinite"
    finding = f"the output of {first} {moves} when {later} changes"
    if mask[leak.i, leak.j]:
        return [f"looks ahead: {finding}", LOOKS_AHEAD]
    return [f"leak: {finding}", f"The mask blocks {later} for {first}: it is {name} that lets it through."]


def empty_rows(mask: np.ndarray, weights: np.ndarray | None, queries: Sequence[str]) -> str:
    empty = [row for row, may in enumerate(mask) if not may.any()]
    if not empty:
        return "Every query may attend to at least one key."
    subject = " and ".join(queries[row] for row in empty)
    if len(empty) > 2:
        subject = f"{queries[empty[0]]}, {queries[empty[1]]} and {len(empty) - 2} more"
    claim = f"{subject} may attend to nothing"
    if weights is None:
        return f"{claim}."
    whose = "its weights" if len(empty) == 1 else "their weights"
    theirs = weights[empty]
    share = 1 / mask.shape[1]
    if np.isnan(theirs).all():
        return f"{claim}: {whose} are NaN."
    if not np.isfinite(theirs).all():
        return f"{claim}: some of {whose} are NaN or infinite."
    if not theirs.any():
        return f"{claim}: {whose} are 0."
    if np.allclose(theirs, share, atol=1e-4):
        return f"{claim}: {whose} are {short(share, SINGLE)} each, as a finite fill gives."
    return f"{claim}: {whose} are not 0."


def oddities(mask: np.ndarray, measured: Measured, queries: Sequence[str], keys: Sequence[str]) -> str:
    """What only a wrong attention shows: weight where the mask blocks, sums other than 1, an output of its own."""
    weights = measured.weights
    if weights is None:
        return "" if measured.problem else "No weights were returned to show."
    sentences = []
    full = mask.any(axis=1)
    through = int((~mask[full] & (weights[full] != 0)).sum())
    if through:
        sentences.append(f"{through} blocked cell{'s have' if through > 1 else ' has'} a weight.")
    sums = weights.sum(axis=1)
    off = [row for row in np.flatnonzero(full).tolist() if abs(sums[row] - 1) > 1e-3 or np.isnan(sums[row])]
    if off:
        sentences.append(f"The weights of {queries[off[0]]} sum to {short(sums[off[0]], SINGLE)}, not 1.")
    if not measured.follows:
        sentences.append("The output is not weights · v.")
    return " ".join(sentences)


def name_of(attention: Callable[..., Any]) -> str:
    name = getattr(attention, "__name__", type(attention).__name__)
    return "your function" if name == "<lambda>" else f"{name[:40]}()"
