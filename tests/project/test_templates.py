"""The templates for GitHub: their steps are run as a runner would run them, on a student's repository made here."""

import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import typer
import yaml
from as_cells import POINTS

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.cli import app
from course_utils.course import DAYS
from course_utils.errors import CourseError
from course_utils.grading.reports import github

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
ACTION = yaml.safe_load((TEMPLATES / "github-actions/grade/action.yml").read_text())
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(TEMPLATES.glob("*/*.yml"))}
DAY1 = "day1_attention_by_hand.ipynb"
# Wrapped by the grader's table, it stands at the start of lines, where a runner looks for commands.
FORGED = "::notice::forged"
DAYS_TOGETHER = pytest.mark.thorough("the templates grade several days of one student")
LIAR = f"def scores(Q, K):\n    raise ValueError({' '.join([FORGED] * 12)!r})"


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def run_of(steps, name):
    (command,) = [step["run"] for step in steps if step.get("name") == name]
    return command


def bash(script, folder, **variables):
    """A `run:` block as a runner runs it, in `folder`, with files for its summary and outputs."""
    own = {"GITHUB_STEP_SUMMARY": folder / "summary", "GITHUB_OUTPUT": folder / "output", "GITHUB_WORKSPACE": folder}
    own["RUNNER_TEMP"] = folder.parent / "runner"
    environment = {**os.environ, **{name: str(value) for name, value in (own | variables).items()}}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def grade(folder, python=sys.executable, days="1", submissions="", bundle="", fail_under="0"):
    """The action's own step, with a course beside it whose environment is the one of these tests."""
    course = folder.parent / "course"
    action = course / "templates/github-actions/grade"
    action.mkdir(parents=True, exist_ok=True)
    (course / ".venv/bin").mkdir(parents=True, exist_ok=True)
    (course / ".venv/bin/python").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (course / ".venv/bin/python").chmod(0o755)
    if not (course / "solutions").exists():
        (course / "solutions").symlink_to(ROOT / "solutions")
    inputs = {"DAYS": days, "SUBMISSIONS": submissions, "BUNDLE": bundle, "FAIL_UNDER": fail_under}
    return bash(run_of(ACTION["runs"]["steps"], "Grade"), folder, GITHUB_ACTION_PATH=action, **inputs)


def result_of(folder):
    (line,) = (folder / "output").read_text().splitlines()
    return json.loads(base64.b64decode(line.removeprefix("result=")))


def verify_options(*arguments):
    """That `course` takes these arguments; nothing is run."""
    command = typer.main.get_command(app)
    name, _, rest = command.resolve_command(typer.Context(command), list(arguments))
    command.commands[name].make_context(name, list(arguments[1:]))
    assert not rest or rest == list(arguments[1:])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_the_repository_and_nothing_else(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert "pull_request_target" not in str(workflow)
    assert all(job["timeout-minutes"] <= 180 for job in workflow["jobs"].values())
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(
    "workflow", [ACTION["runs"]["steps"], *map(steps, WORKFLOWS.values())], ids=["action", *WORKFLOWS]
)
def test_actions_are_pinned_by_version_and_scripts_take_no_expressions(workflow):
    for step in workflow:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+|ACCOUNT/COURSE/templates/github-actions/grade@TAG", step["uses"])
        assert "${{" not in step.get("run", ""), "text of a student's would become part of the script"


def test_the_token_for_the_students_repositories_is_seen_by_one_step_that_runs_nothing_of_theirs():
    with_secret = [step for workflow in WORKFLOWS.values() for step in steps(workflow) if "secrets." in str(step)]
    assert [step["name"] for step in with_secret] == ["Fetch what the students pushed"]


def test_workflows_give_the_action_the_inputs_that_it_has():
    for workflow in WORKFLOWS.values():
        (used,) = [step for step in steps(workflow) if step.get("uses", "").startswith("ACCOUNT/COURSE")]
        assert set(used["with"]) <= set(ACTION["inputs"])
        assert {"days", "submissions"} & set(used["with"])


def test_the_workflow_of_a_students_repository_grades_every_day_that_is_there():
    (used,) = [step["with"] for step in steps(WORKFLOWS["grade"]) if "days" in step.get("with", {})]
    assert used["days"].split() == [str(day.number) for day in DAYS if day.minutes]


def test_the_classroom_workflow_has_the_names_that_the_reporter_looks_for():
    workflow = WORKFLOWS["classroom"]
    assert workflow["name"] == "Autograding Tests" and list(workflow["jobs"]) == ["run-autograding-tests"]
    (reporter,) = [step for step in steps(workflow) if "reporter" in step.get("uses", "")]
    runner = reporter["with"]["runners"]
    assert list(reporter["env"]) == [f"{runner.upper()}_RESULTS"]
    assert f"steps.{runner}.outputs.result" in str(reporter) and "result" in ACTION["outputs"]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A student's repository, graded: day 1 solved but for one answer, and files that would like to take part."""
    folder = tmp_path_factory.mktemp("runner") / "repository"
    (folder / "exercises").mkdir(parents=True)
    notebook = nbformat.read(ROOT / "exercises" / DAY1, as_version=4)
    answers = {**reference_answers(COURSE.notebook(1)), "scores": LIAR}
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    nbformat.write(notebook, folder / "exercises" / DAY1)
    (folder / "course_utils").mkdir()
    for name in ("course_utils/__init__.py", "typer.py", "sitecustomize.py", "conftest.py", "exercises/conftest.py"):
        (folder / name).write_text("raise SystemExit('a file of the student was run')\n")
    (folder / "grades").symlink_to("exercises")  # no place for reports
    return folder, grade(folder, fail_under="50")


def test_the_grade_step_writes_the_summary_the_reports_and_the_points(student):
    folder, done = student
    assert done.returncode == 0, done.stdout + done.stderr
    reports = folder.parent / "runner/grades"
    assert {"grades.json", "grades.csv", "junit.xml", "summary.md"} <= {path.name for path in reports.iterdir()}
    assert (folder / "summary").read_text() == (reports / "summary.md").read_text()
    assert {path.name for path in (folder / "exercises").iterdir()} == {DAY1, "conftest.py"}
    result = result_of(folder)
    scores = {test["name"]: test["score"] for test in result["tests"]}
    full = {f"day 1, {question.grade_id}": question.points for question in COURSE.exercises(1)}
    assert scores == full | {"day 1, scores": 0} and result["max_score"] == POINTS and result["status"] == "fail"


def test_the_environment_is_kept_until_the_lock_file_or_python_changes(tmp_path):
    """It is named by both. A path with .. in it would be refused by the action that keeps it."""
    keys = []
    lock = tmp_path / "requirements.lock"
    (tools := tmp_path / "tools").mkdir()
    (tmp_path / "templates/github-actions/grade").mkdir(parents=True)
    for packages, version in (
        ("torch==2", "3.12.1"),
        ("torch==2", "3.12.1"),
        ("torch==3", "3.12.1"),
        ("torch==3", "4"),
    ):
        lock.write_text(packages)
        (tools / "python").write_text(f"#!/bin/sh\necho {version}\n")
        (tools / "python").chmod(0o755)
        about = {
            "GITHUB_ACTION_PATH": tmp_path / "templates/github-actions/grade",
            "GITHUB_OUTPUT": tmp_path / "output",
        }
        named = run_of(ACTION["runs"]["steps"], "Name the environment")
        assert bash(named, tmp_path, PATH=f"{tools}:{os.environ['PATH']}", **about).returncode == 0
        keys.append(dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines()))
    first, same, other, newer = (each["key"] for each in keys)
    assert first == same and len({first, other, newer}) == 3
    assert {each["path"] for each in keys} == {f"{tmp_path.resolve()}/.venv"}
    (cache,) = [step["with"] for step in ACTION["runs"]["steps"] if "actions/cache@" in step.get("uses", "")]
    assert cache == {name: f"${{{{ steps.environment.outputs.{name} }}}}" for name in ("path", "key")}


def test_what_a_student_prints_is_no_command_of_the_workflow(student):
    lines = [line.strip() for line in student[1].stdout.splitlines()]
    (token,) = [line.removeprefix("::stop-commands::") for line in lines if line.startswith("::stop-commands::")]
    begin, end = lines.index(f"::stop-commands::{token}"), lines.index(f"::{token}::")
    assert len(token) == 32 and any(": :notice" in line for line in lines[begin:end])
    assert not [line for line in lines if line.startswith(FORGED)]
    (printed,) = [line for line in lines[:begin] + lines[end + 1 :] if line.startswith("::")]
    assert printed.startswith("::warning title=day 1%2C scores::") and FORGED not in printed


def test_too_few_points_fail_the_run_and_a_missing_notebook_gets_none(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    done = grade(folder, fail_under="50")
    assert done.returncode != 0 and "no such file" in done.stderr
    result = result_of(folder)
    assert (result["status"], result["max_score"], [t["score"] for t in result["tests"]]) == ("fail", POINTS, [0])
    assert f"0 of {POINTS} points" in (folder / "summary").read_text()


@DAYS_TOGETHER
def test_several_days_of_one_student_are_summarised_as_theirs(tmp_path):
    folder = tmp_path / "repository"
    (folder / "exercises").mkdir(parents=True)
    for name in (DAY1, "day2_why_sqrt_dk.ipynb"):
        shutil.copy(ROOT / "exercises" / name, folder / "exercises")
    assert grade(folder, days="1 2").returncode == 0
    verify_own_summary((folder / "summary").read_text())


def verify_own_summary(text):
    assert text.startswith("# Your grades") and "in 2 notebooks" in text and "class" not in text
    assert re.findall(r"(?m)^## Day (\d): ", text) == ["1", "2"] and "](" not in text


def test_the_class_is_fetched_into_a_layout_that_the_grader_knows_and_graded_with_the_bundle(tmp_path):
    folder = tmp_path / "teacher"
    (folder / "bundle/solutions").mkdir(parents=True)
    (folder / "bundle/solutions" / DAY1).touch()
    (folder / "students.txt").write_text("ada class/exercises-ada\n\nbob class/exercises-bob")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text('#!/bin/sh\necho "$@" >> calls\ncase "$4" in *bob*) exit 1;; esac\necho notebook\n')
    (tools / "gh").chmod(0o755)
    fetch = run_of(steps(WORKFLOWS["grade-class"]), "Fetch what the students pushed")
    done = bash(fetch, folder, PATH=f"{tools}:{os.environ['PATH']}", GH_TOKEN="none")
    assert done.returncode == 0 and done.stdout.splitlines() == [f"bob: no exercises/{DAY1}"]
    assert [p.relative_to(folder).as_posix() for p in folder.rglob("submissions/**/*.ipynb")] == [
        f"submissions/ada/day1/{DAY1}"
    ]
    assert f"repos/class/exercises-ada/contents/exercises/{DAY1}" in (folder / "calls").read_text()

    echo = tools / "python"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    echo.chmod(0o755)
    assert grade(folder, python=echo, days="", submissions="submissions", bundle="bundle").returncode == 0
    isolated, module, package, *arguments = (folder / "arguments").read_text().splitlines()
    assert (isolated, module, package, arguments[:2]) == ("-I", "-m", "course_utils", ["grade", "submissions"])
    assert "--bundle" in arguments
    verify_options(*arguments)


def load_autograder():
    spec = importlib.util.spec_from_file_location("autograder", TEMPLATES / "classroom50/autograder.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["tag", "branch", "commit"])
def test_the_autograder_installs_the_course_from_a_tag_a_branch_or_a_commit(tmp_path, kind):
    def git(*command):
        settings = ("user.name=a", "user.email=a@b.c", "commit.gpgsign=false", "tag.gpgsign=false")
        options = [part for each in settings for part in ("-c", each)]
        command = ["git", "-C", str(tmp_path / "origin"), *options, *command]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "origin").mkdir()
    git("init", "--quiet")
    git("config", "uploadpack.allowAnySHA1InWant", "true")  # as GitHub has it
    refs = {"tag": "v0.2", "branch": "winter"}
    for step in ("asked for", "newer"):
        (tmp_path / "origin" / "edition").write_text(step)
        git("add", "edition")
        git("commit", "--quiet", "-m", step)
        if step == "asked for":
            refs["commit"] = git("rev-parse", "HEAD")
            git("tag", refs["tag"])
            git("branch", refs["branch"])
    autograder = load_autograder()
    ran = []
    autograder.COURSE = (tmp_path / "origin").as_uri()
    autograder.TAG = refs[kind]
    autograder.subprocess = SimpleNamespace(
        run=lambda command, **options: command[0] == "git" and ran.append(subprocess.run(command, **options))
    )
    assert autograder.install(tmp_path / "course") == tmp_path / "course/.venv/bin/python"
    assert ran and (tmp_path / "course" / "edition").read_text() == "asked for"


def test_the_autograder_for_classroom_50_writes_its_result_and_its_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in github.CLASSROOM50:
        monkeypatch.setenv(name, name.lower())
    load_autograder().grade(Path(sys.executable), ROOT)
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["schema"], result["submission"]) == ("classroom50/result/v1", "submission_tag")
    assert (result["score"], result["max-score"], result["review"]) == (0, POINTS, "commit_url")
    assert [test["passed"] for test in result["tests"]] == [False]
    assert f"0 of {POINTS} points" in (tmp_path / "release-body.md").read_text()


@DAYS_TOGETHER
def test_the_autograder_for_classroom_50_takes_several_days_as_one_students(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in github.CLASSROOM50:
        monkeypatch.setenv(name, name.lower())
    autograder = load_autograder()
    autograder.DAYS = ["1", "2"]
    autograder.grade(Path(sys.executable), ROOT)
    assert len(json.loads((tmp_path / "result.json").read_text())["tests"]) == 2
    verify_own_summary((tmp_path / "release-body.md").read_text())


@pytest.mark.parametrize("handed_in", [True, False])
def test_the_autograder_for_gradescope_writes_a_test_for_each_exercise(tmp_path, handed_in):
    script = (TEMPLATES / "gradescope/run_autograder").read_text(encoding="utf-8")
    python = "/opt/grader/course/.venv/bin/python"
    for theirs, here in (
        (python, sys.executable),
        (" --bundle /opt/grader/bundle", ""),
        ("/autograder", str(tmp_path)),
    ):
        assert theirs in script
        script = script.replace(theirs, here)
    for folder in ("submission", "results", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools" / "runuser").write_text('#!/bin/sh\nshift 3\nexec "$@"\n')  # here it is who runs the test
    (tmp_path / "tools" / "runuser").chmod(0o755)
    if handed_in:
        shutil.copy(ROOT / "exercises" / DAY1, tmp_path / "submission" / "my work.ipynb")
    done = bash(script, tmp_path, PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}", PYTHONPATH=ROOT, TMPDIR=tmp_path)
    assert done.returncode == 0, done.stderr
    tests = json.loads((tmp_path / "results" / "results.json").read_text())["tests"]
    assert (sum(test["score"] for test in tests), sum(test["max_score"] for test in tests)) == (0, POINTS)
    assert {test["status"] for test in tests} == {"failed"} and len(tests) == (
        len(COURSE.exercises(1)) if handed_in else 1
    )
    assert handed_in or "no such file" in tests[0]["output"]


def test_what_gradescope_installs_is_what_the_action_installs():
    setup = (TEMPLATES / "gradescope/setup.sh").read_text(encoding="utf-8")
    action = run_of(ACTION["runs"]["steps"], "Install the course")
    options = re.findall(r"uv pip install (.+)", setup)
    assert len(options) == 2 and options == re.findall(r"uv pip install (.+)", action)
    assert subprocess.run(["bash", "-n", "-c", setup], check=False).returncode == 0


def grades(*exercises, status="failed"):
    named = [dict(zip(("id", "status", "score", "max_score", "message"), each, strict=True)) for each in exercises]
    whole = {"student": "ada", "notebook": "a.ipynb", "day": 1, "status": status, "score": 0.0, "max_score": 0.0}
    return {"schema": 1, "day": 1, "submissions": [whole | {"exercises": named, "message": "why\n::error::not"}]}


def test_points_in_part_are_kept_where_they_can_be_and_rounded_down_where_not():
    record = grades(("a", "passed", 2.0, 2.0, ""), ("b", "failed", 1.9, 3.0, "half"))
    result = github.autograding_result(record)
    assert [test["score"] for test in result["tests"]] == [2.0, 1.9] and result["max_score"] == 5
    about = dict.fromkeys(github.CLASSROOM50, "x")
    whole = github.classroom50_result(record, about)
    assert (whole["score"], whole["max-score"]) == (3, 5)
    assert all(isinstance(test[key], int) for test in whole["tests"] for key in ("score", "max-score"))
    with pytest.raises(CourseError, match="RELEASE_URL"):
        github.classroom50_result(record, {**about, "RELEASE_URL": ""})


def test_what_was_not_graded_never_passes():
    right, broken = grades(("a", "passed", 1.0, 1.0, ""), status="passed"), grades(status="unreadable")
    assert github.autograding_result(right)["status"] == "pass"
    for submissions in ([], broken["submissions"], right["submissions"] + broken["submissions"]):
        assert github.autograding_result({"submissions": submissions})["status"] == "fail"


def test_an_annotation_is_one_line_with_its_commands_made_harmless():
    (line,) = github.workflow_commands(grades(("a,b:c", "failed", 0.0, 1.0, "100% x\r\n::set-output name=a::b")))
    assert line == "::warning title=day 1%2C a%2Cb%3Ac::100%25 x : :set-output name=a: :b"
    assert len(github.workflow_commands(grades(*[(str(i), "failed", 0.0, 1.0, "x") for i in range(30)]))) == 10
    assert github.workflow_commands(grades(("a", "passed", 1.0, 1.0, ""))) == []


def test_a_file_that_holds_no_grades_is_named_in_one_line(tmp_path):
    (tmp_path / "grades.json").write_text("{}")
    with pytest.raises(CourseError, match=r"grades\.json: not a grades\.json of the course"):
        github.main(["annotations", str(tmp_path / "grades.json")])
    with pytest.raises(CourseError, match="usage"):
        github.main(["points", "x"])
