"""How far student code can be confined on this machine, and the process that starts it so."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import course_utils
from course_utils.course import ROOT
from course_utils.errors import CourseError, NotConfined

if not hasattr(os, "fork"):  # what comes now needs it
    raise CourseError("answers can be graded on Linux and macOS only, which can fork a kernel; on Windows, use WSL")

from course_utils.sandbox.inside.landlock import landlock_version
from course_utils.sandbox.inside.namespaces import ASIDE, SCRATCH

LEVELS = ("bubblewrap", "landlock", "limits")
MODULES = ("numpy.random", "torch", "matplotlib.pyplot", "course_utils.checks.kernel.evidence")
PACKAGE = Path(__file__).parents[1]
# All of the course that a kernel gets: the engine's part of the checks, and what the checks of each day try.
GIVEN = (
    "loader.py",
    "checks/kernel/*.py",
    "checks/inputs/*.py",
    "days/__init__.py",
    "days/*/__init__.py",
    "days/*/given/*.py",
)
KERNEL_CHECKS = (
    '"""The checks as a grading kernel sees them: evidence, no answers."""\n\nfrom .kernel.evidence import checks_for\n'
)
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
MACHINE = ("/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage")
LIBRARY = "/course"  # where a kernel in bubblewrap finds its library
INSIDE = Path(__file__).with_name("inside")  # what runs there beside student code
START_SECONDS = 120.0
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # a fork copies a table of pages: it takes half the time


@dataclass(frozen=True)
class Confinement:
    """What holds student code. level: one of LEVELS. filtered: system calls too. why: what a higher level lacked."""

    level: str
    filtered: bool
    why: str = ""

    @property
    def full(self) -> bool:
        """Whether nothing stays open."""
        return self.level == "bubblewrap" and self.filtered

    def __str__(self) -> str:
        """A line for people: what holds, and what stays open."""
        held = {
            "bubblewrap": "bubblewrap: no network, no files but the system's and its own scratch, no other processes",
            "landlock": "Landlock: no files but the system's and its own scratch",
            "limits": "limits on time, memory and output only",
        }[self.level]
        opened = []
        if self.level == "limits":
            opened.append("it can read and write the files that you can")
        if not self.filtered:
            opened.append("it can start processes")
            if self.level != "bubblewrap":
                opened.append("it can use the network")
        elif self.level != "bubblewrap":
            held += "; no network, no new processes"
        text = f"Student code was held by {held}."
        text += f" What stays open: {', '.join(opened)}." if opened else ""
        return f"{text} {self.why}".strip()


class KernelServer:
    """The process that kernels are forked from, and the folder they share with the grader.

    warm: it has imported what notebooks import; a cold one has not. Raises NotConfined when the level does not work
    here. Ends, with all its kernels, at `close` or when this process ends.
    """

    def __init__(self, level: str, warm: bool = True):
        self.folder = Path(tempfile.mkdtemp(prefix="course_", dir=_short_folder()))
        self.level = level
        try:
            write_kernel_library(self.folder / "lib")
            (self.folder / "scratch").mkdir()
            settings = {"level": level, "read": readable(self.folder) if level == "landlock" else []}
            (self.folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
            self.confinement = self._start(warm and sys.platform == "linux")  # elsewhere libraries mind a fork
        except BaseException:
            self.close()
            raise

    def _start(self, warm: bool) -> Confinement:
        library = LIBRARY if self.level == "bubblewrap" else str(self.folder / "lib")
        program = [sys.executable, "-B", "-P", "-m", INSIDE.name]  # it finds itself by PYTHONPATH
        command = [*program, str(self.folder), self.level, *(MODULES if warm else ())]
        if self.level == "bubblewrap":
            command = [*bubblewrap(self.folder), *command]
        with (self.folder / "log").open("wb") as log:
            process = self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env=kernel_environment(library, str(self.folder)) | LARGE_PAGES,
                start_new_session=True,
            )
        late = threading.Timer(START_SECONDS, process.kill)
        late.start()
        line = process.stdout.readline() if process.stdout else b""
        late.cancel()
        said: dict[str, Any] = json.loads(line) if line else {"failed": self._last_words()}
        if "failed" in said:
            raise NotConfined(f"no kernels by {self.level} on this machine: {said['failed']}")
        return Confinement(self.level, said["filter"])

    def _last_words(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the process ended with status {self.process.wait()}"

    @property
    def alive(self) -> bool:
        """Whether it still takes requests."""
        return self.process.poll() is None

    def close(self) -> None:
        """End it with all its kernels, and delete the shared folder."""
        process = getattr(self, "process", None)
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        remove(self.folder)

    def __enter__(self) -> KernelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_kernels(confinement: str = "best", warm: bool = True) -> KernelServer:
    """A server of kernels, as far confined as this machine allows.

    confinement: "best", "full" for an error where anything stays open, or one of LEVELS. Raises NotConfined.
    """
    if confinement not in ("best", "full", *LEVELS):
        raise CourseError(f"confinement {confinement!r} is none of best, full, {', '.join(LEVELS)}")
    levels = {"best": LEVELS, "full": LEVELS[:1]}.get(confinement, (confinement,))
    failures = []
    for level in levels:
        if reason := _lacking(level):
            failures.append(reason)
            continue
        try:
            server = KernelServer(level, warm)
        except NotConfined as error:
            failures.append(str(error))
            continue
        server.confinement = replace(server.confinement, why="; ".join(failures))
        if confinement == "full" and not server.confinement.full:
            server.close()
            raise NotConfined(f"student code cannot be confined fully here: {server.confinement}")
        return server
    raise NotConfined(f"student code cannot be confined as asked for: {'; '.join(failures)}")


_shared: dict[tuple[str, bool], KernelServer] = {}


def shared_kernels(confinement: str = "best", warm: bool = True) -> KernelServer:
    """The server of this process for these settings, started when first asked for or when the last one ended."""
    server = _shared.get((confinement, warm))
    if server is None or not server.alive:
        if server is not None:
            server.close()
        server = _shared[confinement, warm] = open_kernels(confinement, warm)
    return server


@atexit.register
def close_shared_kernels() -> None:
    """End the servers of this process."""
    while _shared:
        _shared.popitem()[1].close()


def bubblewrap(folder: Path) -> list[str]:
    """The start of a command line that runs the rest in a sandbox.

    It sees the system's programs and libraries, this Python with its packages but for the course itself, the library of
    the kernels at LIBRARY, and `folder`; no network, no processes, no variables and no other files.
    """
    nobody = ["--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    words = ["bwrap", "--unshare-all", *nobody, "--new-session"]
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for path in SYSTEM_FILES:
        words += ["--ro-bind-try", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", ASIDE, "--dir", SCRATCH]
    for path in MACHINE:
        words += ["--ro-bind-try", path, path]
    for hidden in answers():
        if any(hidden.is_relative_to(root) for root in SYSTEM if os.path.isdir(root)):
            words += ["--tmpfs", str(hidden)]
    for python in pythons():
        words += ["--ro-bind", str(python), str(python)]
        words += [word for hidden in answers() if hidden.is_relative_to(python) for word in ("--tmpfs", str(hidden))]
    words += ["--bind", str(folder), str(folder), "--ro-bind", str(folder / "lib"), LIBRARY]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--"]


def readable(folder: Path) -> list[str]:
    """What a kernel may read under Landlock: as in `bubblewrap`, but folder by folder, since nothing can be hidden."""
    found = [*SYSTEM, *SYSTEM_FILES, "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", *MACHINE]
    wide = [Path(path).resolve() for path in found] + pythons()
    return [str(part) for path in wide for part in _without(path, answers())] + [str(folder / "lib")]


def pythons() -> list[Path]:
    """The folders of this Python and its packages, wherever they were installed, but none that holds the course."""
    folders = {Path(path).resolve() for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    folders |= {Path(sys.executable).parent.parent, Path(sys.prefix)}
    folders |= {path for path in packages() if not any(path.is_relative_to(folder) for folder in folders)}
    return sorted(path for path in folders if path not in (Path("/usr"), Path("/")))


def packages() -> list[Path]:
    """The folders of packages that this process imports from: its own, and those that it was pointed to."""
    return [Path(path).resolve() for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def answers() -> list[Path]:
    """The folders in which the course's answers lie: the installed package, and the course's folder around it."""
    package = Path(course_utils.__file__).resolve().parent
    inside_python = any(ROOT.resolve().is_relative_to(path) for path in pythons())
    return [package] if inside_python else [package, ROOT.resolve()]


def kernel_environment(library: str, home: str) -> dict[str, str]:
    """The environment of student code: nothing of the grader's own but the path to programs."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "PYTHONPATH": os.pathsep.join([library, *map(str, packages())]),
        "HOME": home,
        "USER": "student",
        "IPYTHONDIR": os.path.join(home, ".ipython"),
        "MPLCONFIGDIR": os.path.join(home, ".matplotlib"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **ONE_THREAD,
    }


def write_kernel_library(folder: Path) -> None:
    """Write a `course_utils` that holds the inputs of the checks and no answers, and the server beside it."""
    package = folder / "course_utils"
    (package / "checks").mkdir(parents=True)
    (package / "__init__.py").write_text('"""The part of the course that a grading kernel needs."""\n')
    (package / "checks" / "__init__.py").write_text(KERNEL_CHECKS)
    for path in given():
        _copy_compiled(path, package / path.relative_to(PACKAGE))
    for path in sorted(INSIDE.glob("*.py")):
        _copy_compiled(path, folder / INSIDE.name / path.name)


def given() -> list[Path]:
    """The modules of the course that a kernel gets."""
    return sorted(path for pattern in GIVEN for path in PACKAGE.glob(pattern))


def _copy_compiled(source: Path, target: Path) -> None:
    """Copy a module, and what Python compiled of it, or else each kernel would do that again."""
    compiled = Path(importlib.util.cache_from_source(str(source)))
    cache = target.parent / "__pycache__"
    cache.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # with its times, by which Python knows that the two belong together
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(compiled, cache / compiled.name)


def remove(folder: Path) -> None:
    """Delete a folder in which student code wrote, however deep it goes and whatever its modes are."""
    delete = ["rm", "-rf", str(folder)]  # rmtree gives up on deep folders
    subprocess.run(delete, stderr=subprocess.DEVNULL)
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+rwX", str(folder)], stderr=subprocess.DEVNULL)
        subprocess.run(delete, stderr=subprocess.DEVNULL)


def _lacking(level: str) -> str:
    """What this machine lacks for a level, or an empty string."""
    if level == "bubblewrap" and not (sys.platform == "linux" and shutil.which("bwrap")):
        return "bubblewrap is not installed"
    if level == "landlock" and not landlock_version():
        return "the system has no Landlock"
    return ""


def _without(path: Path, hidden: list[Path]) -> list[Path]:
    """Paths that cover `path` but for what lies in the hidden folders."""
    if path in hidden:
        return []
    if not path.is_dir() or not any(folder.is_relative_to(path) for folder in hidden):
        return [path]
    return [part for child in sorted(path.iterdir()) for part in _without(child, hidden)]


def _short_folder() -> str | None:
    """Where the shared folder goes: the path of a socket in it may have about 100 characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 50 else "/tmp"
