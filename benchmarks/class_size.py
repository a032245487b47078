"""How the time and the grader's memory grow with a class: N and 2N different notebooks of day 1, graded in one run.

The notebooks answer with the right and wrong variants of the tests, no two alike. Memory is the largest resident size
(VmHWM) of the command and of its worker processes; kernels are not counted, their number does not grow.
usage: python benchmarks/class_size.py [N] [--jobs 2]
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]
DAY = 1


def main(size: int, jobs: int) -> None:
    """Print seconds and memory at N and 2N, and their ratios."""
    seconds = []
    memory = []
    for count in (size, 2 * size):
        with tempfile.TemporaryDirectory(prefix="class_size_") as folder:
            write_class(Path(folder, "class"), count)
            taken, peaks = grade(Path(folder), jobs)
        seconds.append(taken)
        memory.append(peaks)
        rest = ", ".join(f"{peak:.0f}" for peak in peaks[1:])
        print(f"{count} submissions, {jobs} jobs: {taken:.1f} s, {taken / count:.2f} s each; ", end="")
        print(f"peak memory {peaks[0]:.0f} MiB in the main process, {rest} in the workers")
    print(f"twice the class: {seconds[1] / seconds[0]:.2f} times as long, ", end="")
    print(f"{memory[1][0] / memory[0][0]:.2f} times the memory of the main process, ", end="")
    print(f"{max(memory[1][1:]) / max(memory[0][1:]):.2f} times that of a worker")


def write_class(folder: Path, count: int) -> None:
    """Write notebooks that each answer with other variants, drawn with a fixed seed, and differ in their names too."""
    from course_utils.answer_key.key import COURSE
    from course_utils.checks.judge.exercise_tables import all_exercises

    sys.path.insert(0, str(ROOT / "tests"))
    from variants import RIGHT, WRONG

    answers = import_module("as_cells")
    styles = {
        grade_id: [*answers.sources(RIGHT, DAY, grade_id), *answers.sources(WRONG, DAY, grade_id)]
        for grade_id in all_exercises(DAY)
    }
    folder.mkdir()
    draw = random.Random(0)
    for number in range(count):
        book = nbformat.from_dict(COURSE.notebook(DAY))
        for cell in book.cells:
            if style := styles.get(cell.metadata.get("nbgrader", {}).get("grade_id")):
                cell.source = f"{draw.choice(style)}\n# {number}"
        nbformat.write(book, folder / f"student{number:04}.ipynb")


def grade(folder: Path, jobs: int) -> tuple[float, list[float]]:
    """Grade the class with the command: seconds, and MiB at the peak of the main process and of each worker."""
    command = [sys.executable, "-m", "course_utils", "grade", str(folder / "class"), "--day", str(DAY)]
    began = time.perf_counter()
    running = subprocess.Popen(
        [*command, "--jobs", str(jobs), "--out", str(folder / "out")], stdout=subprocess.DEVNULL, cwd=ROOT
    )
    peaks: dict[int, float] = {}
    while running.poll() is None:
        for process in [running.pid, *workers_of(running.pid)]:
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
                peaks[process] = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
        time.sleep(0.2)
    if running.returncode:
        raise SystemExit(f"course grade ended with status {running.returncode}")
    return time.perf_counter() - began, [peaks.pop(running.pid), *peaks.values()]


def workers_of(process: int) -> list[int]:
    """Return the worker processes that a process started."""
    workers = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in path.read_text().split():
            with contextlib.suppress(OSError):
                if b"grading.workers" in Path(f"/proc/{child}/cmdline").read_bytes():
                    workers.append(int(child))
    return workers


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser()
    parser.add_argument("size", nargs="?", type=int, default=100, metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.size, arguments.jobs)
