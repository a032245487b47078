"""Report what this machine can do with the course, and what to install for the rest: `course doctor`.

Each function examines one thing, changes nothing and raises nothing, because something broken is a finding too. It
returns None if there is nothing to report.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from course_utils import course
from course_utils.errors import CourseError, one_line
from course_utils.sandbox.limits import cores

GOOD = "good"
OPTIONAL = "optional"
NEEDED = "needed"
EXTENSIONS = {  # of JupyterLab: the folder of each, and the package that installs it
    "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets",
    "anywidget": "anywidget",
    "course_utils": "course_utils",
}
SEEN_APART = ("torch", "triton", "jupyterlab")  # packages with a finding of their own
CHROMIUM = ("chromium", "google-chrome")


@dataclass(frozen=True)
class Finding:
    """The state of one part of the machine.

    Attributes:
        state: GOOD; OPTIONAL if something is missing that a learner can do without; NEEDED if a learner needs it.
        todo: what to install and what for; empty if nothing is missing.
    """

    part: str
    state: str
    found: str
    todo: str = ""


def examine() -> list[Finding]:
    """Return all findings on this machine, in the order in which they are printed. This takes some seconds."""
    return [finding for look in LOOKS if (finding := look())]


def ready(findings: list[Finding]) -> bool:
    """Return whether everything that a learner needs is here."""
    return all(each.state != NEEDED for each in findings)


def the_course() -> Finding:
    """Report whether this package lies in the course's folder or was installed alone."""
    if course.IN_CHECKOUT:
        return Finding("course", GOOD, f"version {course.version()}, in its folder {course.ROOT}")
    clone = f"git clone {course.repository()}" if course.is_published() else "use the course's folder"
    return Finding(
        "course",
        OPTIONAL,
        f"version {course.version()}, an installed package: lessons and checks run, guesses are kept where you are",
        f"{clone} for its notebooks, and for course grade, reset, progress and build",
    )


def address() -> Finding | None:
    """Report that the address of the course's repository is not set. A class's edition needs none."""
    if course.is_published() or not course.repository():
        return None
    todo = "whoever publishes the course writes its address into pyproject.toml, as CONTRIBUTING.md says"
    return Finding("address", OPTIONAL, f"not set, and you do not need it; {todo}")


def python() -> Finding:
    """Compare the version of Python with the one that the course requires, and name those that were tested."""
    required = metadata("course_utils")["Requires-Python"]
    tested = [each.rpartition(" ")[2] for each in metadata("course_utils").get_all("Classifier") or () if "3." in each]
    running = f"{platform.python_version()} at {sys.executable}; this edition was tested on {', '.join(tested)}"
    if SpecifierSet(required).contains(platform.python_version(), prereleases=True):
        return Finding("Python", GOOD, running)
    return Finding(
        "Python", NEEDED, running, f"Python {required}, which runs everything; make lab PYTHON=… uses another one"
    )


def packages() -> Finding:
    """Report on the packages that the course requires, except those that have a finding of their own."""
    missing = []
    others = []
    required = [each for each in _requirements() if each.name not in SEEN_APART]
    for each in required:
        installed = _version(each.name)
        if not installed:
            missing.append(each)
        elif not each.specifier.contains(installed, prereleases=True):
            others.append(f"{each.name} {installed} where {each.specifier} is asked for")
    if missing:
        names = " ".join(each.name for each in missing)
        todo = f"{_pip(*missing)}: lessons and exercises need them"
        return Finding("packages", NEEDED, f"not installed: {names}", todo)
    if others:
        todo = f"{_pip(*required)}, if something does not work"
        return Finding("packages", OPTIONAL, f"all {len(required)} are there; {', '.join(others)}", todo)
    return Finding("packages", GOOD, f"all {len(required)} are there")


def torch() -> Finding:
    """Report whether PyTorch loads, whether it has the pinned version, and what it was built for."""
    pinned = _requirement("torch")
    try:
        import torch as library
    except Exception as error:  # a library built for another system can raise any error
        return Finding(
            "torch", NEEDED, f"does not load: {_describe_error(error)}", f"{_pip(pinned)}: every lesson needs it"
        )
    built = f"for CUDA {library.version.cuda}" if library.version.cuda else "for CPUs"
    installed = f"{library.__version__}, {built}"
    if pinned.specifier.contains(library.__version__):
        return Finding("torch", GOOD, installed)
    todo = f"{_pip(pinned)}, if a number differs: the course was built with it"
    return Finding("torch", OPTIONAL, f"{installed}; the course pins {pinned.specifier}", todo)


def triton() -> Finding:
    """Report how Triton runs the kernels of day 6: on a GPU, in its interpreter, or not at all."""
    pinned = _requirement("triton")
    if pinned.marker and not pinned.marker.evaluate():
        return Finding("Triton", OPTIONAL, "not available for this system", "Linux, for the kernels of day 6")
    installed = _version("triton")
    if not installed:
        return Finding("Triton", OPTIONAL, "not installed", f"{_pip(pinned)}, for the kernels of day 6")
    forced = {"0": False, "1": True}.get(os.environ.get("TRITON_INTERPRET", ""))
    interprets = forced if forced is not None else not _cards()
    how = "kernels run in its interpreter, right but slow" if interprets else "kernels are compiled for the GPU"
    if pinned.specifier.contains(installed):
        return Finding("Triton", GOOD, f"{installed}; {how}")
    todo = f"{_pip(pinned)}, if a kernel of day 6 does not work"
    return Finding("Triton", OPTIONAL, f"{installed}; {how}; the course pins {pinned.specifier}", todo)


def gpu() -> Finding:
    """Report the GPUs that torch finds."""
    if cards := _cards():
        return Finding("GPU", GOOD, ", ".join(cards))
    return Finding("GPU", OPTIONAL, "torch finds none; no lesson or exercise needs one")


def real_model() -> Finding:
    """Report whether the pretrained model is here."""
    try:
        from course_utils.models import real
        from course_utils.models.pretrained import store

        if not (missing := real.missing()):
            return Finding("real model", GOOD, str(store.chosen() or store.model_path()))
    except Exception as error:  # no torch, or COURSE_MODEL names a file that does not exist
        missing = _describe_error(error)
    return Finding("real model", OPTIONAL, "not installed; lessons show what it gave", missing)


def jupyterlab() -> Finding:
    """Report on JupyterLab and its extensions, which show widgets and the alt texts of pictures."""
    pinned = _requirement("jupyterlab")
    installed = _version("jupyterlab")
    if not installed:
        return Finding("JupyterLab", NEEDED, "not installed", f"{_pip(pinned)}: notebooks are opened with it")
    from jupyter_core.paths import jupyter_path

    folders = [Path(path) for path in jupyter_path("labextensions")]
    missing = [name for name in EXTENSIONS if not any((folder / name / "package.json").exists() for folder in folders)]
    if not missing:
        return Finding("JupyterLab", GOOD, f"{installed}, with the extensions that show widgets")
    widgets = [name for name in missing if name != "course_utils"]
    brought = " ".join(EXTENSIONS[name] for name in widgets or missing)
    what = "widgets do not show without it" if widgets else "alt texts of pictures need it"
    todo = f"{sys.executable} -m pip install --force-reinstall --no-deps {brought}: {what}"
    lacking = f"{installed}, without its extension {', '.join(missing)}"
    return Finding("JupyterLab", NEEDED if widgets else OPTIONAL, lacking, todo)


def sandbox() -> Finding:
    """Report how far student code can be confined during grading; this starts a confined process to find out."""
    try:
        from course_utils.sandbox.confinement import open_kernels

        with open_kernels(warm=False) as server:
            confinement = server.confinement
    except (CourseError, ImportError, OSError) as error:
        todo = "WSL, or Linux or macOS" if sys.platform == "win32" else "what the line above names"
        use = "needed to grade; checks in notebooks do not need it"
        return Finding("sandbox", OPTIONAL, f"course grade cannot run: {_describe_error(error)}", f"{todo}, {use}")
    if confinement.full:
        return Finding("sandbox", GOOD, "bubblewrap: answers are graded without network and without your files")
    confined = str(confinement).removeprefix("Student code was confined by ")
    todo = "only Linux confines answers fully, with bubblewrap"
    if sys.platform == "linux":
        todo = "a system that lets bubblewrap create namespaces and filters system calls"
        if not shutil.which("bwrap"):
            todo = "apt-get install bubblewrap"
    return Finding(
        "sandbox", OPTIONAL, confined, f"{todo}, to grade other people's work; your own answers do not need it"
    )


def browser() -> Finding:
    """Report on Chromium and the packages that drive it; only the tests of the widgets need them."""
    missing = [name for name in ("playwright", "axe-playwright-python") if not _version(name)]
    chromium = find_chromium()
    if chromium and not missing:
        return Finding("browser", GOOD, f"{chromium} with Playwright, for the project's tests")
    todo = " and ".join(
        ([] if chromium else ["apt-get install chromium"])
        + ([f"{sys.executable} -m pip install {' '.join(missing)}"] if missing else [])
    )
    lacking = [*([] if chromium else ["Chromium"]), *missing]
    use = "only to run the project's browser tests"
    return Finding("browser", OPTIONAL, f"without {' and '.join(lacking)}", f"{todo}, {use}")


def find_chromium() -> str | None:
    """Return the path of the browser that shows pages in tests, or None."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def machine() -> Finding:
    """Report the cores that this process may use, and the memory of the machine or of its container."""
    count = cores()
    memory = _memory()
    memory_text = f"{memory / 2**30:.1f} GiB of memory" if memory else "memory unknown"
    return Finding("machine", GOOD, f"{count} {'core' if count == 1 else 'cores'}, {memory_text}, {platform.system()}")


LOOKS: tuple[Callable[[], Finding | None], ...] = (
    the_course, address, python, packages, torch, triton, gpu, real_model, jupyterlab, sandbox, browser, machine,
)  # fmt: skip


def _requirements() -> list[Requirement]:
    """Return the packages that the course requires on this system, without its extras."""
    requirements = [Requirement(line) for line in requires("course_utils") or ()]
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]


def _requirement(name: str) -> Requirement:
    return next(one for one in map(Requirement, requires("course_utils") or ()) if one.name == name)


def _version(package: str) -> str:
    """Return the installed version of a package; empty if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _pip(*requirements: Requirement) -> str:
    """Return the command that installs these packages into this Python."""
    quoted = [f'"{one.name}{one.specifier}"' for one in requirements]
    return f"{sys.executable} -m pip install {' '.join(quoted)}"


def _cards() -> list[str]:
    """Return the name and memory of each GPU."""
    try:
        import torch as library

        devices = [library.cuda.get_device_properties(one) for one in range(library.cuda.device_count())]
    except Exception:  # no torch, one that does not load, or a driver that fails
        return []
    return [f"{card.name}, {card.total_memory / 2**30:.0f} GiB" for card in devices]


def _memory() -> int:
    """Return the bytes of memory, or 0 if the system does not say."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return total


def _describe_error(error: BaseException) -> str:
    return one_line(str(error) or type(error).__name__, 200)
