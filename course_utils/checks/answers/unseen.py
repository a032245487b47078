"""The implementations that grading adds to those of the notebook: who tuned a test to these meets them here first."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..duels import day2, day3, day4, day6
from ..duels.attention import (
    PLAIN,
    in_blocks,
    made_of,
    swapped,
    weigh,
    with_inputs,
)
from ..duels.day5 import Everything, Ring
from ..duels.day7 import Pool
from ..duels.implementation import Implementation, only_if, right, wrong

LATER = "It is one of those that only grading tries."


def lost(name: str, function: Callable, anew: bool = False) -> Implementation:
    """A wrong implementation of which nothing is told."""
    return wrong(name, function, LATER, LATER, anew=anew)


def in_halves(q, k, v):
    """Two parts of the keys, joined by their sums."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    s = q @ swapped(k) / math.sqrt(k.shape[-1])
    s = s - s.max(-1, keepdims=True)
    half = (k.shape[-2] + 1) // 2
    parts = [np.exp(s[..., at]) for at in (slice(half), slice(half, None))]
    total = sum(e.sum(-1, keepdims=True) for e in parts)
    o = parts[0] @ v[..., :half, :] + parts[1] @ v[..., half:, :]
    return o / total, np.concatenate(parts, -1) / total


def one_key_forgotten(q, k, v):
    """The weight of the last key goes to the first."""
    w = PLAIN(q, k, v)[1].copy()
    w[..., 0] += w[..., -1]
    w[..., -1] = 0
    return w @ np.asarray(v, dtype=float), w


class CutList(Everything):
    def append(self, k, v):
        super().append(k, v)
        del self.k[: -self.window], self.v[: -self.window]


class TwiceTheRoom(Ring):
    def __init__(self, window):
        super().__init__(window)
        self.size = 2 * window


class OddWindows(Ring):
    def order(self):
        slots = super().order()
        return slots[1:] + slots[:1] if self.window % 2 and self.n > self.window else slots


class ForgetsByView(Ring):
    """The second view in a row lacks the oldest token."""

    asked = -1

    def view(self):
        k, v = super().view()
        again, self.asked = self.asked == self.n, self.n
        return (k[1:], v[1:]) if again else (k, v)


class NoNegativeKeys(Ring):
    def append(self, k, v):
        super().append(np.maximum(k, 0), v)


class ThirdRound(Ring):
    def order(self):
        slots = super().order()
        return slots[::-1] if self.n > 2 * self.window > 2 else slots


def keys_of_another():
    """The first key of a cache is the last that any cache has taken in."""
    last = []

    class KeysOfAnother(Ring):
        def append(self, k, v):
            given = last[-1] if last and not self.n else k
            last[:] = [k]
            super().append(given, v)

    return KeysOfAnother


class SetOfBlocks(Pool):
    def begin(self, blocks):
        self.idle = set(blocks)

    def give(self, block):
        self.idle.add(block)


class FreedLongestAgo(Pool):
    def take(self):
        return self.idle.pop(0) if self.idle else None


class BeyondTheFifth(Pool):
    """The sixth of the sequences that are there at once writes into the blocks of the first."""

    def append(self, seq):
        if seq not in self.lists and len(self.lists) >= 5:
            self.fork(next(iter(self.lists)), seq)
        return super().append(seq)


class ThirdFork(Pool):
    forks = 0

    def fork(self, seq, new):
        super().fork(seq, new)
        self.forks += 1
        if self.forks % 3 == 0:
            for block in self.lists[new]:
                self.held[block] -= 1


class FreedWhenFull(Pool):
    def free(self, seq):
        full = not self.idle
        last = self.lists[seq][-1]
        super().free(seq)
        if full and not self.held[last]:
            self.idle.remove(last)


class BlocksOfThree(Pool):
    def needs(self, table, slot):
        return slot == 0 or (self.size == 3 and slot == 2)


class AfterFifty(Pool):
    tokens = 0

    def moves(self, table, slot):
        self.tokens += 1
        return self.tokens <= 50 and super().moves(table, slot)


UNSEEN: dict[int, tuple[Implementation, ...]] = {
    1: (
        right("in two halves", in_halves),
        right("keys in blocks of three", in_blocks(3)),
        lost("one query alone", only_if(lambda q, k, v: np.shape(q)[-2] == 1, made_of(weigh=np.ones_like), PLAIN)),
        lost("more queries than keys", only_if(lambda q, k, v: np.shape(q)[-2] > np.shape(k)[-2], with_inputs(
            lambda q, k, v: (q[..., ::-1, :], k, v)), PLAIN)),
        lost("three keys", only_if(lambda q, k, v: np.shape(k)[-2] == 3, one_key_forgotten, PLAIN)),
        lost("odd widths", made_of(divisor=lambda q, k, v: math.sqrt(k.shape[-1] + k.shape[-1] % 2))),
        lost("values of width one", only_if(lambda q, k, v: np.shape(v)[-1] == 1, with_inputs(
            lambda q, k, v: (q, k, np.round(v))), PLAIN)),
        lost("queries of the first text", only_if(lambda q, k, v: np.ndim(q) > 2, with_inputs(
            lambda q, k, v: (np.broadcast_to(q[:1], q.shape), k, v)), PLAIN)),
        lost("scores clipped at 100", made_of(weigh=lambda s: weigh(np.clip(s, -100, 100)))),
    ),
    2: (
        right("by shares of pairs",
            day2.made_of(lambda x: 1 / np.exp(np.minimum(x[..., None, :] - x[..., :, None], 700.0)
            ).sum(-1) if np.isfinite(x).all() else day2.shares(x))),
        right("the gradient in float32", day2.made_of(backward=lambda p, dp: day2.back(np.float32(p), np.float32(dp)))),
        lost("three entries", day2.made_of(backward=only_if(lambda p, dp: p.shape[-1] == 3, lambda p, dp: p * dp,
            day2.back))),
        lost("the last row", day2.made_of(backward=only_if(lambda p, dp: p.ndim > 1, lambda p, dp: np.concatenate(
            [day2.back(p[:-1], dp[:-1]), p[-1:] * dp[-1:]]), day2.back))),
        lost("entries clipped at 500", day2.made_of(lambda x: day2.shares(np.clip(x, -500, 500)))),
        lost("three axes", day2.made_of(only_if(lambda x: x.ndim == 3, lambda x: day2.shares(x[:, ::-1]),
            day2.shares))),
        lost("a small dp", day2.made_of(backward=lambda p, dp: day2.back(p, np.clip(dp, -1, 1)))),
        lost("the peak's own gradient", day2.made_of(backward=lambda p, dp: day2.back(p, dp) + (
            p == p.max(-1, keepdims=True)) * dp * 0.05)),
    ),
    3: (
        right("keys in blocks of three", in_blocks(3)),
        right("a mask of 0 and −∞, added", lambda q, k, v, mask: made_of(score=lambda q, k: q @ swapped(k) + np.where(
            mask, 0.0, -np.inf))(q, k, v)),
        lost("the second key", day3.with_mask(day3.sees(1))),
        lost("two axes in front", only_if(lambda q, k, v, mask: np.ndim(q) == 4, lambda q, k, v, mask: PLAIN(q, k, v),
            PLAIN)),
        lost("an empty row in a batch", only_if(lambda q, k, v, mask: np.ndim(q) > 2, day3.with_mask(day3.no_row_empty),
            PLAIN)),
        lost("one query", only_if(lambda q, k, v, mask: np.shape(q)[-2] == 1, lambda q, k, v, mask: PLAIN(q, k, v),
            PLAIN)),
        lost("−300 for −∞", day3.filled_with(-300.0)),
        lost("a lone key", day3.with_mask(lambda mask: mask | (mask.sum(-1, keepdims=True) == 1))),
    ),
    4: (
        right("keys in blocks of three", day4.made_in(attend=in_blocks(3))),
        right("in halves", day4.made_in(attend=in_halves)),
        lost("six heads and more", only_if(lambda q, k, v, w_o, h, g: h >= 6, day4.made_in(repeat_k=day4.next_head),
            day4.RIGHT)),
        lost("three key heads", only_if(lambda q, k, v, w_o, h, g: g == 3, day4.made_in(repeat_k=day4.backwards),
            day4.RIGHT)),
        lost("more queries than keys", only_if(lambda q, k, v, w_o, h, g: np.shape(q)[1] > np.shape(k)[1],
            lambda q, k, v, w_o, h, g: day4.RIGHT(q[:, ::-1], k, v, w_o, h, g), day4.RIGHT)),
        lost("the last text", only_if(lambda q, k, v, w_o, h, g: len(q) > 1, lambda q, k, v, w_o, h, g: day4.RIGHT(
            q, k, np.concatenate([v[:-1], v[:1]]), w_o, h, g), day4.RIGHT)),
        lost("scores clipped at 100", day4.made_in(attend=made_of(weigh=lambda s: weigh(np.clip(s, -100, 100))))),
    ),
    5: (
        right("a list that is cut", CutList),
        right("room for twice as many", TwiceTheRoom),
        lost("odd windows", OddWindows),
        lost("a view makes it forget the oldest", ForgetsByView),
        lost("negative keys", NoNegativeKeys),
        lost("the third round", ThirdRound),
        lost("keys of another cache", keys_of_another, anew=True),
    ),
    6: (
        right("blocks of keys twice as large", lambda q, k, v, bq, bk, c: day6.TILES(q, k, v, bq, 2 * bk, c)),
        right("parts merged, all queries at once", lambda q, k, v, bq, bk, c: day6.merged(q, k, v, len(q), bk, c)),
        lost("three blocks of keys", only_if(lambda q, k, v, bq, bk, c: -(-len(k) // bk) == 3,
            day6.reversed_keys_of_last, day6.TILES)),
        lost("causal where n = m", only_if(lambda q, k, v, bq, bk, c: c and len(q) == len(k) > 1,
            lambda q, k, v, bq, bk, c: day6.TILES(q, k, v, bq, bk, False), day6.TILES)),
        lost("more queries than keys", only_if(lambda q, k, v, bq, bk, c: len(q) > len(k),
            lambda q, k, v, bq, bk, c: day6.TILES(q[::-1], k, v, bq, bk, c), day6.TILES)),
        lost("a maximum that begins at −100", day6.made_of(start=-100.0)),
        lost("blocks of one query", only_if(lambda q, k, v, bq, bk, c: bq == 1 and len(q) > 1,
            day6.reversed_keys_of_last, day6.TILES)),
    ),
    7: (
        right("a set of free blocks", SetOfBlocks),
        right("the one freed longest ago", FreedLongestAgo),
        lost("sequences beyond the fifth", BeyondTheFifth),
        lost("the third fork", ThirdFork),
        lost("freed in a pool that is full", FreedWhenFull),
        lost("blocks of three slots", BlocksOfThree),
        lost("after the fiftieth token", AfterFifty),
    ),
}  # fmt: skip
