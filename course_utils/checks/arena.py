"""Where a learner's test meets the implementations when it is graded: they stay here, and calls come from its kernel.

The kernel is told how many there are to try, and no more. They come in an order that nobody can know, and some gross
ones come again and again: a test that compares what it meets with what most of them gave takes those for right.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any

from .duels.implementation import implementations
from .remote import Local, serve

SECONDS = 20.0  # of this process, for all calls of one test
LARGEST_QUESTION = 200_000  # characters
# How often gross ones come again, at least and at most. The first outnumber all that are right on an ordinary input.
# The others may or may not, so that the second place tells nothing either.
DECOYS = ((45, 60), (0, 60))


class Arena:
    """The implementations of a day in the order of one grading. `answer` is what a kernel's questions go to, `named`
    reads the evidence that comes of it."""

    def __init__(self, day: int):
        lot = random.SystemRandom()
        self.implementations = implementations(day, hidden=True)
        gross = [i for i, each in enumerate(self.implementations) if each.gross]
        again = [
            i
            for i, times in zip(lot.sample(gross, len(DECOYS)), DECOYS, strict=True)
            for _ in range(lot.randint(*times))
        ]
        self.order = [*range(len(self.implementations)), *again]
        lot.shuffle(self.order)
        self.place, self.line = -1, Local(len)  # the one that is tried
        self.spent = 0.0

    def answer(self, text: str) -> str:
        """The answer to a question that a kernel sent; never raises for what it sent."""
        began = time.process_time()
        try:
            return json.dumps(self._answer(text))
        finally:
            self.spent += time.process_time() - began

    def _answer(self, text: str) -> dict[str, Any]:
        try:
            question = json.loads(text) if len(text) <= LARGEST_QUESTION else None
        except (ValueError, RecursionError):
            question = None
        if not isinstance(question, dict):
            return {"refused": "the call cannot be read"}
        if question.get("how") == "many":
            return {"many": len(self.order)}
        place = question.get("of")
        if not isinstance(place, int) or not 0 <= place < len(self.order):
            return {"refused": "there is no such implementation"}
        if self.spent > SECONDS:
            return {"refused": f"the implementations have worked for {SECONDS:g} s, and no more"}
        if place < self.place:
            return {"refused": "its turn is over"}
        if place > self.place:
            self.place, self.line = place, Local(self.implementations[self.order[place]].function)
        return serve(self.line, question)

    def named(self, evidence: Mapping[str, Any]) -> dict[str, Any]:
        """Evidence by places as evidence by names. Of one that came more than once the worst counts."""
        said = {str(o.get("rung")): o for o in evidence.get("outcomes") or () if isinstance(o, Mapping)}
        outcomes: dict[int, Any] = {}
        for place, i in enumerate(self.order):
            outcome = said.get(str(place), {"error": "no result"})
            if i not in outcomes or _says_right(outcome) != self.implementations[i].right:
                outcomes[i] = outcome
        return {
            **evidence,
            "outcomes": [{**outcomes[i], "rung": each.name} for i, each in enumerate(self.implementations)],
        }


def _says_right(outcome: Mapping[str, Any]) -> bool:
    try:
        return outcome["values"]["verdict"]["numbers"] == [1.0]
    except (KeyError, TypeError):
        return False
