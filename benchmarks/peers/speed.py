"""Seconds a submission: ours, nbgrader and otter on the same notebook and the same twenty submissions, in one run.

Each is called as its documentation says: `course grade` with two jobs and `nbgrader autograde` for the whole class,
`otter run` for each submission. Ours runs before, between and after the others, so that a machine that changes its pace
shows. `otter grade` is left out: it starts a Docker container for each submission. The scores are kept too.
usage: python benchmarks/peers/speed.py [--venv DIR] [--jobs N] [--only NAME …] [--quick] [--out DIR]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

from course_utils.costs.measure import environment
from peers.graders import GRADERS, Grader, make_graders, read_results
from peers.students import twenty
from peers.venvs import ROOT
from peers.where import where_time_goes

ORDER = ("ours", "nbgrader", "ours", "otter", "ours")


def main() -> None:
    """Measure, print, and write speed.json."""
    options = arguments()
    graders = make_graders(options.only or GRADERS, options.venv, options.jobs)
    before = environment()
    files = twenty()
    seconds = defaultdict(list)
    scores = {}
    files = dict(list(files.items())[8:10]) if options.quick else files
    with tempfile.TemporaryDirectory(prefix="course_peers_") as folder:
        for turn, name in enumerate(name for name in ORDER if name in graders):
            taken, scores[name] = grade_class(graders[name], files, Path(folder, f"{turn}-{name}"))
            seconds[name].append(taken / len(files))
            print(f"{graders[name].name}: {seconds[name][-1]:.2f} s a submission", flush=True)
        steps = time_steps(files, Path(folder, "steps")) if "ours" in graders else {}
    result = summary(graders, seconds, scores, steps, before, options.jobs)
    print(as_text(result))
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "speed.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}")


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "peers", help="folder of the peers' venvs")
    parser.add_argument("--quick", action="store_true", help="two submissions, to see that it runs")
    parser.add_argument("--jobs", type=int, default=2, help="jobs of course grade")
    parser.add_argument("--only", nargs="*", choices=list(GRADERS), default=[], help="leave the others out")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "peers", help="folder for speed.json")
    return parser.parse_args()


def grade_class(grader: Grader, files: dict[str, bytes], place: Path) -> tuple[float, dict[str, float | None]]:
    """Return the seconds that the grader's commands take, start-up included, and the scores."""
    place.mkdir()
    grader.prepare(place)
    grader.lay_out(place, files)
    began = time.perf_counter()
    for command in grader.commands(list(files)):
        ended = grader.run(command, place)
        if ended.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    taken = time.perf_counter() - began
    if grader.after():
        grader.run(grader.after(), place).check_returncode()
    return taken, grader.scores(read_results(place, grader.results), list(files))


def time_steps(files: dict[str, bytes], folder: Path) -> dict[str, float]:
    """Seconds a submission by step of our grader, in this process and without jobs."""
    folder.mkdir()
    paths = {student: folder / f"{student}.ipynb" for student in files}
    for student, path in paths.items():
        path.write_bytes(files[student])
    return where_time_goes(paths, folder / "out")


def summary(graders, seconds, scores, steps, before, jobs) -> dict:
    """All that was measured, as JSON takes it. before: the environment when the run began, its load among the rest."""
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    return {
        "environment": before,
        "graders": {name: f"{made.name} ({made.version})" for name, made in graders.items()},
        "jobs": jobs,
        "submissions": len(next(iter(scores.values()))),
        "seconds_a_submission": {name: [round(each, 3) for each in taken] for name, taken in seconds.items()},
        "ratio_to_ours": {
            name: round(median / medians["ours"], 2) for name, median in medians.items() if "ours" in medians
        },
        "steps_of_ours": {name: round(taken, 4) for name, taken in steps.items()},
        "scores": scores,
    }


def as_text(result: dict) -> str:
    """Return the figures as lines for a person."""
    about = result["environment"]
    lines = [
        f"\n{about['date'][:10]}, {about['device']}, {about['cores']} cores, load before {about['load']}, "
        f"Python {about['python']}, torch {about['torch']}; {result['submissions']} submissions"
    ]
    for name, taken in result["seconds_a_submission"].items():
        ratio = result["ratio_to_ours"].get(name)
        times = f"{statistics.median(taken):6.2f} s a submission" + (f", {ratio:5.1f} times ours" if ratio else "")
        lines.append(f"  {result['graders'][name]:40}{times}")
    if result["steps_of_ours"]:
        total = sum(result["steps_of_ours"].values())
        lines.append(f"where the time of ours goes, in one process: {total:.2f} s a submission")
        lines += [f"  {name:28}{taken:7.3f} s {taken / total:5.0%}" for name, taken in result["steps_of_ours"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
