"""Are these sizes that something can be counted with? Asked once, for all modules of this room."""

from fractions import Fraction
from typing import Any

from course_utils.attention import shapes


def whole(**sizes: Any) -> list[int]:
    """Return the sizes as Python integers, in the order given; Python's never overflow, as NumPy's and torch's do.

    Raises TypeError for what is not a whole number, ValueError for one below 1.
    """
    return [shapes.whole(name, size) for name, size in sizes.items()]


def heads(d_model: int, n_heads: int, n_kv_heads: int | None = None, d_head: int | None = None) -> tuple[int, int, int]:
    """n_heads, n_kv_heads and d_head as integers, with n_kv_heads = n_heads and d_head = d_model / n_heads if left out.

    Raises ValueError when n_heads does not divide d_model (and d_head is not given), or is no multiple of n_kv_heads.
    """
    d_model, n_heads = whole(d_model=d_model, n_heads=n_heads)
    (n_kv_heads,) = whole(n_kv_heads=n_heads if n_kv_heads is None else n_kv_heads)
    if n_heads % n_kv_heads:
        raise ValueError(
            f"n_heads is {n_heads} and n_kv_heads {n_kv_heads}: the first must be a multiple of the second"
        )
    if d_head is None:
        if d_model % n_heads:
            raise ValueError(
                f"d_model is {d_model} and n_heads {n_heads}: heads of equal width need a multiple; or give d_head"
            )
        d_head = d_model // n_heads
    (d_head,) = whole(d_head=d_head)
    return n_heads, n_kv_heads, d_head


def as_number(fraction: Fraction) -> float:
    """Return a Fraction as an integer where it is whole, else as a float."""
    return fraction.numerator if fraction.denominator == 1 else float(fraction)
