"""Say in one line what this machine lacks to set up the course. Runs on any Python, so the syntax is old on purpose."""

import os
import sys

NEEDED_GB = 3
NEWEST = (3, 14)  # for which there is a wheel of the pinned torch
TESTED = "3.11, 3.12 and 3.13"  # as the classifiers in pyproject.toml say


def missing():
    """Return what is lacking and what to do, or an empty string."""
    if not (3, 11) <= sys.version_info[:2] <= NEWEST:
        problem = ".".join(map(str, sys.version_info[:2]))
        needed = ", 3.11 to " + ".".join(map(str, NEWEST)) + " needed; pass one, as in: make lab PYTHON=python3.12"
        return "Python " + problem + " found at " + sys.executable + needed
    import importlib.util
    import shutil

    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            package = "python" + ".".join(map(str, sys.version_info[:2])) + "-venv"
            todo = (
                "; on Debian and Ubuntu: apt-get install " + package + ", or pass another: make lab PYTHON=python3.12"
            )
            return sys.executable + " has no " + module + " module" + todo
    made_with = _version_of_venv()
    if made_with not in ("", ".".join(map(str, sys.version_info[:2]))):
        problem = ".venv was made with Python " + made_with + ", and " + sys.executable + " is another"
        todo = "; pass the first, as in: make lab PYTHON=python" + made_with + ", or type make clean to begin anew"
        return problem + todo
    free = shutil.disk_usage(os.getcwd()).free / 1e9
    if free < NEEDED_GB and not os.path.exists(".venv/lib"):
        problem = str(round(free, 1)) + " GB free on this disk"
        return problem + ", about " + str(NEEDED_GB) + " GB needed for .venv; make room and try again"
    return ""


def _version_of_venv():
    """Return the minor version of Python that .venv was made with, such as 3.12; an empty string without one."""
    try:
        with open(".venv/pyvenv.cfg") as settings:
            versions = [line.split("=")[1].strip() for line in settings if line.startswith("version")]
    except OSError:
        versions = []
    return ".".join(versions[0].split(".")[:2]) if versions else ""


if __name__ == "__main__":
    reason = missing()
    if reason:
        sys.stderr.write("course: cannot set up: " + reason + "\n")
        sys.exit(1)
    sys.stdout.write("Python " + sys.version.split()[0] + "; this edition was tested on " + TESTED + ".\n")
