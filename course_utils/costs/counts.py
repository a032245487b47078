"""Parameters and FLOPs of one transformer layer, and the length at which attention's core outgrows the rest.

All counts are exact integers. A multiply-add is two FLOPs. Softmax, norms and biases are left out of the FLOPs: they
grow like T·d_model or h·T², without the factor d_head, so they are a per cent or so.
"""

from fractions import Fraction
from typing import Any, NamedTuple

from course_utils.costs.sizes import as_number, heads, whole

FLOPS_PER_MULTIPLY_ADD = 2


def attention_parameters(
    d_model: int, n_heads: int, n_kv_heads: int | None = None, d_head: int | None = None, bias: bool = False
) -> int:
    """Parameters of W_Q, W_K, W_V and W_O: 4·d_model² with as many key/value heads as heads, and no biases.

    n_kv_heads is n_heads when left out, d_head is d_model / n_heads. Source: Vaswani et al. 2017, section 3.2.2.
    """
    n_heads, n_kv_heads, d_head = heads(d_model, n_heads, n_kv_heads, d_head)
    (d_model,) = whole(d_model=d_model)
    queries = n_heads * d_head
    keys_and_values = 2 * n_kv_heads * d_head
    weights = d_model * (queries + keys_and_values) + queries * d_model
    return weights + (queries + keys_and_values + d_model if bias else 0)


def feed_forward_parameters(
    d_model: int, d_ff: int | None = None, gated: bool | None = False, bias: bool = False
) -> int:
    """Parameters of the feed-forward layer: two matrices between d_model and d_ff (4·d_model when left out).

    gated adds the third matrix of SwiGLU and its kin. Sources: Vaswani et al. 2017, section 3.3; Shazeer 2020, eq. 6.
    """
    d_model, d_ff = whole(d_model=d_model, d_ff=4 * d_model if d_ff is None else d_ff)
    upward = 2 if gated else 1
    return (upward + 1) * d_model * d_ff + (upward * d_ff + d_model if bias else 0)


def score_pairs(n: int, m: int | None = None, causal: bool = False, window: int | None = None) -> int:
    """How many (query, key) pairs take part: n·m, or those on and below the diagonal when causal, T(T+1)/2 if n = m.

    m is n when left out. Causal is lower-right aligned: the last query sees all m keys, or the last `window` of them.
    Raises ValueError for a window that is not causal.
    """
    n, m = whole(n=n, m=n if m is None else m)
    if not causal and window is not None:
        raise ValueError(f"window is {window!r}: it counts keys back from the query, so give causal=True as well")
    if not causal:
        return n * m
    rows = min(n, m)  # the first n − m queries see nothing
    pairs = _descending(m, rows)
    if window is not None:
        (window,) = whole(window=window)
        pairs -= _descending(m - window, min(rows, max(0, m - window)))  # keys that have left the window
    return pairs


def _descending(most: int, terms: int) -> int:
    """most + (most − 1) + …, so many terms."""
    return terms * most - terms * (terms - 1) // 2


def attention_flops(
    B: int,
    h: int,
    n: int,
    m: int | None = None,
    *,
    d_k: int,
    d_v: int | None = None,
    causal: bool = False,
    backward: bool = False,
) -> int:
    """FLOPs of softmax(QKᵀ)V as the FlashAttention papers count them: 4·B·h·T²·d, half of it when causal.

    "Half" is T²/2 pairs a head: the triangle with half of its diagonal, where score_pairs counts T(T+1)/2. With n ≠ m
    it is again score_pairs less half of the diagonal. backward=True gives the backward pass alone, five products
    instead of two, 2.5 times the forward pass when d_k = d_v. m is n and d_v is d_k when left out.
    Source: Dao 2023 (FlashAttention-2), section 4.1.
    """
    B, h, n, m = whole(B=B, h=h, n=n, m=n if m is None else m)
    d_k, d_v = whole(d_k=d_k, d_v=d_k if d_v is None else d_v)
    rows = min(n, m)
    twice_the_pairs = rows * (2 * m - rows) if causal else 2 * n * m
    # Forward: QKᵀ and PV. Backward: QKᵀ again, dO Vᵀ for dP, Pᵀ dO for dV, dS K for dQ, dSᵀ Q for dK.
    widths = 3 * d_k + 2 * d_v if backward else d_k + d_v
    return B * h * twice_the_pairs * widths * FLOPS_PER_MULTIPLY_ADD // 2


class LayerFlops(NamedTuple):
    """FLOPs of one layer, forward: the four projections, the core softmax(QKᵀ)V, and the feed-forward layer."""

    projections: int
    core: int
    feed_forward: int

    @property
    def total(self) -> int:
        return sum(self)


def layer_flops(
    T: int,
    d_model: int,
    n_heads: int = 1,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    d_ff: int | None = None,
    gated: bool | None = False,
    causal: bool = False,
) -> LayerFlops:
    """FLOPs of one layer over a sequence of T tokens: 8·T·d_model², 4·T²·d_model and 16·T·d_model² by default.

    The default is multi-head attention, whose counts are the same for any n_heads, and two matrices of 4·d_model. See
    attention_parameters and feed_forward_parameters for the rest. causal=True counts the core's pairs above the
    diagonal as skipped, which leaves half (attention_flops says which half). Multiply by batch and layers yourself.
    """
    (T,) = whole(T=T)
    n_heads, n_kv_heads, d_head = heads(d_model, n_heads, n_kv_heads, d_head)
    return LayerFlops(
        projections=T * FLOPS_PER_MULTIPLY_ADD * attention_parameters(d_model, n_heads, n_kv_heads, d_head),
        core=attention_flops(1, n_heads, T, d_k=d_head, causal=causal),
        feed_forward=T * FLOPS_PER_MULTIPLY_ADD * feed_forward_parameters(d_model, d_ff, gated),
    )


def decode_flops(
    T: int,
    d_model: int,
    n_heads: int = 1,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    d_ff: int | None = None,
    gated: bool | None = False,
) -> LayerFlops:
    """FLOPs of one layer for one new token that attends to T tokens, itself among them, all others from the cache.

    Arguments as in layer_flops. The core is one row of scores: no key lies in the future, so nothing is skipped.
    """
    (T,) = whole(T=T)
    n_heads, n_kv_heads, d_head = heads(d_model, n_heads, n_kv_heads, d_head)
    one_token = layer_flops(1, d_model, n_heads, n_kv_heads, d_head, d_ff, gated)
    return one_token._replace(core=attention_flops(1, n_heads, 1, T, d_k=d_head))


def crossover_length(d_model: int, against: str = "feed_forward", causal: bool = False, **layer: Any) -> float:
    """Return the T at which the core's FLOPs equal the feed-forward's, the projections', or all the rest's.

    against is "feed_forward" (T = 4·d_model by default), "projections" (2·d_model) or "rest" (6·d_model); twice as long
    when causal skipping halves the core. `layer` takes the other arguments of layer_flops, such as n_kv_heads, d_ff and
    gated. Returns an integer where the answer is whole, else a float. Raises ValueError for another `against`.
    """
    one = layer_flops(1, d_model, causal=causal, **layer)
    linear = {
        "feed_forward": one.feed_forward,
        "projections": one.projections,
        "rest": one.feed_forward + one.projections,
    }
    if against not in linear:
        raise ValueError(f"against is {against!r}: it must be one of {', '.join(map(repr, linear))}")
    # The core grows as core·T² and the others as linear·T, so they meet at T = linear / core.
    return as_number(Fraction(linear[against], one.core))
