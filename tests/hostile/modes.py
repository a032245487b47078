"""The same grades in every mode: confined warm and cold, by Landlock, by limits alone, and on a Dask cluster.

usage: PYTHONPATH=tests python -m hostile.modes [--jobs 2] [MODE...]    grades the whole corpus in each and compares
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from course_utils.grading.classroom import grade_class
from course_utils.grading.intake.collect import Submission
from course_utils.grading.reports.report import write_reports
from course_utils.grading.results import Settings
from course_utils.sandbox.limits import Limits, Start

from .corpus import CORPUS, write_corpus

LIMITS = Limits(cell_seconds=5, idle_seconds=5, memory_bytes=2**31)
MODES = {
    "warm": Start("bubblewrap"),
    "cold": Start("bubblewrap", warm=False),
    "landlock": Start("landlock"),
    "limits": Start("limits"),
    "dask": Start("bubblewrap"),
}


def open_to(mode: str) -> list[str]:
    """The entries of the corpus that a mode can hold and that are told the same each time: limits alone shut no files
    away."""
    held = (name for name, entry in CORPUS.items() if mode != "limits" or entry.needs != "files")
    return [name for name in held if not CORPUS[name].by_luck]


def grades(mode: str, submissions: list[Submission], jobs: int = 2) -> list[dict]:
    """The submissions in grades.json as a mode writes it, without the seconds. mode: one of MODES, or "best", as this
    machine grades by itself."""
    start = Start() if mode == "best" else MODES[mode]
    with ExitStack() as stack:
        out = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = None
        if mode == "dask":
            from distributed import LocalCluster

            cluster = stack.enter_context(LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None))
            address = cluster.scheduler_address
        settings = Settings(limits=LIMITS, start=start, out=out, jobs=jobs, dask=address)
        result = grade_class(submissions, settings)
        write_reports(result.graded, out, notes=result.notes)
        written = json.loads((out / "grades.json").read_text(encoding="utf-8"))["submissions"]
    return [{**each, "seconds": 0} for each in written]


def differences(one: list[dict], other: list[dict]) -> list[str]:
    """The students of both whose records differ in a single byte."""
    ours = {each["student"]: json.dumps(each) for each in one}
    theirs = {each["student"]: json.dumps(each) for each in other}
    return [student for student in ours.keys() & theirs.keys() if ours[student] != theirs[student]]


def main(modes: list[str], jobs: int) -> None:
    """Grade the corpus in each mode, and print where the grades are not those of the first."""
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for mode in modes:
            names = open_to(mode)
            place = Path(folder, mode)
            place.mkdir()
            began = time.monotonic()
            verdicts_of = grades(mode, list(write_corpus(place, names).values()), jobs)
            summary = f"{mode}: {len(verdicts_of)} submissions in {time.monotonic() - began:.0f} s"
            first = first or verdicts_of
            print(f"{summary}; {len(differences(first, verdicts_of))} differ from {modes[0]}", flush=True)
            for student in sorted(differences(first, verdicts_of)):
                for grade in (first, verdicts_of):
                    print("   ", json.dumps(next(each for each in grade if each["student"] == student))[:2000])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", default=list(MODES), metavar="MODE")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.modes, arguments.jobs)
