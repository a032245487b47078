"""Find out how far student code can be confined on this machine, and start the server that forks kernels there."""

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

if not hasattr(os, "fork"):  # the imports below need it
    raise CourseError("answers can be graded on Linux and macOS only, which can fork a kernel; on Windows, use WSL")

from course_utils.sandbox.inside.landlock import landlock_version
from course_utils.sandbox.inside.namespaces import ASIDE, SCRATCH
from course_utils.time_limits import SERVER_END_SECONDS, SERVER_START_SECONDS

LEVELS = ("bubblewrap", "landlock", "limits")
MODULES = ("numpy.random", "torch", "matplotlib.pyplot", "course_utils.checks.kernel.evidence")
PACKAGE = Path(__file__).parents[1]
# All files of the course that a kernel gets: the kernel's part of the checks, and the test inputs of each day.
KERNEL_FILES = (
    "loader.py",
    "checks/kernel/*.py",
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
LIBRARY = "/course"  # where a kernel in bubblewrap finds its copy of the course
INSIDE = Path(__file__).with_name("inside")  # the code that runs beside student code
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # halves the time of a fork, which copies the page table


@dataclass(frozen=True)
class Confinement:
    """How student code is confined.

    Attributes:
        level: one of LEVELS.
        filtered: whether system calls are filtered, too.
        why: why the levels above it could not be used.
    """

    level: str
    filtered: bool
    why: str = ""

    @property
    def full(self) -> bool:
        """Whether this is full confinement, which leaves nothing open."""
        return self.level == "bubblewrap" and self.filtered

    def __str__(self) -> str:
        """Say in a line for people what holds student code, and what stays open."""
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
        text = f"Student code was confined by {held}."
        text += f" What stays open: {', '.join(opened)}." if opened else ""
        return f"{text} {self.why}".strip()


class KernelServer:
    """The process that kernels are forked from, and the folder that they share with the grader.

    The server ends with all its kernels at `close`, or when this process ends.

    Args:
        level: one of LEVELS.
        warm: import what notebooks import before the first fork; done on Linux only.

    Raises:
        NotConfined: if the level does not work on this machine.
    """

    def __init__(self, level: str, warm: bool = True):
        self.folder = Path(tempfile.mkdtemp(prefix="course_", dir=_short_folder()))
        self.level = level
        try:
            write_kernel_library(self.folder / "lib")
            (self.folder / "scratch").mkdir()
            settings = {"level": level, "read": readable(self.folder) if level == "landlock" else []}
            (self.folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
            self.confinement = self._start(warm and sys.platform == "linux")  # elsewhere libraries do not bear a fork
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
        late = threading.Timer(SERVER_START_SECONDS, process.kill)
        late.start()
        line = process.stdout.readline() if process.stdout else b""
        late.cancel()
        report: dict[str, Any] = json.loads(line) if line else {"failed": self._last_line_of_log()}
        if "failed" in report:
            raise NotConfined(f"no kernel can be confined by {self.level} on this machine: {report['failed']}")
        return Confinement(self.level, report["filter"])

    def _last_line_of_log(self) -> str:
        lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the process ended with status {self.process.wait()}"

    @property
    def alive(self) -> bool:
        """Whether the server still takes requests."""
        return self.process.poll() is None

    def close(self) -> None:
        """End the server with all its kernels, and delete the shared folder."""
        process = getattr(self, "process", None)
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            try:
                process.wait(SERVER_END_SECONDS)
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
    """Start a server whose kernels are confined as far as this machine allows.

    Args:
        confinement: "best"; "full" for an error if anything stays open; or one of LEVELS.
        warm: as for `KernelServer`.

    Raises:
        NotConfined: if kernels cannot be confined as asked for.
        CourseError: if `confinement` is none of these words.
    """
    if confinement not in ("best", "full", *LEVELS):
        raise CourseError(f"confinement {confinement!r} is not one of best, full, {', '.join(LEVELS)}")
    levels = {"best": LEVELS, "full": LEVELS[:1]}.get(confinement, (confinement,))
    failures = []
    for level in levels:
        if reason := _find_obstacle(level):
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
    """Return this process's server for these settings; start one if there is none or if it has ended."""
    server = _shared.get((confinement, warm))
    if server is None or not server.alive:
        if server is not None:
            server.close()
        server = _shared[confinement, warm] = open_kernels(confinement, warm)
    return server


@atexit.register
def close_shared_kernels() -> None:
    """End the servers that `shared_kernels` started."""
    while _shared:
        _shared.popitem()[1].close()


def bubblewrap(folder: Path) -> list[str]:
    """Return the start of a command line that runs the rest of the line in a bubblewrap sandbox.

    The sandbox holds the system's programs and libraries, this Python and its packages without the course itself, the
    kernels' copy of the course at LIBRARY, and `folder`. It has no network, no outside processes and no other files.

    Args:
        folder: folder that the server shares with the grader; the sandbox may write in it.
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
    """Return the paths that a kernel may read under Landlock, which cannot hide parts of a folder as bubblewrap can."""
    paths = [*SYSTEM, *SYSTEM_FILES, "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", *MACHINE]
    wide = [Path(path).resolve() for path in paths] + pythons()
    return [str(part) for path in wide for part in _without(path, answers())] + [str(folder / "lib")]


def pythons() -> list[Path]:
    """Return the folders of this Python and of its installed packages, except /usr and /."""
    folders = {Path(path).resolve() for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    folders |= {Path(sys.executable).parent.parent, Path(sys.prefix)}
    folders |= {path for path in packages() if not any(path.is_relative_to(folder) for folder in folders)}
    return sorted(path for path in folders if path not in (Path("/usr"), Path("/")))


def packages() -> list[Path]:
    """Return the folders called site-packages or dist-packages from which this process imports."""
    return [Path(path).resolve() for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def answers() -> list[Path]:
    """Return the folders that hold the course's answers: the package, and the checkout around it if there is one."""
    package = Path(course_utils.__file__).resolve().parent
    inside_python = any(ROOT.resolve().is_relative_to(path) for path in pythons())
    return [package] if inside_python else [package, ROOT.resolve()]


def kernel_environment(library: str, home: str) -> dict[str, str]:
    """Return the environment variables of student code; none of them is copied from the grader's.

    Args:
        library: folder of the kernels' copy of the course.
        home: the kernel's home folder.
    """
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
    """Write a `course_utils` that holds the checks' test inputs but no answers, and the server's code beside it."""
    package = folder / "course_utils"
    (package / "checks").mkdir(parents=True)
    (package / "__init__.py").write_text('"""The part of the course that a grading kernel needs."""\n')
    (package / "checks" / "__init__.py").write_text(KERNEL_CHECKS)
    for path in kernel_modules():
        _copy_compiled(path, package / path.relative_to(PACKAGE))
    for path in sorted(INSIDE.glob("*.py")):
        _copy_compiled(path, folder / INSIDE.name / path.name)


def kernel_modules() -> list[Path]:
    """Return the modules of the course that a kernel gets."""
    return sorted(path for pattern in KERNEL_FILES for path in PACKAGE.glob(pattern))


def _copy_compiled(source: Path, target: Path) -> None:
    """Copy a module with its bytecode, because otherwise each kernel would compile it again."""
    compiled = Path(importlib.util.cache_from_source(str(source)))
    cache = target.parent / "__pycache__"
    cache.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)  # with its time of change, by which Python matches it with its bytecode
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(compiled, cache / compiled.name)


def remove(folder: Path) -> None:
    """Delete a folder in which student code wrote, however deep it is and whatever its modes are."""
    delete = ["rm", "-rf", str(folder)]  # rmtree gives up on deep folders
    subprocess.run(delete, stderr=subprocess.DEVNULL)
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+rwX", str(folder)], stderr=subprocess.DEVNULL)
        subprocess.run(delete, stderr=subprocess.DEVNULL)


def _find_obstacle(level: str) -> str:
    """Return what this machine lacks for a level, or an empty string."""
    if level == "bubblewrap" and not (sys.platform == "linux" and shutil.which("bwrap")):
        return "bubblewrap is not installed"
    if level == "landlock" and not landlock_version():
        return "the system has no Landlock"
    return ""


def _without(path: Path, hidden: list[Path]) -> list[Path]:
    """Return paths that cover `path` except for the hidden folders in it."""
    if path in hidden:
        return []
    if not path.is_dir() or not any(folder.is_relative_to(path) for folder in hidden):
        return [path]
    return [part for child in sorted(path.iterdir()) for part in _without(child, hidden)]


def _short_folder() -> str | None:
    """Return where to put the shared folder: a short path, because a socket's path may have about 100 characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 50 else "/tmp"
