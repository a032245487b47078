"""An autograder for Classroom 50: grades the exercises of the assignment and writes its result.json.

Put it into the classroom's repository as CLASSROOM/autograders/ASSIGNMENT/autograder.py, name the course's repository,
the days, and a tag, a branch or a commit of the course, a commit by its whole hash. Its runner calls it in the
student's checkout. The points are the course's.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

COURSE = "https://github.com/ACCOUNT/COURSE"
TAG = "TAG"
DAYS = ["1"]


def install(folder):
    """The course at TAG, with a Python of its own; the path of that Python. uv finds the torch without CUDA."""
    python = folder / ".venv" / "bin" / "python"
    for command in (
        ["git", "init", "--quiet", folder],
        ["git", "-C", folder, "fetch", "--quiet", "--depth", "1", COURSE, TAG],  # a clone takes no commit
        ["git", "-C", folder, "checkout", "--quiet", "FETCH_HEAD"],
        [sys.executable, "-m", "venv", folder / ".venv"],
        [python, "-m", "pip", "install", "--quiet", "uv"],
        [python, "-m", "uv", "pip", "install", "--quiet", "--torch-backend", "cpu", "-r", folder / "requirements.lock"],
        [python, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", folder],
    ):
        subprocess.run(command, check=True)
    return python


def grade(python, folder):
    """Grade the notebooks of DAYS in this folder; a missing one gets no points. Raises when there are no grades."""
    names = [path.name for day in DAYS for path in sorted((folder / "solutions").glob(f"day{day}_*.ipynb"))]
    notebooks = [pathlib.Path("exercises", name) for name in names]
    with tempfile.TemporaryDirectory() as out:
        # Its output is not shown: a line of a student's in it could be taken for a command of the workflow.
        subprocess.run([python, "-I", "-m", "course_utils", "grade", *notebooks, "--out", out], capture_output=True)
        to_result = [python, "-I", "-m", "course_utils.grading.github", "classroom50", f"{out}/grades.json"]
        result = subprocess.run(to_result, check=True, capture_output=True, text=True).stdout
        summary = pathlib.Path(out, "summary.md").read_text(encoding="utf-8")
    for name, text in (("result.json", result), ("release-body.md", summary)):
        pathlib.Path(name).unlink(missing_ok=True)  # the student's may be a link
        pathlib.Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    course = pathlib.Path(os.environ.get("RUNNER_TEMP", tempfile.gettempdir())).resolve() / "course"
    grade(install(course), course)
