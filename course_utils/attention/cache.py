"""What a decoder remembers: the keys and values of one layer, kept in four ways behind one interface.

A cache answers one question: where does the token at position p of a row live?

    ContiguousCache      in slot p of the row
    SlidingWindowCache   in slot p % window of the row, over the token that was there
    PagedCache           in slot p % block_size of the block that the row's table names for p // block_size
    QuantisedCache       in slot p of the row, rounded to eight bits

What they share is in `cache_base`, the blocks and their tables are in `blocks` and `cache_paged`. Import all of it from
here.
"""

import torch
from torch import Tensor

from course_utils.attention.blocks import BlockPool, CacheFull
from course_utils.attention.cache_base import Cache, new_positions, positions_up_to, real_tokens, zeros
from course_utils.attention.cache_paged import PagedCache
from course_utils.attention.shapes import whole

__all__ = [
    "BlockPool",
    "Cache",
    "CacheFull",
    "ContiguousCache",
    "PagedCache",
    "QuantisedCache",
    "SlidingWindowCache",
    "dequantise",
    "quantise",
]


class ContiguousCache(Cache):
    """Every row has `capacity` slots side by side, reserved from the start; the token at position p is in slot p.

    The keys and values that `update` returns are views of the storage, cut to the longest row: nothing is copied. Later
    updates write only to slots that the earlier key_positions call empty, but `free`, `fork` and `reset` change the
    rest too. (autograd notices: going backward through a step after the next update raises its in-place error.)
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        capacity: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(batch, n_kv_heads, d_head, dtype, device)
        self.capacity = whole("capacity", capacity)
        self._reserve()

    @property
    def slots_used(self) -> int:
        return int(self._lengths.sum())

    def _reserve(self) -> None:
        self._keys, self._values = zeros(self, self.batch, self.capacity)  # (B, h_kv, capacity, d_head)

    def _check_room(self, added: Tensor) -> None:
        for row, (old, new) in enumerate(zip(self._lengths.tolist(), added.tolist(), strict=True)):
            if old + new > self.capacity:
                raise CacheFull(
                    f"row {row} holds {old} tokens and {new} more make {old + new}, but the capacity is "
                    f"{self.capacity}: free the row, or make a longer cache"
                )

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        held = self._lengths.tolist()
        t = k.shape[2]
        if len({*held}) == 1 and {*added.tolist()} == {t}:  # an even batch: one slice for all rows
            start = held[0]
            self._write((slice(None), slice(None), slice(start, start + t)), k, v)
            return *self._read(start + t), torch.arange(start + t, device=self.device).expand(self.batch, -1)
        rows, columns, positions = real_tokens(self, added)  # (N,) each, N real tokens in all
        self._write((rows, slice(None), positions), k[rows, :, columns], v[rows, :, columns])  # (N, h_kv, d_head)
        lengths = self._lengths + added
        return *self._read(int(lengths.max())), positions_up_to(lengths, self.device)

    def _write(self, place: tuple, k: Tensor, v: Tensor) -> None:
        self._keys[place] = k
        self._values[place] = v

    def _read(self, m: int) -> tuple[Tensor, Tensor]:
        return self._keys[:, :, :m], self._values[:, :, :m]  # (B, h_kv, m, d_head)


class QuantisedCache(ContiguousCache):
    """A contiguous cache in int8: each token and head has one scale, its largest |x| / 127, and 8-bit integers.

    A number comes back within scale / 2 of what it was, plus its rounding to the cache's dtype. It is rounded to eight
    bits when it is written, so the new tokens too are returned as they were stored, and how a sequence is cut into
    chunks changes nothing. A NaN or an infinity makes its token's head NaN. Scales are float32, or float64 in a float64
    cache: a slot takes d_head + 4 (or 8) bytes for its key and as many for its value, per head. What `update` returns
    is a dequantised copy; kernels made for such caches dequantise while they read.
    Source: Dettmers et al. 2022 (LLM.int8()), sections 2.1 (absmax) and 3.1 (a scale for each vector).
    """

    def _reserve(self) -> None:
        sizes = (self.batch, self.n_kv_heads, self.capacity)
        scales = torch.promote_types(self.dtype, torch.float32)
        self._keys, self._values = (
            torch.zeros(*sizes, self.d_head, dtype=torch.int8, device=self.device) for _ in range(2)
        )
        self._key_scales, self._value_scales = (torch.zeros(*sizes, dtype=scales, device=self.device) for _ in range(2))

    def _storage(self) -> tuple[Tensor, ...]:
        return (self._keys, self._values, self._key_scales, self._value_scales)

    def _write(self, place: tuple, k: Tensor, v: Tensor) -> None:
        self._keys[place], self._key_scales[place] = quantise(k)
        self._values[place], self._value_scales[place] = quantise(v)

    def _read(self, m: int) -> tuple[Tensor, Tensor]:
        keys = dequantise(self._keys[:, :, :m], self._key_scales[:, :, :m], self.dtype)
        values = dequantise(self._values[:, :, :m], self._value_scales[:, :, :m], self.dtype)
        return keys, values  # (B, h_kv, m, d_head)


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round x (…, d_head) to int8 with one scale for each vector: returns integers (…, d_head) and scales (…).

    The scale is the vector's largest |x| / 127, in float32 (float64 for float64). Zeros get the scale 0.
    """
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    scales = x.abs().amax(dim=-1) / 127
    steps = x / scales.masked_fill(scales == 0, 1)[..., None]
    return steps.round().clamp(-127, 127).to(torch.int8), scales


def dequantise(integers: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the numbers that int8 integers (…, d_head) and their scales (…) stand for, in `dtype`."""
    return (integers * scales[..., None]).to(dtype)


class SlidingWindowCache(Cache):
    """Every row is a ring of `window` slots; the token at position p goes to slot p % window, over an older one.

    The first of t new queries looks back at window - 1 older keys, and the last of them overwrites what the first still
    needs when t is large. So `update` returns the older keys and the new ones side by side, a copy of up to
    window + t - 1, and only then writes. Chunks of any size are exact, also longer than the window. The bytes do not
    grow. Source: Jiang et al. 2023 (Mistral 7B), section 2, rolling buffer cache.
    """

    window: int

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        window: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(batch, n_kv_heads, d_head, dtype, device)
        self.window = whole("window", window)
        self._keys, self._values = zeros(self, self.batch, self.window)  # (B, h_kv, window, d_head)

    @property
    def slots_used(self) -> int:
        return int(self._lengths.clamp(max=self.window).sum())

    def _columns(self, added: Tensor) -> int:
        return self._n_older() + int(added.max())

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        older = self._older_positions()  # (B, up to window - 1)
        newer = new_positions(self._lengths, added).to(self.device)  # (B, t)
        key_positions = torch.cat([older, newer], dim=1).clamp(min=-1)  # (B, m)
        t, empty = newer.shape[1], (key_positions < 0)[:, None, :, None]  # empty is (B, 1, m, 1)
        keys = torch.cat([self._look_up(self._keys, older), k[:, :, :t]], dim=2).masked_fill_(empty, 0)
        values = torch.cat([self._look_up(self._values, older), v[:, :, :t]], dim=2).masked_fill_(empty, 0)
        self._write(k, v, added)
        return keys, values, key_positions  # (B, h_kv, m, d_head) twice, (B, m)

    def _older_positions(self) -> Tensor:
        """The last positions of each row, as far back as a new query looks; negative before the row's beginning."""
        n_older = self._n_older()
        return self.lengths[:, None] - n_older + torch.arange(n_older, device=self.device)  # (B, kept)

    def _n_older(self) -> int:
        return min(int(self._lengths.max()), self.window - 1)

    def _look_up(self, store: Tensor, positions: Tensor) -> Tensor:
        slots = (positions % self.window)[:, None, :, None]  # (B, 1, kept, 1)
        return torch.take_along_dim(store, slots, dim=2)  # (B, h_kv, kept, d_head)

    def _write(self, k: Tensor, v: Tensor, added: Tensor) -> None:
        rows, columns, positions = real_tokens(self, added)
        stays = columns >= (added.to(self.device) - self.window)[rows]  # of a long chunk, only the end stays
        rows = rows[stays]
        columns = columns[stays]
        slots = positions[stays] % self.window
        self._keys[rows, :, slots] = k[rows, :, columns]  # (N, h_kv, d_head)
        self._values[rows, :, slots] = v[rows, :, columns]
