"""AGENTS.md is short and true: what it tells an assistant to run works, and what it closes is where answers are."""

import re
import shlex

from in_process import course as run_course
from test_docs import commands_in

from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.kernel.evidence import all_ladders
from course_utils.course import EXERCISES, ROOT, SOLUTIONS, SOURCES

PAGE = ROOT / "AGENTS.md"
TEXT = PAGE.read_text(encoding="utf-8")
FORBIDDEN = re.search(r"^- Never open.+?(?=^- )", TEXT, re.MULTILINE | re.DOTALL)[0]
CLOSED = re.findall(r"`([\w/]+)/`", FORBIDDEN)
# What only a file with answers says: a marked solution, the tables of references, an answer for the tests.
ANSWERS = re.compile(r"^ *### BEGIN SOLUTION$|^EXERCISES\b.* = |^@right\(", re.MULTILINE)


def settings(words):
    return dict(word.split("=", 1) for word in words if "=" in word)


def test_it_is_short_and_the_only_one():
    others = ("CLAUDE.md", "GEMINI.md", ".cursorrules", ".github/copilot-instructions.md")
    assert len(TEXT.splitlines()) < 80
    assert not [name for name in others if (ROOT / name).exists()]


def test_every_file_that_holds_answers_is_closed_to_an_assistant_of_a_learner():
    assert {SOLUTIONS, SOURCES[SOLUTIONS], "course_utils/answers", "tests/variants"} <= set(CLOSED)
    places = [path for room in ("course_utils", "sources", "tests/variants") for path in (ROOT / room).rglob("*")]
    holding = [path for path in places if path.suffix in (".py", ".md") and ANSWERS.search(path.read_text("utf-8"))]
    assert len(holding) > 12
    for path in holding:
        assert path.relative_to(ROOT).as_posix().startswith(tuple(CLOSED)), path


def test_what_a_learner_is_asked_to_do_is_possible():
    quoted = [settings(words)["ARGS"] for words in commands_in(PAGE, "make") if words[0] == "practice" and words[1:]]
    kinds = run_course("practice")[1]
    assert quoted and all(f"course practice {shlex.split(one)[0]} " in kinds for one in quoted)
    for notebook in (ROOT / EXERCISES).glob("day*.ipynb"):
        assert "lesson part " in notebook.read_text(encoding="utf-8")


def test_the_narrow_tests_that_are_named_exist():
    runs = [settings(words) for words in commands_in(PAGE, "make") if words[0] == "test"]
    narrow = [shlex.split(run["TESTS"]) for run in runs if run]
    assert len(narrow) >= 3
    for path, *chosen in narrow:
        assert (ROOT / path).exists() or path in [f"day{day}" for day in days_with_exercises()], path
        assert not chosen or (
            chosen[0] == "-k" and any(chosen[1] in all_ladders(day) for day in days_with_exercises())
        ), chosen


def test_notebooks_that_are_named_exist():
    paths = [path for words in commands_in(PAGE, "make") for path in settings(words).values()]
    assert all((ROOT / path).exists() for path in paths if path.endswith(".ipynb"))
