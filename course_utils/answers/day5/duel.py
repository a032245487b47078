"""The duel of day 5 as grading knows it: a thorough test, the weak ones that people write, and implementations of
which a learner sees nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_utils.answers.shared.duel import POINTS, lost
from course_utils.answers.shared.weak_tests import ALWAYS_NO, ALWAYS_YES, numbers
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.implementation import Implementation, right
from course_utils.days.day5.duel import Everything, Ring


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


UNSEEN: tuple[Implementation, ...] = (
    right("a list that is cut", CutList),
    right("room for twice as many", TwiceTheRoom),
    lost("odd windows", OddWindows),
    lost("a view makes it forget the oldest", ForgetsByView),
    lost("negative keys", NoNegativeKeys),
    lost("the third round", ThirdRound),
    lost("keys of another cache", keys_of_another, anew=True),
)  # fmt: skip


def duel() -> Exercise:
    """The exercise in which the answer is a test."""

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
        Mistake("no room for float32", plays(1e-9),
            "A cache in float32 fails: the tolerance is too small for its rounding, or the test asks for float64. That "
            "one is right too: 1e-3 is near enough."),
        Mistake("one example", plays(left_out=lambda *game: game != (3, 9, 2, 3, "")),
            "It plays one game. Many slips show with other windows, longer texts, or tokens that repeat."),
        Mistake("a look at the end only", plays(look_first=False),
            "It asks for a view at the end only. Ask before the window is full, and after each token."),
        Mistake("never two caches", plays(turns=False), "It never makes two caches and uses them in turns."),
        Mistake("short texts only", plays(left_out=lambda window, count, *rest: count > 9),
            "Its texts are short. Go on well beyond the window, to 40 tokens and more."),
    ))  # fmt: skip
