"""Recognise known mistakes in an answer: those that give the same results, rung by rung."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from course_utils.checks.diagnosis.hand_relations import PENCIL
from course_utils.checks.judge.comparison import Comparison
from course_utils.checks.judge.exercise import KnownMistakes, Mistake
from course_utils.checks.judge.overflow import Overflow, find_overflow
from course_utils.checks.judge.verdict import explains, gap, holds, is_finite, is_unwritten


def find_mistakes(comparison: Comparison, known: KnownMistakes) -> tuple[Mistake | None, Overflow | None]:
    """Return the known mistake in an answer, and the overflow that comes on top of it or of an unknown one."""
    # Most often one mistake explains all rungs.
    every_rung = range(len(comparison.held))
    if mistake := _recognise(comparison, known, every_rung):
        return mistake, None

    # Else the answer may overflow on some rungs. There a known mistake need only agree with it on the others.
    overflow = find_overflow(comparison, known) if comparison.is_current else None
    if overflow is None:
        return None, None
    for counted in (overflow.others, overflow.telling):
        if mistake := _recognise(comparison, known, counted, overflow.rungs):
            return mistake, overflow

    # No known mistake comes with the overflow. If the rungs that could show a second mistake hold, there is none.
    if not overflow.certain:
        return None, None
    is_all = overflow.telling and all(comparison.held[i] for i in overflow.telling)
    return (overflow.mistake, None) if is_all else (None, overflow)


def _recognise(
    comparison: Comparison, known: KnownMistakes, counted: Sequence[int], overflowed: Sequence[int] = ()
) -> Mistake | None:
    """Return the known mistake that gives the same results; None if there is none.

    A mistake must hold where the answer holds, and runs only up to the first rung on which the two differ.

    Args:
        counted: the rungs that are compared.
        overflowed: rungs on which the answer overflows, and the mistake does not overflow on all of them.
    """
    if comparison.is_forged:
        return None  # spend no work on it
    right = comparison.right
    tolerances = comparison.tolerances
    wrong = [i for i in counted if not comparison.held[i]]
    fine = [i for i in counted if comparison.held[i]]
    mine = [comparison.outcomes[i] for i in wrong]
    if overflowed and not any(map(is_finite, mine)):
        return None  # errors and infinities alone do not tell a second mistake from the overflow
    for mistake, evidence in known:
        theirs = evidence.outcomes  # one is computed when it is read
        # The cheap comparison comes first: most mistakes differ on the first wrong rung and run no further.
        if not explains(mine, (theirs[i] for i in wrong), [tolerances[i] for i in wrong]):
            continue
        if not all(holds(theirs[i], right[i], tolerances[i]) for i in fine):
            continue
        # A mistake that overflows on all of these rungs would explain the answer without a second mistake.
        if not overflowed or any(is_finite(theirs[i]) for i in overflowed):
            return mistake
    return None


def find_mistakes_by_hand(comparison: Comparison, known: KnownMistakes) -> tuple[list[Mistake], list[int]]:
    """Return the known mistakes in hand-worked numbers, and the wrong entries that none of them explains.

    Numbers worked to two decimals are recognised. Entries that are not filled in yet prevent no mistake from being
    recognised in the others.
    """
    outcomes = comparison.outcomes
    right = comparison.right
    held = comparison.held
    filled = [i for i, outcome in enumerate(outcomes) if not is_unwritten(outcome)]
    unexplained = [i for i in filled if not held[i]]
    tolerances = [replace(each, atol=max(each.atol, PENCIL)) for each in comparison.tolerances]
    candidates: list[tuple[Mistake, list[int]]] = []
    for mistake, evidence in known:
        # A mistake is about the entries that it gives a wrong number for. Wrong entries that it has right, or does not
        # give, are left to another one.
        theirs = evidence.outcomes
        own = [i for i in filled if not theirs[i].error]
        wrong = [i for i in own if not held[i] and not holds(theirs[i], right[i], comparison.tolerances[i])]
        fine = [i for i in own if held[i]]
        if not wrong:
            continue
        # It explains the wrong entries if it gives these numbers, and they are clearly nearer to its numbers than
        # to the right ones. Where the entries are right, it must be right as well.
        mine = [outcomes[i] for i in wrong]
        mistaken = [theirs[i] for i in wrong]
        is_nearer = gap(mine, mistaken) < gap(mine, [right[i] for i in wrong]) / 2
        fits = all(holds(theirs[i], right[i], tolerances[i]) for i in fine)
        if is_nearer and fits and explains(mine, mistaken, [tolerances[i] for i in wrong]):
            candidates.append((mistake, wrong))

    # One mistake that explains several entries is likelier than one mistake for each.
    candidates.sort(key=lambda candidate: len(candidate[1]), reverse=True)
    mistakes: list[Mistake] = []
    for mistake, wrong in candidates:
        if set(wrong) <= set(unexplained):
            mistakes.append(mistake)
            unexplained = [i for i in unexplained if i not in wrong]
    return mistakes, unexplained
