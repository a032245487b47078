"""Days, parts and exercises that texts name: each is there, or the sentence says that the day is only planned."""

import ast
import re

import pytest

from course_utils.course import DAYS, ROOT, day_of

SERIES = r"\d+(?:(?:,? (?:and|or|to) |, )\d+)*"
DAY = re.compile(rf"(?<!week \d, )\bdays? ({SERIES})", re.IGNORECASE)
PLACE = re.compile(rf"(?:\bday (\d+)(?:'s|, its|,) )?\b(part|exercise)s? ({SERIES})", re.IGNORECASE)
AHEAD = re.compile(r"\bwill\b|not written yet|\bplanned\b")
GENERAL = [ROOT / "sources/lessons/course_map.md", *sorted((ROOT / "sources/site").glob("*.md"))]
WRITTEN = {day.number for day in DAYS if day.minutes}
PLANNED = {day.number for day in DAYS} - WRITTEN
FILES = (
    "sources/lessons/day{}_*.md",
    "sources/exercises/day{}_*.md",
    "course_utils/days/day{}/**/*.py",
    "course_utils/days/day{}/*.yaml",
    "course_utils/answers/day{}/*.py",
    "course_utils/answers/day{}/*.yaml",
)
PARTED = {
    (kind, day_of(path.name)): {
        int(number) for number in re.findall(r"^## (\d+)\. ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for kind, folder in (("part", "lessons"), ("exercise", "exercises"))
    for path in (ROOT / "sources" / folder).glob("day*.md")
}
days = pytest.mark.parametrize("day", sorted(WRITTEN))


def texts_of_day(day):
    """The texts of a day, each with the name of its file: sources and lists whole, of modules what stands in quotes."""
    for path in (path for pattern in FILES for path in sorted(ROOT.glob(pattern.format(day)))):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if path.suffix == ".py" else [ast.Constant(text)]
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.relative_to(ROOT).as_posix(), " ".join(node.value.split())


def spelled(series):
    """The numbers of "1 to 3, 8 and 10": 1, 2, 3, 8, 10."""
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", series):
        yield from range(int(first), int(last or first) + 1)


def missing_places(text, day):
    """The parts and exercises that a text of a day names and that are not there; "day 3, part 2" is one of day 3."""
    for other, kind, series in PLACE.findall(text):
        there = PARTED.get((kind.lower(), int(other or day)), set())
        yield from (f"day {other or day}, {kind} {number}" for number in spelled(series) if number not in there)


def missing_days(text):
    """The sentences that name a day which is not there, and one that is planned without a word on that."""
    for sentence in re.split(r"(?<=[.!?]) ", text):
        named = {number for series in DAY.findall(sentence) for number in spelled(series)}
        if named - WRITTEN - (PLANNED if AHEAD.search(sentence) else set()):
            yield sentence


@days
def test_a_part_or_an_exercise_that_is_named_is_there(day):
    assert [(file, *missing) for file, text in texts_of_day(day) if (missing := list(missing_places(text, day)))] == []


@days
def test_a_day_that_is_named_is_there_or_is_said_to_come(day):
    assert [(file, *missing) for file, text in texts_of_day(day) if (missing := list(missing_days(text)))] == []


@pytest.mark.parametrize("path", GENERAL, ids=lambda path: path.stem)
def test_a_text_of_no_day_says_of_which_day_its_parts_are(path):
    text = " ".join(path.read_text(encoding="utf-8").split())
    assert [*missing_places(text, 0), *missing_days(text)] == []


@days
def test_every_kind_of_text_of_a_day_is_read(day):
    files = {file for file, _ in texts_of_day(day)}
    assert {"quiz.yaml", "guesses.py", "ladders.py", "cards.yaml", "exercises.py"} <= {
        f.rpartition("/")[2] for f in files
    }
    assert sum(file.startswith("sources/") for file in files) == 2


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Parts 1 to 3 and 5 count, exercise 2 asks.", []),
        ("Part 11 tells.", ["day 2, Part 11"]),
        ("parts 7 to 9", ["day 2, part 9"]),
        ("See day 7, part 8; day 6's part 8; day 1, its parts 2 to 8.", []),
        ("See day 7, part 9.", ["day 7, part 9"]),
        ("Day 3, exercises 1 and 40", ["day 3, exercise 40"]),
    ],
)
def test_the_day_of_a_part_is_that_of_the_text_unless_it_names_another(text, places):
    assert list(missing_places(text, 2)) == places


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Days 1 to 9 are there.", []),
        ("Day 12 will show how.", ["Day 12 will show how."]),
        ("Days 6 to 10", ["Days 6 to 10"]),
        ("The engine of week 3, day 20.", []),
    ],
)
def test_a_day_that_is_only_planned_is_named_as_such(text, days):
    assert list(missing_days(text)) == days
