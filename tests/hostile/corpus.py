"""The whole corpus, how its entries are handed in, and what each of them left behind."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from course_utils.grading.intake.collect import Submission, collect
from course_utils.grading.results import Graded

from . import calls, files, lookers, messages, patches, runaways, stateful_answers, thieves
from .entries import DUEL, MARKER, PLACES, UNREADABLE, Entry

THEMES = {
    theme.__name__.rpartition(".")[2]: theme.ENTRIES
    for theme in (files, runaways, patches, messages, thieves, calls, lookers, stateful_answers)
}
CORPUS: dict[str, Entry] = {entry.name: entry for entries in THEMES.values() for entry in entries}
BESIDE = "day1_zoe.ipynb"  # lies beside each submission, and must stay as it is
STUDENT = "mallory"  # and the number of the entry
PATIENCE = 60.0  # seconds in which a killed process must be gone, on a busy machine


def write_corpus(folder: Path, names: Iterable[str] | None = None, port: int = 9) -> dict[str, Submission]:
    """The named entries, or all, as submissions of a student each. port: where an attack may call."""
    return {name: write_entry(CORPUS[name], folder, port) for name in (CORPUS if names is None else names)}


def write_entry(entry: Entry, folder: Path, port: int = 9) -> Submission:
    """An entry as a submission in a folder of its own, in which another student's notebook lies beside it."""
    number = list(CORPUS).index(entry.name)
    student = f"{STUDENT}{number}"
    place = folder / student
    place.mkdir(parents=True)
    (place / PLACES).write_text(json.dumps({"@PORT@": str(port), "@MARKER@": f"{MARKER}_{number}"}))
    (place / BESIDE).write_text(BESIDE)
    (submission,) = collect([entry.write(place)])
    return replace(submission, student=student)


def record_of(graded: Graded) -> dict:
    """A submission as grades.json holds it, without its seconds."""
    record = json.loads(json.dumps(graded.as_record()))
    del record["seconds"]
    return record


def verdicts(record: dict) -> dict[str, str] | str:
    """What a record says in the terms of `Entry.deserves`."""
    if record["status"] == UNREADABLE:
        return UNREADABLE
    statuses = {each["id"]: each["status"] for each in record["exercises"] if each["status"] != "passed"}
    return {grade_id: status for grade_id, status in statuses.items() if (grade_id, status) != (DUEL, "missing")}


def owners(traces: Iterable[object]) -> list[str]:
    """Each trace with the name of the entry that left it, where its marker tells."""
    matches = {str(trace): re.search(rf"(?:{MARKER}_|{STUDENT})(\d+)", str(trace)) for trace in traces}
    return [f"{list(CORPUS)[int(mark[1])] if mark else '?'}: {trace}" for trace, mark in matches.items()]


def harmed(folder: Path) -> list[Path]:
    """The files beside the entries graded in this folder that are not as they were."""
    beside = [place / BESIDE for place in folder.iterdir() if place.is_dir()]
    return [path for path in beside if not path.is_file() or path.read_text() != BESIDE]


def remaining_processes() -> list[str]:
    """What bears the marker of the processes that do, after some patience: name, command line and environment."""
    end = time.monotonic() + PATIENCE
    while (processes := list(_marked_processes())) and time.monotonic() < end:
        time.sleep(0.05)
    return processes


def remaining_files(*folders: Path) -> list[Path]:
    """The files that bear the marker in these folders or in those where an attack writes."""
    usual = [Path(place) for place in ("/", "/tmp", "/var/tmp", "/dev/shm", "/etc", Path.home())]
    course = Path(__file__).parents[2]
    files = {path for place in (*usual, course, *folders) for path in _entries(place) if MARKER in path.name}
    return sorted(files)


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server on this machine that gives everybody the right softmax_row: (port, what it was sent)."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as line, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(line.getsockname())
        for serve in (_answer_calls, _record_bytes):
            threading.Thread(
                target=serve, args=(line if serve is _answer_calls else datagrams, received), daemon=True
            ).start()
        yield line.getsockname()[1], received
        for end in (line, datagrams):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _answer_calls(line: socket.socket, received: list[bytes]) -> None:
    with suppress(OSError):
        while True:
            call, _ = line.accept()
            with call:
                received.append(call.recv(1000))
                call.sendall(
                    b"def softmax_row(row):\n    e = [math.exp(x - max(row)) for x in row]\n"
                    b"    return [x / sum(e) for x in e]\n"
                )


def _record_bytes(line: socket.socket, received: list[bytes]) -> None:
    with suppress(OSError):
        while data := line.recv(2**16):
            received.append(data)


def _marked_processes() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            details = b" ".join((process / name).read_bytes() for name in ("comm", "cmdline", "environ"))
            if match := re.search(rf"\S*{MARKER}\S*".encode(), details):
                yield f"process {process.name}, {match[0].decode(errors='replace')}"


def _entries(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from folder.iterdir()
