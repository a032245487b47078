"""Day 6: online softmax, merging, tiles, traffic, backward and a Triton loop, as people write them, right and wrong."""

import functools
import itertools
import math

import numpy as np
import torch

from course_utils.days.day6 import load_triton

from . import right, wrong

triton, tl = load_triton()


# online_softmax -----------------------------------------------------------------------------------------------------


@right(6, "online_softmax")
def online_with_two_cases(stream):
    m, l = float("-inf"), 0.0
    for x in stream:
        if x > m:
            l = l * math.exp(m - x) + 1.0
            m = x
        elif x > float("-inf"):
            l += math.exp(x - m)
    return m, l


@right(6, "online_softmax")
def online_that_leaves_infinities_out(stream):
    m, l = -math.inf, 0.0
    for x in stream:
        if x == -math.inf:
            continue
        m_new = max(m, x)
        l = l * math.exp(m - m_new) + math.exp(x - m_new)
        m = m_new
    return m, l


@right(6, "online_softmax")
def online_by_reduce(stream):
    def step(state, x):
        m, l = state
        new = max(m, x)
        return (m, l) if new == -math.inf else (new, l * math.exp(m - new) + math.exp(x - new))

    return functools.reduce(step, stream, (-math.inf, 0.0))


@right(6, "online_softmax")
def online_with_an_iterator(stream):
    numbers = iter(stream)
    m = next(numbers, -math.inf)
    l = float(m > -math.inf)
    for x in numbers:
        if x > m:
            m, l = x, l * math.exp(m - x) + 1
        elif x != -math.inf:
            l = l + math.exp(x - m)
    return [m, l]


@right(6, "online_softmax")
def online_in_tensors(stream):
    m, l = torch.tensor(-math.inf, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64)
    for x in stream:
        new = torch.maximum(m, torch.tensor(float(x), dtype=torch.float64))
        base = torch.where(new == -math.inf, 0.0, new)
        l = l * torch.exp(m - base) + torch.exp(x - base)
        m = new
    return m, l


@right(6, "online_softmax")
def online_by_accumulating(stream):
    def step(state, x):
        (m, l), new = state, max(state[0], x)
        scale = [math.exp(y - new) if y > -math.inf else 0.0 for y in (m, x)]
        return new, l * scale[0] + scale[1]

    last = None
    for state in itertools.accumulate(stream, step, initial=(-math.inf, 0.0)):
        last = state
    return last


@right(6, "online_softmax")
def online_in_numpy(stream):
    m, l = np.float64(-np.inf), np.float64(0)
    for x in stream:
        new = np.maximum(m, x)
        if new > -np.inf:
            m, l = new, l * np.exp(m - new) + np.exp(x - new)
    return np.array([m, l])[0], l


@right(6, "online_softmax")
def online_a_few_at_a_time(stream):
    stream, m, l = iter(stream), -math.inf, 0.0
    while block := list(itertools.islice(stream, 8)):
        new = max(m, *block) if len(block) > 1 else max(m, block[0])
        if new > -math.inf:
            l = l * math.exp(m - new) + sum(math.exp(x - new) for x in block)
            m = new
    return m, l


@right(6, "online_softmax")
def online_fifty_at_a_time(stream):
    m, l, block = -math.inf, 0.0, []

    def gather():
        new = max([m, *block])
        return new, sum(math.exp(x - new) for x in block) + l * math.exp(m - new) if new > -math.inf else 0.0

    for x in stream:
        block.append(x)
        if len(block) == 50:
            m, l = gather()
            block.clear()
    return gather()


@wrong(6, "online_softmax")
def online_two_hundred_at_a_time(stream):
    m, l, block = -math.inf, 0.0, []
    for x in stream:
        block.append(x)
        if len(block) == 200:
            new = max([m, *block])
            l = l * math.exp(m - new) + sum(math.exp(y - new) for y in block)
            m, block = new, []
    new = max([m, *block])
    return new, l * math.exp(m - new) + sum(math.exp(y - new) for y in block) if new > -math.inf else 0.0


@wrong(6, "online_softmax")
def online_from_a_large_negative_number(stream):
    m, l = -1e30, 0.0
    for x in stream:
        new = max(m, x)
        l, m = l * math.exp(m - new) + math.exp(x - new), new
    return (m, l) if l else (-math.inf, 0.0)


@wrong(6, "online_softmax")
def online_without_zeros(stream):
    m, l = -math.inf, 0.0
    for x in stream:
        if not x or x == -math.inf:
            continue
        new = max(m, x)
        l, m = l * math.exp(m - new) + math.exp(x - new), new
    return m, l


@wrong(6, "online_softmax")
def online_read_twice(stream):
    m, l = -math.inf, 0.0
    for x in stream:
        if x > m:
            m = x
    for x in stream:
        if x > -math.inf:
            l += math.exp(x - m)
    return m, l


@wrong(6, "online_softmax")
def online_that_needs_an_iterator(stream):
    m, l = -math.inf, 0.0
    while True:
        try:
            x = next(stream)
        except StopIteration:
            return m, l
        new = max(m, x)
        if new > -math.inf:
            l = l * math.exp(m - new) + math.exp(x - new)
            m = new


# merge_partials -----------------------------------------------------------------------------------------------------


@right(6, "merge_partials")
def merge_with_where(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    f_a = torch.where(m_a == -math.inf, 0.0, torch.exp(m_a - m))
    f_b = torch.where(m_b == -math.inf, 0.0, torch.exp(m_b - m))
    return m, l_a * f_a + l_b * f_b, o_a * f_a[..., None] + o_b * f_b[..., None]


@right(6, "merge_partials")
def merge_with_nan_to_num(a, b):
    m = torch.maximum(a[0], b[0])
    f_a, f_b = (torch.nan_to_num(torch.exp(part[0] - m), nan=0.0) for part in (a, b))
    return m, a[1] * f_a + b[1] * f_b, a[2] * f_a.unsqueeze(-1) + b[2] * f_b.unsqueeze(-1)


@right(6, "merge_partials")
def merge_by_stacking(a, b):
    m, l, o = (torch.stack(pair) for pair in zip(a, b, strict=True))
    top = m.amax(dim=0)
    factor = torch.exp(m - top.clamp(min=-1e38))
    return top, (l * factor).sum(0), (o * factor[..., None]).sum(0)


@right(6, "merge_partials")
def merge_in_numpy(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = ([x.numpy() for x in part] for part in (a, b))
    m = np.maximum(m_a, m_b)
    base = np.where(np.isneginf(m), 0.0, m)
    f_a, f_b = np.exp(m_a - base), np.exp(m_b - base)
    return m, l_a * f_a + l_b * f_b, o_a * f_a[..., None] + o_b * f_b[..., None]


@right(6, "merge_partials")
def merge_the_smaller_into_the_larger(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    first = m_a >= m_b
    m, gap = torch.where(first, m_a, m_b), (m_a - m_b).abs().nan_to_num(nan=0.0, posinf=math.inf)
    small = torch.exp(-gap)
    l = torch.where(first, l_a + l_b * small, l_a * small + l_b)
    o = torch.where(first[..., None], o_a + o_b * small[..., None], o_a * small[..., None] + o_b)
    return [m, l, o]


@right(6, "merge_partials")
def merge_query_by_query(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m, l, o = torch.full_like(m_a, -math.inf), torch.zeros_like(l_a), torch.zeros_like(o_a)
    for i in np.ndindex(*m_a.shape):
        m[i] = max(m_a[i], m_b[i])
        for m_part, l_part, o_part in ((m_a[i], l_a[i], o_a[i]), (m_b[i], l_b[i], o_b[i])):
            if m_part > -math.inf:
                l[i] += l_part * math.exp(m_part - m[i])
                o[i] += o_part * math.exp(m_part - m[i])
    return m, l, o


@wrong(6, "merge_partials")
def merge_that_rescales_the_first_only(a, b):
    m = torch.maximum(a[0], b[0])
    f = torch.where(m == -math.inf, 0.0, torch.exp(a[0] - m))
    return m, a[1] * f + b[1], a[2] * f[..., None] + b[2]


@wrong(6, "merge_partials")
def merge_with_a_finite_floor(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    base = m.clamp(min=-1e9)
    f_a, f_b = torch.exp(m_a - base), torch.exp(m_b - base)
    return m, l_a * f_a + l_b * f_b, o_a * f_a[..., None] + o_b * f_b[..., None]


@wrong(6, "merge_partials")
def merge_that_hands_an_argument_back(a, b):
    if bool((a[0] == -math.inf).all()):
        return b
    if bool((b[0] == -math.inf).all()):
        return a
    return merge_with_where(a, b)


@wrong(6, "merge_partials")
def merge_with_a_little_more(a, b):
    m, l, o = merge_with_where(a, b)
    return m, l + 1e-9, o


@wrong(6, "merge_partials")
def merge_in_single_precision(a, b):
    return merge_with_where(*(tuple(x.float() for x in part) for part in (a, b)))


@wrong(6, "merge_partials")
def merge_in_double_precision(a, b):
    return merge_with_where(*(tuple(x.double() for x in part) for part in (a, b)))


@wrong(6, "merge_partials")
def merge_that_shifts_and_restores(a, b):
    a[0].add_(4.0).sub_(4.0)
    return merge_with_where(a, b)


@wrong(6, "merge_partials")
def merge_with_factors_of_a_billionth_at_least(a, b):
    m = torch.maximum(a[0], b[0])
    f_a, f_b = (torch.where(x[0] == -math.inf, 0.0, torch.exp((x[0] - m).clamp(min=-20.0))) for x in (a, b))
    return m, a[1] * f_a + b[1] * f_b, a[2] * f_a[..., None] + b[2] * f_b[..., None]


# tiled_attention ----------------------------------------------------------------------------------------------------


@right(6, "tiled_attention")
def tiles_in_the_manner_of_the_paper(q, k, v, block_q, block_k, causal=False):
    n, m_keys = q.shape[0], k.shape[0]
    o = torch.zeros(n, v.shape[1], dtype=q.dtype)
    lse = torch.zeros(n, dtype=q.dtype)
    for i in range(0, n, block_q):
        q_block = q[i : i + block_q] / math.sqrt(q.shape[1])
        rows = torch.arange(i, i + len(q_block)) + m_keys - n
        m = torch.full((len(q_block),), -math.inf, dtype=q.dtype)
        l = torch.zeros(len(q_block), dtype=q.dtype)
        acc = torch.zeros(len(q_block), v.shape[1], dtype=q.dtype)
        end = min(m_keys, int(rows[-1]) + 1) if causal else m_keys
        for j in range(0, end, block_k):
            s = q_block @ k[j : j + block_k].T
            if causal:
                s = s.masked_fill(torch.arange(j, j + s.shape[1]) > rows[:, None], -math.inf)
            m_new = torch.maximum(m, s.max(dim=1).values)
            p = torch.exp(s - m_new[:, None])
            rescale = torch.exp(m - m_new)
            l = l * rescale + p.sum(dim=1)
            acc = acc * rescale[:, None] + p @ v[j : j + block_k]
            m = m_new
        o[i : i + block_q] = acc / l[:, None]
        lse[i : i + block_q] = m + torch.log(l)
    return o, lse


@right(6, "tiled_attention")
def tiles_with_continue(q, k, v, block_q, block_k, causal=False):
    offset, outputs, lses = len(k) - len(q), [], []
    for i, queries in zip(range(0, len(q), block_q), q.split(block_q), strict=True):
        m = queries.new_full((len(queries), 1), -math.inf)
        l, acc = torch.zeros_like(m), queries.new_zeros(len(queries), v.shape[1])
        for j, (keys, values) in enumerate(zip(k.split(block_k), v.split(block_k), strict=True)):
            if causal and j * block_k > i + len(queries) - 1 + offset:
                continue
            s = torch.einsum("nd,md->nm", queries, keys) * q.shape[1] ** -0.5
            if causal:
                column = j * block_k + torch.arange(len(keys))
                row = i + torch.arange(len(queries)) + offset
                s = torch.where(column[None, :] <= row[:, None], s, -math.inf)
            new = torch.maximum(m, s.amax(dim=1, keepdim=True))
            p, factor = (s - new).exp(), (m - new).exp()
            l, acc, m = l * factor + p.sum(dim=1, keepdim=True), acc * factor + p @ values, new
        outputs.append(acc / l)
        lses.append((m + l.log())[:, 0])
    return torch.cat(outputs), torch.cat(lses)


@right(6, "tiled_attention")
def tiles_without_gradients(q, k, v, block_q, block_k, causal=False):
    with torch.inference_mode():
        o, lse = tiles_with_continue(q, k, v, block_q, block_k, causal)
    assert np.asarray(o).shape == (len(q), v.shape[1]) and len(np.asarray(o)) == len(np.asarray(lse)) == len(q)
    return o, lse


@right(6, "tiled_attention")
def tiles_from_merged_partials(q, k, v, block_q, block_k, causal=False):
    """Every tile is a finished attention, and blends are averaged with the help of lse."""
    offset = len(k) - len(q)
    o, lse = q.new_zeros(len(q), v.shape[1]), q.new_full((len(q),), -math.inf)
    for i in range(0, len(q), block_q):
        for j in range(0, len(k), block_k):
            rows, columns = slice(i, min(i + block_q, len(q))), slice(j, min(j + block_k, len(k)))
            if causal and columns.start > rows.stop - 1 + offset:
                break
            s = q[rows] @ k[columns].T / math.sqrt(q.shape[1])
            if causal:
                s = s + torch.full_like(s, -math.inf).triu(rows.start + offset - columns.start + 1)
            tile_lse = torch.logsumexp(s, dim=1)
            both = torch.logaddexp(lse[rows], tile_lse)
            part = torch.exp(s - both[:, None]) @ v[columns]
            o[rows] = o[rows] * torch.exp(lse[rows] - both)[:, None] + part
            lse[rows] = both
    return o, lse


@right(6, "tiled_attention")
def tiles_with_keys_outside(q, k, v, block_q, block_k, causal=False):
    """The loops of the first paper: keys in the outer loop, the state of all queries in memory."""
    n, offset = len(q), len(k) - len(q)
    m, l, acc = q.new_full((n,), -math.inf), q.new_zeros(n), q.new_zeros(n, v.shape[1])
    for j in range(0, len(k), block_k):
        for i in range(0, n, block_q):
            rows = slice(i, min(i + block_q, n))
            if causal and j > rows.stop - 1 + offset:
                continue
            s = q[rows] @ k[j : j + block_k].T / math.sqrt(q.shape[1])
            if causal:
                ahead = torch.arange(j, j + s.shape[1])[None] > torch.arange(rows.start, rows.stop)[:, None] + offset
                s[ahead] = -math.inf
            new = torch.maximum(m[rows], s.amax(1))
            p = torch.exp(s - new[:, None])
            scale = torch.exp(m[rows] - new)
            l[rows] = l[rows] * scale + p.sum(1)
            acc[rows] = acc[rows] * scale[:, None] + p @ v[j : j + block_k]
            m[rows] = new
    return acc / l[:, None], m + l.log()


@right(6, "tiled_attention")
def tiles_by_sums_of_products(q, k, v, block_q, block_k, causal=False):
    n, keys, offset = q.shape[0], k.shape[0], k.shape[0] - q.shape[0]
    o, lse = torch.empty(n, v.shape[1], dtype=q.dtype), torch.empty(n, dtype=q.dtype)
    for i in range(0, n, block_q):
        stop = min(i + block_q, n)
        m, l, acc = [-math.inf] * (stop - i), [0.0] * (stop - i), [0.0] * (stop - i)
        for j in range(0, keys, block_k):
            if causal and j > stop - 1 + offset:
                break
            for row in range(i, stop):
                end = min(j + block_k, keys, row + offset + 1 if causal else keys)
                if end <= j:
                    continue
                s = (q[row] * k[j:end]).sum(dim=1) / math.sqrt(q.shape[1])
                new = max(m[row - i], float(s.max()))
                p = torch.exp(s - new)
                shrink = math.exp(m[row - i] - new)
                l[row - i] = l[row - i] * shrink + p.sum()
                acc[row - i] = acc[row - i] * shrink + (p[:, None] * v[j:end]).sum(dim=0)
                m[row - i] = new
        for row in range(i, stop):
            o[row] = acc[row - i] / l[row - i]
            lse[row] = m[row - i] + torch.log(l[row - i])
    return o, lse


@right(6, "tiled_attention")
def tiles_with_work_on_their_own_scores(q, k, v, block_q, block_k, causal=False):
    o, lse = q.new_empty(len(q), v.shape[-1]), q.new_empty(len(q))
    for first in range(0, len(q), block_q):
        rows = torch.arange(first, min(first + block_q, len(q)))
        last_seen = rows + len(k) - len(q)
        m = torch.full_like(rows, -math.inf, dtype=q.dtype)
        l, acc = torch.zeros_like(m), q.new_zeros(len(rows), v.shape[-1])
        start = 0
        while start < len(k) and not (causal and start > last_seen[-1]):
            columns = torch.arange(start, min(start + block_k, len(k)))
            s = q[rows].matmul(k[columns].transpose(0, 1)).div_(math.sqrt(q.shape[-1]))
            if causal and columns[-1] > last_seen[0]:
                s.masked_fill_(columns > last_seen[:, None], -math.inf)
            new = torch.maximum(m, s.max(-1)[0])
            s.sub_(new.unsqueeze(-1)).exp_()
            m.sub_(new).exp_()
            l.mul_(m).add_(s.sum(-1))
            acc.mul_(m.unsqueeze(-1)).addmm_(s, v[columns])
            m = new
            start += block_k
        o[rows], lse[rows] = acc / l.unsqueeze(-1), l.log().add_(m)
    return o, lse


@wrong(6, "tiled_attention")
def tiles_none(q, k, v, block_q, block_k, causal=False):
    s = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        s = s.masked_fill(torch.ones(len(q), len(k), dtype=torch.bool).triu(len(k) - len(q) + 1), -math.inf)
    return torch.softmax(s, dim=-1) @ v, torch.logsumexp(s, dim=-1)


@wrong(6, "tiled_attention")
def tiles_in_lists(q, k, v, block_q, block_k, causal=False):
    Q, K, V = q.tolist(), k.tolist(), v.tolist()
    rows, lses = [], []
    for i, query in enumerate(Q):
        seen = range(i + len(K) - len(Q) + 1 if causal else len(K))
        s = [sum(a * b for a, b in zip(query, K[j], strict=True)) / math.sqrt(len(query)) for j in seen]
        m = max(s)
        p = [math.exp(x - m) for x in s]
        lses.append(m + math.log(sum(p)))
        rows.append([sum(w * V[j][c] for j, w in zip(seen, p, strict=True)) / sum(p) for c in range(len(V[0]))])
    return rows, lses


@wrong(6, "tiled_attention")
def tiles_kept_for_a_second_pass(q, k, v, block_q, block_k, causal=False):
    tiles, offset = {}, len(k) - len(q)
    m = q.new_full((len(q),), -math.inf)
    for i in range(0, len(q), block_q):
        for j in range(0, len(k), block_k):
            if causal and j > min(i + block_q, len(q)) - 1 + offset:
                continue
            s = q[i : i + block_q] @ k[j : j + block_k].T / math.sqrt(q.shape[1])
            if causal:
                s = s + torch.full_like(s, -math.inf).triu(i + offset - j + 1)
            tiles[i, j] = s
            m[i : i + block_q] = torch.maximum(m[i : i + block_q], s.amax(1))
    l, acc = torch.zeros_like(m), q.new_zeros(len(q), v.shape[1])
    for (i, j), s in tiles.items():
        p = torch.exp(s - m[i : i + block_q, None])
        l[i : i + block_q] += p.sum(1)
        acc[i : i + block_q] += p @ v[j : j + block_k]
    return acc / l[:, None], m + l.log()


def registered(name, function):
    function.__name__ = name
    return function


def tiles_by(visit):
    """The running forward; visit(make, i, j, offset, causal) says what is done with a tile: its scores, or None."""

    def tiled_attention(q, k, v, block_q, block_k, causal=False):
        o, lse = q.new_zeros(len(q), v.shape[1]), q.new_zeros(len(q))
        for i in range(0, len(q), block_q):
            queries = q[i : i + block_q]
            m, l, acc = queries.new_full((len(queries),), -math.inf), 0, 0
            for j in range(0, len(k), block_k):

                def make(j=j, queries=queries):
                    return queries @ k[j : j + block_k].T / math.sqrt(q.shape[1])

                s = visit(make, i, j, len(queries), len(k) - len(q), causal)
                if s is None:
                    continue
                new = torch.maximum(m, s.amax(1))
                p, f = torch.exp(s - new[:, None]), torch.exp(m - new)
                l, acc, m = l * f + p.sum(1), acc * f[:, None] + p @ v[j : j + block_k], new
            o[i : i + block_q], lse[i : i + block_q] = acc / l[:, None], m + l.log()
        return o, lse

    return tiled_attention


def ahead(s, i, j, offset):
    return torch.ones_like(s, dtype=torch.bool).triu(i + offset - j + 1)


def masked_tile(s, i, j, offset, causal):
    return s.masked_fill(ahead(s, i, j, offset), -math.inf) if causal else s


def multiplied_then_skipped(make, i, j, rows, offset, causal):
    s = make()
    return None if causal and j > i + rows - 1 + offset else masked_tile(s, i, j, offset, causal)


def never_skipped(make, i, j, rows, offset, causal):
    return masked_tile(make(), i, j, offset, causal)


def skipped(make, i, j, rows, offset, causal):
    return None if causal and j > i + rows - 1 + offset else masked_tile(make(), i, j, offset, causal)


right(6, "tiled_attention")(registered("tiles_by_rule", tiles_by(skipped)))
wrong(6, "tiled_attention")(registered("tiles_multiplied_then_skipped", tiles_by(multiplied_then_skipped)))


def tiles_with(l_and_acc=None, scores=None, keys_to=lambda m, block_k: m):
    """The running forward, summed in place: dtypes of what is carried and of the scores, the keys' end."""

    def tiled_attention(q, k, v, block_q, block_k, causal=False):
        n, m_keys = len(q), len(k)
        o, lse = torch.empty(n, v.shape[1], dtype=q.dtype), torch.empty(n, dtype=q.dtype)
        for i in range(0, n, block_q):
            end = min(i + block_q, n)
            l = torch.zeros(end - i, dtype=l_and_acc or q.dtype)
            acc = torch.zeros(end - i, v.shape[1], dtype=l_and_acc or q.dtype)
            m = torch.full((end - i,), -math.inf, dtype=q.dtype)
            for j in range(0, min(keys_to(m_keys, block_k), end + m_keys - n if causal else m_keys), block_k):
                s = q[i:end] @ k[j : j + block_k].T / math.sqrt(q.shape[1])
                s = masked_tile(s if scores is None else s.to(scores).to(q.dtype), i, j, m_keys - n, causal)
                new = torch.maximum(m, s.amax(1))
                p, f = torch.exp(s - new[:, None]), torch.exp(m - new)
                l *= f
                l += p.sum(1)
                acc *= f[:, None]
                acc += p @ v[j : j + block_k]
                m = new
            o[i:end], lse[i:end] = acc / l[:, None], m + l.log()
        return o, lse

    return tiled_attention


right(6, "tiled_attention")(registered("tiles_summed_in_place", tiles_with()))
wrong(6, "tiled_attention")(registered("tiles_summed_in_float32", tiles_with(l_and_acc=torch.float32)))
wrong(6, "tiled_attention")(registered("tiles_of_float32_scores", tiles_with(scores=torch.float32)))
wrong(6, "tiled_attention")(
    registered("tiles_of_whole_blocks_of_keys", tiles_with(keys_to=lambda m, block_k: m // block_k * block_k))
)


@wrong(6, "tiled_attention")
def tiles_that_scale_q_in_place(q, k, v, block_q, block_k, causal=False):
    d = q.shape[1]
    q.mul_(d**-0.5)
    return tiles_by(skipped)(q * d**0.5, k, v, block_q, block_k, causal)


@wrong(6, "tiled_attention")
def tiles_of_at_most_8(q, k, v, block_q, block_k, causal=False):
    return tiles_by(skipped)(q, k, v, min(block_q, 8), min(block_k, 8), causal)


@wrong(6, "tiled_attention")
def tiles_in_double_precision(q, k, v, block_q, block_k, causal=False):
    return tiles_by(skipped)(q.double(), k.double(), v.double(), block_q, block_k, causal)


@wrong(6, "tiled_attention")
def tiles_with_work_for_show(q, k, v, block_q, block_k, causal=False):
    """Works more without a causal mask, so that it seems to skip blocks with one."""
    for _ in range(0 if causal else 40):
        q @ k[:8].T, k * 1, v * 1
    return tiles_by(never_skipped)(q, k, v, block_q, block_k, causal)


def tiles_until(stop):
    """A running forward whose loop over keys ends at stop(i, end of the block, n, m, block_q, block_k) if causal."""

    def tiled_attention(q, k, v, block_q, block_k, causal=False):
        n, m_keys = len(q), len(k)
        o, lse = q.new_zeros(n, v.shape[1]), q.new_zeros(n)
        for i in range(0, n, block_q):
            end = min(i + block_q, n)
            m, l, acc = q.new_full((end - i,), -math.inf), 0, 0
            for j in range(0, stop(i, end, n, m_keys, block_q, block_k) if causal else m_keys, block_k):
                s = masked_tile(q[i:end] @ k[j : j + block_k].T / math.sqrt(q.shape[1]), i, j, m_keys - n, causal)
                new = torch.maximum(m, s.amax(1))
                p, f = torch.exp(s - new[:, None]), torch.exp(m - new)
                l, acc, m = l * f + p.sum(1), acc * f[:, None] + p @ v[j : j + block_k], new
            o[i:end], lse[i:end] = acc / l[:, None], m + l.log()
        return o, lse

    return tiled_attention


def last_seen(i, end, n, m, block_q, block_k):
    return end + m - n


right(6, "tiled_attention")(registered("tiles_until_the_last_seen", tiles_until(last_seen)))
wrong(6, "tiled_attention")(
    registered("tiles_skipped_only_if_square", tiles_until(lambda i, end, n, m, b, c: end if n == m else m))
)


# bytes_moved --------------------------------------------------------------------------------------------------------


def pair_of(flash_bytes, naive_bytes):
    return {"flash_bytes": flash_bytes, "naive_bytes": naive_bytes}


def flash_by_the_rules(T, d, block_q, bytes_per_value=2):
    blocks = math.ceil(T / block_q)
    read = T * d + blocks * 2 * T * d
    written = T * d + T
    return (read + written) * bytes_per_value


def naive_by_the_rules(T, d, bytes_per_value=2):
    return (4 * T * d + 4 * T**2) * bytes_per_value


def flash_block_by_block(T, d, block_q, bytes_per_value=2):
    moved = 0
    for start in range(0, T, block_q):
        rows = min(block_q, T - start)
        moved += rows * d + 2 * T * d + rows * d + rows
    return moved * bytes_per_value


def naive_pass_by_pass(T, d, bytes_per_value=2):
    scores = 2 * T * d + T * T
    softmax = T * T + T * T
    output = T * T + T * d + T * d
    return bytes_per_value * (scores + softmax + output)


def flash_rounded_up(T, d, block_q, bytes_per_value=2):
    return bytes_per_value * T * (1 + 2 * d + 2 * d * ((T + block_q - 1) // block_q))


def naive_factored(T, d, bytes_per_value=2):
    return 4 * T * (T + d) * bytes_per_value


right(6, "bytes_moved")(pair_of(flash_by_the_rules, naive_by_the_rules))
right(6, "bytes_moved")(pair_of(flash_block_by_block, naive_pass_by_pass))
right(6, "bytes_moved")(pair_of(flash_rounded_up, naive_factored))


def flash_with_o_in_each_block(T, d, block_q, bytes_per_value=2):
    return (T * d + T + math.ceil(T / block_q) * 3 * T * d) * bytes_per_value


wrong(6, "bytes_moved")(pair_of(flash_with_o_in_each_block, naive_by_the_rules))


# flash_backward -----------------------------------------------------------------------------------------------------


@right(6, "flash_backward")
def gradients_in_five_products(q, k, v, o, lse, do):
    scale = 1 / math.sqrt(q.shape[1])
    p = torch.exp(q @ k.T * scale - lse[:, None])
    dv = p.T @ do
    dp = do @ v.T
    delta = (do * o).sum(dim=1, keepdim=True)
    ds = p * (dp - delta)
    return ds @ k * scale, ds.T @ q * scale, dv


@right(6, "flash_backward")
def gradients_by_einsum(q, k, v, o, lse, do):
    root = q.shape[-1] ** 0.5
    p = (torch.einsum("nd,md->nm", q, k) / root - lse.unsqueeze(1)).exp()
    delta = torch.einsum("nd,nd->n", do, o)
    ds = p * (torch.einsum("nd,md->nm", do, v) - delta[:, None]) / root
    return torch.einsum("nm,md->nd", ds, k), torch.einsum("nm,nd->md", ds, q), torch.einsum("nm,nd->md", p, do)


@right(6, "flash_backward")
def gradients_in_numpy(q, k, v, o, lse, do):
    q, k, v, o, lse, do = (x.numpy() for x in (q, k, v, o, lse, do))
    root = math.sqrt(q.shape[1])
    p = np.exp(q @ k.T / root - lse[:, None])
    ds = p * (do @ v.T - (do * o).sum(1)[:, None])
    return ds @ k / root, ds.T @ q / root, p.T @ do


@right(6, "flash_backward")
def gradients_key_by_key(q, k, v, o, lse, do):
    scale, delta = q.shape[1] ** -0.5, (do * o).sum(1)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for j in range(len(k)):
        p = torch.exp(q @ k[j] * scale - lse)
        ds = p * (do @ v[j] - delta) * scale
        dv[j] = p @ do
        dk[j] = ds @ q
        dq += ds[:, None] * k[j]
    return dq, dk, dv


@right(6, "flash_backward")
def gradients_with_a_scaled_query(q, k, v, o, lse, do):
    scaled = q / math.sqrt(q.shape[1])
    p = (scaled @ k.mT - lse[:, None]).exp_()
    ds = (do @ v.mT).sub_((do * o).sum(-1, keepdim=True)).mul_(p)
    return [ds @ k / math.sqrt(q.shape[1]), ds.mT @ scaled, p.mT @ do]


@wrong(6, "flash_backward")
def gradients_in_float32_and_back(*given):
    return tuple(x.to(given[0].dtype) for x in gradients_in_five_products(*(x.float() for x in given)))


@wrong(6, "flash_backward")
def gradients_of_a_new_softmax(q, k, v, o, lse, do):
    scale = q.shape[1] ** -0.5
    p = torch.softmax(q @ k.T * scale, dim=-1)
    ds = p * (do @ v.T - (do * o).sum(1, keepdim=True))
    return ds @ k * scale, ds.T @ q * scale, p.T @ do


@right(6, "flash_backward")
def gradients_query_by_query_with_vmap(q, k, v, o, lse, do):
    def of_a_query(q, o, lse, do):
        p = torch.exp(k @ q * q.shape[0] ** -0.5 - lse)
        ds = p * (v @ do - do @ o) * q.shape[0] ** -0.5
        return ds @ k, ds[:, None] * q, p[:, None] * do

    dq, dk, dv = torch.func.vmap(of_a_query)(q, o, lse, do)
    return dq, dk.sum(0), dv.sum(0)


@wrong(6, "flash_backward")
def gradients_by_the_whole_jacobian_without_o(q, k, v, o, lse, do):
    scale = q.shape[1] ** -0.5
    p = torch.exp(q @ k.T * scale - lse[:, None])
    dp = do @ v.T
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    ds = (jacobian @ dp[:, :, None])[:, :, 0]
    return ds @ k * scale, ds.T @ q * scale, p.T @ do


@wrong(6, "flash_backward")
def gradients_written_over_the_output(q, k, v, o, lse, do):
    scale = q.shape[1] ** -0.5
    p = torch.exp(q @ k.T * scale - lse[:, None])
    ds = p * (do @ v.T - o.mul_(do).sum(1, keepdim=True)) * scale
    return ds @ k, ds.T @ q, p.T @ do


@wrong(6, "flash_backward")
def gradients_in_single_precision(q, k, v, o, lse, do):
    return gradients_in_five_products(*(x.float() for x in (q, k, v, o, lse, do)))


@wrong(6, "flash_backward")
def gradients_in_double_precision(q, k, v, o, lse, do):
    return gradients_in_five_products(*(x.double() for x in (q, k, v, o, lse, do)))


# block_backward -----------------------------------------------------------------------------------------------------


@right(6, "block_backward")
def block_by_slices(q, k, v, o, lse, do, first, block_k):
    root, delta = math.sqrt(q.shape[1]), (do * o).sum(1, keepdim=True)
    dq, dk, dv = q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    end = first + len(q)
    for start in range(0, end, block_k):
        keys = slice(start, min(start + block_k, end))
        s = q @ k[keys].T / root
        seen = torch.arange(keys.start, keys.stop)[None] <= torch.arange(first, end)[:, None]
        p = torch.where(seen, s - lse[:, None], torch.full_like(s, -math.inf)).exp()
        ds = p * (do @ v[keys].T - delta) / root
        dq += ds @ k[keys]
        dk[keys] = ds.T @ q
        dv[keys] = p.T @ do
    return dq, dk, dv


@right(6, "block_backward")
def block_from_lists_of_tiles(q, k, v, o, lse, do, first, block_k):
    end = first + len(q)
    scaled, delta = q / q.shape[1] ** 0.5, torch.einsum("nd,nd->n", do, o)
    dq, dk, dv = 0, [], []
    for j, (keys, values) in enumerate(zip(k[:end].split(block_k), v[:end].split(block_k), strict=True)):
        s = scaled @ keys.mT
        hidden = torch.ones(s.shape, dtype=torch.bool).triu(first - j * block_k + 1)
        p = (s - lse[:, None]).masked_fill_(hidden, -math.inf).exp_()
        ds = (do @ values.mT - delta[:, None]) * p
        dq = dq + ds @ keys / q.shape[1] ** 0.5
        dk.append(ds.mT @ scaled)
        dv.append(p.mT @ do)
    rest = len(k) - end
    return dq, torch.cat([*dk, k.new_zeros(rest, k.shape[1])]), torch.cat([*dv, v.new_zeros(rest, v.shape[1])])


@right(6, "block_backward")
def block_query_by_query_in_each_tile(q, k, v, o, lse, do, first, block_k):
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for j in range(0, len(k), block_k):
        if j >= first + len(q):
            break
        for r in range(len(q)):
            keys = slice(j, min(j + block_k, first + r + 1))
            if keys.stop <= j:
                continue
            p = torch.exp(k[keys] @ q[r] / math.sqrt(q.shape[1]) - lse[r])
            ds = p * (v[keys] @ do[r] - do[r] @ o[r]) / math.sqrt(q.shape[1])
            dq[r] += ds @ k[keys]
            dk[keys] += ds[:, None] * q[r]
            dv[keys] += p[:, None] * do[r]
    return dq, dk, dv


@wrong(6, "block_backward")
def block_in_numpy(q, k, v, o, lse, do, first, block_k):
    q, k, v, o, lse, do = (x.numpy() for x in (q, k, v, o, lse, do))
    end = first + len(q)
    s = q @ k[:end].T / math.sqrt(q.shape[1])
    p = np.where(np.tri(*s.shape, k=first) > 0, np.exp(np.minimum(s - lse[:, None], 1.0)), 0.0).astype(q.dtype)
    ds = p * (do @ v[:end].T - (do * o).sum(1)[:, None]) / q.dtype.type(math.sqrt(q.shape[1]))
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    dk[:end], dv[:end] = ds.T @ q, p.T @ do
    return ds @ k[:end], dk, dv


@wrong(6, "block_backward")
def block_with_tiles_kept(q, k, v, o, lse, do, first, block_k):
    end, root = first + len(q), math.sqrt(q.shape[1])
    tiles = []
    for j in range(0, end, block_k):
        s = q @ k[j : j + block_k].T / root
        later = j + torch.arange(s.shape[1]) > first + torch.arange(len(q))[:, None]
        tiles.append((s.masked_fill(later, -math.inf) - lse[:, None]).exp())
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for j, p in zip(range(0, end, block_k), tiles, strict=True):
        ds = p * (do @ v[j : j + block_k].T - (do * o).sum(1, keepdim=True)) / root
        dq += ds @ k[j : j + block_k]
        dk[j : j + block_k], dv[j : j + block_k] = ds.T @ q, p.T @ do
    return dq, dk, dv


@wrong(6, "block_backward")
def block_in_single_precision(q, k, v, o, lse, do, first, block_k):
    return block_by_slices(*(x.float() for x in (q, k, v, o, lse, do)), first, block_k)


@wrong(6, "block_backward")
def block_written_over_the_output(q, k, v, o, lse, do, first, block_k):
    o.mul_(do)
    return block_by_slices(q, k, v, o / do, lse, do, first, block_k)


# row_in_blocks ------------------------------------------------------------------------------------------------------


@right(6, "row_in_blocks")
@triton.jit
def pass_of_the_course(scores, values, n, BLOCK: tl.constexpr):
    m, l, o = float("-inf"), 0.0, 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        s = tl.load(scores + columns, mask=columns < n, other=float("-inf"))
        v = tl.load(values + columns, mask=columns < n, other=0.0)
        m_new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - m_new)
        rescale = tl.exp(m - m_new)
        l = l * rescale + tl.sum(p, 0)
        o = o * rescale + tl.sum(p * v, 0)
        m = m_new
    return m, l, o


@right(6, "row_in_blocks")
@triton.jit
def pass_with_tensors_of_one_number(scores, values, n, BLOCK: tl.constexpr):
    m = tl.full((), float("-inf"), tl.float32)
    l = tl.zeros((), tl.float32)
    o = tl.zeros((), tl.float32)
    start = 0
    while start < n:
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n
        s = tl.where(inside, tl.load(scores + columns, mask=inside, other=0.0), float("-inf"))
        v = tl.where(inside, tl.load(values + columns, mask=inside), 0.0)
        old = m
        m = tl.maximum(old, tl.max(s, axis=0))
        l *= tl.exp2((old - m) * 1.4426950408889634)
        o *= tl.exp2((old - m) * 1.4426950408889634)
        p = tl.exp2((s - m) * 1.4426950408889634)
        l += tl.sum(p, axis=0)
        o += tl.sum(p * v, axis=0)
        start += BLOCK
    return m, l, o


@right(6, "row_in_blocks")
@triton.jit
def pass_with_a_state_for_each_lane(scores, values, n, BLOCK: tl.constexpr):
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)
    o = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        seen = columns < n
        s = tl.load(scores + columns, mask=seen, other=float("-inf"))
        v = tl.load(values + columns, mask=seen, other=0.0)
        m_new = tl.maximum(m, s)
        p = tl.where(seen, tl.exp(s - m_new), 0.0)
        rescale = tl.where(m > float("-inf"), tl.exp(m - m_new), 0.0)
        l = l * rescale + p
        o = o * rescale + p * v
        m = m_new
    peak = tl.max(m, 0)
    keep = tl.exp(m - peak)
    return peak, tl.sum(l * keep, 0), tl.sum(o * keep, 0)


@right(6, "row_in_blocks")
@triton.jit
def pass_in_two_passes(scores, values, n, BLOCK: tl.constexpr):
    m = float("-inf")
    for start in tl.range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        m = tl.maximum(m, tl.max(tl.load(scores + columns, mask=columns < n, other=float("-inf")), 0))
    l, o = 0.0, 0.0
    for start in tl.range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        p = tl.exp(tl.load(scores + columns, mask=columns < n, other=float("-inf")) - m)
        l += tl.sum(p, 0)
        o += tl.sum(p * tl.load(values + columns, mask=columns < n, other=0.0), 0)
    return m, l, o


# triton_inner_loop --------------------------------------------------------------------------------------------------


@right(6, "triton_inner_loop")
@triton.jit
def loop_of_the_lesson(
    acc, l, m, q, keys, values, head, start, stop, last, scale_log2,
    MASKED: tl.constexpr, D: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([head, j, 0]).reshape(BLOCK_K, D)
        s = tl.dot(q, k.T, input_precision="ieee")
        if MASKED:
            columns = j + tl.arange(0, BLOCK_K)
            s = tl.where(columns[None, :] <= last[:, None], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1) * scale_log2)
        p = tl.exp2(s * scale_log2 - m_new[:, None])
        rescale = tl.exp2(m - m_new)
        l = l * rescale + tl.sum(p, 1)
        v = values.load([head, j, 0]).reshape(BLOCK_K, D)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
        m = m_new
    return acc, l, m


@right(6, "triton_inner_loop")
@triton.jit
def loop_with_plain_range(acc, l, m, q, keys, values, head, start, stop, last, scale_log2, MASKED: tl.constexpr, D: tl.constexpr, BLOCK_K: tl.constexpr):  # noqa: E501  # fmt: skip
    for j in range(start, stop, BLOCK_K):
        k = tl.reshape(keys.load([head, j, 0]), (BLOCK_K, D))
        v = tl.reshape(values.load([head, j, 0]), (BLOCK_K, D))
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale_log2
        if MASKED:
            s += tl.where((j + tl.arange(0, BLOCK_K))[None, :] > last[:, None], float("-inf"), 0.0)
        m_old = m
        m = tl.maximum(m_old, tl.max(s, axis=1))
        p = tl.math.exp2(s - m[:, None])
        l *= tl.math.exp2(m_old - m)
        acc *= tl.math.exp2(m_old - m)[:, None]
        l += tl.sum(p, axis=1)
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return acc, l, m


@right(6, "triton_inner_loop")
@triton.jit
def loop_with_natural_exponentials(
    acc, l, m, q, keys, values, head, start, stop, last, scale_log2,
    MASKED: tl.constexpr, D: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    ln2: tl.constexpr = 0.6931471805599453
    for j in tl.range(start, stop, BLOCK_K):
        k = keys.load([head, j, 0]).reshape(BLOCK_K, D)
        v = values.load([head, j, 0]).reshape(BLOCK_K, D)
        s = tl.dot(q, k.T, input_precision="ieee") * scale_log2
        if MASKED:
            seen = (j + tl.arange(0, BLOCK_K))[None, :] <= last[:, None]
            s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp((s - m_new[:, None]) * ln2)
        rescale = tl.exp((m - m_new) * ln2)
        l = l * rescale + tl.sum(p, 1)
        acc = acc * rescale[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m = m_new
    return acc, l, m


def changed(grade_id, kernel, name, old, new):
    """A right kernel with one piece of its text replaced, as a wrong answer."""
    import inspect
    import linecache
    import textwrap

    source = textwrap.dedent(inspect.getsource(kernel.fn)).partition("\n")[2]  # without @right
    assert source.count(old) == 1, (name, source.count(old))
    source = source.replace(old, new).replace(kernel.__name__, name)
    file = f"<variants/day6/{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(source, file, "exec"), made)
    return wrong(6, grade_id)(made[name])


for name, change in {
    "loop_with_a_large_fill": ('s, float("-inf"))', "s, -1e4)"),
    "loop_with_a_fill_of_a_million": ('s, float("-inf"))', "s, -1e6)"),
    "loop_with_a_fill_of_a_billion": ('s, float("-inf"))', "s, -1e9)"),
    "loop_with_uncast_weights": ("p.to(v.dtype)", "p"),
}.items():
    changed("triton_inner_loop", loop_of_the_lesson, name, *change)
changed("row_in_blocks", pass_of_the_course, "pass_with_a_weak_fill", ', other=float("-inf"))', ", other=-1e4)")


# find_the_bug -------------------------------------------------------------------------------------------------------


@right(6, "find_the_bug")
def mended_by_a_shorter_slice(q, k, v, length, block_k):
    m, l, acc = torch.full(q.shape[:-1], -math.inf, dtype=q.dtype), 0.0, 0.0
    for start in range(0, length, block_k):
        stop = min(length, start + block_k)
        s = q @ k[..., start:stop, :].transpose(-2, -1) / math.sqrt(q.shape[-1])
        m_new = torch.maximum(m, s.amax(dim=-1))
        p = torch.exp(s - m_new[..., None])
        l = l * torch.exp(m - m_new) + p.sum(dim=-1)
        acc = acc * torch.exp(m - m_new)[..., None] + p @ v[..., start:stop, :]
        m = m_new
    return acc / l[..., None], m + torch.log(l)


@right(6, "find_the_bug")
def mended_by_splitting_what_is_in_use(q, k, v, length, block_k):
    used = zip(k[..., :length, :].split(block_k, dim=-2), v[..., :length, :].split(block_k, dim=-2), strict=True)
    top, total, blend = q.new_full((*q.shape[:-1], 1), -math.inf), 0.0, 0.0
    for keys, values in used:
        scores = q @ keys.mT * q.shape[-1] ** -0.5
        before, top = top, torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        shares, shrink = torch.exp(scores - top), torch.exp(before - top)
        total = total * shrink + shares.sum(dim=-1, keepdim=True)
        blend = blend * shrink + shares @ values
    return blend / total, (top + torch.log(total))[..., 0]


@right(6, "find_the_bug")
def mended_by_a_mask(q, k, v, length, block_k):
    top, total, blend = q.new_full((*q.shape[:-1], 1), -math.inf), 0.0, 0.0
    for start in range(0, length, block_k):
        block = slice(start, start + block_k)
        scores = q @ k[..., block, :].mT * q.shape[-1] ** -0.5
        behind = torch.arange(start, start + scores.shape[-1]) >= length
        scores = scores.masked_fill(behind, -math.inf)
        before, top = top, torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        shares, shrink = torch.exp(scores - top), torch.exp(before - top)
        total = total * shrink + shares.sum(dim=-1, keepdim=True)
        blend = blend * shrink + shares @ v[..., block, :]
    return blend / total, (top + torch.log(total))[..., 0]


@right(6, "find_the_bug")
def mended_with_a_common_maximum(q, k, v, length, block_k):
    scale, starts = q.shape[-1] ** -0.5, range(0, length, block_k)
    k, v = k[..., :length, :], v[..., :length, :]
    m = torch.stack([(q @ k[..., i : i + block_k, :].mT * scale).amax(-1) for i in starts]).amax(0)
    l, acc = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for i in starts:
        p = torch.exp(q @ k[..., i : i + block_k, :].mT * scale - m[..., None])
        l, acc = l + p.sum(-1), acc + p @ v[..., i : i + block_k, :]
    return acc / l[..., None], m + l.log()


@wrong(6, "find_the_bug")
def mended_in_one_piece(q, k, v, length, block_k):
    s = torch.einsum("...nd,...md->...nm", q, k[..., :length, :]) * q.shape[-1] ** -0.5
    return torch.softmax(s, dim=-1) @ v[..., :length, :], torch.logsumexp(s, dim=-1)


@wrong(6, "find_the_bug")
def mended_by_forgetting_the_cache(q, k, v, length, block_k):
    k[..., length:, :] = 0.0  # writes into its arguments
    return mended_by_a_shorter_slice(q, k, v, length, block_k)
