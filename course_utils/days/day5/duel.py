"""Day 5: caches of a sliding window. f(window) makes one; .append(k, v) takes a token in, .view() gives (keys, values).

k (d_k), v (d_v) -> keys (m, d_k), values (m, d_v) of the last `window` tokens, oldest first.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from course_utils.checks.judge.implementation import right, wrong


class Ring:
    """Token number p lives in slot p % window, over the one that was there."""

    def __init__(self, window):
        self.window = window
        self.size = window
        self.n = 0
        self.k, self.v = {}, {}

    def slot(self, p):
        return p % self.size

    def append(self, k, v):
        self.put(self.slot(self.n), np.asarray(k, dtype=float), np.asarray(v, dtype=float))
        self.n += 1

    def put(self, slot, k, v):
        self.k[slot] = k
        self.v[slot] = v

    def order(self):
        return [self.slot(p) for p in range(max(0, self.n - self.window), self.n)]

    def view(self):
        order = self.order()
        return np.array([self.k[s] for s in order]), np.array([self.v[s] for s in order])


class Queue:
    def __init__(self, window):
        self.tokens = deque(maxlen=window)

    def append(self, k, v):
        self.tokens.append((np.asarray(k, dtype=float), np.asarray(v, dtype=float)))

    def view(self):
        return np.stack([k for k, _ in self.tokens]), np.stack([v for _, v in self.tokens])


class Everything:
    """Keeps all tokens, and shows the last."""

    kind: type = float

    def __init__(self, window):
        self.window = window
        self.k = []
        self.v = []

    def append(self, k, v):
        self.k.append(np.asarray(k, dtype=self.kind))
        self.v.append(np.asarray(v, dtype=self.kind))

    def view(self):
        return np.array(self.k[-self.window :]), np.array(self.v[-self.window :])


class InSinglePrecision(Everything):
    kind = np.float32


class Concatenated:
    """One array that grows and is cut."""

    def __init__(self, window):
        self.window = window
        self.k = None
        self.v = None

    def append(self, k, v):
        k, v = np.asarray(k, dtype=float)[None], np.asarray(v, dtype=float)[None]
        self.k = k if self.k is None else np.concatenate([self.k, k])[-self.window :]
        self.v = v if self.v is None else np.concatenate([self.v, v])[-self.window :]

    def view(self):
        return self.k.copy(), self.v.copy()


class Rolled(Everything):
    """When it is full all rows move up by one, and the new one comes last."""

    def append(self, k, v):
        for rows, row in ((self.k, k), (self.v, v)):
            if len(rows) == self.window:
                del rows[0]
            rows.append(np.asarray(row, dtype=float))


class Mirrored(Ring):
    """Each token is written twice, so that every window lies in one piece."""

    def append(self, k, v):
        for slot in (self.n % self.window, self.n % self.window + self.window):
            self.put(slot, np.asarray(k, dtype=float), np.asarray(v, dtype=float))
        self.n += 1

    def order(self):
        first = self.n % self.window if self.n >= self.window else 0
        return range(first, first + min(self.n, self.window))


class ByPosition(Ring):
    """A dict by position; what is too old is deleted."""

    def append(self, k, v):
        self.put(self.n, np.asarray(k, dtype=float), np.asarray(v, dtype=float))
        self.k.pop(self.n - self.window, None)
        self.v.pop(self.n - self.window, None)
        self.n += 1

    def order(self):
        return sorted(self.k)


class Linked:
    """Each token knows the one before it."""

    def __init__(self, window):
        self.window = window
        self.last = None

    def append(self, k, v):
        self.last = (np.asarray(k, dtype=float), np.asarray(v, dtype=float), self.last)

    def view(self):
        rows = []
        node = self.last
        while node is not None and len(rows) < self.window:
            rows.append(node)
            node = node[2]
        return np.array([k for k, _, _ in rows[::-1]]), np.array([v for _, v, _ in rows[::-1]])


class TwoHalves(Everything):
    """Old tokens go in bulk, when there are twice as many as are needed."""

    def append(self, k, v):
        super().append(k, v)
        if len(self.k) >= 2 * self.window:
            self.k, self.v = self.k[-self.window :], self.v[-self.window :]


class RoomToSpare(Ring):
    """Room for a few more than the window."""

    def __init__(self, window):
        super().__init__(window)
        self.size = window + 3


class Joined(Queue):
    """Key and value of a token lie in one row."""

    def append(self, k, v):
        self.width = len(k)
        self.tokens.append(np.concatenate([np.asarray(k, dtype=float), np.asarray(v, dtype=float)]))

    def view(self):
        rows = np.array(self.tokens)
        return rows[:, : self.width], rows[:, self.width :]


# Wrong ones


class NeverTurned(Ring):
    def order(self):
        return range(min(self.n, self.window))


class TurnedOnceMore(Ring):
    def order(self):
        slots = super().order()
        return slots if self.n < self.window else slots[1:] + slots[:1]


class TurnedLate(Ring):
    def order(self):
        slots = super().order()
        return slots if self.n <= 2 * self.window else sorted(slots)


class NewestFirst(Ring):
    def order(self):
        return super().order()[::-1]


class Exchanged(Ring):
    def view(self):
        return super().view()[::-1]


class ValuesNotTurned(Ring):
    def view(self):
        k, _ = super().view()
        return k, np.array([self.v[s] for s in range(min(self.n, self.window))])


class OneMore(Ring):
    def __init__(self, window):
        super().__init__(window + 1)


class OneLess(Ring):
    def __init__(self, window):
        super().__init__(max(1, window - 1))


class AtMostEight(Ring):
    def __init__(self, window):
        super().__init__(min(window, 8))


class StopsWhenFull(Ring):
    def append(self, k, v):
        if self.n < self.window:
            super().append(k, v)


class BeginsAnew(Ring):
    def append(self, k, v):
        if self.n == self.window:
            self.n = 0
        super().append(k, v)


class LastSlotAgain(Ring):
    """When full, the newest token is written over the one before."""

    def slot(self, p):
        return min(p, self.window - 1)

    def order(self):
        return range(min(self.n, self.window))


class KeepsTheFirst(Ring):
    def view(self):
        k, v = super().view()
        if self.n > self.window:
            k[0], v[0] = self.first
        return k, v

    def append(self, k, v):
        if self.n == 0:
            self.first = np.asarray(k, dtype=float), np.asarray(v, dtype=float)
        super().append(k, v)


class FilledUp(Ring):
    def view(self):
        k, v = super().view()
        room = self.window - len(k)
        return np.concatenate([k, np.zeros((room, k.shape[1]))]), np.concatenate([v, np.zeros((room, v.shape[1]))])


class ShortUntilFull(Ring):
    def order(self):
        slots = super().order()
        return slots[1:] if 1 < self.n < self.window else slots


class EmptiedByView(Ring):
    def view(self):
        rows = super().view()
        self.n = 0
        return rows


class DropsByView(Ring):
    def view(self):
        rows = super().view()
        if self.n > 1:
            self.window = max(1, self.window - 1)
        return rows


class Stale(Ring):
    """Remembers a view for as long as the number of tokens in it stays."""

    seen = (0, None)

    def view(self):
        if self.seen[0] != min(self.n, self.window):
            self.seen = (min(self.n, self.window), super().view())
        return self.seen[1]


def shared():
    """A cache that keeps in its class what it keeps."""

    class Shared(Ring):
        kept: dict = {}  # noqa: RUF012
        values: dict = {}  # noqa: RUF012

        def __init__(self, window):
            super().__init__(window)
            self.k, self.v = self.kept, self.values

    return Shared


class WithoutRepeats(Ring):
    def append(self, k, v):
        k = np.asarray(k, dtype=float)
        if self.n and np.array_equal(k, self.k[self.slot(self.n - 1)]):
            return
        super().append(k, v)


class WithoutZeros(Ring):
    def append(self, k, v):
        if np.any(k) or np.any(v):
            super().append(k, v)


class LosesTheTenth(Ring):
    calls = 0

    def append(self, k, v):
        self.calls += 1
        if self.calls % 10:
            super().append(k, v)


class UpTo32(Ring):
    """After 32 tokens nothing more is taken in."""

    def append(self, k, v):
        if self.n < 32:
            super().append(k, v)


class EvenWindows(Ring):
    def order(self):
        slots = super().order()
        return slots[::-1] if self.window % 2 == 0 and self.n > self.window else slots


class WindowOfOne(Ring):
    def append(self, k, v):
        if self.window > 1 or self.n == 0:
            super().append(k, v)


class NarrowValues(Ring):
    def append(self, k, v):
        width = min(len(k), len(v))
        super().append(k, np.concatenate([np.asarray(v, dtype=float)[:width], np.zeros(len(v) - width)]))


class WholeNumbers(Ring):
    def append(self, k, v):
        super().append(np.trunc(k), np.trunc(v))


class OneDecimal(Ring):
    def put(self, slot, k, v):
        super().put(slot, k.round(1), v.round(1))


class NoNegatives(Ring):
    def append(self, k, v):
        super().append(k, np.maximum(v, 0))


class RunningMean(Ring):
    """The oldest value takes up those that went before it."""

    gone = 0.0

    def append(self, k, v):
        if self.n >= self.window:
            self.gone = self.gone + self.v[self.slot(self.n)]
        super().append(k, v)

    def view(self):
        k, v = super().view()
        v[0] = v[0] + 0.1 * self.gone
        return k, v


LONGER = "Take more tokens than the window, and look after each of them."

CALLS = {"": ("window",), "append": ("k", "v"), "view": ()}  # what a test may call, and how

IMPLEMENTATIONS = (
    right("slots that come round", Ring),
    right("a deque", Queue),
    right("all tokens in a list", Everything,
        "It keeps every token and shows the last ones. The statement does not forbid that."),
    right("in float32", InSinglePrecision,
        "This one keeps float32. It is right: leave room for rounding, 1e-3 say, and never ask for ==."),
    right("one array, concatenated and cut", Concatenated),
    right("rows that move up", Rolled),
    right("every token twice", Mirrored),
    right("a dict by position", ByPosition),
    right("a linked list", Linked),
    right("old tokens dropped in bulk", TwoHalves),
    right("room for three more", RoomToSpare),
    right("key and value in one row", Joined),
    wrong("never turned", NeverTurned,
        "It shows the slots as they lie. Once the ring has gone round, that is not the order of the tokens.",
        LONGER, gross=True),
    wrong("turned once too often", TurnedOnceMore, "When full, the oldest token comes last.", LONGER, gross=True),
    wrong("turned in the first round only", TurnedLate, "After twice the window, it shows the slots as they lie.",
        LONGER),
    wrong("newest first", NewestFirst, "The newest token comes first.", "Two tokens that differ show it.", gross=True),
    wrong("values before keys", Exchanged, "It returns (values, keys).", "Let keys and values differ."),
    wrong("values not turned", ValuesNotTurned, "The keys are in order, but the values lie as in the slots.",
        LONGER + " Look at both."),
    wrong("one token more", OneMore, "Its window is one too long.", LONGER),
    wrong("one token less", OneLess, "Windows of 2 and more are one too short.", LONGER),
    wrong("a window of eight at most", AtMostEight, "It keeps at most eight tokens.", "Try other windows."),
    wrong("full, and that is it", StopsWhenFull, "When the window is full, it takes no more tokens.", LONGER),
    wrong("full, and from the start", BeginsAnew, "When the window is full, it forgets everything.", LONGER),
    wrong("the last slot again and again", LastSlotAgain, "When full, a new token takes the place of the newest.",
        LONGER),
    wrong("the first token stays", KeepsTheFirst, "The very first token stays the oldest forever.", LONGER),
    wrong("filled up with zeros", FilledUp, "Until the window is full, the view has rows of zeros.",
        "Look before the window is full."),
    wrong("one short until it is full", ShortUntilFull, "Before the window is full, the oldest token is missing.",
        "Look before the window is full."),
    wrong("a view empties it", EmptiedByView, "A view empties it.",
        "Ask for a view twice, or keep appending after one."),
    wrong("a view shortens it", DropsByView, "Each view makes the window one shorter.",
        "Ask for a view twice, or keep appending after one."),
    wrong("an old view again", Stale, "Once it is full, it keeps showing what it showed at that moment.",
        "Ask for a view, append, and ask again."),
    wrong("two caches in one", shared, "All caches share what they keep.", "Make two, and use them in turn.",
        anew=True),
    wrong("no repeats", WithoutRepeats, "A token with the same key as the one before is not stored.",
        "Append a token twice."),
    wrong("no zeros", WithoutZeros, "A token of zeros is not stored.", "Append a token of zeros."),
    wrong("the tenth is lost", LosesTheTenth, "Every tenth token is lost.", "Try a longer text."),
    wrong("32 tokens", UpTo32, "After 32 tokens, it takes no more.", "Try a longer text."),
    wrong("even windows", EvenWindows, "With an even window, the order is reversed once it is full.",
        "Try other windows."),
    wrong("a window of one", WindowOfOne, "With a window of one, it keeps the first token.", "Try other windows."),
    wrong("values as narrow as keys", NarrowValues, "Only the first d_k numbers of a value are kept.",
        "Let d_v be more than d_k."),
    wrong("whole numbers", WholeNumbers, "Everything after the decimal point is lost.", "Append halves."),
    wrong("one decimal", OneDecimal, "Numbers are rounded to one decimal.", "Append numbers with two decimals."),
    wrong("no negative values", NoNegatives, "Negative values become 0.", "Append values below 0."),
    wrong("what went before", RunningMean, "Part of the dropped values is added to the oldest value.", LONGER),
)  # fmt: skip
