"""The walk of the tile walker: block by block what is loaded, kept, stored, and the arithmetic of each query."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from course_utils.attention.tiled import Partial, absorb, finish, key_blocks, mask_tile, nothing, query_blocks
from course_utils.attention.traffic import naive_traffic
from course_utils.views.shared.number_text import bracket_negative, three_decimals

KEPT = "m, l"
OF_A_TILE = "new m, sum"  # while a tile is computed: with the two above, the four of traffic.footprint

PARTS = ("Q block", "K block", "V block", "scores", KEPT, OF_A_TILE, "o")


class Walk:
    """The tiled forward of one head, float64, that keeps a record of each step for the page."""

    def __init__(self, q, k, v, causal, block_q, block_k, itemsize):
        self.sizes = len(q), len(k), q.shape[-1], v.shape[-1]
        self.itemsize = itemsize
        self.read = 0
        self.written = 0
        self.done = 0
        self.o, self.lse = torch.zeros(len(q), v.shape[-1], dtype=q.dtype), torch.full((len(q),), -torch.inf).double()
        self.tiles = []
        self.skipped = []
        self.masked = []
        self.frames = []
        self._run(q * (1 / math.sqrt(q.shape[-1])), k, v, causal, block_q, block_k)

    def _run(self, q, k, v, causal, block_q, block_k):
        n, m, d_k, d_v = self.sizes
        blocks = list(query_blocks(n, m, block_q, causal))
        first = blocks[0].start
        unseeing = f" {_name_span('Query', 'Queries', slice(0, first))} may attend to no key: nothing is loaded there."
        self._add_frame(None, f"Q, K and V lie in slow memory. Nothing has moved.{unseeing if first else ''}")
        if first:
            self.skipped.append([0, first, 0, m])
        for place, queries in enumerate(blocks):
            size = queries.stop - queries.start
            partial = nothing((size,), d_v, q)
            cost = self._load(size * d_k)
            which = _name_span("query", "queries", queries)
            text = f"Load Q block {place} ({which}): {cost:,} bytes. m = −∞, l = 0, o = 0."
            rows = [_describe_row(queries.start + row, _row_of(partial, row)) for row in range(size)]
            self._add_frame(queries, text, rows, held={"Q block": (size, d_k), KEPT: (size, 2), "o": (size, d_v)})
            steps = list(key_blocks(queries, n, m, block_k, causal))
            for number, (keys, on_diagonal) in enumerate(steps):
                partial = self._tile(q, k, v, queries, keys, on_diagonal, partial, number)
            visible = steps[-1][0].stop
            if visible < m:
                self.skipped.append([queries.start, queries.stop, visible, m])
                ahead = _name_span("Key", "Keys", slice(visible, m))
                self.frames[-1]["message"] += f" {ahead}, above the diagonal: skipped, never loaded."
            self._store(queries, partial)
        tiled = self.read + self.written
        naive = sum(naive_traffic(*self.sizes, self.itemsize).values())
        self.frames[-1]["message"] += f" All done: {tiled:,} bytes moved; naive attention moves at least {naive:,}."

    def _tile(self, q, k, v, queries, keys, on_diagonal, partial, number):
        n, m, d_k, d_v = self.sizes
        size = queries.stop - queries.start
        count = keys.stop - keys.start
        s = q[queries] @ k[keys].T  # (size, count)
        cost = self._load(count * (d_k + d_v))
        text = f"Load K and V block {number} ({_name_span('key', 'keys', keys)}): {cost:,} bytes. "
        text += f"Scores {size}×{count}. "
        if on_diagonal:
            mask_tile(s, queries, keys, n, m)
            hidden = int(s.isneginf().sum())
            text += f"The diagonal runs through: {hidden} of them {'is' if hidden == 1 else 'are'} masked. "
            sees = [(row, row + m - n + 1) for row in range(queries.start, queries.stop)]
            self.masked += [[row, max(keys.start, ahead), keys.stop] for row, ahead in sees if ahead < keys.stop]
        after = absorb(partial, s, v[keys])
        factor = torch.exp(partial.m - after.m)  # finite m: every query here sees key 0
        grown = int((factor < 1).sum())
        if number == 0:
            text += "There was nothing to keep: the factor e^(−∞ − m) is 0."
        elif grown:
            text += f"A new maximum for {grown} of {size} queries: their l and o shrink first."
        else:
            text += "No new maximum: every factor is 1."
        rows = [
            _describe_row(queries.start + row, _row_of(after, row), _row_of(partial, row), factor[row].item(), s[row])
            for row in range(size)
        ]
        held = {"Q block": (size, d_k), "K block": (count, d_k), "V block": (count, d_v)}
        held |= {"scores": (size, count), KEPT: (size, 2), OF_A_TILE: (size, 2), "o": (size, d_v)}
        self.tiles.append([queries.start, queries.stop, keys.start, keys.stop])
        self._add_frame(queries, text, rows, held, keys, len(self.tiles) - 1)
        self.done += 1
        return after

    def _store(self, queries, partial):
        size = queries.stop - queries.start
        d_v = self.sizes[3]
        o, lse = finish(partial)
        self.o[queries] = o
        self.lse[queries] = lse
        cost = size * (d_v + 1) * self.itemsize
        self.written += cost
        text = f"Divide o by l. Store {_count_of(size, 'output', 'outputs')} and m + log l of each: {cost:,} bytes. "
        text += "The scores were never stored."
        rows = [
            _describe_stored_row(queries.start + row, _row_of(partial, row), o[row], lse[row]) for row in range(size)
        ]
        held = {"Q block": (size, self.sizes[2]), KEPT: (size, 2), "o": (size, d_v)}
        self._add_frame(queries, text, rows, held, stored=queries.stop)

    def _load(self, count):
        """Bytes of `count` numbers loaded; they are counted."""
        self.read += count * self.itemsize
        return count * self.itemsize

    def _add_frame(self, queries, text, rows=(), held=None, keys=None, tile=None, stored=None):
        before = self.frames[-1]["stored"] if self.frames else 0
        frame = {"message": text, "rows": list(rows), "tile": tile, "done": self.done, "stored": stored or before}
        frame["queries"] = [queries.start, queries.stop] if queries else None
        frame["keys"] = [keys.start, keys.stop] if keys else None
        held = held or {}
        parts = [held.get(part, (0, 0)) for part in PARTS]
        frame["held"] = [f"{rows}×{columns}" if rows else "–" for rows, columns in parts]
        frame["held_bytes"] = sum(rows * columns for rows, columns in parts) * self.itemsize
        self.frames.append(frame | {"read": self.read, "written": self.written})

    def for_the_page(self) -> dict[str, Any]:
        last = [frame["queries"] for frame in self.frames if frame["queries"]]
        blocks = [list(block) for block, _ in itertools.groupby(last)]
        return {
            "tiles": self.tiles,
            "skipped": self.skipped,
            "masked": self.masked,
            "blocks": blocks,
            "frames": self.frames,
        }


def _row_of(partial, row):
    return Partial(*(part[row] for part in partial))


def _describe_row(query, after, before=None, factor=None, scores=None):
    """One query of the block at one step: texts of m, l and the factor, numbers of o, and the arithmetic in words."""
    m, l = three_decimals(after.m), three_decimals(after.l)
    texts = {"query": str(query), "m": [m, m], "l": [l, l], "factor": "", "o": _numbers(after.o)}
    if before is None:
        return texts | {"kept": texts["o"], "why": ["m = −∞, l = 0, o = 0: no key has been seen yet.", "", ""]}
    best = scores.max().item()
    added = (scores - after.m).exp().sum().item()
    m_old = three_decimals(before.m)
    l_old = three_decimals(before.l)
    factor_text = three_decimals(factor)
    why = [
        f"new m = max({m_old}, {three_decimals(best)}) = {m}",
        f"factor = e^({m_old} − {bracket_negative(m)}) = {factor_text}",
        f"new l = {factor_text} · {l_old} + {three_decimals(added)} = {l}",
    ]
    rescaled = _numbers(before.o * factor)
    return texts | {"m": [m_old, m], "l": [l_old, l], "factor": factor_text, "kept": rescaled, "why": why}


def _describe_stored_row(query, partial, o, lse):
    """One query at the step that stores it."""
    m, l = three_decimals(partial.m), three_decimals(partial.l)
    why = [
        f"output = o / l, each number divided by {l}",
        f"m + log l = {m} + log {l} = {three_decimals(lse)}",
        "stored: the output and m + log l; m and l themselves are not needed any more",
    ]
    texts = {"query": str(query), "m": [m, m], "l": [l, l], "factor": "÷ l"}
    return texts | {"o": _numbers(o), "kept": _numbers(partial.o), "why": why}


def _numbers(row):
    return [round(value, 4) + 0.0 for value in row.tolist()]


def _name_span(one, many, part):
    return f"{one} {part.start}" if part.stop - part.start == 1 else f"{many} {part.start} to {part.stop - 1}"


def _count_of(count, one, many):
    return f"{count} {one if count == 1 else many}"
