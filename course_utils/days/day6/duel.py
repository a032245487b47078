"""Day 6: implementations of attention in tiles, f(q, k, v, block_q, block_k, causal) -> (o, lse), of one head."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_utils.checks.judge.implementation import only_if, right, wrong


def in_blocks(n: int, block: int) -> list[tuple[int, int]]:
    return [(i, min(i + block, n)) for i in range(0, n, block)]


def made_of(
    start: float = -np.inf,
    rescale: Callable = lambda old, new: np.exp(old - new),
    rescale_sum: Callable | None = None,
    peak: Callable = lambda old, tile: np.maximum(old, tile),
    divisor: Callable = lambda q, k, v: math.sqrt(q.shape[-1]),
    last_seen: Callable = lambda rows, n, m: rows + m - n,
    stop: Callable = lambda last, m, block: m if last is None else min(m, last + 1),
    blocks_q: Callable = in_blocks,
    blocks_k: Callable = in_blocks,
    blocked: float = -np.inf,
    kind: type = float,
    lse: Callable = lambda m, total, s: m + np.log(total),
    finish: Callable = lambda acc, total: acc / total[:, None],
    backwards: bool = False,
) -> Callable:
    """The loop over tiles with a running maximum, sum and accumulator, with these steps."""

    def f(q, k, v, block_q, block_k, causal):
        q, k, v = (np.asarray(x, dtype=kind) for x in (q, k, v))
        n, m = len(q), len(k)
        o = np.zeros((n, v.shape[-1]), dtype=kind)
        row_lse = np.zeros(n, dtype=kind)
        for i, i_end in blocks_q(n, block_q):
            rows = last_seen(np.arange(i, i_end), n, m)
            top, total = np.full(i_end - i, start, dtype=kind), np.zeros(i_end - i, dtype=kind)
            acc = np.zeros((i_end - i, v.shape[-1]), dtype=kind)
            end = stop(int(rows.max()) if causal else None, m, block_k)
            tiles = [(j, min(j_end, end)) for j, j_end in blocks_k(m, block_k) if j < end]
            for j, j_end in reversed(tiles) if backwards else tiles:
                s = q[i:i_end] @ k[j:j_end].T / kind(divisor(q, k, v))
                if causal:
                    s = np.where(np.arange(j, j_end) > rows[:, None], kind(blocked), s)
                new = peak(top, s.max(axis=1))
                safe = np.where(np.isinf(new), 0.0, new).astype(kind)
                p = np.exp(s - safe[:, None])
                before = np.where(np.isinf(top), safe if start == -np.inf else top, top)
                factor = np.where(np.isinf(top), 0.0, rescale(before, safe))
                factor_sum = factor if rescale_sum is None else np.where(np.isinf(top), 0.0, rescale_sum(before, safe))
                total = total * factor_sum + p.sum(axis=1)
                acc = acc * factor[:, None] + p @ v[j:j_end]
                top = new
            o[i:i_end] = finish(acc, total)
            row_lse[i:i_end] = lse(top, total, divisor(q, k, v))
        return o, row_lse

    return f


TILES = made_of()


def plain(q, k, v, block_q, block_k, causal):
    """All scores at once."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    s = q @ k.T / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(*s.shape, k=len(k) - len(q), dtype=bool), s, -np.inf)
    top = s.max(axis=1)
    e = np.exp(s - top[:, None])
    return e @ v / e.sum(axis=1)[:, None], top + np.log(e.sum(axis=1))


def keys_outside(q, k, v, block_q, block_k, causal):
    """The loop over keys outside, that over queries inside: all rows are carried along."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    n, m = len(q), len(k)
    top, total, acc = np.full(n, -np.inf), np.zeros(n), np.zeros((n, v.shape[-1]))
    for j in range(0, m, block_k):
        for i in range(0, n, block_q):
            at = slice(i, min(i + block_q, n))
            s = q[at] @ k[j : j + block_k].T / math.sqrt(q.shape[-1])
            if causal:
                s = np.where(np.arange(j, j + s.shape[1]) > np.arange(n)[at, None] + m - n, -np.inf, s)
            new = np.maximum(top[at], s.max(axis=1))
            safe = np.where(np.isinf(new), 0.0, new)
            p = np.exp(s - safe[:, None])
            factor = np.exp(np.where(np.isinf(top[at]), -np.inf, top[at] - safe))
            total[at] = total[at] * factor + p.sum(1)
            acc[at] = acc[at] * factor[:, None] + p @ v[j : j + block_k]
            top[at] = new
    return acc / total[:, None], top + np.log(total)


def merged(q, k, v, block_q, block_k, causal):
    """Each block of keys by itself, then joined by their log-sum-exps."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    n, m = len(q), len(k)
    outs = []
    sums = []
    for j in range(0, m, block_k):
        s = q @ k[j : j + block_k].T / math.sqrt(q.shape[-1])
        if causal:
            s = np.where(np.arange(j, j + s.shape[1]) > np.arange(n)[:, None] + m - n, -np.inf, s)
        top = s.max(axis=1)
        safe = np.where(np.isinf(top), 0.0, top)
        e = np.exp(s - safe[:, None])
        total = e.sum(axis=1)
        outs.append(e @ v[j : j + block_k] / np.where(total == 0, 1, total)[:, None])
        sums.append(np.where(total == 0, -np.inf, safe + np.log(np.where(total == 0, 1, total))))
    whole = np.array(sums)
    top = whole.max(axis=0)
    share = np.exp(whole - top)
    return (share[:, :, None] * np.array(outs)).sum(0) / share.sum(0)[:, None], top + np.log(share.sum(0))


def query_by_query(q, k, v, block_q, block_k, causal):
    rows = range(len(q))
    keep = [len(k) - len(q) + i + 1 if causal else len(k) for i in rows]
    parts = [plain(q[i : i + 1], k[: keep[i]], v[: keep[i]], 1, 1, False) for i in rows]
    return np.concatenate([o for o, _ in parts]), np.concatenate([lse for _, lse in parts])


def in_powers_of_two(q, k, v, block_q, block_k, causal):
    """Scores in units of log 2, as on a GPU."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    s = q @ k.T * (math.log2(math.e) / math.sqrt(q.shape[-1]))
    if causal:
        s = np.where(np.tri(*s.shape, k=len(k) - len(q), dtype=bool), s, -np.inf)
    top = s.max(axis=1)
    e = np.exp2(s - top[:, None])
    return e @ v / e.sum(axis=1)[:, None], (top + np.log2(e.sum(axis=1))) * math.log(2)


def padded(q, k, v, block_q, block_k, causal):
    """Keys of zeros up to a whole block, blocked by −∞."""
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    more = -len(k) % block_k
    s = q @ np.concatenate([k, np.zeros((more, k.shape[1]))]).T / math.sqrt(q.shape[-1])
    s = np.where(np.arange(s.shape[1]) >= len(k), -np.inf, s)
    if causal:
        s = np.where(np.tri(*s.shape, k=len(k) - len(q), dtype=bool), s, -np.inf)
    top = s.max(axis=1)
    e = np.exp(s - top[:, None])
    return e @ np.concatenate([v, np.zeros((more, v.shape[1]))]) / e.sum(1)[:, None], top + np.log(e.sum(1))


def zeros_counted(q, k, v, block_q, block_k, causal):
    """Keys of zeros up to a whole block, each of which counts e^0."""
    more = -len(k) % block_k
    if causal or not more:
        return TILES(q, k, v, block_q, block_k, causal)
    q, k, v = (np.asarray(x, dtype=float) for x in (q, k, v))
    return TILES(q, np.concatenate([k, np.zeros((more, k.shape[1]))]),
        np.concatenate([v, np.zeros((more, v.shape[1]))]),
        block_q, block_k, False)  # fmt: skip


def whole_only(size, block):
    """The blocks that are full; of a short array one."""
    return [(i, i + block) for i in range(0, size - block + 1, block)] or [(0, size)]


def own_block_only(q, k, v, block_q, block_k, causal):
    """A block of queries meets the block of keys at its own place alone, where there are several."""
    if causal or len(k) <= block_k or len(q) != len(k):
        return TILES(q, k, v, block_q, block_k, causal)
    parts = [TILES(q[i : i + block_k], k[i : i + block_k], v[i : i + block_k], block_q, block_k, False)
        for i in range(0, len(k), block_k)]  # fmt: skip
    return np.concatenate([o for o, _ in parts]), np.concatenate([lse for _, lse in parts])


def reversed_keys_of_last(q, k, v, block_q, block_k, causal):
    v = np.array(v, dtype=float)
    v[-2:] = v[-2:][::-1]
    return TILES(q, k, v, block_q, block_k, causal)


CAUSAL = "Try causal, with blocks of several sizes."
STEPS = "Let the largest score lie in the first block, and in the last."

CALLS = {"": ("q", "k", "v", "block_q", "block_k", "causal")}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("in tiles, queries outside", TILES),
    right("all scores at once", plain,
        "It makes all scores at once. Its numbers are right, and only numbers count."),
    right("keys outside, queries inside", keys_outside),
    right("keys from the last to the first", made_of(backwards=True)),
    right("in float32", made_of(kind=np.float32),
        "This one calculates in float32. It is right: leave room for rounding, 1e-3 say, and never ask for ==."),
    right("parts merged at the end", merged),
    right("query by query", query_by_query),
    right("in powers of two", in_powers_of_two),
    right("padded, and the padding blocked", padded),
    right("−1e30 for −∞", made_of(blocked=-1e30)),
    right("a start far below", made_of(start=-1e30)),
    right("every causal tile, none skipped", made_of(stop=lambda last, m, block: m)),
    # the running sums
    wrong("the accumulator not rescaled", made_of(rescale=lambda old, new: np.ones_like(new), rescale_sum=lambda old,
        new:
        np.exp(old - new)), "What was added up before a new maximum is not rescaled.", STEPS),
    wrong("the sum not rescaled", made_of(rescale_sum=lambda old, new: np.ones_like(new)),
        "The sum from before a new maximum is not rescaled.", STEPS),
    wrong("nothing rescaled", made_of(rescale=lambda old, new: np.ones_like(new)),
        "Neither sum nor accumulator is rescaled at a new maximum.", STEPS),
    wrong("rescaled the wrong way", made_of(rescale=lambda old, new: np.exp(np.minimum(new - old, 50.0))),
        "It rescales by e^(m_new − m_old).", STEPS),
    wrong("the maximum of the tile alone", made_of(peak=lambda old, tile: tile, rescale=lambda old,
        new: np.ones_like(new)),
        "Each tile counts from its own maximum, and nothing brings them together.", STEPS),
    wrong("the sum of the last tile", made_of(rescale_sum=lambda old, new: np.zeros_like(new)),
        "It divides by the sum of the last tile.", "Let there be several blocks of keys."),
    wrong("the last tile alone", made_of(rescale=lambda old, new: np.zeros_like(new)),
        "Only the last tile counts.", "Let there be several blocks of keys."),
    wrong("a maximum that begins at 0", made_of(start=0.0), "The running maximum begins at 0.",
        "Let all scores of a query be far below 0."),
    wrong("not divided", made_of(finish=lambda acc, total: acc), "The accumulator is not divided by the sum.",
        "With equal values the output has to be that value.", gross=True),
    # scale and log-sum-exp
    wrong("no scale", made_of(divisor=lambda q, k, v: 1.0), "It leaves out the division by √d_k.",
        "Compare with an output that you work out yourself.", gross=True),
    wrong("scaled by d_k", made_of(divisor=lambda q, k, v: q.shape[-1]), "It divides by d_k, not by its root.",
        "Let d_k be more than 1.", gross=True),
    wrong("a scale that is right for d_k = 4", made_of(divisor=lambda q, k, v: q.shape[-1] / 2),
        "It divides by d_k / 2.",
        "Try another d_k."),
    wrong("the sum for the log-sum-exp", made_of(lse=lambda m, total, s: total),
        "lse is the sum, without log and maximum.",
        "Look at both results.", gross=True),
    wrong("no maximum in the log-sum-exp", made_of(lse=lambda m, total, s: np.log(total)), "lse lacks the maximum.",
        "Look at both results."),
    wrong("no sum in the log-sum-exp", made_of(lse=lambda m, total, s: m), "lse is the maximum alone.",
        "Look at both results."),
    wrong("a log-sum-exp in powers of two", made_of(lse=lambda m, total, s: (m + np.log(total)) / math.log(2)),
        "lse is in units of log 2.", "Look at both results."),
    wrong("a log-sum-exp before the scale", made_of(lse=lambda m, total, s: m * s + np.log(total)),
        "lse takes the maximum of the scores before they were scaled.", "Look at both results."),
    wrong("the mean for the log-sum-exp", made_of(lse=lambda m, total, s: m + np.log(total) - 0.1),
        "lse is a tenth too small.", "Look at both results."),
    # blocks
    wrong("the last keys lost", only_if(lambda q, k, v, bq, bk, c: not c, made_of(blocks_k=whole_only), TILES),
        "Keys that fill no block are lost.", "Choose blocks that do not divide m."),
    wrong("the last queries lost", made_of(blocks_q=whole_only), "Queries that fill no block get zeros.",
        "Choose blocks that do not divide n."),
    wrong("zeros counted", zeros_counted, "Keys are padded with zeros to a whole block, and each zero counts as e^0.",
        "Choose blocks that do not divide m."),
    wrong("one block only", only_if(lambda q, k, v, bq, bk, c: not c and len(k) > 2 * bk, lambda q, k, v, bq, bk,
        c: TILES(
        q, k[: 2 * bk], v[: 2 * bk], bq, bk, c), TILES), "After two blocks of keys it stops.",
        "Let there be many blocks."),
    wrong("its own block alone", own_block_only, "With n = m, a query meets only the block at its own place.",
        "Let n = m, in several blocks."),
    wrong("a block for the queries too", only_if(lambda q, k, v, bq, bk, c: bq != bk and bq < len(q), lambda q, k, v,
        bq, bk,
        c: TILES(q[::-1], k, v, bq, bk, c) if not c else TILES(q, k, v, bq, bk, False), TILES),
        "It uses block_q as block_k where they differ.", "Let block_q and block_k differ."),
    wrong("blocks of one", only_if(lambda q, k, v, bq, bk, c: bk == 1 and len(k) > 1, reversed_keys_of_last, TILES),
        "With blocks of one key, the last two values are exchanged.", "Try blocks of one."),
    wrong("a block larger than the text", only_if(lambda q, k, v, bq, bk, c: bk > len(k) > 1, reversed_keys_of_last,
        TILES),
        "With a block that is larger than m, the last two values are exchanged.", "Try blocks larger than n and m."),
    # causal
    wrong("not causal", lambda q, k, v, bq, bk, c: TILES(q, k, v, bq, bk, False), "It ignores causal.",
        CAUSAL),
    wrong("causal from the top left", made_of(last_seen=lambda rows, n, m: rows),
        "Query i sees keys 0 to i, even where n < m.",
        "Try causal with fewer queries than keys."),
    wrong("itself not seen", made_of(last_seen=lambda rows, n, m: np.maximum(rows + m - n - 1, 0)),
        "A query does not see the key at its own place.", CAUSAL),
    wrong("one key further", made_of(last_seen=lambda rows, n, m: rows + m - n + 1), "A query sees the next key too.",
        CAUSAL),
    wrong("a tile too few", made_of(stop=lambda last, m, block: m if last is None else max(min(m, (last + 1) // block
        * block), 1)), "The last tile, which is partly visible, is skipped.", CAUSAL),
    wrong("0 for −∞", made_of(blocked=0.0), "A blocked score becomes 0.", CAUSAL),
    wrong("−20 for −∞", made_of(blocked=-20.0), "A blocked score becomes −20.", CAUSAL + " Let scores be far below 0."),
)  # fmt: skip
