"""A small causal decoder, and generation from it: recomputed at every step, or with a cache in each layer."""

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.attention.masks import causal, sliding_window
from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.rotary import Rotary


class Decoder(nn.Module):
    """Embed the tokens, pass them through n_layers blocks, and score each word of the vocabulary as the next token.

    n_kv_heads is n_heads when left out, d_ff is 4 · d_model. Positions enter by RoPE only. With a window, each layer
    sees the last `window` tokens, the token itself included.
    """

    def __init__(
        self, vocabulary, d_model, n_layers, n_heads, n_kv_heads=None, d_ff=None, rope_base=10000.0, window=None
    ):
        super().__init__()
        self.window = window
        self.embedding = nn.Embedding(vocabulary, d_model)
        sizes = (d_model, n_heads, n_kv_heads, d_ff or 4 * d_model, rope_base)
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.unembedding = nn.Linear(d_model, vocabulary, bias=False)

    def forward(self, tokens, caches=None, lengths=None):
        """Logits (B, T, vocabulary) for the token after each of tokens (B, T), which holds integers.

        With caches, one a layer, the tokens follow those that the caches hold, and the caches take them in. Of rows
        with padding on the right, lengths (B,) says how many tokens are real; logits at the padding mean nothing.
        (Without caches it changes nothing: no earlier token sees the padding.) Raises ValueError for caches that do
        not fit the model, and what the caches raise.
        """
        if tokens.ndim != 2:
            raise ValueError(f"tokens is {tuple(tokens.shape)}: expected (B, T), one row for each sequence")
        mask = self._mask(tokens.shape[1], tokens.device) if caches is None else None  # a cache knows who is earlier
        x = self.embedding(tokens)  # (B, T, d_model)
        for block, cache in zip(self.blocks, self._one_a_block(caches), strict=True):
            x = block(x, mask, cache, None if cache is None else lengths)
        return self.unembedding(self.norm(x))  # (B, T, vocabulary)

    def _mask(self, T, device):
        return causal(T, device=device) if self.window is None else sliding_window(T, self.window, device=device)

    def _one_a_block(self, caches):
        if caches is None:
            return [None] * len(self.blocks)
        if len(caches) != len(self.blocks):
            raise ValueError(f"{len(caches)} caches for {len(self.blocks)} layers: each layer needs one of its own")
        for cache in caches:
            if cache.window != self.window:
                raise ValueError(f"a cache has window {cache.window} but the model {self.window}: make them the same")
        return caches


class Block(nn.Module):
    """Attention, then a feed-forward network; each reads a normalised x and adds what it found to x ("pre-norm").

    Source: Xiong et al. 2020, section 3.3, table 1 and figure 1b.
    """

    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, rope_base):
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, n_heads, n_kv_heads, rope=Rotary(d_model // n_heads, rope_base))
        self.feed_forward = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, mask=None, cache=None, lengths=None):
        x = x + self.attention(self.attention_norm(x), mask=mask, cache=cache, lengths=lengths)  # (B, T, d_model)
        return x + self.feed_forward(self.feed_forward_norm(x))  # (B, T, d_model)


def new_caches(model, kind, batch, **sizes):
    """One empty cache for each layer: new_caches(model, ContiguousCache, batch=2, capacity=64), a list."""
    like = {"dtype": model.embedding.weight.dtype, "device": model.embedding.weight.device}
    layers = [block.attention for block in model.blocks]
    return [kind(batch, layer.n_kv_heads, layer.d_head, **sizes, **like) for layer in layers]


@torch.no_grad()
def generate(model, tokens, n_new, caches=None, lengths=None, temperature=0.0, generator=None):
    """Continue each row of tokens (B, T) by n_new tokens: returns those, (B, n_new) int64.

    Temperature 0 takes the likeliest token; above 0 it is drawn from softmax(logits / temperature). Without caches
    every step computes the whole sequence again; with them, only the newest token. The caches may hold earlier tokens,
    which these then follow; afterwards they hold all but the last new one. Rows of different lengths are padded on the
    right, and lengths (B,) says how many tokens are real: at least 1. No autograd graph is made. Raises ValueError for
    other lengths or a temperature below 0.
    """
    if temperature < 0:
        raise ValueError(f"temperature is {temperature}: 0 takes the likeliest token, above 0 draws one")
    lengths = _real_lengths(tokens, lengths)  # (B,)
    rows = torch.arange(len(tokens), device=tokens.device)
    chosen = tokens.new_empty(len(tokens), 0, dtype=torch.int64)
    for _ in range(n_new):
        logits = model(tokens, caches, lengths)  # (B, T, vocabulary)
        newest = _choose(logits[rows, lengths - 1], temperature, generator)  # (B,)
        chosen = torch.cat([chosen, newest[:, None]], dim=1)
        if caches is None:
            tokens = F.pad(tokens, (0, 1))  # (B, T + 1)
            tokens[rows, lengths] = newest.to(tokens.dtype)  # right after the row's last real token
            lengths = lengths + 1
        else:
            tokens, lengths = newest[:, None], torch.ones_like(lengths)  # (B, 1)
    return chosen


def _choose(logits, temperature, generator):
    """One token for each row of logits (B, vocabulary): (B,)."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    return torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator)[:, 0]


def _real_lengths(tokens, lengths):
    B, T = tokens.shape
    lengths = torch.as_tensor([T] * B if lengths is None else lengths, device=tokens.device)
    if lengths.shape != (B,) or not ((lengths >= 1) & (lengths <= T)).all():
        raise ValueError(f"lengths is {lengths.tolist()}: expected {B} numbers from 1 to {T}, one for each row")
    return lengths
