"""What hostile submissions do to nbgrader, to otter and to our grader: the test corpus through all three, as a page.

Each entry of tests/hostile is handed in beside a blameless solution, alone with a grader in a throwaway sandbox. What
was found is kept in hostile.json as it comes, so that a run that was stopped goes on; docs/peers.md counts the entries
that have met every grader, and has the times that speed.py left in speed.json.
usage: python benchmarks/peers/hostile.py [--venv DIR] [--jobs N] [--seconds S] [--names TEXT …] [--again] [--out DIR]
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile import runaways
from hostile.corpus import CORPUS, MARKER
from hostile.entries import Entry

from course_utils.answer_key.key import COURSE, reference_answers
from peers.graders import DAY, GRADERS, NOTEBOOK, Grader, Otter, Ours, make_graders
from peers.outcome import NOT_APPLICABLE, judge, page
from peers.sandbox import run_confined
from peers.students import filled
from peers.venvs import ROOT

PAGE = ROOT / "docs" / "peers.md"
HOSTILE = "ada"
BLAMELESS = "zoe"
FEEDBACK = "out/feedback"
LARGEST = 50 * 2**20  # of a file that is converted for otter
INTRO = """\
# The same hostile work under three graders

`python benchmarks/peers/hostile.py` counted what {count} submissions of `tests/hostile/` did on {date}, under
Python {python}, to {versions}.
They are odd files and archives, cells that run away, patched tools, forged messages, and searches for the answers. What
came into the corpus later is not counted.

## How they were compared

Each grader met each submission alone, beside a blameless one, in a throwaway sandbox without network, with a private
`/tmp`, 6 GiB of address space a process and 200 processes in all. It was stopped after {seconds} s. The limits help the
peers, which set none themselves.

- nbgrader has `solutions/` as its source, unchanged. Its check cells are ours, and run in the student's kernel
  together with the answers that they compare with.
- otter has a test file for each exercise, with the same inputs, and `np.allclose` against stored numbers. Each
  submission's check cells call `grader.check`. An exercise that builds on one that failed is lent a right answer, as
  ours does. `otter grade`, which starts a Docker container for each submission, was not tried.
- Archives, what calls a server, and submissions to other days than the first were not given to the peers: neither of
  the two commands unpacks an archive, the sandbox has no network, and they were set up for day 1.

A submission deserves the points of its answer cells, and nothing else that came with it counts. The table counts the
submissions with which something went wrong: points too many or too few; a grader that hung, was killed or gave no
grade; a batch that ended before the blameless submission, or changed its grade; a process or a file left behind. One
submission may count in several rows.
"""
MEANING = """\
The corpus was written against our grader: that nothing went wrong there says that the known holes are closed. An attack
on a peer would be written otherwise, so a peer that one of these did not move need not be safe from its kind. The peers
also run the whole notebook, where a student's own cell can cost points that it does not cost here.

Three differences of design explain much of the table:

- The peers check an answer in the process that it runs in. There it can patch what compares it, or end the kernel and
  with it the grade of the whole notebook. Ours judges what answers returned in another process.
- The peers run where the official answers lie, so a search of the disk finds them. Our kernels have none.
- The peers put no limit on output, processes or files. A flood, a fork bomb or a loop that swallows interrupts holds
  `otter run` until somebody stops it, and what was started or written stays.
"""
AGAIN = """\
## Run it again

    python benchmarks/peers/speed.py
    python benchmarks/peers/hostile.py

Both install nbgrader and otter-grader into environments of their own, in `build/peers/`. The second takes an hour or
more and goes on where it was stopped; `build/peers/hostile.json` then says of each submission what each grader made of
it, and this page is written anew. `--names TEXT` tries only some submissions, `--only ours` only one grader.
"""


def main() -> None:
    """Run what is not there yet, then write the page if all is."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "hostile.json"
    results = json.loads(store.read_text(encoding="utf-8")) if store.exists() and not options.again else {}
    graders = make_graders(options.only or GRADERS, options.venv, jobs=1)
    entries = [entry for entry in CORPUS.values() if not options.names or any(n in entry.name for n in options.names)]
    entries.sort(key=lambda entry: entry in runaways.ENTRIES)  # they take longest
    with tempfile.TemporaryDirectory(prefix="course_peers_") as folder, ThreadPoolExecutor(options.jobs) as pool:
        prepared = prepare(graders, Path(folder))
        waiting = {
            pool.submit(meet, graders[name], prepared[name], entry, options.seconds): (entry.name, name)
            for entry in entries
            for name in graders
            if name not in results.get(entry.name, {})
        }
        for number, done in enumerate(as_completed(waiting), start=1):
            entry, name = waiting[done]
            results.setdefault(entry, {})[name] = done.result()
            store.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            print(f"{number}/{len(waiting)} {entry} | {name}: {', '.join(done.result()) or 'as deserved'}", flush=True)
    speed = options.out / "speed.json"
    write_page(results, options.seconds, json.loads(speed.read_text(encoding="utf-8")) if speed.exists() else None)


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    build = ROOT / "build" / "peers"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=build, help="folder of the peers' environments")
    parser.add_argument("--jobs", type=int, default=1, help="sandboxes at a time")
    parser.add_argument("--seconds", type=float, default=120, help="after which a grader is stopped")
    parser.add_argument("--names", nargs="*", default=[], help="only entries with one of these in their names")
    parser.add_argument("--only", nargs="*", choices=list(GRADERS), help="only these graders")
    parser.add_argument("--again", action="store_true", help="forget what was found before")
    parser.add_argument("--out", type=Path, default=build, help="folder for hostile.json")
    return parser.parse_args()


def prepare(graders: dict[str, Grader], folder: Path) -> dict[str, Path]:
    """Return a place for each grader, as it is before submissions come."""
    places = {}
    for name, grader in graders.items():
        places[name] = folder / name
        places[name].mkdir()
        grader.prepare(places[name])
        (places[name] / "home").mkdir(exist_ok=True)
        grader.run([str(grader.python), "-c", "import matplotlib.font_manager"], places[name])  # fills its cache
    return places


def meet(grader: Grader, prepared: Path, entry: Entry, seconds: float) -> list[str]:
    """Return what went wrong when a grader met an entry."""
    with tempfile.TemporaryDirectory(prefix="course_peers_") as folder:
        place = Path(folder, "place")
        written = Path(folder, "written")
        written.mkdir()
        shutil.copytree(prepared, place)
        os.chmod(folder, 0o755)
        if (entry.needs == "network" or entry.day != DAY) and not isinstance(grader, Ours):
            return [NOT_APPLICABLE]
        commands = hand_in(grader, place, entry.write(written))
        if commands is None:
            return [NOT_APPLICABLE]
        alone = isinstance(grader, Otter) and not entry.needs
        run = run_confined(grader, commands[:1] if alone else commands, place, seconds)
    if isinstance(grader, Ours):  # a page of feedback lies in a folder of the student's name
        run = replace(run, files=[file for file in run.files if f"/{FEEDBACK}/" not in file])
    scores = grader.scores(run.results, [] if isinstance(grader, Ours) else [HOSTILE, BLAMELESS])
    blameless = scores.pop(BLAMELESS, None)
    score = next((score for score in scores.values()), None)
    return judge(run, score, entry.score, full_marks() if alone else blameless, full_marks(), MARKER)


def hand_in(grader: Grader, place: Path, written: Path) -> list[list[str]] | None:
    """Put a hostile and a blameless submission into the place; the commands that grade them, None if it cannot be."""
    blameless = filled(reference_answers(COURSE.notebook(DAY)))
    if isinstance(grader, Ours):
        (place / "given").mkdir()
        shutil.move(written, place / "given" / written.name)
        beside = place / "beside" / BLAMELESS / "day1" / f"{NOTEBOOK}.ipynb"
        beside.parent.mkdir(parents=True)
        beside.write_bytes(blameless)
        return grader.grade(f"given/{written.name}", "beside")
    (written, *more) = written.iterdir() if written.is_dir() else [written]
    if more or written.suffix != ".ipynb":
        return None
    grader.lay_out(place, {HOSTILE: b"", BLAMELESS: blameless})
    target = place / grader.path_of(HOSTILE)
    target.unlink()
    if written.is_symlink() or written.stat().st_size > LARGEST:
        shutil.move(written, target)
    else:
        inside = Path("/tmp/place", grader.path_of(HOSTILE)).parent
        data = written.read_bytes().replace(str(written.parent).encode(), str(inside).encode())
        target.write_bytes(grader.convert(data))
    return grader.commands([HOSTILE, BLAMELESS])


def full_marks() -> float:
    """Return the points of the day."""
    return sum(question.points for question in COURSE.exercises(DAY))


def by_title(findings: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return what was found for an entry, by the names that a reader knows the graders by."""
    return {grader.name: findings[name] for name, grader in GRADERS.items()}


def write_page(results: dict, seconds: float, speed: dict | None) -> None:
    """Write docs/peers.md, of the entries that have met every grader, and of the last run of speed.py."""
    outcomes = [by_title(each) for each in results.values() if each.keys() == GRADERS.keys()]
    intro = INTRO.format(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        count=len(outcomes),
        versions=", ".join(f"{made.name} ({made.version})" for made in GRADERS.values()),
        python=platform.python_version(),
        seconds=f"{seconds:g}",
    )
    PAGE.write_text(page(outcomes, intro, MEANING, AGAIN, speed), encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
