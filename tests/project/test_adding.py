"""The lists in docs/adding.md of what a new exercise and a new day touch, walked in a copy of the course."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from course_utils import loader
from course_utils.course import NUMBERS, ROOT, is_there

SECTION = """## 12. Twice a number

2 points · difficulty 1 of 5 · 5 minutes

Write `double(number)`. It takes a number and returns twice that.

<details><summary>Hint 1</summary>

Add it to itself.

</details>

```{code-cell} ipython3
---
nbgrader:
  grade: false
  grade_id: double
  locked: false
  schema_version: 3
  solution: true
  task: false
---
def double(number):
    ### BEGIN SOLUTION
    twice_of_it = 2 * number
    return twice_of_it
    ### END SOLUTION
```

```{code-cell} ipython3
---
nbgrader:
  grade: true
  grade_id: check_double
  locked: true
  points: 2
  schema_version: 3
  solution: false
  task: false
tags: [raises-exception]
---
check("double")
### BEGIN HIDDEN TESTS
check("double", hidden=True)
### END HIDDEN TESTS
```

"""
LADDER = """

def double(rng):
    numbers = {"a small number": 3.0, "a negative one": -2.5, "another": float(draw(rng, 1)[0])}
    return [Rung(name, (number,), "It is the number and itself again.") for name, number in numbers.items()]


LADDERS["double"] = Ladder(("double",), ("twice",), double, small=(Small((one_of(1.0, 2.0),)),))
"""
ANSWERS = """

DOUBLE_MISTAKES = (
    Mistake("squared", lambda number: number**2, "This is the square. Twice a number is 2 * number."),
    Mistake("half", lambda number: number / 2, "This is half of it. Multiply by 2."),
)
EXERCISES["double"] = Exercise(2, {"double": lambda number: 2 * number}, DOUBLE_MISTAKES)
"""
VARIANTS = """

@right(1, "double")
def double_by_adding(number):
    return number + number


@wrong(1, "double")
def double_and_one(number):
    return 2 * number + 1
"""
EXERCISE = {  # what is written into the files of a day that is there
    "sources/exercises/day1_attention_by_hand.md": SECTION,
    "course_utils/days/day1/given/ladders.py": LADDER,
    "course_utils/answers/day1/exercises.py": ANSWERS,
    "tests/variants/day1.py": VARIANTS,
}
STUB = 10  # a day that is not even planned, with nothing around it that would have to be built again
TABLE = "course_utils/days/days.toml"
ENTRY = f"""
[[days]]
number = {STUB}
title = "Twice a number"
doing = "Double a number."
minutes = 20
"""
A_DAY = ROOT / "tests" / "project" / "a_day"  # its other files, laid out like the course
NEW = [path.relative_to(A_DAY).as_posix() for path in sorted(A_DAY.rglob("*")) if path.is_file()]
ADDED = pytest.mark.thorough("an exercise and a day are added to a copy of the course, which is built and graded")
JUDGED = """
import sys
sys.path.insert(0, "tests")
import variants.day1
from variants import RIGHT, WRONG
from course_utils.checks.kernel.evidence import gather
from course_utils.checks.judge.judge import judge_of

judged = judge_of(1, "double")
for answers, status in ((RIGHT[1, "double"], "passed"), (WRONG[1, "double"], "failed")):
    for answer in answers:
        for hidden in (False, True):
            assert judged.judge(gather(1, "double", {"double": answer}, hidden=hidden)).status == status
for mistake, evidence in judged.mistakes():
    assert judged.judge(evidence).mistake == mistake.name
"""
SHARED = ("course_utils/days/shared/given/draws.py", "course_utils/checks/kernel/evidence.py")
# What holds for each day: of its lesson and texts, of its guesses, of its checks.
OF_EACH_DAY = [f"tests/project/test_{name}.py" for name in ("lessons", "days")]
OF_EACH_DAY += ["tests/views/test_guesses_in_lessons.py", "tests/checks/test_checks.py", "tests/checks/test_mutants.py"]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the course with an exercise and a day added as docs/adding.md says, and built."""
    copy = tmp_path_factory.mktemp("course")
    parts = ("course_utils", "sources", "notebooks", "solutions", "exercises", "tests", "templates")
    parts += ("README.md", "jupytext.toml", "pyproject.toml", "conftest.py")
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "kept"))
        else:
            shutil.copy(ROOT / part, copy / part)
    for name, text in EXERCISE.items():
        path = copy / name
        before = path.read_text(encoding="utf-8")
        end = before.index("## 12. Write the test") if path.suffix == ".md" else len(before)
        path.write_text(before[:end] + text + before[end:].replace("## 12.", "## 13.", 1), encoding="utf-8")
    (copy / TABLE).write_text((copy / TABLE).read_text(encoding="utf-8") + ENTRY, encoding="utf-8")
    for name in NEW:
        assert not (copy / name).exists(), name
    shutil.copytree(A_DAY, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    run(copy, "-m", "course_utils", "build", 1, STUB)
    return copy


def run(folder, *words, status=0):
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, (done.stdout + done.stderr)[-2000:]
    return done.stdout


def listed(what):
    """The files that docs/adding.md numbers under a heading."""
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    section = text[text.index(f"## {what}\n") :].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def test_the_page_lists_these_files_of_an_exercise_and_no_others():
    expected = [name.replace("day1_attention_by_hand.md", "day1_….md") for name in EXERCISE]
    assert [name.replace("dayN", "day1") for name in listed("An exercise")] == expected and len(expected) <= 4


def test_the_page_lists_these_files_of_a_day_and_no_others():
    expected = [TABLE, *(re.sub(r"_stub\b", "_…", name) for name in NEW)]
    names = [name.replace("dayN", f"day{STUB}") for name in listed("A day")]
    assert sorted(names) == sorted(expected) and len(names) <= 10
    places = {re.match(r"course_utils/\w+/|\w+/", name)[0] for name in names}
    assert places == {"sources/", "course_utils/days/", "course_utils/answers/", "tests/"}


def test_what_a_day_may_lack_is_not_missed():
    assert STUB not in NUMBERS
    assert loader.quiz(STUB) == [] and not loader.wording(f"day{STUB}")
    assert loader.cards(STUB) == {"claims": [], "mistakes": []}


@ADDED
def test_the_copy_agrees_with_itself_and_counts_the_exercise_and_the_day(course):
    assert "agree" in run(course, "-m", "course_utils", "check")
    source = (course / "sources/exercises/day1_attention_by_hand.md").read_text(encoding="utf-8")
    head = "Thirteen exercises, 33 points: ten core, about 100 minutes, and three further, about 50 minutes."
    assert head in source
    course_map = (course / "sources/lessons/course_map.md").read_text(encoding="utf-8")
    assert "[thirteen]" in course_map and f"| {STUB} | [Twice a number](day{STUB}_stub.ipynb) | [one]" in course_map
    source = (course / f"sources/exercises/day{STUB}_stub.md").read_text(encoding="utf-8")
    assert "One exercise, 2 points, about 10 minutes." in source and "**Go to** [the lesson]" in source
    written = [number for number in NUMBERS if is_there(number)]
    assert f" {written[-1]} {STUB}\n" in (course / "templates/github-actions/grade.yml").read_text(encoding="utf-8")


@ADDED
def test_its_judge_accepts_the_right_ones_refuses_the_wrong_and_names_the_mistakes(course):
    run(course, "-c", JUDGED)


@ADDED
def test_what_holds_for_each_day_holds_for_the_new_one(course):
    chosen = f"day{STUB} or [{STUB}] or test_days"
    report = run(course, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *OF_EACH_DAY, "-k", chosen)
    assert int(re.search(r"(\d+) passed", report)[1]) > 25 and "failed" not in report


@ADDED
def test_its_quiz_and_its_claims_become_cards(course):
    code = f"from course_utils.cards import all_cards; print(sorted(c.kind for c in all_cards() if c.day == {STUB}))"
    assert run(course, "-c", code).strip() == "['defend', 'quiz', 'symbol']"


@ADDED
def test_the_student_sees_no_answer_and_the_grader_gives_its_points(course):
    names = {1: "day1_attention_by_hand.ipynb", STUB: f"day{STUB}_stub.ipynb"}
    for name in names.values():
        exercise = (course / "exercises" / name).read_text(encoding="utf-8")
        assert "Twice a number" in exercise and "twice_of_it" not in exercise
    for folder, status in (("solutions", "passed"), ("exercises", "missing")):
        out = course / f"grades_{folder}"
        run(course, "-m", "course_utils", "grade", *(f"{folder}/{name}" for name in names.values()), "--out", out)
        graded = json.loads((out / "grades.json").read_text(encoding="utf-8"))["submissions"]
        points = {each["day"]: (each["score"], each["max_score"]) for each in graded}
        assert points == ({1: (33, 33), STUB: (2, 2)} if status == "passed" else {1: (0, 33), STUB: (0, 2)})
        for each in graded:
            assert {one["id"]: one["status"] for one in each["exercises"]}["double"] == status


@ADDED
def test_a_comment_in_what_all_days_share_rewrites_no_notebook(course):
    before = {name: (course / name).read_text(encoding="utf-8") for name in SHARED}
    for name, text in before.items():
        first, word, rest = text.partition("\nfrom __future__")
        assert word
        (course / name).write_text(f"{first}\n# A comment.{word}{rest}\n# Another.\n", encoding="utf-8")
    assert "agree" in run(course, "-m", "course_utils", "check")
    for name, text in before.items():
        (course / name).write_text(text, encoding="utf-8")
