"""Rotary position embedding: turn each pair of a query's or key's numbers by an angle that grows with its position.

A query at i and a key at j are turned by i·θ and j·θ, so their dot product sees the difference (j − i)·θ only: scores
depend on how far apart two tokens are, never on where they stand. Nothing is learned and nothing is added.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from course_utils.attention.shapes import whole

PAIRS = {"neighbours": -1, "halves": -2}  # where the axis of size 2 goes when d_head is split into pairs


def rotate(x: Tensor, positions: Sequence[float] | Tensor, base: float = 10000.0, pairs: str = "neighbours") -> Tensor:
    """Turn pair i of x (…, T, d_head) by the angle position · θ_i, θ_i being `frequencies(d_head, base)[i]` radians.

    A pair (a, b) is the complex number a + ib, and turning it is multiplying it by cos + i sin of the angle.
    positions are numbers, (T,) for every row alike or (B, T) for x (B, h, T, d_head). pairs says which two numbers turn
    together: "neighbours" are 2i and 2i + 1, as in the paper; "halves" are i and i + d_head/2, as in GPT-NeoX. The two
    differ by a fixed permutation of the d_head axis, so a new model may use either, but weights trained with one give
    nonsense with the other. Same shape and dtype as x. Angles are computed in float64: in float32 those of positions
    near 100,000 are off by up to 7e-3 radians at d_head 128. Raises ValueError for what does not fit.
    Source: Su et al. 2021 (RoFormer), section 3.4.2, equation 34.
    """
    axis = _axis_of(pairs)
    if not x.dtype.is_floating_point:
        raise TypeError(f"x is {x.dtype}: queries and keys to turn are floating-point numbers")
    working = torch.promote_types(x.dtype, torch.float32)  # bfloat16 is turned in float32, then rounded once
    places = _check_positions(x, positions)  # (T,), or (B, 1, T): the same turn for every head
    flat = tuple(places.flatten().tolist())
    shape = tuple(places.shape)
    turns = _turns(flat, shape, x.shape[-1], base, working, x.device)  # (T, d_head/2) or (B, 1, T, d_head/2)
    sizes = (-1, 2) if axis == -1 else (2, -1)  # (d_head/2, 2) for neighbours, (2, d_head/2) for halves
    split = x.to(working).unflatten(-1, sizes).movedim(axis, -1)  # (…, T, d_head/2, 2)
    as_complex = torch.view_as_complex(split.clone(memory_format=torch.contiguous_format))  # (…, T, d_head/2)
    turned = torch.view_as_real(as_complex * turns)  # (…, T, d_head/2, 2)
    return turned.movedim(-1, axis).flatten(-2).to(x.dtype)  # (…, T, d_head)


def frequencies(d_head: int, base: float = 10000.0) -> Tensor:
    """θ_i = base^(−2i/d_head) for i = 0 … d_head/2 − 1: radians a position, from 1 down to nearly 1/base; float64.

    Raises ValueError for an odd d_head or a base that is not positive, TypeError for a d_head that is no whole number.
    Source: Su et al. 2021, section 3.2.2.
    """
    if whole("d_head", d_head, least=0) < 2 or d_head % 2:
        raise ValueError(f"d_head is {d_head}: it must be even, since numbers turn in pairs")
    if not 0 < base < math.inf:
        raise ValueError(f"base is {base}: it must be a positive number (10000 in the paper)")
    return base ** -(torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)  # (d_head/2,)


@dataclass(frozen=True)
class Rotary:
    """`rotate` with its settings filled in, for a layer to keep: Rotary(d_head)(x, positions).

    Not an nn.Module, and it keeps no table of angles: `layer.to(torch.bfloat16)` would round a table to 8 bits.
    Raises ValueError or TypeError as `frequencies` does, and ValueError for an unknown way to pair.
    """

    d_head: int
    base: float = 10000.0
    pairs: str = "neighbours"

    def __post_init__(self) -> None:
        frequencies(self.d_head, self.base)
        _axis_of(self.pairs)

    def __call__(self, x: Tensor, positions: Sequence[float] | Tensor) -> Tensor:
        if x.shape[-1] != self.d_head:
            raise ValueError(f"x is {tuple(x.shape)} but this Rotary is for d_head {self.d_head} (last axis)")
        return rotate(x, positions, self.base, self.pairs)


def _check_positions(x: Tensor, positions: Sequence[float] | Tensor) -> Tensor:
    """The positions as a tensor (T,) or (B, 1, T); raise unless they fit x (…, T, d_head)."""
    positions = torch.as_tensor(positions)
    if positions.dtype == torch.bool:
        raise TypeError("positions is torch.bool: give numbers, the places of the tokens")
    shape = tuple(positions.shape)
    if x.ndim < 2:
        raise ValueError(f"x is {tuple(x.shape)}: it needs at least two axes, (…, T, d_head)")
    per_row = len(shape) == 2 and x.ndim == 4 and shape[0] in (1, x.shape[0])
    if not (len(shape) == 1 or per_row) or shape[-1] != x.shape[-2]:
        raise ValueError(f"positions is {shape} but x is {tuple(x.shape)}: give (T,), or (B, T) for (B, h, T, d_head)")
    return positions[:, None] if per_row else positions


@lru_cache(8)  # every layer asks for the same, for every token
def _turns(
    places: tuple[float, ...],
    shape: tuple[int, ...],
    d_head: int,
    base: float,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """The turn by position · θ as a complex number, cos + i sin, computed in float64: (*shape, d_head/2).

    dtype is that of its parts, shape that of the places.
    """
    with torch.inference_mode(False):  # what is kept must serve in training too
        positions = torch.tensor(places, dtype=torch.float64).reshape(*shape, 1)
        angles = positions * frequencies(d_head, base)  # (*shape, d_head/2)
        return torch.complex(angles.cos().to(device, dtype), angles.sin().to(device, dtype))


def _axis_of(pairs: str) -> int:
    if pairs not in PAIRS:
        raise ValueError(f"pairs is {pairs!r}: choose one of {', '.join(map(repr, PAIRS))}")
    return PAIRS[pairs]
