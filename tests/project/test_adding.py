"""CONTRIBUTING's list of what a new exercise touches, walked: four files by hand, and everything knows it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from course_utils.course import ROOT

SECTION = """## 13. Twice a number

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
ADDED = pytest.mark.thorough("an exercise is added to a copy of the course, which is built and graded")
BY_HAND = {
    "sources/exercises/day1_attention_by_hand.md": SECTION,
    "course_utils/days/day1/given/ladders.py": LADDER,
    "course_utils/answers/day1/exercises.py": ANSWERS,
    "tests/variants/day1.py": VARIANTS,
}
JUDGED = """
import sys
sys.path.insert(0, "tests")
import variants.day1
from variants import RIGHT, WRONG
from course_utils.checks.kernel.evidence import gather
from course_utils.checks.judge.judge import judge_of

judged = judge_of(1, "double")
assert judged.written_patterns() == judged.patterns() != {}
for answers, status in ((RIGHT[1, "double"], "passed"), (WRONG[1, "double"], "failed")):
    for answer in answers:
        for hidden in (False, True):
            assert judged.judge(gather(1, "double", {"double": answer}, hidden=hidden)).status == status
for mistake, evidence in judged.mistakes():
    assert judged.judge(evidence).misconception == mistake.name
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the course with the exercise added as CONTRIBUTING says, and built."""
    copy = tmp_path_factory.mktemp("course")
    parts = ("course_utils", "sources", "notebooks", "solutions", "exercises", "tests", "README.md", "jupytext.toml")
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "kept"))
        else:
            shutil.copy(ROOT / part, copy / part)
    for name, text in BY_HAND.items():
        path = copy / name
        before = path.read_text(encoding="utf-8")
        end = before.index("## How did it go") if path.suffix == ".md" else len(before)
        path.write_text(before[:end] + text + before[end:], encoding="utf-8")
    run(copy, "-m", "course_utils", "build")
    return copy


def run(folder, *words, status=0):
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr[-2000:]
    return done.stdout


def test_contributing_lists_these_files_and_no_others():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("### An exercise") :].partition("\n### ")[0]
    listed = re.findall(r"^\d\. `([^`]+)`", section, re.MULTILINE)
    assert [name.replace("dayN", "day1") for name in listed] == [
        name.replace("day1_attention_by_hand.md", "day1_….md") for name in BY_HAND
    ]


@ADDED
def test_the_copy_agrees_with_itself_and_counts_the_exercise(course):
    assert "agree" in run(course, "-m", "course_utils", "check")
    source = (course / "sources/exercises/day1_attention_by_hand.md").read_text(encoding="utf-8")
    assert "Thirteen exercises, 33 points, about 130 minutes." in source
    assert "[thirteen]" in (course / "sources/lessons/course_map.md").read_text(encoding="utf-8")


@ADDED
def test_its_judge_accepts_the_right_ones_refuses_the_wrong_and_names_the_mistakes(course):
    run(course, "-c", JUDGED)


@ADDED
def test_the_student_sees_no_answer_and_the_grader_gives_its_points(course):
    exercise = (course / "exercises/day1_attention_by_hand.ipynb").read_text(encoding="utf-8")
    assert "Twice a number" in exercise and "twice_of_it" not in exercise
    for folder, score in (("solutions", 33), ("exercises", 0)):
        out = course / f"grades_{folder}"
        run(course, "-m", "course_utils", "grade", f"{folder}/day1_attention_by_hand.ipynb", "--out", out)
        (graded,) = json.loads((out / "grades.json").read_text(encoding="utf-8"))["submissions"]
        assert (graded["score"], graded["max_score"]) == (score, 33)
        assert {each["id"]: each["status"] for each in graded["exercises"]}["double"] == (
            "passed" if score else "missing"
        )
