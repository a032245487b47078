"""The trial of one implementation: answer a test's calls, and make in advance those that the test will make next.

A round trip between two processes takes longer than most calls, and much longer on a busy machine, where each process
waits for its turn. Most tests make the same calls to each implementation. So the calls of earlier trials are kept, and
a reply brings along the replies to the calls that followed in those. The kernel says how many of them it used. Where a
test goes another way, the implementation is made anew and repeats the calls that were really made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from course_utils.checks.kernel.remote import Local, Prepared, reply_of, serve
from course_utils.time_limits import CALLS_AHEAD_SECONDS

MOST_KEPT = 2**26  # bytes of calls that are kept for later trials
EACH_KEPT = 500  # bytes of a call beside its arrays
MOST_AHEAD = 256  # calls
LONGEST_REPLY = 2**18  # characters after which no more replies are added


@dataclass
class Call:
    """A call that a test made, after certain others.

    Attributes:
        mark: the kernel's number for it, by which the kernel knows its own calls again.
        then: calls that came next, by mark.
        reach: how many calls came after it in the longest trial.
        likely: the next one in that trial.
    """

    mark: int
    prepared: Prepared
    then: dict[int, Call] = field(default_factory=dict)
    reach: int = 0
    likely: Call | None = None


class Known:
    """The calls of all trials of a duel so far."""

    def __init__(self) -> None:
        self.start, self.left = Call(0, (None, "", ())), MOST_KEPT

    def after(self, call: Call, mark: int, prepared: Prepared) -> Call | None:
        """Return the call with this mark after another one, kept from now on; None where there is no room."""
        if mark not in call.then:
            self.left -= EACH_KEPT + sum(getattr(each, "nbytes", 0) for each in prepared[2])
            if self.left < 0:
                return None
            call.then[mark] = Call(mark, prepared)
        return call.then[mark]

    def learn(self, path: Sequence[Call]) -> None:
        """Take note of the calls of a trial, so that the longest one is what is expected of the next."""
        for i, call in enumerate(path[:-1]):
            if len(path) - 1 - i > call.reach:
                call.reach, call.likely = len(path) - 1 - i, path[i + 1]


class Trial:
    """The trial of one implementation, from its first call to its verdict.

    Args:
        line: makes a line to the implementation, each time the same.
        known: the calls of earlier trials; those of this one are added.
    """

    def __init__(self, line: Callable[[], Local], known: Known):
        self.make, self.known, self.line = line, known, line()
        self.path = [known.start]
        self.ahead: list[Call] = []  # made, and not known to be asked
        self.many = 1  # calls to make ahead
        self.lost = False  # whether a call was made that is not kept, after which nothing can be expected

    def answer(self, question: Mapping[str, Any]) -> str:
        """Return the reply to a question, as text."""
        used, mark = question.get("used", 0), question.get("mark")
        if type(used) is not int or not 0 <= used <= len(self.ahead):
            return json.dumps({"refused": "the call cannot be read"})
        self._go_on(used)
        reply = serve(self._call, question)
        call = None
        if type(mark) is int and not self.lost and "refused" not in reply:
            call = self.known.after(self.path[-1], mark, self.asked)
        if call is None:
            self.lost = True
            return json.dumps(reply)
        self.path.append(call)
        ahead = self._replies_ahead() if "value" in reply else []
        return f'{json.dumps(reply)[:-1]}, "ahead": [{", ".join(ahead)}]}}'

    def end(self) -> None:
        """Take note of the calls of this trial, which has its verdict."""
        self.known.learn(self.path)

    def _call(self, made: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        self.asked = self.line.prepared(made, method, args, kwargs)
        return self.line.run(self.asked)

    def _go_on(self, used: int) -> None:
        """Follow the test along the calls that were made ahead, and undo those that it did not ask for."""
        self.path += self.ahead[:used]
        unasked = len(self.ahead) - used
        self.many = 1 if unasked else min(2 * self.many, MOST_AHEAD)
        if unasked:
            called = self.line.called - unasked
            if self.line.objects:
                self.line = self.make()
                for call in self.path[1:]:
                    reply_of(partial(self.line.run, call.prepared))
            self.line.called = called
        self.ahead = []

    def _replies_ahead(self) -> list[str]:
        """Make the calls that are expected next, and return for each the mark and the reply, as text."""
        found, long, end, call = list[str](), 0, time.process_time() + CALLS_AHEAD_SECONDS, self.path[-1].likely
        while call and len(found) < self.many and long < LONGEST_REPLY and time.process_time() < end:
            self.ahead.append(call)
            reply = reply_of(partial(self.line.run, call.prepared))
            if "refused" in reply:
                break
            found.append(f"[{call.mark}, {json.dumps(reply)}]")
            long += len(found[-1])
            call = call.likely if "value" in reply else None
        return found
