"""Where a learner's test meets the implementations when it is graded: they stay here, and calls come from its kernel.

The kernel is told how many there are to try, and no more. They come in an order that nobody can know, and each is there
to be called from the verdict on the one before it until its own, which cannot be taken back. Some gross ones come again
and again: a test that compares what it meets with what most of them gave takes those for right.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from typing import Any

from course_utils.checks.judge.duel_verdict import holds
from course_utils.checks.judge.rungs import calls_of, implementations
from course_utils.checks.kernel.numbers import Numbers
from course_utils.checks.kernel.outcome import NO_RESULT, Evidence, Outcome
from course_utils.checks.kernel.remote import SECONDS, Local, serve

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
        self.day, self.spent = day, 0.0
        self.verdicts: list[float | None] = []  # by place; None where the test raised an error
        self.line: Local | None = None  # to the one whose verdict is still to come

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
        if type(question.get("of")) is not int or question["of"] != len(self.verdicts) or self.done:
            return {"refused": "it is not its turn"}
        if "verdict" in question:
            said = question["verdict"]
            self.verdicts.append(float(said) if said in (0, 1) else None)
            self.line = None
            return {"value": None}
        if self.spent > SECONDS:
            return {"refused": f"the implementations have worked for {SECONDS:g} s, and no more"}
        if self.line is None:
            self.line = self.implementations[self.order[len(self.verdicts)]].line(calls_of(self.day))
        return serve(self.line, question)

    @property
    def done(self) -> bool:
        """Whether there is a verdict on each."""
        return len(self.verdicts) == len(self.order)

    def named(self, evidence: Evidence) -> Evidence:
        """Evidence by places as evidence by names: the verdicts that were sent, and the errors that are told with it.

        Of one that came more than once the worst counts.
        """
        told = {each.rung: each.error for each in evidence.outcomes}
        outcomes: dict[int, Outcome] = {}
        for place, i in enumerate(self.order):
            outcome = self._outcome(place, i, told.get(str(place), ""))
            if i not in outcomes or not holds(outcome, self.implementations[i].right):
                outcomes[i] = outcome
        return replace(evidence, outcomes=[outcomes[i] for i in range(len(self.implementations))])

    def _outcome(self, place: int, i: int, error: str) -> Outcome:
        verdict, name = self.verdicts[place] if place < len(self.verdicts) else None, self.implementations[i].name
        if verdict is not None:
            return Outcome(name, {"verdict": Numbers((), (verdict,))})
        return Outcome(name, error=error or NO_RESULT)
