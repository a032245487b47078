"""Run a grader inside the sandbox and tell what it left: its scores, processes that live on, files that are new.

Started by sandbox.py with the task as JSON in its first argument; prints one line of JSON. Standard library only.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

GIVEN, WORK, LOG = (Path("/tmp", name) for name in ("given", "work", "log"))
LONGEST = 2_000_000  # of a file that is sent back


def main(task: dict) -> dict:
    """Grade, look around, make the scores readable, and tell."""
    subprocess.run(["cp", "-r", "--no-dereference", "--sparse=always", GIVEN, WORK], check=True)
    before = new_files(set())
    began = time.monotonic()
    status, hung = run_all(task["commands"], task["environment"], task["limits"], task["seconds"])
    record = {"status": status, "hung": hung, "seconds": round(time.monotonic() - began, 1)}
    time.sleep(1)  # what is about to end may do so
    record |= {"processes": processes(), "files": sorted(new_files(before))}
    stop_processes()
    if task["after"]:
        run_all([task["after"]], task["environment"], task["limits"], 60)
    paths = [path for pattern in task["results"] for path in WORK.glob(pattern) if path.is_file()]
    record["results"] = {str(path.relative_to(WORK)): path.read_text("utf-8", "replace")[:LONGEST] for path in paths}
    record["output"] = LOG.read_bytes()[-1500:].decode("utf-8", "replace")
    return record


def run_all(commands, environment, limits, seconds) -> tuple[int | None, bool]:
    """Return the first exit status that is not 0, and whether time ran out."""
    end = time.monotonic() + seconds
    status = 0
    for command in commands:
        with LOG.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=WORK,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: set_limits(limits),
            )
        try:
            ended = process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None, True
        status = status or ended
    return status, False


def set_limits(limits: dict[str, int]) -> None:
    """Of what the grader starts, so that a bomb ends in here. A limit that is lower already stays."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def processes() -> list[str]:
    """Return the command lines of all processes in the sandbox but this one and the sandbox's first."""
    names = []
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) in (1, os.getpid()):
            continue
        with contextlib.suppress(OSError, IndexError):
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            if state != "Z":
                names.append(line[:200])
    return sorted(names)


def stop_processes() -> None:
    """Kill whatever `processes` finds, again and again while there is any."""
    for _ in range(50):
        others = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
        others = [pid for pid in others if pid not in (1, os.getpid())]
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not processes():
            return
        time.sleep(0.1)


def new_files(before: set[str]) -> set[str]:
    """Return all files in the sandbox's writable places that were not there before."""
    files = set()
    for top in ("/tmp", "/dev/shm", "/var/tmp"):
        device = os.stat(top).st_dev
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev == device]
            files.update(os.path.join(folder, name) for name in names)
    return files - before


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
