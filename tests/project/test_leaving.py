"""A command that has done its work is gone: Python does not take its libraries and records apart first."""

import subprocess
import sys

import pytest

BEFORE = "import atexit, sys; atexit.register(print, 'taken apart'); from course_utils.cli import run; "


def ended(code: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", BEFORE + code, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which children a process has")
def test_a_command_leaves_at_once_with_its_status_and_all_that_it_printed(tmp_path):
    status, out, _ = ended("run()", "--version")
    assert status == 0 and out.startswith("course ") and "taken apart" not in out
    status, out, err = ended("run()", "grade", str(tmp_path / "day1.ipynb"))
    assert (status, out) == (2, "") and err.endswith("no such file\n")


def test_where_a_child_still_runs_what_is_registered_for_the_end_is_done():
    child = "import subprocess; child = subprocess.Popen(['sleep', '60']); atexit.register(child.kill); run()"
    status, out, _ = ended(child, "--version")
    assert status == 0 and out.endswith("taken apart\n")
