"""A newer edition comes with git, and nothing that a learner wrote is lost; the remotes are folders made here."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from in_process import course

from course_utils.answer_key.key import COURSE, reference_answers
from course_utils.answer_key.strip_answers import release_exercise, stub_source
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.cli import main
from course_utils.course import ROOT
from course_utils.errors import CourseError
from course_utils.guesses import read
from course_utils.learner import update as updating
from course_utils.learner.update import update
from course_utils.notebooks import dump
from course_utils.progress import read_progress

DAY1 = "day1_attention_by_hand.ipynb"
EXERCISE = f"exercises/{DAY1}"
SOLUTION = f"solutions/{DAY1}"
LESSON = f"notebooks/{DAY1}"
KEPT = f"exercises/kept/{DAY1.removesuffix('.ipynb')}-1.ipynb"
ANSWERS = reference_answers(COURSE.notebook(1))
MINE = {"softmax_row": ANSWERS["softmax_row"] + "\n# mine", "scores": "def scores(Q, K):\n    return 'half done'"}


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True, scope="module")
def plain_git():
    """Git without the settings of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in updating.FOREIGN:
            patch.delenv(name, raising=False)
        for name, value in (("GIT_CONFIG_GLOBAL", os.devnull), ("GIT_CONFIG_NOSYSTEM", "1")):
            patch.setenv(name, value)
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", role)
            patch.setenv(f"GIT_{role}_EMAIL", f"{role}@example.org")
        yield


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lesson(*sources):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each, id=each[:3]) for each in sources])
    return dump(notebook)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The course's authors at work, what they published, and a learner's clone of it, in a folder."""
    folder = tmp_path_factory.mktemp("editions")
    solution = copy.deepcopy(COURSE.notebook(1))
    files = {
        SOLUTION: dump(solution),
        EXERCISE: dump(release_exercise(solution)),
        LESSON: lesson("one = 1", "two = 2"),
        "notebooks/day2_other.ipynb": lesson("one = 1"),
        "README.md": "The course\n",
        "library.py": "first = 1\n",
        ".gitignore": "grades/\nkept/\n",
    }
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "published.git")
    git(folder, "clone", "--quiet", str(folder / "published.git"), "authors")
    publish(folder / "authors", files)
    git(folder, "clone", "--quiet", str(folder / "published.git"), "learner")
    return folder


@pytest.fixture
def editions(published, tmp_path):
    """A copy of the authors' clone and of the learner's, which have a copy of what was published as their remote."""
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    for name in ("authors", "learner"):
        config = tmp_path / name / ".git" / "config"
        config.write_text(config.read_text().replace(str(published), str(tmp_path)))
    return tmp_path / "authors", tmp_path / "learner"


def publish(authors, files):
    """Another edition. A file whose text is None goes."""
    for name, text in files.items():
        path = authors / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
    git(authors, "add", "--all")
    git(authors, "commit", "--quiet", "--message", "edition")
    git(authors, "push", "--quiet", "origin", "HEAD:main")


def solve(folder, answers):
    """Write answers into day 1's exercises and save them as JupyterLab does."""
    path = folder / EXERCISE
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    opened(notebook)
    path.write_text(dump(notebook), encoding="utf-8")
    return path.read_bytes()


def opened(notebook):
    notebook.metadata.language_info = {"name": "python", "version": "3.11.9", "file_extension": ".py"}


def newer_exercises(drop=()):
    """A solution and its exercises in which a text and a stub changed, a check was added and exercises dropped."""
    solution = copy.deepcopy(COURSE.notebook(1))
    solution.cells = [
        cell
        for cell in solution.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id", "").removeprefix("check_") not in drop
    ]
    solution.cells[0].source += "\n\nA newer edition."
    for cell in solution.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "soft_lookup":
            cell.source = cell.source.replace('"""', '"""Newer. ', 1)
    return {SOLUTION: dump(solution), EXERCISE: dump(release_exercise(solution))}


def answers_in(path):
    cells = nbformat.read(path, as_version=4).cells
    graded = [(cell.metadata.get("nbgrader", {}), cell.source) for cell in cells]
    return {grading["grade_id"]: source for grading, source in graded if grading.get("solution")}


def everything(folder):
    """All files outside of git's own folder."""
    files = [path for path in folder.rglob("*") if ".git" not in path.parts and not path.is_dir()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# What comes and what stays ------------------------------------------------------------------------------------------


def test_a_clone_that_nobody_touched_becomes_the_newest_edition(editions):
    authors, learner = editions
    publish(authors, {"library.py": "second = 2\n", "new.py": "new = 1\n", "README.md": None})
    done = update(learner)
    assert (done.files, done.merged, done.packages) == (3, (), False)
    assert everything(learner) == everything(authors) and git(learner, "status", "--porcelain") == ""
    assert update(learner).files == 0


def test_what_only_the_learner_changed_stays(editions):
    authors, learner = editions
    mine = solve(learner, MINE)
    for name in ("README.md", "own.ipynb", "grades/progress.json"):
        (learner / name).parent.mkdir(exist_ok=True)
        (learner / name).write_text("mine")
    (learner / LESSON).unlink()
    publish(authors, {"library.py": "second = 2\n"})
    assert update(learner).merged == ()
    assert (learner / EXERCISE).read_bytes() == mine and not (learner / LESSON).exists()
    assert {(learner / name).read_text() for name in ("README.md", "own.ipynb", "grades/progress.json")} == {"mine"}
    assert (learner / "library.py").read_text() == "second = 2\n"
    assert not list(learner.rglob("kept"))


def test_answers_are_carried_into_the_new_editions_exercises_and_the_old_notebook_is_kept(editions):
    authors, learner = editions
    mine, newer = solve(learner, MINE), newer_exercises()
    publish(authors, newer)
    (merged,) = update(learner).merged
    assert (merged.name, merged.copy, merged.answers, merged.lost) == (EXERCISE, KEPT, 2, ())
    assert (learner / KEPT).read_bytes() == mine
    cells = nbformat.read(learner / EXERCISE, as_version=4).cells
    fresh = nbformat.reads(newer[EXERCISE], as_version=4).cells
    assert answers_in(learner / EXERCISE) == answers_in(authors / EXERCISE) | MINE
    assert "Newer." in answers_in(learner / EXERCISE)["soft_lookup"] and "A newer edition." in cells[0].source
    for cell, original in zip(cells, fresh, strict=True):
        assert cell == original or cell.metadata.nbgrader.grade_id in MINE
    assert update(learner).files == 0 and (learner / KEPT).read_bytes() == mine


def test_an_answer_in_a_cell_of_its_own_is_carried_too(editions):
    authors, learner = editions
    solve(learner, {})
    notebook = nbformat.read(learner / EXERCISE, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(MINE["scores"]))
    (learner / EXERCISE).write_text(dump(notebook), encoding="utf-8")
    publish(authors, newer_exercises())
    update(learner)
    assert answers_in(learner / EXERCISE)["scores"] == MINE["scores"]


def test_an_answer_for_the_lab_report_is_carried_too(editions):
    authors, learner = editions
    notebook = nbformat.read(authors / EXERCISE, as_version=4)
    notebook.cells += [nbformat.v4.new_markdown_cell("*Write.*", metadata={"course": {"report": n}}) for n in "ab"]
    publish(authors, {EXERCISE: dump(notebook)})
    assert update(learner).merged == ()
    mine = nbformat.read(learner / EXERCISE, as_version=4)
    mine.cells[-1].source = "It was the rate."
    (learner / EXERCISE).write_text(dump(mine), encoding="utf-8")
    notebook.cells[0].source += "A newer edition."
    publish(authors, {EXERCISE: dump(notebook)})
    (merged,) = update(learner).merged
    sources = [cell.source for cell in nbformat.read(learner / EXERCISE, as_version=4).cells]
    assert merged.answers == 1
    assert "A newer edition." in sources[0] and sources[-2:] == ["*Write.*", "It was the rate."]


def test_an_exercise_that_the_new_edition_dropped_is_named_and_its_answer_kept(editions):
    authors, learner = editions
    solve(learner, MINE)
    publish(authors, newer_exercises(drop=["scores"]))
    (merged,) = update(learner).merged
    assert (merged.answers, merged.lost) == (1, ("scores",))
    assert "half done" in (learner / KEPT).read_text(encoding="utf-8")


def test_a_second_update_keeps_a_second_copy(editions):
    authors, learner = editions
    for number in (1, 2):
        solve(learner, MINE | {"scores": f"def scores(Q, K):\n    return {number}"})
        newer = newer_exercises()
        publish(authors, newer | {EXERCISE: newer[EXERCISE].replace("A newer edition", f"Edition {number}")})
        update(learner)
    assert answers_in(learner / KEPT)["scores"].endswith("1")
    assert answers_in(learner / KEPT.replace("-1.", "-2."))["scores"].endswith("2")


def test_a_lesson_that_was_only_opened_leaves_no_copy_and_one_that_was_changed_or_run_does(editions):
    authors, learner = editions
    for name, change in ((LESSON, False), ("notebooks/day2_other.ipynb", True)):
        notebook = nbformat.read(learner / name, as_version=4)
        opened(notebook)
        if change:
            notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="1")]
        (learner / name).write_text(dump(notebook), encoding="utf-8")
    publish(authors, {LESSON: lesson("three = 3"), "notebooks/day2_other.ipynb": lesson("four = 4")})
    done = {each.name: each.copy for each in update(learner).merged}
    assert done == {LESSON: "", "notebooks/day2_other.ipynb": "notebooks/kept/day2_other-1.ipynb"}
    assert everything(learner).keys() - everything(authors).keys() == {"notebooks/kept/day2_other-1.ipynb"}
    assert (learner / LESSON).read_text() == lesson("three = 3") and git(learner, "status", "--porcelain") == ""


def test_other_files_that_both_changed_are_kept_with_their_endings(editions):
    authors, learner = editions
    (learner / "library.py").write_text("mine = 1\n")
    (learner / "new.py").write_text("mine = 2\n")
    (learner / "README.md").write_text("mine\n")
    git(learner, "add", "new.py", "library.py")
    publish(authors, {"library.py": "second = 2\n", "new.py": "new = 1\n", "README.md": None})
    done = {each.name: (each.copy, each.gone) for each in update(learner).merged}
    assert done == {
        "README.md": ("kept/README-1.md", True),
        "library.py": ("kept/library-1.py", False),
        "new.py": ("kept/new-1.py", False),
    }
    assert (learner / "kept/library-1.py").read_text() == "mine = 1\n"
    assert (learner / "kept/new-1.py").read_text() == "mine = 2\n"
    assert (learner / "kept/README-1.md").read_text() == "mine\n" and not (learner / "README.md").exists()
    assert (learner / "new.py").read_text() == "new = 1\n" and git(learner, "status", "--porcelain") == ""


def test_what_a_learner_committed_is_kept_as_what_is_not(editions):
    authors, learner = editions
    mine = solve(learner, MINE)
    (learner / "library.py").write_text("mine = 1\n")
    (learner / "diary.md").write_text("mine\n")
    git(learner, "add", "--all")
    git(learner, "commit", "--quiet", "--message", "my work")
    own = git(learner, "rev-parse", "HEAD").strip()
    (learner / "diary.md").write_text("mine, later\n")
    publish(authors, newer_exercises() | {"library.py": "second = 2\n", "new folder/ä b.py": "new = 1\n", LESSON: None})
    done = {each.name: each.copy for each in update(learner).merged}
    assert done == {EXERCISE: KEPT, "library.py": "kept/library-1.py"}
    assert (learner / KEPT).read_bytes() == mine and answers_in(learner / EXERCISE)["scores"] == MINE["scores"]
    assert (learner / "diary.md").read_text() == "mine, later\n" and not (learner / LESSON).exists()
    assert (learner / "library.py").read_text() == "second = 2\n" and (learner / "new folder/ä b.py").exists()
    for commit in (own, git(authors, "rev-parse", "HEAD").strip()):
        git(learner, "merge-base", "--is-ancestor", commit, "HEAD")
    assert update(learner).files == 0


def test_a_deleted_file_that_the_new_edition_changed_comes_back(editions):
    authors, learner = editions
    git(learner, "rm", "--quiet", EXERCISE)
    (learner / LESSON).unlink()
    publish(authors, newer_exercises() | {LESSON: lesson("three = 3")})
    assert update(learner).merged == ()
    assert (learner / EXERCISE).read_bytes() == (authors / EXERCISE).read_bytes()
    assert (learner / LESSON).read_text() == lesson("three = 3")


def test_who_has_the_new_file_already_loses_nothing_and_keeps_nothing(editions):
    authors, learner = editions
    for folder in editions:
        (folder / "library.py").write_text("second = 2\n")
        (folder / "new.py").write_text("new = 1\n")
    publish(authors, {})
    assert {each.copy for each in update(learner).merged} == {""}
    assert git(learner, "status", "--porcelain") == "" and not (learner / "kept").exists()


def test_a_notebook_that_is_broken_or_not_answered_is_replaced_and_kept(editions):
    authors, learner = editions
    (learner / EXERCISE).write_text("{ broken")
    publish(authors, newer_exercises())
    (merged,) = update(learner).merged
    assert (merged.copy, merged.answers) == (KEPT, 0) and (learner / KEPT).read_text() == "{ broken"
    assert (learner / EXERCISE).read_bytes() == (authors / EXERCISE).read_bytes()


def test_a_shallow_clone_is_brought_up_to_date(editions, tmp_path):
    authors, _ = editions
    publish(authors, {"library.py": "second = 2\n"})
    git(tmp_path, "clone", "--quiet", "--depth=1", (tmp_path / "published.git").as_uri(), str(tmp_path / "shallow"))
    solve(tmp_path / "shallow", MINE)
    publish(authors, newer_exercises())
    (merged,) = update(tmp_path / "shallow").merged
    assert merged.answers == 2


def test_a_branch_that_follows_none_takes_the_remotes_main_branch(editions):
    authors, learner = editions
    git(learner, "switch", "--quiet", "--create", "mine")
    publish(authors, {"library.py": "second = 2\n"})
    assert update(learner).files == 1 and git(learner, "branch", "--show-current") == "mine\n"


def test_new_packages_are_announced(editions):
    authors, learner = editions
    publish(authors, {"requirements.lock": "numpy==9\n"})
    assert update(learner).packages


# A learner's folder as 0.3.0 left it --------------------------------------------------------------------------------

OLD = Path(__file__).parent / "folder_of_0_3_0"  # days 1 and 3: all answers, guesses and grades; names of all days
OLD_NAMES = json.loads((OLD / "names.json").read_text(encoding="utf-8"))
NAMES = {1: DAY1.removesuffix(".ipynb"), 3: "day3_causal_masking"}
# By day: names of 0.3.0 without a successor.
GONE: dict[str, dict[int, set[str]]] = {
    "exercises": {},
    "guesses": {
        1: {"left of the first token"},
        2: {"scatter of the mean", "what the spread forgives", "which scale learns first"},
        3: {"loss of a layer without a mask"},
        4: {
            "the last addition",
            "the idle bias",
            "scores against weights",
            "rank of the scores",
            "the head of the story",
            "the head that looks back by one",
            "heads as wide as the model",
            "scores of one token repeated",
        },
        5: {"the most frugal model"},
        6: {"loads of a key", "a larger block", "ridge point of a card"},
        7: {
            "the knee",
            "all of it cached",
            "one system prompt",
            "largest gap without a budget",
            "the shortest p95 of the gap",
            "drawing from p after a refusal",
            "tokens of a round",
            "acceptance of bigrams",
            "bytes between machines",
            "the time of day in front",
        },
    },
}
ASKED_ANEW = {"by_hand_three", "find_the_parcel"}  # exercises that have asked for something else since


def answered(day):
    return (OLD / f"exercises/{NAMES[day]}.json").read_text(encoding="utf-8")


@pytest.fixture
def updated(editions):
    """The folder of a learner who worked with 0.3.0 and has this edition now, and what the update did."""
    authors, learner = editions
    newest = {name: COURSE.notebook(day) for day, name in NAMES.items()}
    solutions = {f"solutions/{name}.ipynb": dump(notebook) for name, notebook in newest.items()}
    publish(authors, solutions | {f"exercises/{NAMES[day]}.ipynb": unanswered(answered(day)) for day in NAMES})
    update(learner)
    for day, name in NAMES.items():
        (learner / f"exercises/{name}.ipynb").write_text(answered(day), encoding="utf-8")
    shutil.copytree(OLD / "guesses", learner / "guesses")
    shutil.copytree(OLD, learner / "grades", ignore=lambda *_: ["exercises", "guesses", "names.json"])
    publish(authors, {f"exercises/{name}.ipynb": dump(release_exercise(notebook)) for name, notebook in newest.items()})
    return learner, {merged.name: merged for merged in update(learner).merged}


def unanswered(exercises):
    notebook = nbformat.reads(exercises, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = "raise NotImplementedError"
    return dump(notebook)


@pytest.mark.parametrize("day", NAMES)
def test_answers_of_0_3_0_are_carried_into_the_new_order_and_its_notebook_is_kept(updated, day):
    learner, merged = updated
    done = merged[f"exercises/{NAMES[day]}.ipynb"]
    assert (learner / done.copy).read_text(encoding="utf-8") == answered(day)
    old, now = answers_in(learner / done.copy), answers_in(learner / done.name)
    assert list(old) == OLD_NAMES[str(day)]["exercises"] and (done.answers, done.lost) == (len(old), ())
    assert [grade_id for grade_id, answer in old.items() if answer.strip() not in now[grade_id]] == []


def test_answers_of_0_3_0_are_still_graded(updated):
    learner, _ = updated
    (learner / "grades/progress.json").unlink()
    paths = [learner / f"exercises/{name}.ipynb" for name in NAMES.values()]
    code, _, output = course("grade", "--out", learner / "grades", "--", *paths, cwd=learner)
    assert code == 0, output
    passed = {exercise.id for day in read_progress(learner).days for exercise in day.exercises if exercise.done}
    assert {name for day in NAMES for name in OLD_NAMES[str(day)]["exercises"]} - passed <= ASKED_ANEW


def test_guesses_and_grades_of_0_3_0_still_count(updated):
    learner, _ = updated
    days = {day.number: day for day in read_progress(learner).days if day.number in NAMES}
    for number, day in days.items():
        old = OLD_NAMES[str(number)]
        assert {exercise.id for exercise in day.exercises if exercise.done} == set(old["exercises"])
        assert set(read(number, learner)) == set(old["guesses"])


@pytest.mark.parametrize("day", [int(day) for day in OLD_NAMES])
def test_a_name_of_0_3_0_stays_because_records_are_kept_under_it(day):
    guesses = (ROOT / f"course_utils/days/day{day}/guesses.py").read_text(encoding="utf-8")
    now = {"exercises": all_exercises(day), "guesses": re.findall(r'"([^"\n]+)"', guesses)}
    gone = {(kind, name) for kind, names in OLD_NAMES[str(day)].items() for name in names if name not in now[kind]}
    assert gone <= {(kind, name) for kind, of_days in GONE.items() for name in of_days.get(day, ())}


# When it cannot be done: nothing changes ----------------------------------------------------------------------------


def without_a_remote(authors, learner, monkeypatch):
    git(learner, "remote", "remove", "origin")


def without_a_network(authors, learner, monkeypatch):
    git(learner, "remote", "set-url", "origin", "http://127.0.0.1:0/course.git")


def without_git(authors, learner, monkeypatch):
    monkeypatch.setattr(updating.shutil, "which", lambda name: None)


def in_a_merge(authors, learner, monkeypatch):
    (learner / ".git" / "MERGE_HEAD").write_text(git(learner, "rev-parse", "HEAD"))


def of_another_history(authors, learner, monkeypatch):
    git(authors, "checkout", "--quiet", "--orphan", "other")
    git(authors, "commit", "--quiet", "--message", "other")
    git(authors, "push", "--quiet", "--force", "origin", "HEAD:main")


def with_a_link(authors, learner, monkeypatch):
    (learner / "library.py").unlink()
    (learner / "library.py").symlink_to("README.md")


def with_a_folder_in_the_way(authors, learner, monkeypatch):
    (learner / "new.py").mkdir()
    (learner / "new.py" / "mine").write_text("mine")


def with_a_file_where_a_folder_comes(authors, learner, monkeypatch):
    (learner / "folder").write_text("mine")


def with_a_lock(authors, learner, monkeypatch):
    (learner / ".git" / "index.lock").touch()


def where_git_gives_up(authors, learner, monkeypatch):
    def fail(self, commit):
        (self.root / EXERCISE).write_text("half a merge")
        raise CourseError("the new edition cannot be put here; nothing was changed")

    monkeypatch.setattr(updating._Git, "forward", fail)


REFUSED = {
    without_a_remote: "no remote",
    without_a_network: "no newer edition can be fetched from origin",
    without_git: "not installed",
    in_a_merge: "a merge or rebase is under way",
    of_another_history: "nothing in common",
    with_a_link: "a symbolic link",
    with_a_folder_in_the_way: "is in the place of a file of the new edition",
    with_a_file_where_a_folder_comes: "cannot be put here",
    with_a_lock: "index.lock",
    where_git_gives_up: "cannot be put here",
}


@pytest.mark.parametrize("spoil", REFUSED)
def test_what_cannot_be_updated_is_told_in_a_line_and_stays_as_it_was(editions, spoil, monkeypatch, capsys):
    authors, learner = editions
    solve(learner, MINE)
    (learner / "README.md").write_text("mine\n")
    git(learner, "add", "README.md")
    newer = {"library.py": "second = 2\n", "new.py": "new = 1\n", "folder/file.py": "new = 1\n", "README.md": "new\n"}
    publish(authors, newer_exercises() | newer)
    spoil(authors, learner, monkeypatch)
    before = everything(learner)
    monkeypatch.chdir(learner)
    monkeypatch.setattr(sys, "argv", ["course", "update"])
    with pytest.raises(SystemExit) as ended:
        main()
    complaint = capsys.readouterr().err
    assert (ended.value.code, complaint.count("\n")) == (2, 1), complaint
    assert REFUSED[spoil] in complaint and "nothing was changed" in complaint
    assert everything(learner) == before


def test_a_folder_that_is_no_clone_and_one_inside_another_project_are_left_alone(editions, tmp_path):
    authors, learner = editions
    unpacked = tmp_path / "unpacked"
    shutil.copytree(learner, unpacked, ignore=shutil.ignore_patterns(".git"))
    with pytest.raises(CourseError, match=r"not a git clone .*nothing was changed"):
        update(unpacked)
    shutil.copytree(unpacked, learner / "inner")
    publish(authors, {"library.py": "second = 2\n"})
    with pytest.raises(CourseError, match="is inside another project's clone"):
        update(learner / "inner")
    assert (learner / "library.py").read_text() == "first = 1\n"


# The command line ---------------------------------------------------------------------------------------------------


def test_the_command_says_what_became_of_the_learners_files(editions, monkeypatch, capsys):
    authors, learner = editions
    solve(learner, MINE)
    (learner / "library.py").write_text("mine = 1\n")
    publish(authors, newer_exercises(drop=["scores"]) | {"library.py": None, "pyproject.toml": ""})
    monkeypatch.chdir(learner)
    monkeypatch.setattr(sys, "argv", ["course", "update"])
    for lines in (
        [
            f"{EXERCISE} is the new edition's with 1 of your answers; yours is {KEPT}",
            "library.py is no longer in the course; yours is kept/library-1.py",
            "you now have the newest edition: 4 files are new or changed",
            "packages may have changed, too: the next make installs them",
            "If JupyterLab is open, stop it and start it again.",
        ],
        ["you have the newest edition"],
    ):
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0, out.splitlines()) == (0, lines)
        assert ("no longer contains scores" in err) == (len(lines) > 1)


def test_the_stub_of_the_course_is_no_answer_of_the_learners(editions):
    authors, learner = editions
    stubs = {cell.metadata.nbgrader.grade_id: stub_source(cell) + "\n\n# to do" for cell in answer_cells()}
    solve(learner, stubs)
    publish(authors, newer_exercises())
    (merged,) = update(learner).merged
    assert merged.answers == 0 and answers_in(learner / EXERCISE) == answers_in(authors / EXERCISE)


def answer_cells():
    return [cell for cell in COURSE.notebook(1).cells if cell.metadata.get("nbgrader", {}).get("solution")]
