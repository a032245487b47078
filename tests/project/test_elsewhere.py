"""On Windows and macOS, imitated: a learner's notebooks work, and what does not says so in one line.

Each system is imitated once, in a process of its own (other_systems.py): modules that it lacks are taken away, and so
is `os.fork`; calls of the C library fail, those of Landlock among them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.course import DAYS, TO_LOOK_UP

ROOT = Path(__file__).parents[2]
NEEDS_TRITON = {
    f"course_utils.attention.{name}" for name in ("flash", "flash_backward", "flash_decode", "triton_setup")
}
LEARNT = [day.number for day in DAYS if day.minutes]
MACOS = pytest.mark.thorough("macOS is imitated, which lacks less than Windows")
LEARNERS = ("attention", "costs", "models", "serving", "views", "checks", "progress", "cli")


@pytest.fixture(scope="module", params=["windows", pytest.param("macos", marks=MACOS)])
def report(request):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "other_systems.py"), request.param]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment | {"OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1]) | {"system": request.param}


def test_every_module_that_a_notebook_needs_imports(report):
    rooms = {name: error for name, error in report["modules"].items() if name.split(".")[1] in LEARNERS}
    assert {name.split(".")[1] for name in rooms} == set(LEARNERS)
    assert {name: error for name, error in rooms.items() if error and name not in NEEDS_TRITON} == {}


def test_the_kernels_say_that_they_need_triton(report):
    for name in NEEDS_TRITON:
        assert report["modules"][name].startswith("ImportError: these kernels need Triton"), name


def test_the_import_cells_of_every_notebook_run(report):
    # the map and the pages to look up; lessons and exercises of each day
    assert len(report["notebooks"]) == 1 + len(TO_LOOK_UP) + 2 * len(LEARNT)
    assert {name: error for name, error in report["notebooks"].items() if error} == {}


def test_day_6_says_that_there_is_no_triton_and_nothing_else(report):
    assert report["cell of day 6"] == "No Triton on this system (it has wheels for Linux only): nothing to run here."


def test_what_cannot_grade_here_says_so_and_does_not_break(report):
    modules = {name: error for name, error in report["modules"].items() if ".sandbox.inside" not in name}
    rooms = ("course_utils.grading", "course_utils.sandbox")
    complaints = {error for name, error in modules.items() if name.startswith(rooms) and error}
    if report["system"] == "windows":
        (line,) = complaints
        assert line.startswith("CourseError: answers can be graded on Linux and macOS only") and "\n" not in line
        assert not any(error for name, error in modules.items() if name.startswith("course_utils.authoring"))
    else:
        assert not complaints


def test_the_doctor_finds_all_that_a_learner_needs(report):
    assert report["doctor"] == {"status": None, "stderr": ""}  # with which Python ends as with 0


def test_the_command_line_opens_and_grading_ends_in_one_line(report):
    assert report["help"] == {"status": 0, "stderr": ""}
    if report["system"] == "windows":
        assert report["grade"]["status"] == 2
        assert report["grade"]["stderr"].startswith("course: answers can be graded on Linux and macOS only")
        assert report["grade"]["stderr"].count("\n") == 1
