"""What the four caches share: their interface, their checks, and which token goes where."""

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.attention.shapes import whole
from course_utils.attention.tensors import check_dtype


class Cache:
    """What the four caches share: B sequences ("rows"), each with its own length, in one layer.

    Keys and values come in as (B, h_kv, t, d_head), in the dtype and on the device of the cache. They are stored
    detached: no gradient reaches the tokens of an update, neither through this call nor through later ones. An error
    leaves the whole batch as it was. NaN and infinities are stored like other numbers.

    Chunks of tokens are padded on the right, because positions start at 0 in every row: the first real token of a row
    is then its first column, whatever its neighbours hold. Padding itself is dropped and takes neither slot nor
    position.
    """

    window: int | None = None  # a query sees its last `window` keys, itself included; None: all of them

    _keys: Tensor  # (rows or blocks, h_kv, slots, d_head)
    _values: Tensor

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        d_head: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.batch = whole("batch", batch)
        self.n_kv_heads = whole("n_kv_heads", n_kv_heads)
        self.d_head = whole("d_head", d_head)
        self.dtype = torch.get_default_dtype() if dtype is None else check_dtype(dtype)
        self.device = torch.empty((), device=device).device  # with its number: cuda is cuda:0
        self._lengths = torch.zeros(batch, dtype=torch.int64)  # kept on the CPU: they decide shapes

    @property
    def lengths(self) -> Tensor:
        """(B,) int64: how many tokens each row has been given. The window drops tokens, but not from this count."""
        return self._lengths.to(self.device, copy=True)

    def positions(self, t: int) -> Tensor:
        """(B, t) int64: the positions that the next t tokens of each row get. They start at 0."""
        return self._lengths.to(self.device)[:, None] + torch.arange(t, device=self.device)

    def columns(self, t: int, lengths: Sequence[int] | Tensor | None = None) -> int:
        """Return how many keys per row, m, an update of t tokens will return: the columns that its mask needs.

        lengths is that of `update`, and refused alike. Nothing changes, and nobody asks yet whether there is room.
        """
        return self._columns(self._check_lengths(lengths, whole("t", t, least=0)))

    def check_room(self, t: int, lengths: Sequence[int] | Tensor | None = None) -> None:
        """Raise CacheFull, as an update of t tokens would, unless there is room. Nothing changes.

        With one cache a layer, ask all of them before the first update: then no layer gets ahead of another.
        """
        self._check_room(self._check_lengths(lengths, whole("t", t, least=0)))

    def update(
        self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Append keys and values; return (keys, values, key_positions), all that the new queries may need.

        k and v are (B, h_kv, t, d_head). lengths (B,) says how many of the t tokens are real in each row, the rest
        being padding on the right; 0 lets a row sit out; left out, all are real. Returns keys and values
        (B, h_kv, m, d_head), and key_positions (B, m) int64: the position of each key, or -1 for a slot that holds
        nothing, whose key and value are 0. Use what is returned before the cache changes again, or copy it.
        Raises ValueError or TypeError for tensors or lengths that do not fit, CacheFull where there is no room.
        """
        added = self._check_update(k, v, lengths)
        self._check_room(added)
        self._make_room(added)
        held = self._append(k.detach(), v.detach(), added)
        self._lengths += added
        return held

    def fork(self, source: int, target: int) -> None:
        """Row `target` becomes a copy of row `source`, and from then on a sequence of its own."""
        source = self._check_row(source)
        target = self._check_row(target)
        if source != target:
            self._copy_row(source, target)
            self._lengths[target] = self._lengths[source]

    def free(self, row: int) -> None:
        """Forget what the row holds: its next token is at position 0 again."""
        row = self._check_row(row)
        self._clear_row(row)
        self._lengths[row] = 0

    def reset(self) -> None:
        """Forget every row."""
        for row in range(self.batch):
            self.free(row)

    @property
    def n_bytes(self) -> int:
        """Bytes that the storage takes, whether tokens fill it or not."""
        return sum(store.nbytes for store in self._storage())

    @property
    def n_bytes_used(self) -> int:
        """Bytes of the storage that hold tokens."""
        return self.n_bytes // self.n_slots * self.slots_used

    @property
    def n_slots(self) -> int:
        """Tokens that the storage has room for, over all rows."""
        first = self._storage()[0]  # (rows or blocks, h_kv, slots, d_head)
        return first.shape[0] * first.shape[2]

    @property
    def slots_used(self) -> int:
        """Slots that hold a token."""
        raise NotImplementedError

    @property
    def slots_wasted(self) -> int:
        """Slots that rows keep to themselves and that hold no token; here all slots are reserved from the start."""
        return self.n_slots - self.slots_used

    # What each cache has to say: where its bytes are, whether there is room, and how to append.

    def _storage(self) -> tuple[Tensor, ...]:
        """The tensors that hold tokens."""
        return (self._keys, self._values)

    def _check_room(self, added: Tensor) -> None:
        """Raise CacheFull unless each row b has room for added[b] more tokens."""

    def _make_room(self, added: Tensor) -> None:
        """Prepare the storage for added[b] more tokens in each row b."""

    def _columns(self, added: Tensor) -> int:
        return int((self._lengths + added).max())  # as far as the longest row reaches

    def _append(self, k: Tensor, v: Tensor, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Store the tokens, which were checked and have room; return what `update` returns."""
        raise NotImplementedError

    def _copy_row(self, source: int, target: int) -> None:
        for store in self._storage():
            store[target] = store[source]

    def _clear_row(self, row: int) -> None:
        for store in self._storage():
            store[row] = 0  # zeros, so that a view over longer rows shows nothing stale here

    # Checks.

    def _check_update(self, k: Tensor, v: Tensor, lengths: Sequence[int] | Tensor | None) -> Tensor:
        """The number of real tokens in each row, (B,) int64 on the CPU; raise unless k, v and lengths fit."""
        for name, x in (("k", k), ("v", v)):
            if x.ndim != 4 or (x.shape[0], x.shape[1], x.shape[3]) != (self.batch, self.n_kv_heads, self.d_head):
                expected = f"({self.batch}, {self.n_kv_heads}, t, {self.d_head})"
                raise ValueError(f"{name} is {tuple(x.shape)}: this cache takes (B, h_kv, t, d_head) = {expected}")
            if x.dtype != self.dtype:
                raise TypeError(f"{name} is {x.dtype} but the cache is {self.dtype}: convert it, or make the cache so")
            if x.device != self.device:
                raise ValueError(f"{name} is on {x.device} but the cache is on {self.device}: move one of them")
        if k.shape != v.shape:
            raise ValueError(f"v is {tuple(v.shape)} but k is {tuple(k.shape)}: one value for each key")
        return self._check_lengths(lengths, k.shape[2])

    def _check_lengths(self, lengths: Sequence[int] | Tensor | None, t: int) -> Tensor:
        if lengths is None:
            return torch.full((self.batch,), t)
        lengths = self._one_a_row(lengths)
        for row, length in enumerate(lengths.tolist()):
            if not 0 <= length <= t:
                raise ValueError(f"lengths[{row}] is {length} but there are {t} tokens: it must be from 0 to {t}")
        return lengths

    def _one_a_row(self, lengths: Sequence[int] | Tensor) -> Tensor:
        lengths = torch.as_tensor(lengths, device="cpu")
        if lengths.shape != (self.batch,):
            raise ValueError(f"lengths is {tuple(lengths.shape)} but the cache has {self.batch} rows: one for each")
        if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype == torch.bool:
            raise TypeError(f"lengths is {lengths.dtype}: it counts tokens, in integers")
        return lengths.to(torch.int64)

    def _check_row(self, row: Any) -> int:
        try:
            number = operator.index(row)
        except TypeError:
            raise TypeError(f"row is {row!r}: rows are numbered by integers, 0 to {self.batch - 1}") from None
        if not 0 <= number < self.batch:
            raise ValueError(f"row is {number} but the cache has rows 0 to {self.batch - 1}")
        return number


def zeros(cache: Cache, n: int, slots: int) -> tuple[Tensor, Tensor]:
    """Room for keys and for values, (n, h_kv, slots, d_head) each."""
    sizes = (n, cache.n_kv_heads, slots, cache.d_head)
    keys, values = (torch.zeros(sizes, dtype=cache.dtype, device=cache.device) for _ in range(2))
    return keys, values


def positions_up_to(lengths: Tensor, device: torch.device | str | None) -> Tensor:
    """(B, m): 0, 1, 2, … in each row up to its length, then -1; m is the longest length."""
    return new_positions(torch.zeros_like(lengths), lengths).to(device)


def new_positions(lengths: Tensor, added: Tensor) -> Tensor:
    """(B, t): the positions of the tokens that a row of `lengths` gets, then -1; t is the most that a row gets."""
    columns = torch.arange(int(added.max()))  # (t,)
    return torch.where(columns < added[:, None], lengths[:, None] + columns, -1)


def real_tokens(cache: Cache, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the row, the column in the chunk and the position in the row of each real token, (N,) each."""
    positions = new_positions(cache._lengths, added).to(cache.device)  # (B, t)
    rows, columns = torch.nonzero(positions >= 0, as_tuple=True)
    return rows, columns, positions[rows, columns]
