"""The exercises in which the answer is a test: a thorough one for each day, and the weak ones that people write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_utils.attention import arrays

from ..exercise import Exercise, Mistake
from ..inputs.promises import BrokenPromise
from ..watches import AllocatorWatch
from .weak_tests import ALWAYS_NO, ALWAYS_YES, first_part_only, numbers, test_of, weak_tests

POINTS = 4


def duel(day: int) -> Exercise:
    """The exercise of a day."""
    return {1: attention, 2: softmax_and_back, 3: masked, 4: heads, 5: rings, 6: tiles, 7: pools}[day]()


def exercise(truth: Callable, cases: list[tuple], kinds: tuple, *more: Mistake) -> Exercise:
    """truth: what is right, on each of the cases. kinds: see `weak_tests`."""
    return Exercise(POINTS, {"tells_right": test_of(truth, cases)}, (*weak_tests(truth, cases, kinds), *more))


def attention() -> Exercise:
    some = numbers(1)
    sizes = [
        (3, 4, 3, 2),
        (1, 1, 1, 1),
        (1, 6, 5, 1),
        (5, 3, 2, 4),
        (4, 4, 4, 3),
        (2, 7, 9, 2),
        (6, 2, 3, 3),
        (3, 3, 2, 2),
    ]
    cases: list[tuple[Any, ...]] = [(some(n, d), some(m, d), some(m, e)) for n, m, d, e in sizes]
    cases += [tuple(some(*lead, *shape) for shape in ((2, 3), (4, 3), (4, 2))) for lead in ((2,), (2, 3))]
    q, k, v = some(2, 2), some(4, 2), some(4, 3) + 0.3
    near, far = (
        np.array([[40.0, 40.0], [1.0, 0.0]]),
        np.array([[30.0, 30.0], [30.0, 29.0], [-3.0, 1.0], [-30.0, -29.0]]),
    )
    cases += [(q, k[[0, 0, 1, 2]], v), (near, far, v), (-near, far, v)]
    return exercise(
        arrays.attention,
        cases,
        (
            ("square only", lambda q, k, v: q.shape[-2:] != k.shape[-2:] or k.shape != v.shape,
                "All its examples have n = m and d_k = d_v. Let every size differ from the others."),
            ("no leading axes", lambda q, k, v: q.ndim > 2, "It never tries a batch. Put one axis in front, then two."),
            ("small scores only", lambda q, k, v: bool(np.abs(q).max() > 30),
                "Its scores are all small. Try some in the hundreds, of both signs, and rows that lie far apart."),
        ),
        Mistake("output only", test_of(arrays.attention, cases, first_part_only),
            "It compares outputs only. Compare the weights that come with them too."),
    )  # fmt: skip


def softmax_and_back() -> Exercise:
    def truth(x, dp):
        p = arrays.softmax(x)
        return p, p * dp - p * (p * dp).sum(-1, keepdims=True)

    some = numbers(2)
    shapes = [(3, 4), (1,), (2,), (3,), (5, 2), (3, 3), (4, 1), (2, 6), (2, 3, 5), (2, 2, 3), (7,)]
    cases = [(some(*shape), some(*shape) + 0.3) for shape in shapes]
    steep = np.array([[0.0, 3.5, -1.0, 0.5], [1.0, 1.0, 0.0, -2.0]])
    cases += [(steep, 4 * some(2, 4) + 0.3)]
    large = np.array([[3000.0, 3001.0, -3000.0], [-3000.0, -3002.0, -3001.0], [0.0, -2900.0, 2.0]])
    cases += [(large, some(3, 3) + 0.2), (large[:, ::-1], some(3, 3) + 0.2)]
    cases += [(np.array([[0.5, -np.inf, 1.0], [0.0, 2.0, -np.inf]]), some(2, 3) + 0.2)]
    cases += [
        (np.array([[2.0, 2.0, 0.0]]), np.array([[1.0, -2.0, 0.5]])),
        (np.array([[60.0, 10.0, 59.0]]), some(1, 3) + 0.1),
    ]
    return exercise(
        truth,
        cases,
        (
            ("one row only", lambda x, dp: x.ndim > 1, "It never tries several rows at once."),
            ("small entries only", lambda x, dp: bool(np.abs(x).max() > 30),
                "Its entries are all small. Try thousands, of both signs, and −∞."),
        ),
        Mistake("the weights alone", test_of(truth, cases, first_part_only),
            "It looks at p alone. The gradient dx is the second result: compare it with what you work out."),
    )  # fmt: skip


def masked() -> Exercise:
    some = numbers(3)
    rng = np.random.default_rng(3)

    def case(n, m, d, e, *lead, mask=None):
        seen = rng.random((*lead, n, m)) < 0.5 if mask is None else mask
        return some(*lead, n, d), some(*lead, m, d), some(*lead, m, e) + 0.3, seen

    blind = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=bool)
    cases = [case(3, 4, 3, 2, mask=np.array([[1, 0, 1, 0], [0, 1, 1, 1], [0, 1, 0, 0]], dtype=bool))]
    cases += [case(*sizes) for sizes in [(4, 4, 2, 3), (5, 6, 3, 2), (2, 7, 2, 1), (6, 3, 4, 2), (1, 5, 3, 3)]]
    cases += [case(4, 4, 3, 2, mask=np.tri(4, dtype=bool)), case(6, 6, 2, 2, mask=~np.tri(6, k=-1, dtype=bool))]
    cases += [case(3, 4, 3, 2, mask=np.array([[1, 0, 1, 1]], dtype=bool)), case(3, 4, 2, 2, mask=blind)]
    cases += [case(3, 4, 2, 2, 3), case(3, 3, 2, 2, 2, 2), case(2, 4, 2, 2, 2, mask=blind[:2])]
    large = (
        100 * np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]),
        300 * np.array([[1.0, 1.0], [0.9, 1.0], [-1.0, 0.5]]),
    )
    cases += [
        (*large, some(3, 2) + 0.3, np.array(mask, dtype=bool))
        for mask in ([[0, 1, 1], [1, 0, 0], [1, 1, 0]], [[0, 0, 1], [1, 1, 0], [0, 1, 1]])
    ]
    truth = arrays.attention
    return exercise(
        truth,
        cases,
        (
            ("no query that sees nothing", lambda q, k, v, mask: not mask.any(-1).all(),
                "Each of its queries sees something. A query that sees nothing has to get zeros."),
            ("causal masks alone", lambda q, k, v, mask: mask.shape != (4, 4) or not np.array_equal(mask, np.tri(4)),
                "It tries a causal mask alone. Masks have holes, and differ from query to query, from text to text."),
            ("small scores only", lambda q, k, v, mask: bool(np.abs(q).max() > 30),
                "Its scores are all small. Try thousands: a blocked key may have by far the largest."),
        ),
        Mistake("the weights of a single text", test_of(truth, [case for case in cases if case[0].ndim == 2]),
            "It never tries a batch. Put one axis in front, then two, with a mask for each text."),
    )  # fmt: skip


def heads() -> Exercise:
    def truth(q, k, v, w_o, n_heads, n_kv_heads):
        width = q.shape[-1] // n_heads
        parts = []
        for head in range(n_heads):
            key_head = head // (n_heads // n_kv_heads)
            own, other = slice(head * width, (head + 1) * width), slice(key_head * width, (key_head + 1) * width)
            parts.append(arrays.attention(q[..., own], k[..., other], v[..., other])[0])
        return np.concatenate(parts, axis=-1) @ w_o

    some = numbers(4)

    def case(B, n, m, h, h_kv, d, D, size=1.0):
        k, v = some(B, m, h_kv * d), some(B, m, h_kv * d) + 0.3
        return size * some(B, n, h * d), k, v, some(h * d, D), h, h_kv

    sizes = [
        (1, 3, 3, 4, 2, 3, 5),
        (2, 3, 5, 6, 2, 3, 4),
        (1, 1, 1, 1, 1, 1, 1),
        (2, 4, 2, 3, 3, 2, 6),
        (2, 2, 3, 4, 1, 2, 8),
    ]
    sizes += [(3, 3, 4, 2, 2, 4, 5), (1, 2, 4, 6, 3, 1, 6), (2, 5, 5, 8, 2, 2, 3), (1, 4, 4, 3, 1, 5, 2)]
    cases = [case(*each) for each in sizes] + [
        case(1, 2, 4, 2, 1, 2, 3, size=1000.0),
        case(1, 3, 2, 2, 2, 3, 3, -1000.0),
    ]
    return exercise(
        truth,
        cases,
        (
            ("one key head for each head", lambda q, k, v, w_o, h, g: h != g,
                "In all its examples h_kv = h. Groups are what is hard: let h be two and three times h_kv."),
            ("one text only", lambda q, k, v, w_o, h, g: len(q) > 1, "It never tries a batch."),
            ("n = m only", lambda q, k, v, w_o, h, g: q.shape[1] != k.shape[1], "In all its examples n = m."),
        ),
        Mistake("groups of two only", test_of(truth, [case for case in cases if case[-2] == 2 * case[-1]]),
            "In all its examples a group has two query heads. Try other numbers of heads, and h_kv = 1 and h_kv = h."),
    )  # fmt: skip


def rings() -> Exercise:
    def plays(
        near: float = 1e-3, left_out: Callable = lambda *game: False, look_first: bool = True, turns: bool = True
    ):
        """A test that plays these games: (window, tokens, d_k, d_v, of what kind they are)."""
        games = [
            (3, 9, 2, 3, ""),
            (1, 4, 2, 2, ""),
            (2, 7, 3, 3, ""),
            (4, 14, 1, 4, ""),
            (9, 24, 2, 2, ""),
            (20, 45, 2, 3, ""),
        ]
        games += [(3, 8, 2, 2, "repeats"), (4, 9, 2, 2, "zeros")]
        games = [game for game in games if not left_out(*game)]

        def agrees(view, keys, values):
            return all(np.shape(got) == wanted.shape and np.allclose(got, wanted, rtol=near, atol=near)
                for got, wanted in zip(view, (keys, values), strict=True))  # fmt: skip

        def tells_right(f):
            some = numbers(5)
            for window, count, d_k, d_v, kind in games:
                keys, values = some(count, d_k) + 0.37, some(count, d_v) - 0.21
                if kind == "repeats":
                    keys[1::2] = keys[::2]
                if kind == "zeros":
                    keys[2], values[2] = 0.0, 0.0
                cache, silent = f(window), f(window)
                for i in range(count):
                    cache.append(keys[i], values[i])
                    if turns:
                        silent.append(-keys[i], values[i])
                    first = max(0, i + 1 - window)
                    if (look_first or i == count - 1) and not agrees(
                        cache.view(), keys[first : i + 1], values[first : i + 1]
                    ):
                        return False
                if not agrees(cache.view(), keys[first:], values[first:]):
                    return False
                if turns and not agrees(silent.view(), -keys[first:], values[first:]):
                    return False
            return True

        return tells_right

    return Exercise(POINTS, {"tells_right": plays()}, (
        ALWAYS_YES,
        ALWAYS_NO,
        Mistake("a tolerance for float64", plays(1e-9),
            "Its tolerance is so small that a cache in float32 fails. That one is right too: 1e-3 is near enough."),
        Mistake("one example", plays(left_out=lambda *game: game != (3, 9, 2, 3, "")),
            "It plays one game. Many slips show with other windows, longer texts, or tokens that repeat."),
        Mistake("a look at the end only", plays(look_first=False),
            "It asks for a view at the end only. Ask before the window is full, and after each token."),
        Mistake("never two caches", plays(turns=False), "It never makes two caches and uses them in turns."),
        Mistake("short texts only", plays(left_out=lambda window, count, *rest: count > 9),
            "Its texts are short. Go on well beyond the window, to 40 tokens and more."),
    ))  # fmt: skip


def tiles() -> Exercise:
    def truth(q, k, v, block_q, block_k, causal):
        mask = np.tri(len(q), len(k), k=len(k) - len(q), dtype=bool) if causal else None
        output = arrays.attention(q, k, v, mask)[0]
        s = q @ k.T / np.sqrt(q.shape[-1])
        return output, arrays.logsumexp(s if mask is None else np.where(mask, s, -np.inf))

    some = numbers(6)

    def case(n, m, d, e, block_q, block_k, causal, shift=0.0):
        return 2 * some(n, d) + 0.1, some(m, d) + shift, some(m, e) + 0.3, block_q, block_k, causal

    sizes = [
        (5, 7, 3, 2, 2, 3),
        (1, 1, 1, 1, 1, 1),
        (4, 4, 2, 3, 2, 2),
        (3, 8, 9, 2, 2, 3),
        (7, 5, 5, 1, 3, 2),
        (6, 6, 4, 4, 4, 2),
    ]
    sizes += [(2, 3, 2, 2, 8, 8), (3, 5, 2, 2, 1, 1), (3, 12, 3, 2, 3, 2), (9, 9, 2, 2, 2, 4)]
    cases = [case(*size, False) for size in sizes] + [case(*size, True) for size in sizes if size[0] <= size[1]]
    low = np.full((3, 2), 40.0), np.array([[-40.0, -40.0], [-40.1, -40.0], [-40.05, -40.0], [-40.2, -40.1]])
    cases += [(*low, some(4, 2) + 0.3, 2, 2, causal) for causal in (False, True)]
    steps = np.array([[0.0], [-3.0], [1.0], [6.0], [2.0]])
    cases += [(np.ones((2, 1)), keys, some(5, 2) + 0.3, 2, 2, False) for keys in (steps, steps[::-1].copy())]
    return exercise(
        truth,
        cases,
        (
            ("never causal", lambda q, k, v, bq, bk, causal: causal, "It never sets causal."),
            ("blocks that divide", lambda q, k, v, bq, bk, causal: len(q) % bq or len(k) % bk,
                "All its blocks divide n and m. Choose some that do not, of one, and larger than the text."),
            ("one tile", lambda q, k, v, bq, bk, causal: len(q) > bq or len(k) > bk,
                "In all its examples one tile holds everything. Let there be several, in both directions."),
        ),
        Mistake("output only", test_of(truth, cases, first_part_only),
            "It compares outputs only. Compare the log-sum-exps that come with them too."),
    )  # fmt: skip


def pools() -> Exercise:
    def plays(
        games: tuple = ((1, 1), (2, 1), (4, 2), (3, 5), (12, 3), (20, 2), (7, 6)),
        steps: int = 160,
        forks: bool = True,
        frees: bool = True,
        tables: bool = True,
        two: bool = True,
        pinned: bool = False,
    ) -> Callable:
        """A test that plays these games, (n_blocks, block_size), with random calls, and keeps books of its own."""

        def tells_right(f):
            for n_blocks, block_size in games:
                books = [Book(f(n_blocks, block_size), n_blocks, block_size, pinned) for _ in range(1 + two)]
                rng = np.random.default_rng(n_blocks)
                for step in range(steps):
                    seq, new, kind = int(rng.integers(7)), int(rng.integers(7)), rng.random()
                    for book in books:
                        if forks and kind < 0.15:
                            book.fork(seq, new)
                        elif frees and kind > 0.88:
                            book.free(seq)
                        elif not book.append(seq):
                            return False
                    if tables and step % 4 == 0 and not all(book.agrees() for book in books):
                        return False
            return True

        return tells_right

    return Exercise(POINTS, {"tells_right": plays()}, (
        ALWAYS_YES,
        ALWAYS_NO,
        Mistake("a certain block", plays(pinned=True),
            "It expects a certain block. Which of the free ones is handed out is not promised: look only whether it is "
            "free."),
        Mistake("one example", plays(games=((4, 2),), steps=6, two=False),
            "It plays one short game. Many slips show in longer ones, with other sizes."),
        Mistake("never forks", plays(forks=False), "It never forks. Sharing is where most slips are."),
        Mistake("never frees", plays(frees=False), "It never frees. Look what becomes of blocks that come back."),
        Mistake("never looks at a table", plays(tables=False),
            "It never asks for a table. That shows what the places of tokens do not."),
        Mistake("never full", plays(games=((500, 3),)), "Its pool is so large that nothing is ever refused."),
        Mistake("never two allocators", plays(two=False), "It never makes two allocators and uses them in turns."),
    ))  # fmt: skip


class Book:
    """An allocator, and beside it the watch that knows what it promised."""

    def __init__(self, made: Any, n_blocks: int, block_size: int, pinned: bool = False):
        self.made, self.watch, self.pinned = made, AllocatorWatch(n_blocks, block_size), pinned

    def append(self, seq: int) -> bool:
        """Append, and say whether what came back was promised."""
        held = {block for table in self.watch.tables.values() for block in table}
        lowest = min(set(range(self.watch.n_blocks)) - held, default=None)
        place = self.made.append(seq)
        if self.pinned and place is not None and place[0] not in {*held, lowest}:
            return False
        return self._keeps("append", (seq,), place, None if place is not None else MemoryError)

    def fork(self, seq: int, new: int) -> None:
        if seq in self.watch.tables and new not in self.watch.tables:
            self.made.fork(seq, new)
            self._keeps("fork", (seq, new))

    def free(self, seq: int) -> None:
        if seq in self.watch.tables:
            self.made.free(seq)
            self._keeps("free", (seq,))

    def agrees(self) -> bool:
        """Whether the tables are those that were heard of."""
        return all(self._keeps("table", (seq,), list(self.made.table(seq))) for seq in self.watch.tables)

    def _keeps(self, method: str, args: tuple, result: Any = (), error: type[Exception] | None = None) -> bool:
        try:
            self.watch.hear(method, args, result, error)
        except BrokenPromise:
            return False
        return True
