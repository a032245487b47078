"""Do q, k, v, mask and scale fit together? Asked once, on tuples, for lists, arrays and tensors alike."""

import math
import operator
from typing import Any


def check_shapes(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], mask: tuple[int, ...] | None = None
) -> None:
    """Raise ValueError unless q (…, n, d_k), k (…, m, d_k), v (…, m, d_v) and mask fit; all are tuples of sizes."""
    for name, shape, expected in (("q", q, "(…, n, d_k)"), ("k", k, "(…, m, d_k)"), ("v", v, "(…, m, d_v)")):
        if len(shape) < 2:
            raise ValueError(f"{name} is {shape}: it needs at least two axes, {expected}")
    if q[-1] != k[-1]:
        raise ValueError(f"k is {k} but q is {q}: keys and queries need the same d_k (last axis)")
    if k[-2] != v[-2]:
        raise ValueError(f"v is {v} but k is {k}: one value for each key (second-to-last axis)")
    if q[-1] == 0:
        raise ValueError(f"q is {q} and k is {k}: d_k (last axis) must be at least 1")
    batch = _broadcast(q[:-2], k[:-2])
    if batch is None:
        raise ValueError(f"k is {k} but q is {q}: their leading axes must be equal, or 1, or absent")
    if _broadcast(batch, v[:-2]) is None:
        raise ValueError(f"v is {v} but q is {q} and k is {k}: their leading axes must be equal, or 1, or absent")
    scores = (*batch, q[-2], k[-2])
    if mask is not None and _broadcast(mask, scores) != scores:
        raise ValueError(f"mask is {mask} but scores are {scores}: one row per query, one column per key")


def check_grouped(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> int:
    """Raise ValueError unless heads in groups fit; return h / h_kv, the number of query heads that share one key head.

    q is (…, h, n, d_k), k (…, h_kv, m, d_k), v (…, h_kv, m, d_v), all tuples of sizes; h is a multiple of h_kv, and the
    axes before the heads are equal. Without a head axis, (n, d_k) and so on, there is one group of one.
    Source: Ainslie et al. 2023, section 2.2.
    """
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) != len(q):
            raise ValueError(f"{name} is {shape} but q is {q}: they need as many axes")
    if k[:-2] != v[:-2]:
        raise ValueError(f"v is {v} but k is {k}: one value for each key, in each head")
    check_shapes(q[-2:], k[-2:], v[-2:])
    if len(q) == 2:
        return 1
    if q[:-3] != k[:-3]:
        raise ValueError(f"k is {k} but q is {q}: the axes before the heads must be equal")
    heads, kv_heads = q[-3], k[-3]
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"q has {heads} heads and k has {kv_heads}: the first must be a multiple of the second")
    return heads // kv_heads


def check_scale(scale: float | None, d_k: int) -> float:
    """Return the number that multiplies the scores: `scale` if it is given and finite, else 1/√d_k."""
    if scale is None:
        return 1 / math.sqrt(d_k)
    if not math.isfinite(scale):
        raise ValueError(f"scale is {scale}: it must be a finite number (leave it out for 1/√d_k)")
    return float(scale)  # a NumPy float64 here would turn float32 scores into float64 ones


def check_causal(causal: Any) -> bool:
    """True or False as a bool. Raises TypeError for anything else: a mask does not belong here."""
    if type(causal).__name__ not in ("bool", "bool_"):
        raise TypeError(f"causal is {type(causal).__name__}, not a bool: for other masks use tensors.attention")
    return bool(causal)


def whole(name: str, value: Any, least: int = 1) -> int:
    """Return the value as a Python integer. Raises TypeError for what is no whole number, ValueError below `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: give a whole number") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: give a whole number")
    if number < least:
        raise ValueError(f"{name} is {number}: it must be at least {least}")
    return number


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that a and b broadcast to, by NumPy's rule, or None."""
    length = max(len(a), len(b))
    pairs = zip((1,) * (length - len(a)) + tuple(a), (1,) * (length - len(b)) + tuple(b), strict=True)
    sizes = []
    for x, y in pairs:
        if x != y and 1 not in (x, y):
            return None
        sizes.append(y if x == 1 else x)
    return tuple(sizes)
