"""The trial of one implementation: answer a test's calls, and make in advance those that the test will make next.

A round trip between two processes takes longer than most calls, and much longer on a busy machine, where each process
waits for its turn. Most tests make the same calls to each implementation. So this process stores the calls of earlier
trials, and sends with a reply those to the calls that followed there. The kernel says how many of them it used. If a
test goes another way, the implementation is made anew and repeats the calls that were really made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from course_utils.checks.kernel.remote import LocalCaller, Prepared, reply_of, serve
from course_utils.time_limits import CALLS_AHEAD_SECONDS

MAX_STORED_BYTES = 2**26  # bytes of calls that are stored for later trials
BYTES_OF_A_CALL = 500  # beside its arrays
MAX_CALLS_AHEAD = 256  # calls
MAX_REPLY_LENGTH = 2**18  # characters after which no more replies are added


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


class KnownCalls:
    """The calls of all trials of a duel so far."""

    def __init__(self) -> None:
        self.start = Call(0, (None, "", ()))
        self.bytes_left = MAX_STORED_BYTES

    def after(self, call: Call, mark: int, prepared: Prepared) -> Call | None:
        """Return the call with this mark after another one, stored from now on; None if there is no room."""
        if mark not in call.then:
            self.bytes_left -= BYTES_OF_A_CALL + sum(getattr(each, "nbytes", 0) for each in prepared[2])
            if self.bytes_left < 0:
                return None
            call.then[mark] = Call(mark, prepared)
        return call.then[mark]

    def learn(self, path: Sequence[Call]) -> None:
        """Take note of the calls of a trial, so that the longest one is what is expected of the next."""
        for i, call in enumerate(path[:-1]):
            if len(path) - 1 - i > call.reach:
                call.reach = len(path) - 1 - i
                call.likely = path[i + 1]


class Trial:
    """The trial of one implementation, from its first call to its verdict.

    Args:
        make_caller: makes a caller of the implementation, each time the same.
        known: the calls of earlier trials; those of this one are added.
    """

    def __init__(self, make_caller: Callable[[], LocalCaller], known: KnownCalls):
        self.make_caller = make_caller
        self.caller = make_caller()
        self.known = known
        self.path = [known.start]
        self.ahead: list[Call] = []  # calls made in advance that the test has not asked for yet
        self.count_ahead = 1  # calls to make in advance
        self.is_lost = False  # whether a call was made that is not stored, after which nothing can be expected

    def answer(self, question: Mapping[str, Any]) -> str:
        """Return the reply to a question, as text."""
        used = question.get("used", 0)
        mark = question.get("mark")
        if type(used) is not int or not 0 <= used <= len(self.ahead):
            return json.dumps({"refused": "the call cannot be read"})
        self._follow(used)
        reply = serve(self._call, question)
        call = None
        if type(mark) is int and not self.is_lost and "refused" not in reply:
            call = self.known.after(self.path[-1], mark, self.prepared)
        if call is None:
            self.is_lost = True
            return json.dumps(reply)
        self.path.append(call)
        ahead = self._replies_ahead() if "value" in reply else []
        return f'{json.dumps(reply)[:-1]}, "ahead": [{", ".join(ahead)}]}}'

    def end(self) -> None:
        """Take note of the calls of this trial, which has its verdict."""
        self.known.learn(self.path)

    def _call(self, object_number: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        self.prepared = self.caller.prepare(object_number, method, args, kwargs)
        return self.caller.run(self.prepared)

    def _follow(self, used: int) -> None:
        """Follow the test along the calls that were made ahead, and undo those that it did not ask for."""
        self.path += self.ahead[:used]
        unasked = len(self.ahead) - used
        self.count_ahead = 1 if unasked else min(2 * self.count_ahead, MAX_CALLS_AHEAD)
        if unasked:
            calls = self.caller.called - unasked
            if self.caller.objects:  # the calls made in vain may have changed them
                self.caller = self.make_caller()
                for call in self.path[1:]:
                    reply_of(partial(self.caller.run, call.prepared))
            self.caller.called = calls
        self.ahead = []

    def _replies_ahead(self) -> list[str]:
        """Make the calls that are expected next, and return for each the mark and the reply, as text."""
        replies: list[str] = []
        length = 0
        end = time.process_time() + CALLS_AHEAD_SECONDS
        call = self.path[-1].likely
        while call and len(replies) < self.count_ahead and length < MAX_REPLY_LENGTH and time.process_time() < end:
            self.ahead.append(call)
            reply = reply_of(partial(self.caller.run, call.prepared))
            if "refused" in reply:
                break
            replies.append(f"[{call.mark}, {json.dumps(reply)}]")
            length += len(replies[-1])
            call = call.likely if "value" in reply else None
        return replies
