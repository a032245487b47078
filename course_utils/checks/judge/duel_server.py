"""Serve the implementations of a duel to the kernel in which a learner's test is graded.

The implementations stay in this process. The kernel learns only how many there are; it sends calls and receives
results. The implementations come one at a time, in a random order: each can be called after the verdict on the one
before it and until its own verdict, which is final. Some grossly wrong implementations are repeated many times, each
time with other rounding errors, so that a test which trusts the majority accepts wrong implementations.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from functools import partial
from typing import Any

from course_utils.checks.judge.duel_trial import KnownCalls, Trial
from course_utils.checks.judge.duel_verdict import holds
from course_utils.checks.judge.rungs import calls_of, implementations
from course_utils.checks.kernel.outcome import NO_RESULT, Evidence, Outcome
from course_utils.checks.kernel.result_numbers import Numbers
from course_utils.errors import KernelLost
from course_utils.time_limits import ASKING_ON, DUEL_SECONDS, TRIAL_SECONDS

MAX_QUESTION_LENGTH = 200_000  # characters
# Least and most repeats of two grossly wrong implementations. The first one outnumbers all implementations that are
# right on an ordinary input. The second one may or may not, so that being the second most frequent tells nothing.
DECOYS = ((45, 60), (0, 60))
GRAIN = 16.0  # rounding errors by which the floats of one place may be off: no two places give the same bits


class Arena:
    """Server for one grading of a duel: all implementations of a day, in a random order with repeats.

    `answer` replies to the kernel's questions; `by_name` then reads the evidence that the kernel sent.
    """

    def __init__(self, day: int):
        self.day = day
        self.random = random.SystemRandom()
        self.implementations = implementations(day, hidden=True)
        self.order = self._draw_order()  # of indices of implementations, some of them repeated
        self.seconds_used = 0.0
        self.verdicts: list[float | None] = []  # by place in the order; None where the test raised an error
        self.known = KnownCalls()
        self.trial: Trial | None = None  # of the implementation that awaits its verdict

    def _draw_order(self) -> list[int]:
        """Return the indices of all implementations in a random order, with those of the decoys repeated."""
        order = [*range(len(self.implementations))]
        gross = [i for i, each in enumerate(self.implementations) if each.gross]
        for decoy, repeats in zip(self.random.sample(gross, len(DECOYS)), DECOYS, strict=True):
            order += [decoy] * self.random.randint(*repeats)
        self.random.shuffle(order)
        return order

    def more_seconds(self) -> float:
        """Return the seconds that the test has earned by its verdicts, in addition to those that it began with."""
        return TRIAL_SECONDS * len(self.verdicts)

    @property
    def seconds(self) -> float:
        """Seconds that the implementations may have worked by now: as many as the test."""
        return DUEL_SECONDS + self.more_seconds()

    def answer(self, text: str) -> str:
        """Reply to a question from a kernel, whatever the kernel sent.

        Raises:
            KernelLost: if the kernel goes on asking when all seconds are used up.
        """
        began = time.process_time()
        if self.seconds_used > ASKING_ON * self.seconds:
            raise KernelLost("timeout", f"The test's calls took this process more than {ASKING_ON * self.seconds:g} s")
        try:
            return self._answer(text)
        finally:
            self.seconds_used += time.process_time() - began

    def _answer(self, text: str) -> str:
        question = self._parse(text)
        if isinstance(question, str):
            return json.dumps({"refused": question})
        if question.get("how") == "many":
            return json.dumps({"many": len(self.order)})
        if self.trial is None:
            each = self.implementations[self.order[len(self.verdicts)]]
            make_caller = partial(each.caller, calls_of(self.day), self.random.uniform(-GRAIN, GRAIN))
            self.trial = Trial(make_caller, self.known)
        return self.trial.answer(question)

    def _parse(self, text: str) -> dict[str, Any] | str:
        """Take the verdicts in a text, and return the question in it; or why it is refused."""
        try:
            question = json.loads(text) if len(text) <= MAX_QUESTION_LENGTH else None
        except (ValueError, RecursionError):
            question = None
        if not isinstance(question, dict):
            return "the call cannot be read"
        if question.get("how") == "many":
            return question
        sent = question.get("verdicts")
        verdicts = sent if isinstance(sent, list) else []
        for verdict in verdicts[: len(self.order) - len(self.verdicts)]:
            self.verdicts.append(float(verdict) if verdict in (0, 1) else None)
            if self.trial is not None:
                self.trial.end()
            self.trial = None
        if type(question.get("of")) is not int or question["of"] != len(self.verdicts) or self.done:
            return "it is not its turn"
        if self.seconds_used > self.seconds:
            return f"the implementations have worked for {self.seconds:g} s, and no more"
        return question

    @property
    def done(self) -> bool:
        """Whether every implementation has its verdict."""
        return len(self.verdicts) == len(self.order)

    def by_name(self, evidence: Evidence) -> Evidence:
        """Turn evidence by place into evidence by name of the implementation.

        Verdicts are those that arrived here; the evidence adds only error texts. If an implementation came more than
        once, the test's worst outcome on it counts.
        """
        errors = {each.rung: each.error for each in evidence.outcomes}
        outcomes: dict[int, Outcome] = {}
        for place, i in enumerate(self.order):
            outcome = self._outcome(place, i, errors.get(str(place), ""))
            if i not in outcomes or not holds(outcome, self.implementations[i].right):
                outcomes[i] = outcome
        return replace(evidence, outcomes=[outcomes[i] for i in range(len(self.implementations))])

    def _outcome(self, place: int, i: int, error: str) -> Outcome:
        name = self.implementations[i].name
        verdict = self.verdicts[place] if place < len(self.verdicts) else None
        if verdict is not None:
            return Outcome(name, {"verdict": Numbers((), (verdict,))})
        return Outcome(name, error=error or NO_RESULT)
