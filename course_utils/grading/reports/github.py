"""Write grades in the forms that others read: annotations of a workflow on GitHub, its classrooms, and Gradescope.

    python -m course_utils.grading.github annotations|autograding|classroom50|gradescope grades/grades.json

All text from a student becomes one line, and is escaped where the line could be read as a workflow command.
"""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from course_utils.errors import CourseError, one_line


def workflow_commands(grades: Mapping) -> list[str]:
    """Return workflow commands that show each exercise that lost points on the run's page; GitHub shows at most ten."""
    lost = [part for part in _parts(grades) if not part.passed]
    return [f"::warning title={_property(part.title)}::{_data(part.message)}" for part in lost[:10]]


def autograding_result(grades: Mapping) -> dict:
    """Return what the action autograding-grading-reporter reads: the maximum points, and a test for each exercise."""
    parts = _parts(grades)
    return {
        "version": 1,
        "status": _status(bool(parts) and all(part.passed for part in parts)),
        "max_score": sum(part.full for part in parts),
        "tests": [
            {"name": part.title, "status": _status(part.passed), "score": part.score, "message": part.message}
            for part in parts
        ],
    }


def classroom50_result(grades: Mapping, about: Mapping[str, str]) -> dict:
    """Return what Classroom 50 reads as result.json (classroom50/result/v1).

    Classroom 50 keeps whole points only, so the points of a partly right exercise are rounded down.

    Args:
        about: the environment variables that Classroom 50's runner sets.

    Raises:
        CourseError: if one of these variables is missing.
    """
    missing = [name for name in CLASSROOM50 if not about.get(name)]
    if missing:
        raise CourseError(f"{', '.join(missing)} not set: run this where Classroom 50's runner sets them")
    tests = [
        {
            "test-name": part.title,
            "passed": part.passed,
            "score": math.floor(part.score),
            "max-score": math.ceil(part.full),
            "message": part.message,
        }
        for part in _parts(grades)
    ]
    named = {CLASSROOM50[name]: about[name] for name in CLASSROOM50}
    return {
        "schema": "classroom50/result/v1",
        **named,
        "review": about.get("REVIEW_URL") or about["COMMIT_URL"],
        "datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def gradescope_result(grades: Mapping) -> dict:
    """Return what Gradescope reads as results.json: a test for each exercise, with its points and what to look at."""
    return {
        "tests": [
            {
                "name": part.title,
                "score": part.score,
                "max_score": part.full,
                "status": f"{_status(part.passed)}ed",
                "output": part.message,
                "output_format": "text",
            }
            for part in _parts(grades)
        ],
    }


CLASSROOM50 = {
    "CLASSROOM": "classroom",
    "ASSIGNMENT": "assignment",
    "SUBMISSION_TAG": "submission",
    "COMMIT_URL": "commit",
    "RELEASE_URL": "release",
}


def main(arguments: list[str]) -> str:
    """Return what `python -m course_utils.grading.github` prints.

    Raises:
        CourseError: if the arguments are not a form and a grades.json of the course.
    """
    if len(arguments) != 2 or arguments[0] not in FORMS:
        raise CourseError(f"usage: python -m course_utils.grading.github {'|'.join(FORMS)} grades.json")
    form, path = arguments
    try:
        grades = json.loads(Path(path).read_text(encoding="utf-8"))
        return FORMS[form](grades)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CourseError(f"{path}: not a grades.json of the course ({one_line(str(error))})") from None


FORMS = {
    "annotations": lambda grades: "\n".join(workflow_commands(grades)),
    "autograding": lambda grades: base64.b64encode(json.dumps(autograding_result(grades)).encode()).decode(),
    "gradescope": lambda grades: json.dumps(gradescope_result(grades), indent=2),
    "classroom50": lambda grades: json.dumps(classroom50_result(grades, os.environ), indent=2),
}


@dataclass(frozen=True)
class _Part:
    """An exercise, or a submission that has no exercises because it could not be read."""

    title: str
    message: str
    score: float
    full: float
    passed: bool


def _parts(grades: Mapping) -> list[_Part]:
    parts = []
    for submission in grades["submissions"]:
        whole = {**submission, "id": submission["notebook"]}
        for each in submission["exercises"] or [whole]:
            title = f"day {submission['day']}, {each['id']}" if submission["exercises"] else each["id"]
            message = "" if each["status"] == "passed" else one_line(each.get("message") or each["status"])
            title, message = (text.replace("::", ": :") for text in (one_line(title), message))
            parts.append(_Part(title, message, each["score"], each["max_score"], each["status"] == "passed"))
    return parts


def _status(passed: bool) -> str:
    return "pass" if passed else "fail"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
