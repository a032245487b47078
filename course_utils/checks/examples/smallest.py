"""Search for the smallest input on which an answer is wrong, with so few numbers that it can be redone by pencil.

Hypothesis draws inputs as the ladder says (`kernel.small`) and shrinks them. They never come from hidden inputs. The
same answer gets the same example, unless the time runs out.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_utils.checks.examples.search import OutOfTime, draw_and_shrink, import_hypothesis
from course_utils.checks.judge.judge import JudgedExercise
from course_utils.checks.judge.time_limit import TimeLimit
from course_utils.checks.judge.verdict import Tolerance, holds, is_finite
from course_utils.checks.kernel.evidence import outcome_of
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.outcome import Outcome
from course_utils.checks.kernel.small import FEW, Choose, Small, draw_args
from course_utils.loader import has_answers
from course_utils.time_limits import SMALLEST_INPUT_SECONDS, STUCK

LEVELS = ((2, 50, False), (3, 60, False), (4, 100, False), (8, 60, True))  # longest axis, inputs tried per rung, cut
TEMPLATES = 4  # number of failing rungs, the smallest ones, that serve as models for inputs
PLAIN = Tolerance(1e-2, 1e-2)  # differences that a pencil calculation shows


@dataclass(frozen=True)
class Example:
    """An input on which an answer is wrong.

    Attributes:
        rung: the input with its measure; it has the name of the rung that it resembles.
        outcome: that of the answer.
        right: the right outcome.
        small: how to draw and show inputs like it; None if the ladder does not say.
        drawn: whether the input was drawn; otherwise it is a rung of the ladder.
        ran_out: whether the time ended before the search did.
        unsteady: whether the answer gave another result when it was run again.
        attempts: the number of inputs tried.
    """

    rung: Rung
    outcome: Outcome
    right: Outcome
    small: Small | None
    drawn: bool = True
    ran_out: bool = False
    unsteady: bool = False
    attempts: int = 0

    @property
    def numbers(self) -> int:
        """The number of numbers in the input."""
        return count_numbers(self.rung.args)


def find_smallest(
    judge: JudgedExercise,
    namespace: Mapping[str, Any],
    held: Mapping[str, bool],
    seconds: float = SMALLEST_INPUT_SECONDS,
) -> Example | None:
    """Return the smallest input found on which the answer in `namespace` is wrong, or None.

    In an edition without answers it is the smallest of the failing rungs. What the answer prints is discarded, and it
    receives copies of its arguments.

    Args:
        held: which of the visible rungs the answer passes, by name.
        seconds: the limit of processor time for the search.
    """
    if judge.ladder.by_hand or judge.ladder.duel:
        return None
    failed = sorted(
        (rung for rung in judge.rungs() if not held.get(rung.name, True)), key=lambda rung: size_of(rung.args)
    )
    if not failed:
        return None
    import_hypothesis()
    search = _Search(judge, namespace, time.process_time() + seconds)
    silence = io.StringIO()
    with redirect_stdout(silence), redirect_stderr(silence), TimeLimit(STUCK * seconds) as limit:
        try:
            if has_answers():
                search.run(failed)
        except OutOfTime:
            search.ran_out = True
    example = search.best
    if example is None or count_numbers(failed[0].args) < example.numbers:
        example = _smallest_rung(judge, namespace, failed, bool(limit.message)) or example
    if example is None:
        return None
    return replace(example, ran_out=search.ran_out or bool(limit.message), attempts=search.attempts)


class _Search:
    """A search for the smallest input on which an answer is wrong; `best` is the smallest one so far."""

    def __init__(self, judge: JudgedExercise, namespace: Mapping[str, Any], ends: float):
        self.judge = judge
        self.namespace = namespace
        self.ends = ends
        self.best: Example | None = None
        self.ran_out = False
        self.has_numbers = False  # whether the answer gives numbers on some of the inputs on which it is wrong
        self.attempts = 0

    def run(self, failed: Sequence[Rung]) -> None:
        """Try inputs like each of the failing rungs, with short axes first, then parts cut out of these rungs."""
        pairs = [(rung, small_for(self.judge.ladder, rung)) for rung in failed]
        templates = [(rung, small) for rung, small in pairs if small is not None]
        if not templates:
            return
        outcomes = (outcome_of(rung, self.judge.ladder, self.namespace) for rung, _ in templates[:TEMPLATES])
        self.has_numbers = any(is_finite(outcome) for outcome in outcomes)
        for longest, tries, cut in LEVELS:
            for rung, small in templates[:TEMPLATES]:
                self._try_inputs(rung, small, longest, tries, cut)
                if self.best is not None:
                    return

    def _try_inputs(self, like: Rung, small: Small, longest: int, tries: int, cut: bool) -> None:
        """Try a number of inputs like a rung's, and keep the smallest one on which the answer is wrong."""

        def draw_rung(choose: Choose) -> Rung:
            return replace(like, args=draw_args(small, like.args, choose, longest, cut))

        draw_and_shrink(draw_rung, lambda rung: self._is_wrong(rung, small, cut), tries)

    def _is_wrong(self, rung: Rung, small: Small, cut: bool) -> bool:
        if time.process_time() > self.ends:
            raise OutOfTime
        self.attempts += 1
        if small.fits is not None and not small.fits(*rung.args):
            return False
        ladder = self.judge.ladder
        right = outcome_of(rung, ladder, self.judge.exercise.reference, arrays=True)
        if right.error or any(math.isnan(x) for array in right.values.values() for x in array.entries):
            return False  # the statement rules this input out
        outcome = outcome_of(rung, ladder, self.namespace)
        exact = self.judge.tolerance(rung.name)
        tolerance = exact if cut or rung.tolerance else _wider(exact)
        if holds(outcome, right, tolerance):
            return False
        if self.has_numbers and outcome.error.startswith("ZeroDivisionError"):
            return False  # an input with wrong numbers shows the mistake
        example = Example(rung, outcome, right, small)
        if self.best is None or size_of(example.rung.args) < size_of(self.best.rung.args):
            again = outcome_of(rung, ladder, self.namespace)
            self.best = replace(example, unsteady=again != outcome)
        return True


def count_numbers(args: Any) -> int:
    """Return how many numbers the arguments hold: entries of arrays and lists, and single numbers.

    A large array of zeros counts only its sizes, since it is shown as `zeros(shape)`.
    """
    if is_blank(args):
        return np.ndim(args)
    if isinstance(args, (tuple, list, bytes)):
        return sum(map(count_numbers, args))
    if isinstance(args, np.ndarray):
        return args.size
    if isinstance(args, str):
        return len(args.split())
    if callable(args):
        return len(getattr(args, "numbers", ()))
    return int(isinstance(args, (int, float)) and not isinstance(args, bool))


def _smallest_rung(
    judge: JudgedExercise, namespace: Mapping[str, Any], failed: Sequence[Rung], stopped: bool
) -> Example | None:
    """Return the smallest of the failing rungs as an example; None if the answer had to be stopped."""
    if stopped:
        return None
    rung = failed[0]
    right = next(each for each in judge.reference().outcomes if each.rung == rung.name)
    silence = io.StringIO()
    with redirect_stdout(silence), redirect_stderr(silence), TimeLimit() as limit:
        outcome = outcome_of(rung, judge.ladder, namespace)
    return None if limit.message else Example(rung, outcome, right, small_for(judge.ladder, rung), drawn=False)


def small_for(ladder: Ladder, rung: Rung) -> Small | None:
    """Return how to draw inputs like a rung's; None if the ladder does not say."""
    own = [small for small in ladder.small if small.measures is not None and rung.measure in small.measures]
    rest = [small for small in ladder.small if small.measures is None]
    return next(iter(own + rest), None)


def is_blank(value: Any) -> bool:
    """Return whether this is an array or a list of more than FEW zeros and nothing else."""
    if isinstance(value, np.ndarray):
        return value.size > FEW and value.dtype.kind == "f" and not value.any()
    return isinstance(value, list) and len(value) > FEW and all(isinstance(x, float) and x == 0 for x in value)


def size_of(args: Any) -> tuple[int, int, int, float]:
    """Return a size to compare inputs by: the counts of numbers, of non-halves and of non-integers, and the sum."""
    finite = [abs(number) for number in _flat(args) if math.isfinite(number)]
    not_halves = sum(number * 2 % 1 != 0 for number in finite)
    not_whole = sum(number % 1 != 0 for number in finite)
    return count_numbers(args), not_halves, not_whole, sum(finite)


def _flat(args: Any) -> list[float]:
    if isinstance(args, (tuple, list, bytes)):
        return [number for each in args for number in _flat(each)]
    if isinstance(args, np.ndarray):
        return args.astype(float).ravel().tolist()
    if callable(args):
        return list(getattr(args, "numbers", ()))
    if isinstance(args, (int, float)):
        return [float(args) if abs(args) < 1e300 else math.inf]
    return []


def _wider(tolerance: Tolerance) -> Tolerance:
    """Return a tolerance that ignores differences too small for a pencil calculation."""
    return Tolerance(max(tolerance.rtol, PLAIN.rtol), max(tolerance.atol, PLAIN.atol), tolerance.parts)
