"""The course map in JupyterLab: what it shows, its links and its button, by mouse and keyboard."""

import pytest

from course_utils.course import DAYS, duration

SET_UP = """
import json
from pathlib import Path
from course_utils import progress
from course_utils.views import ProgressMap

course = Path("a course")
def cell(source, kind="code", **nbgrader):
    return {"cell_type": kind, "id": f"c{abs(hash(source + kind))}", "source": source,
            "metadata": {"nbgrader": nbgrader} if nbgrader else {}} | (
                {"outputs": [], "execution_count": None} if kind == "code" else {})
cells = [cell("## 1. To double\\n\\n2 points · difficulty 1 of 5 · 10 minutes\\n", "markdown"),
         cell("x = 1", grade_id="one", solution=True), cell("y = 1", grade_id="check_one", grade=True, points=2),
         cell("## 2. To halve\\n\\n3 points · difficulty 1 of 5 · 20 minutes\\n", "markdown"),
         cell("x = 2", grade_id="two", solution=True), cell("y = 2", grade_id="check_two", grade=True, points=3)]
kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
for folder in ("notebooks", "exercises"):
    (course / folder).mkdir(parents=True)
    text = json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    (course / folder / "day1_of √2.ipynb").write_text(text)
(course / "grades").mkdir()
def grade(**results):
    found = {name: {"status": status, "score": 2 * (status == "passed"), "max_score": 3}
             for name, status in results.items()}
    day = {"notebook": "day1_of √2.ipynb", "graded": "2026-01-01T00:00:00+00:00", "exercises": found,
           "answers": progress.digest(course / "exercises" / "day1_of √2.ipynb")}
    (course / "grades" / "progress.json").write_text(json.dumps({"schema": 1, "days": {"1": day}}))
"""
GRADER = """
import sys
from course_utils.views.widgets import course_map

def graded_by(code):
    course_map.grading_of = lambda root: [sys.executable, "-c", code]
"""
CELLS = [SET_UP, GRADER, "shown = ProgressMap(course)\nshown"]
MAP = ".course-map"


@pytest.fixture
def fresh_map(opened):
    """The map of a course in which nothing is graded."""
    opened.run("(course / 'grades' / 'progress.json').unlink(missing_ok=True); shown.read()")
    opened.wait(lambda: "Nothing of yours is graded yet" in map_lines(opened), "the map begins anew")
    return opened


def map_lines(notebook):
    return notebook.find(".course-map-message").inner_text()


def first_day(notebook):
    return notebook.find(MAP).get_by_role("listitem").first


def bar(notebook):
    return (
        first_day(notebook)
        .locator(".course-map-bar")
        .evaluate("bar => bar.firstChild.getBoundingClientRect().width / bar.clientWidth")
    )


def test_nine_days_and_the_planned_ones_are_told_apart(fresh_map):
    days = fresh_map.find(MAP).get_by_role("listitem")
    assert days.count() == 9 and fresh_map.find(f"{MAP} .course-map-planned").count() == 8
    lines = first_day(fresh_map).inner_text().split("\n")
    assert lines[:2] == ["Day 1", "Attention by hand"]
    message = {"0 of 2 exercises · 0 of 5 points", f"lesson {duration(DAYS[0].minutes)} left", "exercises 30 min left"}
    assert message <= set(lines)
    assert "Next: To double (10 minutes)" in lines
    assert bar(fresh_map) == 0
    assert fresh_map.find(MAP).get_by_role("link").count() == 2


def test_the_button_reads_the_grades_again_by_keyboard_and_stays_focused(fresh_map):
    fresh_map.run("grade(one='passed', two='failed')")
    button = fresh_map.find(MAP).get_by_role("button", name="Read grades and guesses again")
    button.focus()
    active = fresh_map.page.evaluate("window.courseNotebook.content.activeCellIndex")
    fresh_map.page.keyboard.press("Enter")
    fresh_map.wait(
        lambda: "1 of 2 exercises, 2 of 5 points, 20 min left with the lessons." in map_lines(fresh_map),
        "the grades show",
    )
    assert "Next: day 1, To halve (20 minutes)." in map_lines(fresh_map)
    assert bar(fresh_map) == pytest.approx(0.5, abs=0.02)
    assert button.evaluate("button => button === document.activeElement")
    assert fresh_map.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def grade_button(notebook):
    return notebook.find(MAP).get_by_role("button", name="Save and grade")


def test_a_button_saves_grades_and_shows_what_came_of_it(fresh_map):
    fresh_map.run(
        "grade(one='passed'); text = (course / 'grades/progress.json').read_text();"
        " graded_by(f'import pathlib; pathlib.Path(\"grades/progress.json\").write_text({text!r})');"
        " (course / 'grades/progress.json').unlink()"
    )
    button = grade_button(fresh_map)
    button.focus()
    fresh_map.page.keyboard.press("Enter")
    assert button.get_attribute("aria-disabled") == "true" and "Saving." in fresh_map.find(MAP).inner_text()
    fresh_map.wait(lambda: "1 of 2 exercises, 2 of 5 points" in map_lines(fresh_map), "the grades show")
    fresh_map.wait(lambda: button.get_attribute("aria-disabled") == "false", "one can grade again")
    assert fresh_map.page.evaluate("!window.courseNotebook.context.model.dirty")


def test_what_went_wrong_with_grading_is_reported(fresh_map):
    fresh_map.run("graded_by('raise SystemExit(\"there is no room on the disk\")')")
    grade_button(fresh_map).click()
    fresh_map.wait(
        lambda: "Nothing was graded: there is no room on the disk" in map_lines(fresh_map), "the trouble is told"
    )


def test_new_grades_leave_the_focus_on_its_link(fresh_map):
    link = fresh_map.find(MAP).get_by_role("link", name="exercises of Day 1")
    link.focus()
    fresh_map.run("grade(one='passed', two='passed'); shown.read()")
    fresh_map.wait(lambda: "All done." in first_day(fresh_map).inner_text(), "the grades show")
    assert link.evaluate("link => link === document.activeElement")
    assert bar(fresh_map) == pytest.approx(1, abs=0.02)


def test_an_answer_that_changed_since_is_reported(fresh_map):
    fresh_map.run("grade(one='passed')")
    fresh_map.run(
        "p = course / 'exercises' / 'day1_of √2.ipynb'; p.write_text(p.read_text().replace('x = 2', 'x = 3'))"
    )
    fresh_map.run("shown.read()")
    fresh_map.wait(lambda: "changed since it was graded" in first_day(fresh_map).inner_text(), "the change is told")
    fresh_map.run("p.write_text(p.read_text().replace('x = 3', 'x = 2'))")


@pytest.mark.parametrize(
    ("name", "folder", "press"),
    [("lesson of Day 1", "notebooks", False), ("exercises of Day 1", "exercises", True)],
    ids=["lesson by mouse", "exercises by keyboard"],
)
def test_a_link_opens_its_notebook_in_jupyterlab(fresh_map, name, folder, press):
    link = fresh_map.find(MAP).get_by_role("link", name=name)
    fresh_map.page.evaluate("window.stayed = true")  # a page that loads anew forgets it
    link.focus()
    if press:
        fresh_map.page.keyboard.press("Enter")
    else:
        link.click()
    path = "() => window.jupyterapp?.shell?.currentWidget?.context?.path"
    fresh_map.wait(lambda: fresh_map.page.evaluate(path) == f"a course/{folder}/day1_of √2.ipynb", f"{folder} opens")
    assert fresh_map.page.evaluate("window.stayed")
    # What was opened stays open, since a kernel that is stopped while it starts complains.
    fresh_map.page.evaluate("window.jupyterapp.shell.activateById(window.courseNotebook.id)")


def test_no_axe_violations_in_either_theme(fresh_map):
    fresh_map.run("grade(one='passed', two='failed'); shown.read()")
    fresh_map.wait(lambda: "1 of 2" in map_lines(fresh_map), "the grades show")
    fresh_map.check_accessible(MAP)


def test_nothing_went_wrong_on_the_way(fresh_map):
    fresh_map.check_clean()
