"""solutions/ as nbgrader's source/ folder, unchanged: its own commands make a release, validate it and grade it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from course_utils.answer_key.key import COURSE, checks_of, reference_answers
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.kernel.evidence import draw_rungs
from course_utils.grading.grade import grade_notebook

ROOT = Path(__file__).parents[2]
DAY1 = "day1_attention_by_hand.ipynb"
DAYS = days_with_exercises()
pytestmark = pytest.mark.thorough("nbgrader makes a release of our notebooks, validates and grades them")
BY_D_K = "def scale_scores(S, d_k):\n    return [[s / d_k for s in row] for row in S]"
REGION = re.compile(r"( *)### BEGIN SOLUTION\n.*?### END SOLUTION", re.DOTALL)
# Right on the inputs that a student sees, and on no others.
BY_HEART = f"""def softmax_row(row):
    seen = {[list(rung.args[0]) for rung in draw_rungs(1, "softmax_row")]}
    exps = [math.exp(x - max(row)) for x in row]
    return [e / sum(exps) for e in exps] if list(row) in seen else row"""
# The line that nbgrader adds stands below what was filled in.
FILLED_IN = "order_output = [1.53, 1.47]\ndelayed_output = [1.42, 1.58]\n# YOUR CODE HERE\nraise NotImplementedError()"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course folder of nbgrader with one assignment a day, each generated; everything it writes stays in there."""
    folder = course_folder(tmp_path_factory.mktemp("nbgrader"), DAYS)
    return SimpleNamespace(folder=folder, made=run(folder, sys.executable, "-c", GENERATE, *days_named(DAYS)))


def course_folder(folder, days):
    for day in days:
        (folder / "source" / f"day{day}").mkdir(parents=True)
        shutil.copy(COURSE.path(day), folder / "source" / f"day{day}")
    return folder


def days_named(days):
    return [f"day{day}" for day in days]


GENERATE = """
import sys
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
api = NbGraderAPI(CourseDirectory(root="."))
for name in sys.argv[1:]:
    result = api.generate_assignment(name, create=True)
    print(result["log"])
    if not result["success"]:
        sys.exit(name + ": " + str(result["error"]))
"""


def nbgrader(folder, *arguments):
    return run(folder, sys.executable, "-m", "nbgrader", *arguments)


def run(folder, *command):
    """A command in the course folder, with settings, caches and histories of Jupyter kept in there too."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {"HOME": home, "IPYTHONDIR": home / "ipython", "MPLCONFIGDIR": home / "matplotlib"}
    own |= {f"JUPYTER_{kind}_DIR": home / kind.lower() for kind in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **{name: str(path) for name, path in own.items()}, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it calls alembic
    environment.pop("JUPYTER_CONFIG_PATH", None)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def released(course, day):
    (path,) = (course.folder / "release" / f"day{day}").glob("*.ipynb")
    return nbformat.read(path, as_version=4)


def graded(notebook, kind):
    return {cell.id: cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(kind)}


def complaints(made):
    lines = [line for line in (made.stdout + made.stderr).splitlines() if "WARNING" in line or "ERROR" in line]
    return [line for line in lines if "No nbgrader_config.py" not in line]


def test_a_release_is_made_of_every_day_without_a_word_of_complaint(course):
    assert course.made.returncode == 0 and complaints(course.made) == [], course.made.stderr
    assert sorted(path.name for path in (course.folder / "release").iterdir()) == days_named(DAYS)


def test_the_command_makes_the_same_release(course, tmp_path):
    made = nbgrader(course_folder(tmp_path, [1]), "generate_assignment", "day1", "--create")
    assert made.returncode == 0 and complaints(made) == [], made.stderr
    of_command, of_api = ((folder / "release/day1" / DAY1).read_bytes() for folder in (tmp_path, course.folder))
    assert of_command == of_api


@pytest.mark.parametrize("day", DAYS)
def test_a_release_has_stubs_no_hidden_test_and_all_points(course, day):
    official, release = COURSE.notebook(day), released(course, day)
    answers = graded(release, "solution")
    checks = graded(release, "grade")
    assert list(answers) == list(reference_answers(official)) and len(checks) == len(checks_of(official))
    for grade_id, source in reference_answers(official).items():
        assert answers[grade_id].source == REGION.sub(r"\1# YOUR CODE HERE\n\1raise NotImplementedError()", source)
    for cell in release.cells:
        assert "hidden=True" not in cell.source and "### BEGIN" not in cell.source
        assert cell.get("outputs", []) == []
    points = {grade_id: cell.metadata.nbgrader.points for grade_id, cell in checks.items()}
    assert points == {f"check_{q.grade_id}": q.points for q in COURSE.exercises(day)}


def test_validate_passes_the_solutions_and_says_of_a_release_what_is_missing(course):
    output = nbgrader(course.folder, "validate", f"source/day1/{DAY1}", f"release/day1/{DAY1}").stdout
    assert output.startswith("Success! Your notebook passes all the tests.\n")
    assert output.count("Success") == 1 and f"VALIDATION FAILED ON {len(COURSE.exercises(1))} CELL(S)!" in output
    for question in COURSE.exercises(1):
        assert f"{question.grade_id} has not passed yet" in output


@pytest.fixture(scope="module")
def mistaken(course):
    """Answers of day 1 of which two are wrong, in a notebook that nbgrader released, as a student hands it in."""
    right = reference_answers(COURSE.notebook(1))
    answers = {**right, "scale_scores": BY_D_K, "softmax_row": BY_HEART, "by_hand_two": FILLED_IN}
    return submit(course, "mistaken", answers)


@pytest.fixture(scope="module")
def scores(course, mistaken):
    """What nbgrader's autograde gives each submission of day 1: points by check."""
    submit(course, "solutions", reference_answers(COURSE.notebook(1)))
    submit(course, "unfilled", {})
    done = nbgrader(course.folder, "autograde", "day1", "--create")
    assert done.returncode == 0, done.stderr
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.folder / 'gradebook.db'}") as gradebook:
        return {
            one.student.id: {g.name.removeprefix("check_"): g.auto_score for book in one.notebooks for g in book.grades}
            for one in gradebook.assignment_submissions("day1")
        }


def submit(course, student, answers):
    notebook = released(course, 1)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    folder = course.folder / "submitted" / student / "day1"
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / DAY1)
    return folder / DAY1


def full_points():
    return {question.grade_id: question.points for question in COURSE.exercises(1)}


def test_autograde_gives_the_solutions_all_points(scores):
    assert scores["solutions"] == full_points()


def test_autograde_gives_a_release_as_it_is_nothing(scores):
    assert scores["unfilled"] == dict.fromkeys(full_points(), 0)


def test_autograde_takes_the_points_of_a_wrong_answer_and_of_one_learnt_by_heart_and_no_others(scores):
    assert scores["mistaken"] == full_points() | {"scale_scores": 0, "softmax_row": 0}


def test_our_grader_takes_a_notebook_that_nbgrader_released_and_passes_and_fails_the_same_exercises(mistaken):
    ours = grade_notebook(mistaken)
    assert {result.id for result in ours.exercises if result.status != "passed"} == {"scale_scores", "softmax_row"}
    assert {result.id for result in ours.exercises} == set(full_points())
