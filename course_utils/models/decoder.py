"""A small causal decoder, and generation from it: recomputed at every step, or with a cache in each layer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention.cache import Cache
from course_utils.attention.masks import causal, sliding_window
from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.rotary import Rotary
from course_utils.attention.shapes import whole

Kept = TypeVar("Kept", bound=Cache)


class Decoder(nn.Module):
    """Embed the tokens, pass them through n_layers blocks, and score each word of the vocabulary as the next token.

    n_kv_heads is n_heads when left out. d_ff is the width of the feed-forward networks, 4 · d_model when left out; 0
    leaves them out, for a model of attention only. Positions enter by RoPE only. With a window, each layer sees the
    last `window` tokens, the token itself included. scale multiplies the scores, 1/√d_head when left out. gated builds
    it as Llama is built: `RMSNorm` with that eps and `GatedFeedForward`. tied scores with the embedding's own weights.
    Raises ValueError or TypeError for sizes that do not fit. Source: Touvron et al. 2023 (Llama), section 2.2.
    """

    def __init__(
        self,
        vocabulary: int,
        d_model: int,
        n_layers: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        d_ff: int | None = None,
        rope_base: float = 1e4,
        window: int | None = None,
        scale: float | None = None,
        gated: bool = False,
        eps: float = 1e-5,
        tied: bool = False,
    ) -> None:
        super().__init__()
        for name, size in (("vocabulary", vocabulary), ("d_model", d_model), ("n_heads", n_heads)):
            whole(name, size)
        self.n_heads, self.window = n_heads, window
        self.embedding = nn.Embedding(vocabulary, d_model)
        d_ff = 4 * d_model if d_ff is None else whole("d_ff", d_ff, least=0)
        sizes = (d_model, n_heads, n_kv_heads, d_ff, rope_base, scale, gated, eps)
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(whole("n_layers", n_layers, least=0)))
        self.norm = RMSNorm(d_model, eps) if gated else nn.LayerNorm(d_model, eps)
        self.unembedding = nn.Linear(d_model, vocabulary, bias=False)
        if tied:
            self.unembedding.weight = self.embedding.weight

    def forward(
        self,
        tokens: Tensor,
        caches: Sequence[Cache] | None = None,
        lengths: Sequence[int] | Tensor | None = None,
        mask: Tensor | None = None,
        head_masks: Sequence[Sequence[float]] | Tensor | None = None,
        return_weights: bool = False,
        at: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Logits (B, T, vocabulary) for the token after each of tokens (B, T), which holds integers.

        With caches, one a layer, the tokens follow those that the caches hold. The caches take them in: all of them or,
        where an input or a cache does not fit, none. Of rows with padding on the right, lengths (B,) says how many
        tokens are real; logits at the padding mean nothing. (Without caches it changes nothing: no earlier token sees
        the padding.)
        mask is boolean, True where a token may attend, and broadcasts to (B, h, T, T). It REPLACES the causal mask and
        the window, so that a lesson can train a model that looks ahead: whatever it allows is seen, padding too. With
        caches it is an error. head_masks (n_layers, h) multiplies what each head found: 0 switches the head off.
        return_weights gives (logits, weights), the weights a list with (B, h, T, m) for each layer. at (B,) picks one
        token of each row: the logits after that one only, (B, 1, vocabulary).
        Raises ValueError or TypeError for what does not fit, CacheFull where a cache has no room.
        """
        _check_tokens(self, tokens)
        masks_of_heads = self._for_each_layer(head_masks)
        held: Sequence[Cache | None]
        if caches is None:
            held = [None] * len(self.blocks)
            lengths = None
            mask = self._mask(tokens.shape[1], tokens.device) if mask is None else mask
        else:
            _check_caches(self, caches, tokens.shape[1], lengths, mask)  # a cache knows who is earlier
            held = caches
        x, weights = self.embedding(tokens), []  # (B, T, d_model)
        for block, cache, head_mask in zip(self.blocks, held, masks_of_heads, strict=True):
            x, used = block(x, mask, cache, lengths, head_mask, return_weights=True)
            if return_weights:
                weights.append(used)  # (B, h, T, m)
        x = x if at is None else x[torch.arange(len(x), device=x.device), at][:, None]  # (B, T or 1, d_model)
        logits = self.unembedding(self.norm(x))  # (B, T or 1, vocabulary)
        return (logits, weights) if return_weights else logits

    def _mask(self, T: int, device: torch.device) -> Tensor:
        return causal(T, device=device) if self.window is None else sliding_window(T, self.window, device=device)

    def _for_each_layer(self, head_masks: Sequence[Sequence[float]] | Tensor | None) -> list[None] | Tensor:
        if head_masks is None:
            return [None] * len(self.blocks)
        factors = torch.as_tensor(head_masks)
        expected = (len(self.blocks), self.n_heads)
        if tuple(factors.shape) != expected:
            raise ValueError(f"head_masks is {tuple(factors.shape)}: expected (n_layers, h) = {expected}")
        return factors


class Block(nn.Module):
    """Attention, then a feed-forward network; each reads a normalised x and adds what it found to x ("pre-norm").

    With d_ff 0 there is attention only. own is a function that stands in the place of forward, where there is one: it
    takes the block, x and the options of the attention, and returns (x, weights).
    Source: Xiong et al. 2020, section 3.3, table 1 and figure 1b.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None,
        d_ff: int,
        rope_base: float,
        scale: float | None,
        gated: bool,
        eps: float,
    ) -> None:
        super().__init__()
        self.own: Callable[[Block, Tensor, dict[str, Any]], tuple[Tensor, Tensor]] | None = None
        norm = RMSNorm if gated else nn.LayerNorm
        self.attention_norm = norm(d_model, eps)
        self.attention = MultiHeadAttention(d_model, n_heads, n_kv_heads, scale=scale)
        self.attention.rope = Rotary(self.attention.d_head, rope_base)
        self.feed_forward = None
        if d_ff:
            self.feed_forward_norm = norm(d_model, eps)
            plain = (nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
            self.feed_forward = GatedFeedForward(d_model, d_ff) if gated else nn.Sequential(*plain)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        lengths: Sequence[int] | Tensor | None = None,
        head_mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        options: dict[str, Any] = {"mask": mask, "cache": cache, "lengths": lengths, "head_mask": head_mask}
        if self.own is not None:
            x, weights = self.own(self, x, options)
            return (x, weights) if return_weights else x
        attended, weights = self.attention(self.attention_norm(x), return_weights=True, **options)
        x = x + attended  # (B, T, d_model)
        if self.feed_forward is not None:
            x = x + self.feed_forward(self.feed_forward_norm(x))  # (B, T, d_model)
        return (x, weights) if return_weights else x


class RMSNorm(nn.Module):
    """Divide each token by the root of its mean square, then multiply each number by a learned weight.

    x is (…, d_model); eps is added to the mean square. Source: Zhang and Sennrich 2019, section 3, equation 4.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # squares in bfloat16 lose too much
        mean_square = wide.pow(2).mean(-1, keepdim=True)  # (…, 1)
        return (wide * (mean_square + self.eps).rsqrt()).to(x.dtype) * self.weight


class GatedFeedForward(nn.Module):
    """A feed-forward network in which one map says what to add and another, through SiLU, how much of it.

    x is (…, d_model), d_ff the width between. Source: Shazeer 2020, section 2, equation 6 (SwiGLU).
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


PARTS = ("split_heads", "merge_heads", "rotate", "grouped_attention", "mask", "block")


def put_parts(model: Decoder, parts: Mapping[str, Callable], layers: Sequence[int] | None = None) -> None:
    """Put somebody's own functions into these layers of the model, or into all, by their names in PARTS.

    `block` becomes `Block.own`, and the others enter `MultiHeadAttention.own`. Raises ValueError for a name or a layer
    that is not there.
    """
    numbers = range(len(model.blocks))
    chosen = numbers if layers is None else layers
    if unknown := sorted({*parts} - {*PARTS}):
        raise ValueError(f"the model has no part {unknown[0]}; its parts are {', '.join(PARTS)}")
    if strange := [layer for layer in chosen if layer not in numbers]:
        raise ValueError(f"the model has no layer {strange[0]}; its layers are 0 to {numbers[-1]}")
    of_attention = {name: part for name, part in parts.items() if name != "block"}
    for layer in chosen:
        block = cast(Block, model.blocks[layer])
        block.attention.own.update(of_attention)
        block.own = parts.get("block", block.own)


def save_weights(weights: Mapping[str, Tensor], path: Path) -> Path:
    """Write weights in half precision to an npz file, for `load_weights`, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: each.half().numpy() for name, each in weights.items()}
    np.savez_compressed(path, **arrays)
    return path


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights in a file of `save_weights`, in float32. Raises FileNotFoundError if it is not there."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]).float() for name in arrays.files}


def new_caches(model: Decoder, kind: Callable[..., Kept], batch: int, **sizes: Any) -> list[Kept]:
    """One empty cache for each layer: new_caches(model, ContiguousCache, batch=2, capacity=64), a list."""
    like: dict[str, Any] = {"dtype": model.embedding.weight.dtype, "device": model.embedding.weight.device}
    layers = [cast(MultiHeadAttention, block.attention) for block in model.blocks]
    return [kind(batch, layer.n_kv_heads, layer.d_head, **sizes, **like) for layer in layers]


@torch.no_grad()
def generate(
    model: Decoder,
    tokens: Tensor,
    n_new: int,
    caches: Sequence[Cache] | None = None,
    lengths: Sequence[int] | Tensor | None = None,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue each row of tokens (B, T) by n_new tokens: returns those, (B, n_new) int64.

    Temperature 0 takes the likeliest token; above 0 it is drawn from softmax(logits / temperature). Without caches
    every step computes the whole sequence again; with them, only the newest token. The caches may hold earlier tokens,
    which these then follow; afterwards they hold all but the last new one. Rows of different lengths are padded on the
    right, and lengths (B,) says how many tokens are real: at least 1. No autograd graph is made. Raises ValueError or
    TypeError for other tokens or lengths, an n_new or a temperature below 0, and as the model does.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature is {temperature}: 0 takes the likeliest token, above 0 draws one")
    _check_tokens(model, tokens)
    lengths = _real_lengths(tokens, lengths)  # (B,)
    rows = torch.arange(len(tokens), device=tokens.device)
    chosen = tokens.new_empty(len(tokens), 0, dtype=torch.int64)
    for _ in range(whole("n_new", n_new, least=0)):
        logits = model(tokens, caches, lengths, at=lengths - 1)  # (B, 1, vocabulary)
        newest = _choose(logits[:, 0], temperature, generator)  # (B,)
        chosen = torch.cat([chosen, newest[:, None]], dim=1)
        if caches is None:
            tokens = F.pad(tokens, (0, 1))  # (B, T + 1)
            tokens[rows, lengths] = newest.to(tokens.dtype)  # right after the row's last real token
            lengths = lengths + 1
        else:
            tokens, lengths = newest[:, None], torch.ones_like(lengths)  # (B, 1)
    return chosen


def _choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """One token for each row of logits (B, vocabulary): (B,)."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    return torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator)[:, 0]


def _real_lengths(tokens: Tensor, lengths: Sequence[int] | Tensor | None) -> Tensor:
    B, T = tokens.shape
    lengths = torch.as_tensor([T] * B if lengths is None else lengths, device=tokens.device)
    if lengths.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"lengths is {lengths.dtype}: it counts tokens, in integers")
    if lengths.shape != (B,) or not ((lengths >= 1) & (lengths <= T)).all():
        raise ValueError(f"lengths is {lengths.tolist()}: expected {B} numbers from 1 to {T}, one for each row")
    return lengths


def _check_tokens(model: Decoder, tokens: Tensor) -> None:
    if tokens.ndim != 2:
        raise ValueError(f"tokens is {tuple(tokens.shape)}: expected (B, T), one row for each sequence")
    if tokens.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"tokens is {tokens.dtype}: each is a number in the vocabulary, torch.int64 or int32")
    words = model.embedding.num_embeddings
    unknown = tokens[(tokens < 0) | (tokens >= words)]
    if len(unknown):
        raise ValueError(f"tokens holds {unknown[0]}, but the vocabulary has {words} words, numbered from 0")


def _check_caches(
    model: Decoder, caches: Sequence[Cache], T: int, lengths: Sequence[int] | Tensor | None, mask: Tensor | None
) -> None:
    """Raise unless each layer has a cache of its own, all of them alike, with as many tokens and room for T more.

    So an error leaves no layer ahead of another. (Do x and lengths fit a cache? That the first one asks, before it
    changes.)
    """
    if mask is not None:
        raise ValueError("mask together with caches: caches are for causal attention, so leave one of them out")
    if not isinstance(caches, (list, tuple)):
        raise TypeError(f"caches is a list, one a layer: new_caches(model, {type(caches).__name__}, batch, …)")
    if len(caches) != len(model.blocks):
        raise ValueError(f"{len(caches)} caches for {len(model.blocks)} layers: each layer needs one of its own")
    if len(set(map(id, caches))) < len(caches):
        raise ValueError("one cache is given for two layers: each layer needs one of its own, as new_caches makes them")
    for layer, cache in enumerate(caches):
        if cache.window != model.window:
            raise ValueError(f"a cache has window {cache.window} but the model {model.window}: make them the same")
        for name in ("batch", "n_kv_heads", "d_head", "dtype", "device", "lengths"):
            ours = getattr(cache, name)
            first = getattr(caches[0], name)
            if not (torch.equal(ours, first) if name == "lengths" else ours == first):
                raise ValueError(f"{name}: {ours} in the cache of layer {layer}, {first} in layer 0: make them alike")
        cache.check_room(T, lengths)
