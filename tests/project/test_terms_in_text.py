"""In a lesson of two sittings no part uses a term before the part, or the day, that introduces it in bold."""

import re
from dataclasses import replace

import pytest

from course_utils.course import DAYS
from course_utils.site import glossary
from course_utils.site.glossary import Cell, Lesson, first_uses, read_entries

TERMS = [entry for entry in read_entries(glossary.SOURCE.read_text(encoding="utf-8")) if not entry.symbol]
# A sentence that names a day or a part may name what comes there.
AHEAD = re.compile(r"(?:[^.!?|\n]|\n(?!\n))*\b(?:[Dd]ays?|[Pp]arts?) \d(?:[^.!?|\n]|\n(?!\n))*")
PART = re.compile(r"^## \d+\. ", re.MULTILINE)
LESSONS = glossary.lessons_of()
DIVIDED = [lesson for lesson in LESSONS if any(day.sittings for day in DAYS if day.number == lesson.day)]


def in_bold(lesson, entry):
    """The indices of the cells in which a lesson has a term in bold."""
    spelt = "|".join(re.escape(spelling.strip("*`")) for spelling in entry.spellings)
    bold = re.compile(rf"\*\*(?:{spelt})s?\*\*", re.IGNORECASE)
    return [cell.place for cell in lesson.cells if entry.means_this_on(lesson.day) and bold.search(cell.text)]


def used_too_early(lesson, lessons):
    """The terms that a lesson uses before they are introduced, each with the part that does; its opening may."""
    first, opening = next((place, text) for place, text in lesson.cells if PART.search(text))
    shown = [(first, opening[PART.search(opening).start() :]), *(cell for cell in lesson.cells if cell.place > first)]
    cells = tuple(Cell(place, AHEAD.sub("", text)) for place, text in shown)
    uses = first_uses(replace(lesson, cells=cells), TERMS)
    for entry in (entry for entry in TERMS if entry.term in uses):
        day = min((each.day for each in lessons if in_bold(each, entry)), default=lesson.day)
        own = in_bold(lesson, entry)[:1] if day == lesson.day else []
        use = uses[entry.term]
        between = [text for place, text in lesson.cells if own and use.cell < place <= own[0]]
        if day > lesson.day or any(map(PART.search, between)):
            yield entry.term, use.part


@pytest.mark.parametrize("lesson", DIVIDED, ids=lambda lesson: lesson.notebook)
def test_no_term_is_used_before_the_part_that_introduces_it(lesson):
    assert list(used_too_early(lesson, LESSONS)) == []


@pytest.mark.parametrize(
    ("texts", "early"),
    [
        (["# A softmax", "## 1. One\n\nA **softmax**.", "## 2. Two\n\nThe softmax."], []),
        (["## 1. One\n\nThe softmax.", "## 2. Two\n\nA **softmax**."], ["softmax"]),
        (["## 1. One\n\nThe softmax is\nthis:", "A **softmax**."], []),
        (["## 1. One\n\nAn entropy."], ["entropy"]),
        (["## 1. One\n\nDay 2 explains *entropy*."], []),
    ],
)
def test_what_counts_as_too_early(texts, early):
    lesson = Lesson(1, "day1_x", tuple(map(Cell, range(len(texts)), texts)))
    later = Lesson(2, "day2_x", (Cell(0, "It is the **entropy**."),))
    assert [term for term, _ in used_too_early(lesson, [lesson, later])] == early
