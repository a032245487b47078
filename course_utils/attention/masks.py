"""Who may attend to whom, and two tests that catch a layer which looks ahead.

Masks are boolean; True means that the query (row) may attend to the key (column). The leak tests take any layer.
"""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from course_utils.attention.shapes import whole
from course_utils.attention.tensors import boolean, check_dtype


def attendable(
    query_positions: Sequence | Tensor, key_positions: Sequence | Tensor, window: int | None = None
) -> Tensor:
    """The one rule behind causal masks: a query sees the keys at its own position and before it.

    query_positions is (…, n), key_positions (…, m), integers; the leading axes broadcast. A negative key position marks
    an empty slot, which nobody sees. With a window, a query sees itself and the window - 1 positions before it.
    Returns (…, n, m), boolean. Raises TypeError for positions that are not integers, ValueError for a window below 1 or
    leading axes that do not fit. Source: Vaswani et al. 2017, section 3.2.3; for the window Jiang et al. 2023
    (Mistral 7B), figure 1 (the paper's text, "between i - W and i", has one token more).
    """
    queries = _positions("query_positions", query_positions)[..., :, None]  # (…, n, 1)
    keys = _positions("key_positions", key_positions)[..., None, :]  # (…, 1, m)
    _check_broadcast("query positions (…, n, 1) and key positions (…, 1, m)", queries, keys)
    mask = (keys >= 0) & (keys <= queries)  # (…, n, m)
    if window is not None:
        mask &= keys > queries - whole("window", window)
    return mask


def causal(
    n: int, m: int | None = None, align: str = "lower-right", device: torch.device | str | None = None
) -> Tensor:
    """Each query sees the keys up to its own place: a lower triangle, (n, m), boolean. m is n when left out.

    Where n and m differ, "lower-right" lets the last query see the last key, as decoding with a cache needs: the n
    queries are the last n of m tokens, and where n > m the first n - m see nothing. "upper-left" lets query 0 see only
    key 0, as `is_causal=True` of F.scaled_dot_product_attention does. Raises ValueError for negative sizes or another
    alignment. Source: Vaswani et al. 2017, section 3.2.3; torch.nn.attention.bias for the two names.
    """
    n, m = _sizes(n, m)
    if align not in ("lower-right", "upper-left"):
        raise ValueError(f'align is {align!r}: it must be "lower-right" or "upper-left"')
    first = m - n if align == "lower-right" else 0
    return attendable(torch.arange(first, first + n, device=device), torch.arange(m, device=device))


def sliding_window(n: int, window: int, m: int | None = None, device: torch.device | str | None = None) -> Tensor:
    """Each query sees itself and the window - 1 keys before it: (n, m), boolean, aligned at the lower right.

    m is n when left out. Raises ValueError for negative sizes or a window below 1.
    Source: Jiang et al. 2023 (Mistral 7B), figure 1.
    """
    n, m = _sizes(n, m)
    return attendable(torch.arange(m - n, m, device=device), torch.arange(m, device=device), window)


def sink_window(n: int, window: int, sinks: int, m: int | None = None) -> Tensor:
    """Return the mask of a causal window that also keeps the first tokens: (n, m), boolean.

    The queries are the last n of m tokens, as in `causal`. Raises ValueError for a window below 1 or sinks below 0.
    Source: Xiao et al. 2023 (attention sinks), section 3.2.
    """
    mask = sliding_window(n, window, m)
    return mask | (causal(n, m) & (torch.arange(mask.shape[1]) < whole("sinks", sinks, least=0)))


def prefix_lm(n: int, prefix: int, device: torch.device | str | None = None) -> Tensor:
    """Every query sees the first `prefix` keys; beyond them the mask is causal: (n, n), boolean.

    prefix 0 is causal, prefix n lets all see all. Raises ValueError unless 0 <= prefix <= n.
    Source: Raffel et al. 2020 (T5), section 3.2.1 and figure 3.
    """
    n = whole("n", n, least=0)
    prefix = whole("prefix", prefix, least=0)
    if prefix > n:
        raise ValueError(f"prefix is {prefix} but there are {n} tokens: it must be at most n")
    return causal(n, device=device) | (torch.arange(n, device=device) < prefix)  # (n, n)


def padding(
    lengths: Sequence[int] | Tensor, m: int, device: torch.device | str | None = None, side: str = "right"
) -> Tensor:
    """Of m keys lengths[b] are real, the rest is padding on one side: (B, 1, 1, m), boolean.

    side "right" makes the first lengths[b] keys the real ones, "left" the last. lengths is a list or a tensor of B
    integers. The two axes of size 1 broadcast over heads and queries. Raises TypeError for lengths that are not
    integers, ValueError for lengths outside 0..m or not in one row, or another side.
    """
    m = whole("m", m, least=0)
    if side not in ("left", "right"):
        raise ValueError(f'side is {side!r}: it must be "left" or "right"')
    lengths = _positions("lengths", lengths).to(device)
    if lengths.ndim != 1:
        raise ValueError(f"lengths is {tuple(lengths.shape)}: give one length for each sequence of the batch, (B,)")
    for length in lengths.tolist():
        if not 0 <= length <= m:
            raise ValueError(f"lengths has {length} but there are {m} keys: lengths go from 0 to {m}")
    real = torch.arange(m, device=lengths.device) < lengths[:, None]  # (B, m)
    if side == "left":
        real = real.flip(-1)  # (B, m)
    return real[:, None, None, :]  # (B, 1, 1, m)


def combine(*masks: Tensor | None) -> Tensor | None:
    """What every mask allows: the logical and of boolean masks that broadcast, (…, n, m). None allows everything.

    Returns None where there is nothing to combine. Raises TypeError for a mask that is not boolean, ValueError (with
    the shapes) for masks that do not broadcast.
    """
    mask_list = [boolean(mask) for mask in masks if mask is not None]
    if not mask_list:
        return None
    _check_broadcast("masks", *mask_list)
    return reduce(torch.logical_and, mask_list)


def to_additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the mask as numbers to add to the scores: 0 where the query may attend, -inf where it may not. Same shape.

    A row of nothing but -inf stays one: torch.softmax gives NaN there, the course's softmax gives zeros. Raises
    TypeError for a mask that is not boolean or a dtype that is not a floating one of PyTorch.
    """
    if mask is None:
        raise TypeError("mask is None: where there is no mask, there is nothing to add")
    mask = boolean(mask)
    return torch.zeros(mask.shape, dtype=check_dtype(dtype), device=mask.device).masked_fill(~mask, -math.inf)


class Leak(NamedTuple):
    """Output i moved by `amount` though only the later token j changed. Where nothing moved: None, None, 0.0."""

    i: int | None
    j: int | None
    amount: float


class NotFinite(ValueError):
    """An output holds NaN or infinity before anything was changed."""


class NotSteady(ValueError):
    """A function gives two answers to one input."""


def future_leak(fn: Callable[[Tensor], Tensor], x: Tensor, sizes: Iterable[float] | None = None, seed: int = 0) -> Leak:
    """Change one token at a time and see whether an output before it moves. Returns the worst Leak(i, j, amount).

    fn maps (…, T, d) to (…, T, d_out); x is (…, T, d), floating. Each token j moves in a random direction, forth and
    back, by each of the sizes, which are 1, 1e3 and 1e6 when left out, but then cut to the fourth root of what the
    dtype holds (16 in float16): beyond, an honest layer might overflow. Large steps matter: where -1e4 was added in
    place of -inf, the leak opens only when scores outgrow it. In float16 give sizes yourself, say (100, 4000).
    (Where -1e4 replaced the scores, it opens when the others fall below that: try 1e4 * x.) amount is the largest
    change in any entry of an output i < j, in the units of the output; NaN counts as inf. A layer that keeps later
    tokens out gives 0.0; one that lets them in and cancels them leaves rounding, about 1e-7 (float32) of the largest
    number it met. With T = 1 nothing can leak: Leak(None, None, 0.0).
    Raises ValueError when fn gives two answers to one x (dropout, a cache) or one that is not finite, when x is empty
    or a size is not positive and finite; TypeError when x is not floating or fn does not return a tensor.
    """
    return _worst_ahead(future_changes(fn, x, sizes, seed))


def future_changes(
    fn: Callable[[Tensor], Tensor], x: Tensor, sizes: Iterable[float] | None = None, seed: int = 0
) -> Tensor:
    """What `future_leak` measures, before it picks the worst: [i, j] is how far output i moved when token j changed.

    (T, T) float64, from j = 1 on. Arguments and errors as in `future_leak`.
    """
    x = _tokens(x)
    tokens = x.shape[-2]
    generator = torch.Generator().manual_seed(seed)
    direction = (2 * torch.rand(x.shape, generator=generator) - 1).to(x)  # (…, T, d), entries within ±1
    steps = [sign * size for size in _step_sizes(sizes, x.dtype) for sign in (1, -1)]
    moved = torch.zeros(tokens, tokens, dtype=torch.float64)  # moved[i, j]: output i, when token j changes
    with torch.no_grad():
        before = _steady_answer(fn, x)  # (…, T, d_out)
        for j in range(1, tokens):
            for step in steps:
                changed = x.clone()
                changed[..., j, :] += step * direction[..., j, :]
                change = _answer(fn, changed).double() - before.double()
                moved[:, j] = torch.maximum(moved[:, j], _largest_by_token(change))
        _check_same(_answer(fn, x), before)
    return moved


@torch.inference_mode(False)  # autograd works in here, wherever this is called
def jacobian_leak(fn: Callable[[Tensor], Tensor], x: Tensor) -> Leak:
    """Ask autograd whether an output depends on a later token. Returns the worst Leak(i, j, amount).

    fn maps (…, T, d) to (…, T, d_out); x is (…, T, d), floating. amount is the largest |∂ output i / ∂ token j|, j > i,
    over their features; NaN counts as inf. Computed in float64 where fn takes that (a module is copied for it), else in
    the dtype of x. A layer that keeps later tokens out gives 0.0, one that cancels them rounding, about 1e-15 of its
    own gradients. Leak(None, None, 0.0) for T = 1.
    It looks at x alone: a leak that opens only on large inputs, or that takes a way autograd does not follow (a detach
    or an argmax within fn), is for `future_leak` to find. One backward pass for each entry of the output. Raises as
    `future_leak` does, and ValueError where autograd finds no way at all from the output to x: fn runs without
    gradients (no_grad, detach, NumPy), or is constant.
    """
    fn, x = _in_float64(fn, _tokens(x))
    tokens = x.shape[-2]
    with torch.no_grad():
        _steady_answer(fn, x)
    slopes = torch.zeros(tokens, tokens, dtype=torch.float64)  # slopes[i, j]: output i, by token j
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        output = _answer(fn, x)  # (…, T, d_out)
        _check_gradient(output, x)
        for i in range(tokens - 1):
            for entry in output[..., i, :].flatten():
                (slope,) = torch.autograd.grad(entry, x, retain_graph=True, allow_unused=True)
                if slope is not None:
                    slopes[i] = torch.maximum(slopes[i], _largest_by_token(slope))
    return _worst_ahead(slopes)


def _tokens(x: Tensor) -> Tensor:
    """A copy of x, once it is known to be (…, T, d), floating and not empty."""
    x = torch.as_tensor(x)
    if not x.dtype.is_floating_point:
        raise TypeError(f"x is {x.dtype}: give floating tokens, (…, T, d) (for token ids, their embeddings)")
    if x.ndim < 2 or x.numel() == 0:
        raise ValueError(f"x is {tuple(x.shape)}: give at least one token, (…, T, d)")
    return x.detach().clone()


def _answer(fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    output = fn(x.clone())  # fn may write into what it is given
    if not isinstance(output, torch.Tensor):
        raise TypeError(f"fn returned {type(output).__name__}, not a tensor: wrap it, as in lambda x: layer(x)[0]")
    if output.ndim < 2 or output.shape[-2] != x.shape[-2] or output.numel() == 0:
        shapes = f"{tuple(output.shape)} of {tuple(x.shape)}"
        raise ValueError(f"fn made {shapes}: it must return one row for each token, (…, T, d_out)")
    return output


def _steady_answer(fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """fn(x), once it is known to be finite and the same when asked again."""
    output = _answer(fn, x)
    if not output.isfinite().all():
        raise NotFinite("fn(x) holds NaN or infinity before anything was changed: mend that first")
    _check_same(_answer(fn, x), output)
    return output


def _check_same(again: Tensor, output: Tensor) -> None:
    if not torch.equal(again, output):
        raise NotSteady("fn gives two answers to one x: switch dropout off (layer.eval()), or clear what it remembers")


def _check_gradient(output: Tensor, x: Tensor) -> None:
    connected = output.requires_grad  # parameters alone make this True, so ask for the gradient of x too
    if connected:
        connected = torch.autograd.grad(output.sum(), x, retain_graph=True, allow_unused=True)[0] is not None
    if not connected:
        raise ValueError(
            "fn's output carries no gradient back to x (no_grad, detach, NumPy?): try future_leak, which needs none"
        )


def _in_float64(fn: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """fn and x in float64 if fn can be had so, else as they were."""
    try:
        wide = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
        with torch.no_grad():
            wide(x.double())
    except Exception:  # weights of another dtype, a check of dtype, a device without float64: fn is anyone's code
        return fn, x
    return wide, x.double()


def _step_sizes(sizes: Iterable[float] | None, dtype: torch.dtype) -> list[float]:
    if sizes is None:
        largest = torch.finfo(dtype).max ** 0.25
        return [min(size, largest) for size in (1.0, 1e3, 1e6)]
    sizes = [float(size) for size in sizes]
    if not sizes or not all(0 < size < math.inf for size in sizes):
        raise ValueError(f"sizes is {sizes}: give at least one, each positive and finite")
    return sizes


def _largest_by_token(change: Tensor) -> Tensor:
    """(…, T, d) -> (T,): the largest size of an entry in each token's rows, inf where there is a NaN."""
    sizes = change.detach().cpu().double().abs().nan_to_num(nan=math.inf, posinf=math.inf)
    return sizes.movedim(-2, 0).flatten(1).amax(dim=1)  # (T, …, d) -> (T,)


def _worst_ahead(amounts: Tensor) -> Leak:
    """The largest entry above the diagonal of (T, T): token j later than output i."""
    ahead = amounts.triu(1)
    if not ahead.any():
        return Leak(None, None, 0.0)
    i, j = divmod(int(ahead.argmax()), len(ahead))
    return Leak(i, j, ahead[i, j].item())


def _positions(name: str, positions: Sequence | Tensor) -> Tensor:
    positions = torch.as_tensor(positions)
    if positions.numel() == 0:
        return positions.long()  # an empty list arrives as floats
    if positions.dtype.is_floating_point or positions.dtype.is_complex or positions.dtype == torch.bool:
        raise TypeError(f"{name} is {positions.dtype}: give whole numbers")
    return positions


def _sizes(n: int, m: int | None) -> tuple[int, int]:
    n = whole("n", n, least=0)
    return n, n if m is None else whole("m", m, least=0)


def _check_broadcast(what: str, *tensors: Tensor) -> None:
    shapes = [tuple(x.shape) for x in tensors]
    try:
        np.broadcast_shapes(*shapes)  # PyTorch's imports SymPy, which takes a second
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise ValueError(f"{what} are {listed}: counted from the last, axes must be equal, or 1, or absent") from None
