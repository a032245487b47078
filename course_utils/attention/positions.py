"""Ways to tell a model where its tokens are, besides RoPE itself: waves that are added, ALiBi, and RoPE stretched.

A rotation is stretched so that a model can read texts longer than those it was trained on: `interpolated`, `ntk_aware`
and `yarn` give the speeds of RoPE's pairs for a text that is `factor` times as long. `rotate_at` rotates at any speeds.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.attention.rotary import frequencies
from course_utils.attention.shapes import whole

YARN_TURNS = (32, 1)  # pairs that make more turns within the trained length keep their speed; fewer: all of the factor


def sinusoidal(n: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the wave table (n, d_model): row i has sin(i·θ_p) in column 2p and cos(i·θ_p) in column 2p + 1; float64.

    θ_p is `rotary.frequencies(d_model, base)[p]`. Source: Vaswani et al. 2017, section 3.5.
    """
    angles = torch.arange(whole("n", n))[:, None] * frequencies(d_model, base)  # (n, d_model/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (n, d_model)


def alibi_slopes(n_heads: int) -> Tensor:
    """Return ALiBi's slope of each head, (h,) float64, as its authors' code computes them.

    For a power of two they are 2^(−8/h), 2^(−16/h), … 2^−8. For another h they are those of the largest power of two
    below it, then every second one, from the first, of those of twice that power. Raises as `whole` does.
    Source: Press et al. 2021, section 3, and the function get_slopes of its code.
    """
    power = 2 ** int(math.log2(whole("n_heads", n_heads)))
    slopes = 2.0 ** (-8 * torch.arange(1, power + 1, dtype=torch.float64) / power)  # (power,)
    if power == n_heads:
        return slopes
    return torch.cat([slopes, alibi_slopes(2 * power)[::2][: n_heads - power]])


def alibi(n_heads: int, n: int, m: int | None = None) -> Tensor:
    """Return what ALiBi adds to the scores, (h, n, m) float64: minus slope times distance, −∞ for the keys ahead.

    The n queries are the last n of m tokens; m is n when left out. Source: Press et al. 2021, section 3.
    """
    m = whole("n", n) if m is None else whole("m", m)
    distance = torch.arange(m - n, m)[:, None] - torch.arange(m)  # (n, m), above 0 for earlier keys
    bias = -alibi_slopes(n_heads)[:, None, None] * distance  # (h, n, m)
    return bias.masked_fill(distance < 0, -math.inf)


def rotate_at(x: Tensor, positions: Sequence[float] | Tensor, speeds: Tensor, pairs: str = "neighbours") -> Tensor:
    """Turn pair p of x (…, T, d_head) by position · speeds[p] radians, in x's dtype; angles are float64.

    positions are (T,). pairs is "neighbours" or "halves", as for `rotary.rotate`, which does the same at RoPE's own
    speeds.
    """
    angles = torch.as_tensor(positions).double()[:, None] * speeds  # (T, d_head/2)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = (x[..., ::2], x[..., 1::2]) if pairs == "neighbours" else x.chunk(2, dim=-1)  # (…, T, d_head/2) each
    turned = [a * cos - b * sin, a * sin + b * cos]
    return torch.stack(turned, dim=-1).flatten(-2) if pairs == "neighbours" else torch.cat(turned, dim=-1)


# --- RoPE for longer texts ------------------------------------------------------------------------------------------


def interpolated(d_head: int, base: float, factor: float) -> Tensor:
    """Return the speeds of all pairs divided by `factor`, so that positions are squeezed: (d_head/2,) float64.

    Source: Chen et al. 2023 (position interpolation), section 2.3.
    """
    return frequencies(d_head, base) / factor


def ntk_aware(d_head: int, base: float, factor: float) -> Tensor:
    """Return the speeds at a larger base: the last pair is slowed down by `factor`, the first one not at all.

    Source: Peng et al. 2023 (YaRN), section 3.1, equation 16.
    """
    return frequencies(d_head, base * factor ** (d_head / (d_head - 2)))


def yarn(
    d_head: int, base: float, factor: float, trained: int, turns: tuple[float, float] = YARN_TURNS
) -> tuple[Tensor, float]:
    """Return YaRN's speeds (d_head/2,) float64, and the number by which queries and keys are both multiplied.

    A pair that makes more than turns[0] turns within the trained length keeps its speed, one that makes fewer than
    turns[1] is slowed down by `factor`, and between them the share grows evenly from pair to pair. Multiplying queries
    and keys by 0.1 ln(factor) + 1 multiplies the scores by its square. Source: Peng et al. 2023, section 3.4.
    """
    low, high = (d_head * math.log(trained / (2 * math.pi * n)) / (2 * math.log(base)) for n in turns)
    low, high = max(math.floor(low), 0), min(math.ceil(high), d_head - 1)
    share = ((torch.arange(d_head // 2, dtype=torch.float64) - low) / max(high - low, 1e-3)).clamp(0, 1)
    own = frequencies(d_head, base)
    return own * (1 - share) + own / factor * share, 0.1 * math.log(factor) + 1
