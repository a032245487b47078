"""Write the two parts of a release: the student's edition to hand out, and the grader's bundle for the teacher.

    DIR/student/  student.zip   see `edition.py`
    DIR/grader/   grader.zip    solutions/ with their results on the class's hidden inputs, and keys.json
    DIR/note.md                 what the teacher says at the top of the students' README, if anything

The hidden inputs of each exercise are drawn from a seed of its own, which is derived from the class's secret. Whoever
learns one seed learns no other seed and nothing about the secret. Without a secret, the hidden inputs are those of the
public course. The same release gives the same bytes.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import nbformat

from course_utils.answer_key.key import COURSE, KEYS, AnswerKey, checks_of, keys_text, with_seed
from course_utils.authoring import build
from course_utils.authoring.edition import find_traces, write_student_edition
from course_utils.authoring.execute import execute
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import all_ladders, find_ladder
from course_utils.checks.kernel.outcome import MIME, is_hidden
from course_utils.errors import CellFailed, CourseError
from course_utils.files import Marker, make_zip, write_whole
from course_utils.notebooks import dump

BUNDLE_README = Path(__file__).with_name("bundle_readme.md")
MIN_SECRET_BYTES = 16  # bytes
FOLDERS = ("student", "grader")
NOTE = "note.md"  # the teacher's, beside them: no release changes it unless another is given
MARKER = Marker(".course-release.json", "release", ("student/**/*", "grader/**/*", "student.zip", "grader.zip"))


@dataclass(frozen=True)
class Released:
    """What a release wrote.

    Attributes:
        shared: the number of lines that the answers share with the lessons and their library.
        seeded: whether the hidden inputs were drawn from a secret.
    """

    days: tuple[int, ...]
    shared: int
    seeded: bool


def release(
    out: Path,
    days: Iterable[int] = (),
    secret: bytes | None = None,
    progress: Callable[[str], None] = lambda doing: None,
    course: AnswerKey = COURSE,
    note: Path | None = None,
) -> Released:
    """Write the student's edition and the grader's bundle into the folder `out`.

    Args:
        days: the days to release; all of them where it is empty.
        secret: the class's secret, from which the hidden inputs are derived; without it they are public.
        progress: called with a few words on each stage as it begins.
        note: a file of Markdown for the top of the students' README, which is kept as note.md in `out`; by default the
            one that an earlier release kept there.

    Raises:
        CourseError: a day is unknown, the course is not built, `out` holds files that no release wrote, the note cannot
            be read, or the student's edition shows part of an answer. In every case `out` is left as it was.
    """
    # what can be wrong, before anything is written
    days = _verified_days(days)
    MARKER.verify(out)
    note_beside = out / NOTE  # of the last release, if that had one
    note_text = _read_note(note or note_beside) if note or note_beside.exists() else ""
    progress("comparing sources and notebooks")
    stale = [
        line for line in build.check(course.folder, used=True) if not line.startswith(("exercises/", "notebooks/"))
    ]
    if stale:
        raise CourseError(f"{stale[0]} first")
    progress("drawing the class's hidden inputs")
    seeds = {day: class_seeds(secret, day) for day in days} if secret else {}
    # both editions, beside their place until they are whole
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".course-release-", dir=out) as beside:
        student, grader = (Path(beside, name) for name in FOLDERS)
        student.mkdir()
        progress("writing the student's edition")
        write_student_edition(student, days, course, note_text)
        progress("searching the student's edition for answers")
        shared = _verify_no_trace(student, course, secret, seeds)
        _write_bundle(grader, days, seeds, course, progress)
        for folder in (student, grader):
            files = (path for path in folder.rglob("*") if path.is_file())
            content = make_zip({path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in files})
            folder.with_suffix(".zip").write_bytes(content)
        _move_into_place(Path(beside), out)
    if note:
        write_whole(note_beside, note_text)
    return Released(tuple(days), shared, bool(seeds))


def class_seeds(secret: bytes, day: int) -> dict[str, str]:
    """Return the seeds of a day's hidden inputs for a class with this secret, hex text by grade_id.

    On rare inputs a known mistake still passes; the next seed is then taken.
    """
    return {
        grade_id: next(seed for seed in _seeds_of(secret, f"{day}/{grade_id}") if _tells_mistakes(day, grade_id, seed))
        for grade_id in all_ladders(day)
    }


def _seeds_of(secret: bytes, name: str) -> Iterator[str]:
    for attempt in count():
        text = f"{name}/{attempt}" if attempt else name
        yield hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def _tells_mistakes(day: int, grade_id: str, seed: str) -> bool:
    """Return whether every known mistake fails on the hidden inputs of this seed, so that it loses its points."""
    if find_ladder(day, grade_id).by_hand:
        return True
    exercise = judge_of(day, grade_id, seed)
    right = exercise.reference(hidden=True)
    return not any(exercise.passes(known, right) for _, known in exercise.mistakes(hidden=True))


def read_secret(path: Path) -> tuple[bytes, str]:
    """Return the secret in a file, and a warning if others on this machine can read it ("" otherwise).

    Raises:
        CourseError: the file cannot be read, or its secret is too short.
    """
    try:
        secret = path.read_bytes().rstrip(b"\r\n")
        readable_by_others = path.stat().st_mode & 0o044
    except OSError as error:
        raise CourseError(f"{path}: the secret cannot be read ({error.strerror})") from None
    if len(secret) < MIN_SECRET_BYTES:
        todo = f"give {MIN_SECRET_BYTES} bytes or more, for example from: openssl rand -hex 32"
        raise CourseError(f"{path}: a secret of {len(secret)} bytes can be guessed; {todo}")
    return (
        secret,
        f"{path}: other users of this machine can read the secret; run chmod 600 on it" if readable_by_others else "",
    )


def _read_note(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CourseError(f"{path}: the note cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CourseError(f"{path}: the note is not text in UTF-8; save it as that") from None


def _verified_days(days: Iterable[int]) -> list[int]:
    known = days_with_exercises()
    requested = sorted(set(days))
    for day in requested:
        if day not in known:
            raise CourseError(f"no exercises for day {day}; there are some for days {', '.join(map(str, known))}")
    return requested or known


def _verify_no_trace(student: Path, course: AnswerKey, secret: bytes | None, seeds: Mapping) -> int:
    secrets = [seed for of_day in seeds.values() for seed in of_day.values()]
    secrets += [secret.decode("utf-8", "replace"), secret.hex()] if secret else []
    traces = find_traces(student, course, tuple(secrets))
    if traces.faults:
        raise CourseError(
            f"not released, since answers could be read ({len(traces.faults)} places): {traces.faults[0]}"
        )
    return traces.shared


def _write_bundle(
    folder: Path, days: list[int], seeds: Mapping, course: AnswerKey, progress: Callable[[str], None]
) -> None:
    (folder / "solutions").mkdir(parents=True)
    for day in days:
        path = course.path(day)
        if seeds:
            progress(f"executing the solutions of day {day} on the class's hidden inputs")
            notebook = rebuild_hidden_outputs(course.notebook(day), day, seeds[day], course.folder)
            text = dump(notebook)
        else:
            text = path.read_text(encoding="utf-8")
        (folder / "solutions" / path.name).write_text(text, encoding="utf-8", newline="\n")
    (folder / KEYS).write_text(keys_text(seeds), encoding="utf-8")
    from_what = (
        "keys made from the class's secret" if seeds else "no keys of its own: they are those of the public course"
    )
    text = BUNDLE_README.read_text(encoding="utf-8")
    text = text.replace("{days}", ", ".join(map(str, days))).replace("{keys}", from_what)
    (folder / "README.md").write_text(text, encoding="utf-8")


def rebuild_hidden_outputs(
    solution: nbformat.NotebookNode, day: int, seeds: Mapping[str, str], root: Path
) -> nbformat.NotebookNode:
    """Return a copy of a solution notebook whose results on hidden inputs come from an execution with these seeds.

    Everything else stays as it is.

    Args:
        seeds: the seed of each exercise, by grade_id.

    Raises:
        CourseError: a reference answer fails on these inputs.
    """
    seeded = copy.deepcopy(solution)
    for grade_id, check in checks_of(seeded).items():
        check.source = with_seed(check.source, seeds.get(grade_id, ""))
    try:
        executed, _ = execute(seeded, root)
    except CellFailed as error:
        raise CourseError(f"day {day}: on the hidden inputs of this secret {error}; give another secret") from None
    rebuilt = copy.deepcopy(solution)
    for cell, fresh in zip(rebuilt.cells, executed.cells, strict=True):
        for output, again in zip(hidden_outputs(cell), hidden_outputs(fresh), strict=True):
            output.data[MIME] = again.data[MIME]
    return rebuilt


def hidden_outputs(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the outputs of a cell that hold evidence on hidden inputs."""
    return [output for output in cell.get("outputs", []) if is_hidden(output)]


def _move_into_place(beside: Path, out: Path) -> None:
    """Replace the previous release by the finished one. Only its owner can read the bundle."""
    (beside / "grader").chmod(0o700)
    (beside / "grader.zip").chmod(0o600)
    MARKER.write(beside)
    for folder in FOLDERS:
        if (out / folder).exists():
            shutil.rmtree(out / folder)
        (beside / folder).replace(out / folder)
        (beside / f"{folder}.zip").replace(out / f"{folder}.zip")
    (beside / MARKER.name).replace(out / MARKER.name)
