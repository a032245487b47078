"""Tests of implementations, as people write them: PyTorch or a plain loop for the truth, at random or by a list."""

import collections
import math

import numpy as np
import torch
import torch.nn.functional as F

from course_utils import loader

from . import right, wrong

ANY = loader.days_with_answers()
SIZES = [1, 2, 3, 4, 5, 7]


def t(x):
    return torch.as_tensor(np.array(x), dtype=torch.float64)


def close(got, wanted, atol=1e-3):
    wanted = np.asarray(wanted)
    return np.shape(got) == wanted.shape and np.allclose(got, wanted, atol=atol, rtol=1e-3)


# Day 1 --------------------------------------------------------------------------------------------------------------


def by_pytorch(q, k, v, mask=None):
    weights = F.scaled_dot_product_attention(t(q), t(k), torch.eye(k.shape[-2], dtype=torch.float64), mask)
    return (weights @ t(v)).numpy(), weights.numpy()


@right(1, "tells_right")
def attention_against_pytorch(f):
    rng = np.random.default_rng(5)
    far = np.array([[60.0, 0.0], [-60.0, 1.0], [0.5, 0.5]])
    cases = [(far, np.array([[30.0, 1.0], [31.0, 0.5], [30.5, 2.0], [31.0, 0.5]]), np.diag([1.0, -2.0, 3.0, 0.4]))]
    for lead in ((), (3,), (2, 2)):
        for n, m, d, e in zip(SIZES, SIZES[::-1], [3, 1, 5, 9, 2, 4], [2, 1, 3, 1, 5, 4], strict=True):
            cases.append([rng.normal(size=(*lead, *size)) for size in ((n, d), (m, d), (m, e))])
        cases.append([rng.normal(size=(*lead, 3, 3)) for _ in range(3)])
    for q, k, v in cases:
        for got, wanted in zip(f(q, k, v), by_pytorch(q, k, v), strict=True):
            assert close(got, wanted)
    return True


@right(1, "tells_right")
def attention_at_random(f):
    rng = np.random.default_rng(9)
    for i in range(60):
        lead = [(), (2,), (3, 2)][i % 3]
        n, m, d, e = rng.integers(1, 6, 4)
        q, k, v = (rng.integers(-3, 4, (*lead, *size)) / 2 for size in ((n, d), (m, d), (m, e)))
        if i % 5 == 0:
            q = q * 500
        output, weights = f(q, k, v)
        for at in np.ndindex(*lead, n):
            row = [float(np.dot(q[at], key)) / math.sqrt(d) for key in k[at[:-1]]]
            exps = [math.exp(x - max(row)) for x in row]
            share = [x / sum(exps) for x in exps]
            if not (close(weights[at], share) and close(output[at], share @ v[at[:-1]])):
                return False
    return True


# Day 2 --------------------------------------------------------------------------------------------------------------


@right(2, "tells_right")
def softmax_against_autograd(f):
    rng = np.random.default_rng(3)
    far = np.array([[2000.0, 1999.0, -2000.0], [-2000.0, -2001.0, -2002.0], [1.0, -np.inf, 2.0]])
    cases = [
        (far, rng.normal(size=(3, 3))),
        (far[:, ::-1], rng.normal(size=(3, 3))),
        (far[:2], rng.normal(size=(2, 3))),
    ]
    cases += [(np.array([[4.0, 0.5, 4.0, -1.0]]), np.array([[1.0, -3.0, 8.0, 2.0]]))]
    for shape in [(1,), (2,), (3,), (6,), (1, 4), (4, 1), (3, 5), (4, 4), (2, 3, 4), (3, 2, 2)]:
        cases += [(size * rng.normal(size=shape), 5 * rng.normal(size=shape)) for size in (0.3, 1, 3)]
    for x, dp in cases:
        given = t(x).requires_grad_()
        wanted = torch.softmax(given, -1)
        wanted.backward(t(dp))
        p, dx = f(x, dp)
        if not (close(p, wanted.detach()) and close(dx, given.grad)):
            return False
    return True


@right(2, "tells_right")
def softmax_by_loops(f):
    rng = np.random.default_rng(8)
    rows = [
        [5.0],
        [1.0, 1.0],
        [3000.0, -3000.0, 2999.0],
        [0.0, -math.inf, 3.0],
        [-5000.0, -5001.0, -5003.0],
        [4.0, 1, 0, 0],
    ]
    rows += [[-2000.0, 2000.0, 1999.0], *(list(rng.normal(size=m)) for m in SIZES)]
    for lead in ((), (3,), (2, 3)):
        for row in rows:
            x = np.broadcast_to(row, (*lead, len(row))) + rng.integers(0, 3, (*lead, 1)) * 1500.0 * (len(lead) > 0)
            x = x + rng.integers(0, 2, x.shape) / 2
            dp = 6 * rng.normal(size=x.shape)
            p, dx = f(x, dp)
            for at in np.ndindex(*lead):
                exps = [math.exp(each - max(x[at])) for each in x[at]]
                part = [each / sum(exps) for each in exps]
                mean = sum(a * b for a, b in zip(part, dp[at], strict=True))
                if not close(p[at], part) or not close(
                    dx[at], [a * (b - mean) for a, b in zip(part, dp[at], strict=True)]
                ):
                    return False
    square = rng.normal(size=(3, 3))
    p, dx = f(square, square.T)
    mean = (p * square.T).sum(-1, keepdims=True)
    return close(p.sum(-1), np.ones(3)) and close(dx, p * (square.T - mean))


# Day 3 --------------------------------------------------------------------------------------------------------------


@right(3, "tells_right")
def masked_against_pytorch(f):
    rng = np.random.default_rng(4)
    for i in range(70):
        lead = [(), (2,), (2, 3)][i % 3]
        n, m, d, e = (int(x) for x in rng.integers(1, 8, 4))
        q, k, v = (rng.normal(size=(*lead, *size)) for size in ((n, d), (m, d), (m, e)))
        mask = [rng.random((*lead, n, m)) < 0.4, rng.random((1, m)) < 0.6, rng.random((n, m)) < 0.5, np.tri(n, m) > 0][
            i % 4
        ]
        if i % 2:
            q, k = 200 * q, 100 * k
        whole = torch.as_tensor(np.array(np.broadcast_to(mask, (*lead, n, m))))
        output, weights = by_pytorch(q, k, v, whole)
        got = f(q, k, v, mask)
        if not (close(got[0], np.nan_to_num(output)) and close(got[1], np.nan_to_num(weights))):
            return False
    return True


@right(3, "tells_right")
def masked_by_what_a_blocked_key_does(f):
    rng = np.random.default_rng(6)
    for lead in ((), (3,), (2, 2)):
        for n, m in [(1, 4), (3, 3), (4, 4), (6, 6), (5, 7), (2, 6), (6, 2)]:
            for size in (1.0, 150.0):
                q, k, v = (rng.normal(size=(*lead, *shape)) for shape in ((n, 2), (m, 2), (m, 3)))
                for mask in (rng.random((*lead, n, m)) < 0.45, rng.random((1, m)) < 0.5, np.tri(n, m) > 0):
                    seen = np.array(np.broadcast_to(mask, (*lead, n, m)))
                    s = np.where(seen, size * size * q @ np.swapaxes(k, -1, -2) / math.sqrt(2), -np.inf)
                    with np.errstate(all="ignore"):
                        w = np.nan_to_num(np.exp(s - s.max(-1, keepdims=True)))
                        w = np.nan_to_num(w / w.sum(-1, keepdims=True))
                    output, weights = f(size * q, size * k, v, mask)
                    if not (close(output, w @ v) and close(weights, w)):
                        return False
    return True


# Day 4 --------------------------------------------------------------------------------------------------------------

LAYERS = [
    (1, 1, 1, 1),
    (2, 1, 3, 4),
    (4, 2, 3, 5),
    (6, 2, 2, 12),
    (3, 3, 4, 5),
    (4, 4, 1, 4),
    (6, 3, 2, 3),
    (8, 2, 1, 6),
]
LAYERS += [(5, 1, 2, 3), (2, 2, 4, 8)]


@right(4, "tells_right")
def heads_against_pytorch(f):
    rng = np.random.default_rng(2)
    for B, n, m in [(1, 2, 2), (2, 4, 3), (3, 2, 5)]:
        for h, g, d, D in LAYERS:
            for size in (1, 900):
                q = size * rng.normal(size=(B, n, h * d))
                k, v, w_o = rng.normal(size=(B, m, g * d)), rng.normal(size=(B, m, g * d)), rng.normal(size=(h * d, D))
                heads = [t(x).unflatten(-1, (count, d)).transpose(1, 2) for x, count in ((q, h), (k, g), (v, g))]
                wanted = F.scaled_dot_product_attention(*heads, enable_gqa=True).transpose(1, 2).flatten(2) @ t(w_o)
                if not close(f(q, k, v, w_o, h, g), wanted):
                    return False
    return True


@right(4, "tells_right")
def heads_by_loops(f):
    rng = np.random.default_rng(12)
    for i, (h, g, d, D) in enumerate(LAYERS * 4):
        B, n, m = [(1, 3, 3), (2, 1, 4), (2, 5, 2), (3, 3, 4)][i // len(LAYERS)]
        q, k, v = 6 * rng.normal(size=(B, n, h * d)), rng.normal(size=(B, m, g * d)), rng.normal(size=(B, m, g * d))
        q[:, 0] *= 300
        w_o = rng.normal(size=(h * d, D))
        joined = np.zeros_like(q)
        for b, row, head in np.ndindex(B, n, h):
            own, other = slice(head * d, head * d + d), slice(head // (h // g) * d, head // (h // g) * d + d)
            s = k[b][:, other] @ q[b, row, own] / d**0.5
            e = np.exp(s - s.max())
            joined[b, row, own] = e @ v[b][:, other] / e.sum()
        if not close(f(q, k, v, w_o, h, g), joined @ w_o):
            return False
    return True


# Day 5 --------------------------------------------------------------------------------------------------------------


def play(f, window, tokens, ask):
    cache, held = f(window), collections.deque(maxlen=window)
    for i, (k, v) in enumerate(tokens):
        cache.append(k, v)
        held.append((k, v))
        for _ in range(ask(i)):
            keys, values = cache.view()
            assert close(keys, [k for k, _ in held]) and close(values, [v for _, v in held])


@right(5, "tells_right")
def rings_against_a_deque(f):
    rng = np.random.default_rng(1)
    for window, count, d_k, d_v in [
        (1, 5, 2, 3),
        (2, 9, 1, 1),
        (3, 12, 3, 3),
        (4, 15, 2, 5),
        (10, 35, 4, 2),
        (18, 44, 2, 2),
    ]:
        tokens = [(rng.normal(size=d_k), rng.normal(size=d_v)) for _ in range(count)]
        tokens[2] = tokens[1]
        tokens[4] = (np.zeros(d_k), np.zeros(d_v))
        play(f, window, tokens, lambda i: 2 if i % 4 == 0 else 1)
    one, two = f(2), f(2)
    for i in range(4):
        one.append([i + 0.5], [2.0 * i])
        two.append([-i - 0.25], [3.0 * i])
    assert close(one.view()[0], [[2.5], [3.5]]) and close(two.view()[0], [[-2.25], [-3.25]])
    return True


@right(5, "tells_right")
def rings_in_turns(f):
    rng = np.random.default_rng(2)
    windows = [1, 2, 3, 5, 9, 16]
    caches, texts = [f(window) for window in windows], [[] for _ in windows]
    for step in range(48):
        for window, cache, text in zip(windows, caches, texts, strict=True):
            k, v = rng.normal(size=2).round(2), rng.normal(size=4).round(2)
            if step in (6, 7):
                k, v = np.zeros(2), np.zeros(4)
            if step in (9, 10, 11):
                k, v = np.ones(2) * 0.55, np.ones(4) * step
            cache.append(k, v)
            text.append((k, v))
            if step < 20 or step > 40:
                keys, values = cache.view()
                last = text[-window:]
                if not (close(keys, [k for k, _ in last]) and close(values, [v for _, v in last])):
                    return False
    return all(
        close(cache.view()[0], [k for k, _ in text[-w:]]) for w, cache, text in zip(windows, caches, texts, strict=True)
    )


# Day 6 --------------------------------------------------------------------------------------------------------------


def in_pytorch(q, k, v, causal):
    s = t(q) @ t(k).T / math.sqrt(q.shape[1])
    if causal:
        s = s.masked_fill(~torch.ones(s.shape, dtype=torch.bool).tril(len(k) - len(q)), -math.inf)
    return torch.softmax(s, -1) @ t(v), torch.logsumexp(s, -1)


@right(6, "tells_right")
def tiles_against_pytorch(f):
    rng = np.random.default_rng(7)
    shapes = [(1, 1, 1, 1), (3, 3, 2, 5), (4, 9, 3, 2), (8, 8, 4, 4), (7, 4, 5, 1), (2, 6, 9, 3), (5, 5, 1, 2)]
    for n, m, d, e in shapes:
        q, k, v = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(m, e))
        for block_q, block_k in [(1, 1), (1, 4), (2, 2), (2, 3), (3, 2), (4, 1), (4, 4), (20, 2), (3, 20), (20, 20)]:
            for causal in (False, True)[: 1 + (n <= m)]:
                for shift in (0, -2000):
                    keys = k + shift / d
                    queries = np.abs(q) + 1 if shift else 3 * q
                    got = f(queries, keys, v, block_q, block_k, causal)
                    for one, wanted in zip(got, in_pytorch(queries, keys, v, causal), strict=True):
                        if not close(one, wanted, atol=1e-3):
                            return False
    return True


@right(6, "tells_right")
def tiles_at_random(f):
    rng = np.random.default_rng(11)
    for i in range(240):
        n, m, d, e, block_q, block_k = (int(x) for x in rng.integers(1, 8, 6))
        causal = bool(i % 2) and n <= m
        q, k, v = (rng.integers(-4, 5, size) / 2 for size in ((n, d), (m, d), (m, e)))
        if i % 3 == 0:
            q, k = 40 * np.abs(q) + 40, -40 * np.abs(k) - 40 + rng.random(k.shape) / 20
        got = f(q, k, v, block_q, block_k, causal)
        if not all(close(one, wanted) for one, wanted in zip(got, in_pytorch(q, k, v, causal), strict=True)):
            return False
    return True


# Day 7 --------------------------------------------------------------------------------------------------------------


def blocks_as_promised(pool, n_blocks, size, calls):
    """Play calls, and look after each at all that is promised."""
    tables, counts = {}, {}
    for call in calls:
        seq = call[1]
        if call[0] == "append":
            holders = collections.Counter(block for table in tables.values() for block in table)
            table, at = tables.get(seq, ()), counts.get(seq, 0)
            opened = at % size != 0
            copies = opened and holders[table[-1]] > 1
            place = pool.append(seq)
            if place is None:
                assert (not opened or copies) and len(holders) == n_blocks
            else:
                assert place[1] == at % size
                assert 0 <= place[0] < n_blocks
                if opened and not copies:
                    assert place[0] == table[-1]
                else:
                    assert place[0] not in holders
                    tables[seq] = (*(table[:-1] if copies else table), place[0])
                counts[seq] = at + 1
        elif seq in tables and call[0] == "free":
            pool.free(seq)
            del tables[seq], counts[seq]
        elif seq in tables and call[0] == "fork" and call[2] not in tables:
            pool.fork(seq, call[2])
            tables[call[2]], counts[call[2]] = tables[seq], counts[seq]
        for name in list(tables)[-3:]:
            assert tuple(pool.table(name)) == tables[name]
    return True


def some_calls(rng, count):
    for _ in range(count):
        kind = rng.choice(["append"] * 7 + ["fork", "free"])
        yield (str(kind), int(rng.integers(8)), int(rng.integers(8)))


@right(7, "tells_right")
def pools_by_a_model(f):
    rng = np.random.default_rng(12)
    for n_blocks, size in [(1, 2), (3, 1), (5, 3), (10, 4), (16, 5), (30, 2)]:
        if not blocks_as_promised(f(n_blocks, size), n_blocks, size, list(some_calls(rng, 250))):
            return False
    one, two = f(2, 1), f(2, 1)
    places = [pool.append(0) for pool in (one, two, one, two)]
    return None not in places and one.append(0) is None and two.append(0) is None


@right(7, "tells_right")
def pools_by_scripts(f):
    """Short games that somebody thought of, and a long one."""
    for n_blocks, size in [(2, 2), (4, 3), (9, 2), (10, 5), (6, 1)]:
        grow = [("append", 0)] * (size + 1)
        fork = [("fork", 0, 1), ("fork", 1, 2), ("fork", 0, 3)]
        both = [("append", name) for name in (1, 0, 2, 3, 1, 0, 2, 3)]
        fill = [("append", name) for name in (4, 5, 6, 7) for _ in range(size * n_blocks // 4 + 2)]
        again = [("free", 2), ("free", 1), *both, *grow, ("free", 0), *fill[: 2 * size]]
        calls = grow + fork + both + fill + again + fill + [("free", n) for n in range(8)] + fill
        assert blocks_as_promised(f(n_blocks, size), n_blocks, size, calls)
    games = [(f(7, 3), collections.deque(some_calls(np.random.default_rng(5), 300))) for _ in range(2)]
    return all(blocks_as_promised(pool, 7, 3, calls) for pool, calls in games) and pools_by_a_model(f)


# Day 8 --------------------------------------------------------------------------------------------------------------


@right(8, "tells_right")
def scores_that_move_along(f):
    rng = np.random.default_rng(4)
    for d in (2, 4, 8, 14, 32):
        for away in (0, 1, 2, 9, 50, -1, -6):
            q, k = rng.normal(size=d), rng.normal(size=d)
            starts = [abs(min(away, 0)), 7, 8, 21, 64, 100, 210, 300, 511, 640, 940]
            first, *others = [f(q, k, start + away, start) for start in starts]
            for other in others:
                assert abs(other - first) < 2e-3 * max(1, abs(first))
    return True


@right(8, "tells_right")
def scores_at_random(f):
    rng = np.random.default_rng(12)
    for n in range(300):
        d = [2, 4, 6, 10, 20][n % 5]
        q, k = rng.integers(-4, 5, (2, d)) / 2 + 0.1
        i, j = (int(x) for x in rng.integers(0, [9, 40, 450][n % 3], 2))
        i, j = (i, 0) if n % 7 == 0 else (0, j) if n % 7 == 1 else (i, j)
        move = int(rng.integers(1, [6, 80, 500][n // 5 % 3]))
        if not np.isclose(f(q, k, i, j), f(q, k, i + move, j + move), rtol=1e-3, atol=1e-3):
            return False
    return True


# Worth nothing ------------------------------------------------------------------------------------------------------

Q, K, V = np.array([[1.0, 0.5], [0.3, -1.0]]), np.array([[0.7, 0.2], [0.1, 0.9], [1.1, -0.4]]), np.eye(3) - 0.2
SAMPLES = {
    1: (Q, K, V),
    2: (K, V[:, :2]),
    3: (Q, K, V, np.array([[True, False, True], [True, True, True]])),
    4: (Q[None], K[None], K[None], np.eye(2), 1, 1),
    5: (3,),
    6: (Q, K, V, 2, 2, False),
    7: (3, 2),
    8: (Q[0], K[1], 5, 2),
}


def result_of(f, day):
    found = f(*SAMPLES[day])
    if day == 5:
        for k, v in zip(K, V, strict=True):
            found.append(k, v)
        found = found.view()
    if day == 7:
        found = tuple(np.array(found.append(0)) for _ in range(3))
    return found if isinstance(found, tuple) else (np.asarray(found),)


def worth_nothing(day):
    first = []

    def says_right_to_all(f):
        result_of(f, day)
        return True

    def says_wrong_to_all(f):
        return False

    def asks_for_the_bits_of_the_first(f):
        got = result_of(f, day)
        first.append(first[0] if first else got)
        return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(got, first[0], strict=True))

    def asks_for_float64(f):
        return all(part.dtype == np.float64 for part in result_of(f, day)) and np.isfinite(result_of(f, day)[0]).all()

    def returns_nothing(f):
        result_of(f, day)

    def returns_the_result(f):
        return result_of(f, day)

    def looks_for_a_name(f):
        return f.__name__ != "wrong"

    return (
        says_right_to_all,
        says_wrong_to_all,
        asks_for_the_bits_of_the_first,
        asks_for_float64,
        returns_nothing,
        (returns_the_result),
        looks_for_a_name,
    )


for day in ANY:
    for answer in worth_nothing(day):
        wrong(day, "tells_right")(answer)
