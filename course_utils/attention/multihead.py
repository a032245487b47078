"""Multi-head attention as models use it: self or cross, multi-head, grouped or multi-query, with a cache or without.

Each head does scaled dot-product attention on its own d_head numbers of every token; the last projection mixes what
the heads found. With fewer key and value heads than query heads, neighbouring query heads share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.cache import Cache
from course_utils.attention.masks import attendable, combine
from course_utils.attention.rotary import Rotary
from course_utils.attention.shapes import check_grouped, check_scale, check_shapes, whole
from course_utils.attention.tensors import attention


class MultiHeadAttention(nn.Module):
    """h heads of attention between four learned maps: q_proj, k_proj, v_proj and out_proj.

    d_model is the width of a token and d_head that of a head, d_model / n_heads when left out. n_kv_heads is n_heads
    for multi-head attention (when left out), fewer for grouped-query and 1 for multi-query attention; query head i
    reads key head i // (n_heads // n_kv_heads). bias puts one in all four maps. dropout is the share of weights set to
    0 in training. rope, a `rotary.Rotary`, turns queries and keys by their positions. scale multiplies the scores,
    1/√d_head when left out. Raises ValueError for sizes that do not divide or a scale that is not finite, TypeError for
    sizes that are no whole numbers.
    own holds functions that stand in the place of this module's, by name: split_heads, merge_heads, grouped_attention,
    rotate(x, positions, base), and mask(n, m), which gives (n, m) booleans for the last n of m tokens in the place of
    any other mask.
    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023, section 2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        rope: Rotary | None = None,
        scale: float | None = None,
        d_head: int | None = None,
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        d_head = _check_sizes(d_model, n_heads, n_kv_heads, d_head, dropout, rope)
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_kv_heads = n_kv_heads
        self.d_head = d_head
        self.dropout = dropout
        self.rope = rope
        self.scale = check_scale(scale, d_head)
        self.own: dict[str, Callable] = {}
        self.q_proj = nn.Linear(d_model, n_heads * d_head, bias)
        self.k_proj = nn.Linear(d_model, n_kv_heads * d_head, bias)
        self.v_proj = nn.Linear(d_model, n_kv_heads * d_head, bias)
        self.out_proj = nn.Linear(n_heads * d_head, d_model, bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        return_weights: bool = False,
        lengths: Sequence[int] | Tensor | None = None,
        head_mask: Sequence[float] | Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from x (B, n, d_model) to source (B, m, d_model), or to x itself: (B, n, d_model).

        mask is boolean, True where a query may attend to a key, and broadcasts to (B, h, n, m); one mask a sequence is
        (B, 1, n, m). A query that may attend to nothing gets zeros, so out_proj's bias.
        With a cache, which holds the keys and values of earlier tokens, the layer is causal: each new token attends to
        the cached ones and to the new ones up to itself, within the cache's window, and m counts the cache's slots.
        lengths (B,) says how many of the n new tokens are real in each row; the cache keeps no others. A cache is for
        generating: it holds numbers, through which no gradient flows.
        head_mask (h,) multiplies what each head found: 0 switches it off (Michel et al. 2019, section 2.3).
        return_weights gives (output, weights), the weights (B, h, n, m) as used, so after dropout in training.
        Raises ValueError or TypeError for what does not fit, and CacheFull from the cache, all before the cache takes
        anything in. `cache.columns(n, lengths)` says beforehand what m will be.
        """
        head_mask = None if head_mask is None else torch.as_tensor(head_mask).to(x)  # (h,), in the dtype of x
        self._check_inputs(x, source, mask, cache, lengths, head_mask)
        source = x if source is None else source
        split = self.own.get("split_heads", split_heads)
        merge = self.own.get("merge_heads", merge_heads)
        q = split(self.q_proj(x), self.n_heads)  # (B, h, n, d_head)
        k = split(self.k_proj(source), self.n_kv_heads)  # (B, h_kv, m, d_head)
        v = split(self.v_proj(source), self.n_kv_heads)  # (B, h_kv, m, d_head)
        positions = torch.arange(x.shape[1], device=x.device) if cache is None else cache.positions(x.shape[1])
        if self.rope is not None:
            both = torch.cat([q, k], dim=1)  # (B, h + h_kv, n, d_head)
            own = self.own.get("rotate")
            both = self.rope(both, positions) if own is None else own(both, positions, self.rope.base)
            q, k = both.split([self.n_heads, self.n_kv_heads], dim=1)
        if cache is not None:
            k, v, key_positions = cache.update(k, v, lengths)  # (B, h_kv, m, d_head) twice, (B, m)
            if x.shape[:2] != (1, 1) or cache.window is not None:  # else: one new token, which sees all keys
                causal = attendable(positions, key_positions, cache.window)[:, None]  # (B, 1, n, m)
                mask = combine(mask, causal)  # (B, 1 or h, n, m)
        if "mask" in self.own:
            mask = self.own["mask"](q.shape[2], k.shape[2])  # (n, m)
        attend = self.own.get("grouped_attention", grouped_attention)
        heads, weights = attend(q, k, v, mask, self.dropout if self.training else 0.0, self.scale)
        if head_mask is not None:
            heads = heads * head_mask[:, None, None]  # (B, h, n, d_head)
        output = self.out_proj(merge(heads))  # (B, n, d_model)
        return (output, weights) if return_weights else output

    @classmethod
    def from_torch(cls, layer: nn.MultiheadAttention) -> MultiHeadAttention:
        """Return the same layer as an `nn.MultiheadAttention`, with copies of its weights.

        Mind two differences. Its boolean masks mean the opposite: True there is "ignore", here "may attend", so give
        `~attn_mask` and `~key_padding_mask[:, None, None, :]`. And x is always (B, T, d_model) here, whatever its
        batch_first. Raises ValueError for options that have no place here: kdim or vdim, add_bias_kv, add_zero_attn.
        """
        _check_torch_layer(layer)
        biased = layer.in_proj_bias is not None
        ours = cls(layer.embed_dim, layer.num_heads, bias=biased, dropout=layer.dropout)
        state = {f"out_proj.{name}": value for name, value in layer.out_proj.state_dict().items()}
        for name, fused in (("weight", layer.in_proj_weight), ("bias", layer.in_proj_bias)):
            if fused is not None:
                q, k, v = fused.detach().chunk(3)  # (d_model, d_model) each, or (d_model,)
                state |= {f"q_proj.{name}": q, f"k_proj.{name}": k, f"v_proj.{name}": v}
        ours = ours.to(layer.in_proj_weight).train(layer.training)  # its dtype and device
        ours.load_state_dict(state)
        return ours

    def extra_repr(self) -> str:
        sizes = f"d_model={self.d_model}, n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}"
        sizes += f", d_head={self.d_head}"
        return f"{sizes}, rope={self.rope}, scale={self.scale:.4g}"

    def _check_inputs(
        self,
        x: Tensor,
        source: Tensor | None,
        mask: Tensor | None,
        cache: Cache | None,
        lengths: Sequence[int] | Tensor | None,
        head_mask: Tensor | None,
    ) -> None:
        if x.ndim != 3 or x.shape[-1] != self.d_model:
            raise ValueError(f"x is {tuple(x.shape)}: expected (B, n, d_model) with d_model {self.d_model}")
        self._check_dtype("x", x)
        if source is not None:
            self._check_source(x, source, cache)
        if cache is None and lengths is not None:
            raise ValueError("lengths says which new tokens a cache keeps; without a cache, give a padding mask")
        if cache is not None and cache.batch != len(x):
            raise ValueError(f"x is {tuple(x.shape)} but the cache has {cache.batch} rows: one for each sequence")
        if head_mask is not None and tuple(head_mask.shape) != (self.n_heads,):
            raise ValueError(f"head_mask is {tuple(head_mask.shape)}: expected one number a head, ({self.n_heads},)")
        if mask is not None:
            n = x.shape[1]
            keys = (x if source is None else source).shape[1]
            m = keys if cache is None else cache.columns(n, lengths)
            _check_mask(mask, (len(x), self.n_heads, n, m))
            if mask.device != x.device:
                raise ValueError(f"mask is on {mask.device} but x is on {x.device}: move one of them")

    def _check_source(self, x: Tensor, source: Tensor, cache: Cache | None) -> None:
        if source.ndim != 3 or len(source) != len(x) or source.shape[-1] != self.d_model:
            expected = f"({len(x)}, m, {self.d_model})"
            raise ValueError(f"source is {tuple(source.shape)} but x is {tuple(x.shape)}: expected {expected}")
        self._check_dtype("source", source)
        if cache is not None:
            raise ValueError("cache together with source: a cache holds the keys of x itself, so leave one of them out")
        if self.rope is not None:
            raise ValueError("source in a layer with rope: positions in two sequences do not compare; make it without")

    def _check_dtype(self, name: str, tokens: Tensor) -> None:
        ours = self.q_proj.weight.dtype
        if tokens.dtype != ours and not torch.is_autocast_enabled(tokens.device.type):  # autocast converts by itself
            raise TypeError(f"{name} is {tokens.dtype} but the layer is {ours}: convert one, as in x.to({ours})")


def grouped_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Attention of h query heads on h_kv key and value heads, each shared by a group of h / h_kv neighbours.

    q is (B, h, n, d_head), k and v (B, h_kv, m, d_head); mask is boolean and broadcasts to (B, h, n, m). scale is
    1/√d_head when left out. The queries of a group are stacked into one tall matrix, so that no copy of k is made for
    each query head. (A product that broadcasts k over the group gives the same numbers, but PyTorch makes them.)
    Returns (output, weights): (B, h, n, d_head) and (B, h, n, m). Raises ValueError or TypeError for what does not fit.
    Source: Ainslie et al. 2023, section 2.2.
    """
    group = check_grouped(tuple(q.shape), tuple(k.shape), tuple(v.shape))
    if q.ndim != 4:
        raise ValueError(f"q is {tuple(q.shape)}: expected (B, h, n, d_head)")
    B, h, n, d_head = q.shape
    m = k.shape[2]
    tall = (B, h // group, group * n)  # (B, h_kv, group · n)
    if mask is not None:
        _check_mask(mask, (B, h, n, m))
        mask = mask.expand(B, h, n, m).reshape(*tall, m)  # (B, h_kv, group · n, m)
    q = q.reshape(*tall, d_head)  # (B, h_kv, group · n, d_head)
    output, weights = attention(q, k, v, mask, scale)  # (B, h_kv, group · n, d_head) and (B, h_kv, group · n, m)
    if dropout:
        weights = F.dropout(weights, dropout)  # the rest grows by 1/(1 - dropout), which keeps the mean
        output = weights @ v  # (B, h_kv, group · n, d_head)
    output = output.reshape(B, h, n, v.shape[-1])  # (B, h, n, d_head)
    return output, weights.reshape(B, h, n, m)  # (B, h, n, m)


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its part of every token: (B, T, h · d_head) -> (B, h, T, d_head), as a view.

    Raises ValueError when the last axis is not a multiple of n_heads, TypeError when n_heads is no whole number.
    """
    if x.ndim != 3 or x.shape[-1] % whole("n_heads", n_heads):
        raise ValueError(f"x is {tuple(x.shape)}: expected (B, T, h · d_head), a multiple of {n_heads} heads")
    B, T, width = x.shape
    x = x.view(B, T, n_heads, width // n_heads)  # (B, T, h, d_head): a token's numbers stay together
    return x.transpose(1, 2)  # (B, h, T, d_head)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads of each token side by side again: (B, h, T, d_head) -> (B, T, h · d_head). Undoes `split_heads`."""
    if x.ndim != 4:
        raise ValueError(f"x is {tuple(x.shape)}: expected (B, h, T, d_head)")
    return x.transpose(1, 2).flatten(2)  # (B, T, h, d_head) -> (B, T, h · d_head)


def to_grouped(layer: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """Return a copy of the layer with fewer key and value heads, each the mean of a group of neighbours, biases too.

    Exact when the heads of a group were equal; otherwise a start for further training. Raises ValueError unless the
    layer's n_kv_heads is a multiple of the new one. Source: Ainslie et al. 2023, section 2.1.
    """
    if layer.n_kv_heads % whole("n_kv_heads", n_kv_heads):
        raise ValueError(f"n_kv_heads is {n_kv_heads} but the layer has {layer.n_kv_heads}: give a divisor of it")
    biased = layer.k_proj.bias is not None
    settings = (biased, layer.dropout, layer.rope, layer.scale, layer.d_head)
    grouped = MultiHeadAttention(layer.d_model, layer.n_heads, n_kv_heads, *settings)
    state = layer.state_dict()
    for name in state.keys() & {"k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"}:
        heads = state[name].unflatten(0, (n_kv_heads, -1, layer.d_head))  # (h_kv, group, d_head, …)
        state[name] = heads.mean(1).flatten(0, 1)  # (h_kv · d_head, …)
    grouped = grouped.to(layer.q_proj.weight).train(layer.training)  # its dtype and device
    grouped.load_state_dict(state)
    return grouped


def fused_qkv(layer: MultiHeadAttention) -> nn.Linear:
    """One linear map that gives a self-attention layer's queries, keys and values at once, with copies of its weights.

    q, k, v = fused_qkv(layer)(x).split([width, kv_width, kv_width], -1) where width is n_heads · d_head and kv_width is
    n_kv_heads · d_head: equal to q_proj(x), k_proj(x) and v_proj(x), in one product instead of three.
    """
    maps = (layer.q_proj, layer.k_proj, layer.v_proj)
    states = [one.state_dict() for one in maps]
    state = {name: torch.cat([one[name] for one in states]) for name in states[0]}  # weight, and bias if there is one
    width = len(state["weight"])  # (n_heads + 2 · n_kv_heads) · d_head
    fused = nn.Linear(layer.d_model, width, "bias" in state).to(state["weight"])  # their dtype and device
    fused.load_state_dict(state)
    return fused


def _check_sizes(
    d_model: int, n_heads: int, n_kv_heads: int, d_head: int | None, dropout: float, rope: Rotary | None
) -> int:
    """Raise unless the sizes fit; return d_head."""
    for name, size in (("d_model", d_model), ("n_heads", n_heads), ("n_kv_heads", n_kv_heads)):
        whole(name, size)
    if d_head is None and d_model % n_heads:
        raise ValueError(f"d_model is {d_model}, which is no multiple of n_heads, {n_heads}")
    d_head = d_model // n_heads if d_head is None else whole("d_head", d_head)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_heads is {n_heads}, which is no multiple of n_kv_heads, {n_kv_heads}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}: it must be at least 0 and less than 1")
    if rope is not None and rope.d_head != d_head:
        raise ValueError(f"rope is for d_head {rope.d_head} but the layer's d_head is {d_head}")
    return d_head


def _check_mask(mask: Tensor, scores: tuple[int, int, int, int]) -> None:
    """Raise unless the mask is boolean and fits scores (B, h, n, m)."""
    kind = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
    if kind != torch.bool:
        raise TypeError(f"mask is {kind}, not a boolean tensor: True means that the query may attend to the key")
    B, h, n, m = scores
    check_shapes((B, h, n, 1), (B, h, m, 1), (B, h, m, 1), tuple(mask.shape))


def _check_torch_layer(layer: nn.MultiheadAttention) -> None:
    if not isinstance(layer, nn.MultiheadAttention):
        raise TypeError(f"layer is {type(layer).__name__}: expected torch.nn.MultiheadAttention")
    for there, option in (
        (layer.in_proj_weight is None, "kdim or vdim other than embed_dim"),
        (layer.bias_k is not None, "add_bias_kv=True"),
        (layer.add_zero_attn, "add_zero_attn=True"),
    ):
        if there:
            raise ValueError(f"layer has {option}, which has no place here: build it without, or keep PyTorch's layer")
