"""A throwaway place for a grader that meets hostile work: bubblewrap, limits, and an end.

The system is read-only, /tmp and the home folder are empty and private, there is no network but the loopback, and the
processes are a world of their own that ends with the sandbox. The limits are ours: the peers set none.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from peers.graders import Grader
from peers.venvs import ROOT

NOBODY = "65534"
LIMITS = {"NPROC": 200, "AS": 6 * 2**30, "FSIZE": 512 * 2**20, "CORE": 0}
SCRATCH = 3 * 2**30  # bytes in /tmp
HOME = "/tmp/place/home"


@dataclass(frozen=True)
class Run:
    """What happened in one run. status: of the grader's command, None if it was stopped or took the sandbox with it."""

    status: int | None
    hung: bool
    seconds: float
    processes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)
    output: str = ""
    lost: bool = False


def run_confined(grader: Grader, commands: list[list[str]], place: Path, seconds: float) -> Run:
    """Run commands of a grader on its place, of which it gets a copy, for `seconds` at most."""
    task = {
        "commands": commands,
        "after": grader.after(),
        "results": grader.results,
        "environment": grader.environment(Path(HOME)),
        "limits": LIMITS,
        "seconds": seconds,
    }
    watch = [sys.executable, "-B", str(Path(__file__).with_name("watch.py")), json.dumps(task)]
    command = [*sandbox_command(place, [grader.python.parents[1], Path(sys.prefix)]), *watch]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
        return Run(**json.loads(ended.stdout))
    except (subprocess.TimeoutExpired, ValueError) as error:
        output = ended.stderr[-1500:] if isinstance(error, ValueError) else ""
        return Run(None, isinstance(error, subprocess.TimeoutExpired), seconds, output=output, lost=True)


def sandbox_command(place: Path, needed: list[Path]) -> list[str]:
    """Return the start of a command line that runs the rest in the sandbox, where `place` is /tmp/given.

    The limit of processes does not bind the superuser, so for one the grader runs as nobody.
    """
    hidden = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path.home()]
    needed = [Path(sys.base_prefix), ROOT, *needed]
    parts = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in hidden:
        parts += ["--perms", "1777", "--size", str(SCRATCH), "--tmpfs", str(folder)]
    for folder in needed:
        inside = next((other for other in hidden if folder.is_relative_to(other)), folder)
        for parent in reversed(folder.relative_to(inside).parents[:-1]):
            parts += ["--perms", "0755", "--dir", str(inside / parent)]
        if inside != folder:
            parts += ["--ro-bind", str(folder), str(folder)]
    parts += ["--ro-bind", str(place), "/tmp/given", "--chdir", "/tmp"]
    parts += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
    if os.getuid():
        return [*parts, "--unshare-user", "--"]
    as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs"]
    return [*parts, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--", *as_nobody]
