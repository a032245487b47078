"""How long grading takes: day 1 against a bare `pytest --nbval-lax` of the same notebook, in turns in one run, as whole
commands; then every day with all answers right, with one wrong, and with all wrong.

usage: python benchmarks/grading.py [ROUNDS]
"""

import copy
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.checks.kernel.evidence import find_ladder
from course_utils.grading.grade import grade_notebook

NOTEBOOK = Path(__file__).parents[1] / "solutions" / "day1_attention_by_hand.ipynb"
COMMANDS = {
    "course grade": ["-m", "course_utils", "grade", str(NOTEBOOK)],
    "pytest --nbval-lax": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax", str(NOTEBOOK)],
}
WRONG = """

def _off(x):
    if isinstance(x, (tuple, list)):
        return type(x)(_off(part) for part in x)
    if "bool" in str(getattr(x, "dtype", "")):
        return ~x
    return x if x is None else not x if isinstance(x, bool) else x * 1.01 + 0.01

def _wrong(right):
    if not isinstance(right, type):
        return lambda *args, **named: _off(right(*args, **named))
    methods = {name: f for name, f in vars(right).items() if callable(f) and name[0] != "_"}
    return type(right.__name__, (right,), {
        name: lambda self, *args, _f=f, **named: _off(_f(self, *args, **named)) for name, f in methods.items()
    })
"""  # a right answer whose every number is a little wrong: no known mistake, so that all of them are compared


def wrong_answer(day: int, grade_id: str, source: str) -> str:
    """Return the source of a right answer, made wrong."""
    ladder = find_ladder(day, grade_id)
    if ladder.by_hand:
        return "\n".join(f"{name} = 12345" for name in ladder.names)
    return source + WRONG + "\n".join(f"{name} = _wrong({name})" for name in ladder.names)


def seconds_with(day: int, wrong: set[str], folder: Path) -> float:
    """Return the least of three times that a notebook takes in which these answers are wrong."""
    notebook = copy.deepcopy(COURSE.notebook(day))
    for cell in notebook.cells:
        nbgrader = cell.metadata.get("nbgrader", {})
        if nbgrader.get("solution") and nbgrader["grade_id"] in wrong:
            cell.source = wrong_answer(day, nbgrader["grade_id"], cell.source)
    path = folder / f"day{day}.ipynb"
    nbformat.write(notebook, path)
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        graded = grade_notebook(path)
        taken.append(time.perf_counter() - began)
    lost = {result.id for result in graded.exercises if result.status != "passed"}
    assert lost == wrong, (lost, wrong)
    return min(taken)


def days() -> None:
    """Print for each day the seconds with all right, and the ratios with the most costly one wrong and with all."""
    print("day   all right   one wrong, at worst                    all wrong")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds_with(1, set(), folder)  # starts the process that kernels are forked from
        for day in COURSE.days():
            answers = reference_answers(COURSE.notebook(day))
            right = seconds_with(day, set(), folder)
            worst, most = max((seconds_with(day, {each}, folder), each) for each in answers)
            every = seconds_with(day, set(answers), folder)
            print(f"{day:3}  {right:7.2f} s   {worst / right:5.2f} ×  {most:30}   {every / right:5.2f} ×", flush=True)


def main(rounds: int) -> None:
    """Print the median seconds of both commands and their ratio."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            taken[name].append(time.perf_counter() - began)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {rounds} rounds")
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, seconds in medians.items():
        print(f"{name:20} {seconds:5.2f} s median of {', '.join(f'{s:.2f}' for s in taken[name])}")
    ratio = medians["course grade"] / medians["pytest --nbval-lax"]
    print(f"ratio {ratio:.2f} (at most 1 is the aim)\n")
    days()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
