"""What `make lab` shows first: the course map, and of the course's folder what a learner opens."""

import shlex
import subprocess
from fnmatch import fnmatch

from course_utils.course import ROOT


def flags(name):
    """The values that `make lab` gives JupyterLab for an option."""
    words = shlex.split(subprocess.check_output(["make", "-n", "lab"], cwd=ROOT, text=True))
    return [flag.partition("=")[2] for flag in words if flag.startswith(f"--{name}=")]


def test_make_lab_opens_the_course_map():
    (url,) = flags("LabApp.default_url")
    assert (ROOT / url.removeprefix("/lab/tree/")).name == "course_map.ipynb"
    assert (ROOT / url.removeprefix("/lab/tree/")).is_file()


def test_the_file_browser_leaves_out_what_a_learner_never_opens():
    unseen = flags("ContentsManager.hide_globs")
    names = {path.name for path in ROOT.iterdir() if not any(fnmatch(path.name, glob) for glob in unseen)}
    assert {"notebooks", "exercises", "solutions", "course_utils", "docs", "README.md"} <= names
    assert not {"tests", "sources", "benchmarks", "scripts", "templates", "pyproject.toml", "requirements.lock"} & names
    assert not {"biome.json", "package.json", "package-lock.json", "node_modules"} & names
