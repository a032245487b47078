"""What a lesson says that holds in JupyterLab alone, and what its page says in that place."""

from __future__ import annotations

import re
from collections.abc import Sequence

from course_utils.course import day_of
from course_utils.errors import CourseError

COURSE = "[the course on a machine](page:../start.html#)"
PRACTICE = {
    "*Another problem* draws one of ten thousand. Its number names it, so a friend can have the same.": (
        "*Another problem* takes the next of the ten that this page has; in JupyterLab there are ten thousand. Its "
        "number names a problem, so a friend can have the same."
    )
}
MAP = {
    (
        "Every number in it comes from a cell that you can run. Run the cells from the top, and play with the pictures."
    ): "Every number in it comes from a cell, and pictures that move there move here too.",
    'On a very busy machine a widget may answer "Failed to initialize model" at first: run its cell again.': "",
    "The check below each answer says at once": f"In {COURSE}, the check below each answer says at once",
    (
        "Run the cell below with <kbd>Shift</kbd>+<kbd>Enter</kbd>. It shows what is done, what comes next, and "
        "whether your guesses tend too high or too low. Its button saves and grades your exercises, as `make grade` "
        "does in a terminal."
    ): (
        "The map below leads to each day, and shows the guesses that this browser keeps. In "
        f"{COURSE} it also shows which exercises are done and what comes next, and it grades them at a button."
    ),
    (
        "Until you run the cell, the map shows what each day holds and none of your grades or guesses. They are read "
        "from the folders `grades/` and `guesses/` on this machine, and no copy of them is stored in this notebook. "
        "An exercise counts as done when it passed the last time it was graded."
    ): (
        "This page knows nothing of your exercises and grades. Your guesses stay in this browser and are sent nowhere."
    ),
    "JupyterLab opens one with": f"This is for {COURSE}. JupyterLab opens a terminal with",
}
DAY_1 = {
    (
        "Run the cells from the top, each with <kbd>Shift</kbd>+<kbd>Enter</kbd>: a cell needs those above it. The "
        "outputs that you see before are stored ones, and a widget is a picture until its cell has run. On the "
        "course's own pages it moves without."
    ): ("The outputs on this page are stored ones. Widgets move."),
    "In the picture without a kernel the mark is a dashed frame.": "",
}
DAY_3 = {"if you have trained a model before: but run the cells.*": "if you have trained a model before.*"}
DAY_4 = {
    "Then type a text of your own below, such as ABRACADABRA.": "Then choose another text below, such as ABRACADABRA.",
    "The field says so when it cannot read a text, and it needs a running kernel.": (
        f"On this page you may choose among the texts below the maps; the field for one of your own is in {COURSE}."
    ),
    "Look for one before you run the cell. It tries": "Look for one before you read on. The cell tries",
}
OF_DAYS: dict[int, dict[str, str]] = {1: DAY_1, 2: {}, 3: DAY_3, 4: DAY_4, 5: {}, 6: {}, 7: {}}
INSTEAD = {"course_map": MAP} | {f"day{number}": {**own, **PRACTICE} for number, own in OF_DAYS.items()}


def said_here(name: str, texts: Sequence[str]) -> list[str]:
    """The markdown cells of a lesson's page, saying what holds there; lines may break anywhere.

    name: of the notebook, without its ending. Raises CourseError for a sentence that the lesson no longer has.
    """
    day = day_of(name)
    said = list(texts)
    for there, here in INSTEAD.get(f"day{day}" if day else name, {}).items():
        words = re.compile(r"\s+".join(map(re.escape, there.split())))
        if sum(len(words.findall(text)) for text in said) != 1:
            raise CourseError(f"{name}: does not say {there!r} once; change course_utils/site/said.py with the lesson")
        said = [here.join(words.split(text)) for text in said]
    return said
