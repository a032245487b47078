"""The smallest counterexamples: for every wrong answer of the tests and every known mistake, whether one is found, how
soon and how small; and for every right answer, whether one is found although there is none.

usage: python benchmarks/examples.py [DAY ...]
"""

import io
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from variants import RIGHT, WRONG

from course_utils.checks.examples.example_text import describe_example
from course_utils.checks.examples.smallest import find_smallest, size_of
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import JudgedExercise, judge_of
from course_utils.checks.kernel.evidence import gather

HEAD = "day  answers  found   seconds: median, longest   numbers: median   smaller   as small   right ones with one"


@dataclass
class Table:
    """What was found of one day."""

    wrong: int = 0
    seconds: list[float] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    smaller: int = 0
    as_small: int = 0
    right: int = 0
    refuted: int = 0
    without: list[str] = field(default_factory=list)


def exercises_of(day: int) -> Iterator[JudgedExercise]:
    """Return the exercises of a day that are functions or classes and take numbers."""
    for grade_id in all_exercises(day):
        judge = judge_of(day, grade_id)
        if not judge.ladder.by_hand and not judge.ladder.duel:
            yield judge


def namespace_with(judge: JudgedExercise, answer: Any) -> dict[str, Any]:
    """Return a notebook in which this answer stands, and references for the earlier ones that it uses."""
    exercises = all_exercises(judge.day)
    lent = {name: f for used in judge.exercise.uses for name, f in exercises[used].reference.items()}
    own = answer if isinstance(answer, Mapping) else dict.fromkeys(judge.ladder.names, answer)
    return {**lent, **judge.exercise.reference, **own}


def look_at(day: int) -> Table:
    """Search a counterexample for all answers of a day."""
    table = Table()
    import_module(f"variants.day{day}")  # registers its answers
    for judge in exercises_of(day):
        key = (day, judge.grade_id)
        for answer in [*WRONG.get(key, []), *(mistake.answer for mistake in judge.exercise.mistakes)]:
            namespace = namespace_with(judge, answer)
            verdict = judge.judge(gather(*key, namespace))
            if verdict.status not in ("failed", "error"):
                continue  # a forbidden call, or right on the visible rungs
            held = dict(verdict.rungs)
            began = time.perf_counter()
            example = find_smallest(judge, namespace, held)
            table.wrong += 1
            table.seconds.append(time.perf_counter() - began)
            if example is None or not describe_example(example, judge):
                table.without.append(f"{judge.grade_id}: {getattr(answer, '__name__', answer)}")
                continue
            failed = next(rung for rung in judge.rungs() if not held[rung.name])
            table.numbers.append(example.numbers)
            table.smaller += size_of(example.rung.args) < size_of(failed.args)
            table.as_small += size_of(example.rung.args) == size_of(failed.args)
        everything = dict.fromkeys((rung.name for rung in judge.rungs()), False)
        for answer in RIGHT.get(key, []):
            example = find_smallest(judge, namespace_with(judge, answer), everything)
            table.right += 1
            table.refuted += example is not None and example.drawn
    return table


def main(days: list[int]) -> None:
    """Print the table a day."""
    torch.set_num_threads(1)
    print(HEAD)
    for day in days:
        with redirect_stdout(io.StringIO()):
            table = look_at(day)
        count = len(table.numbers)
        print(
            f"{day:3}  {table.wrong:7}  {count / table.wrong:5.1%}   {statistics.median(table.seconds):7.2f} s, "
            f"{max(table.seconds):6.2f} s        {statistics.median(table.numbers):15}   "
            f"{table.smaller / count:7.1%}   {table.as_small / count:8.1%}   {table.refuted} of {table.right}",
            flush=True,
        )
        for each in table.without:
            print(f"       none for {each}", flush=True)


if __name__ == "__main__":
    main([int(day) for day in sys.argv[1:]] or days_with_exercises())
