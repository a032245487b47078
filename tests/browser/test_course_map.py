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
from course_utils.views.widgets import progress_map

def graded_by(code):
    progress_map.grading_of = lambda root: [sys.executable, "-c", code]
"""
CELLS = [SET_UP, GRADER, "shown = ProgressMap(course)\nshown"]
MAP = ".course-map"


@pytest.fixture
def shown(opened):
    """The map of a course in which nothing is graded."""
    opened.run("(course / 'grades' / 'progress.json').unlink(missing_ok=True); shown.read()")
    opened.wait(lambda: "Nothing of yours is graded yet" in told(opened), "the map begins anew")
    return opened


def told(notebook):
    return notebook.find(".course-map-told").inner_text()


def first_day(notebook):
    return notebook.find(MAP).get_by_role("listitem").first


def bar(notebook):
    return (
        first_day(notebook)
        .locator(".course-map-bar")
        .evaluate("bar => bar.firstChild.getBoundingClientRect().width / bar.clientWidth")
    )


def test_nine_days_and_the_planned_ones_are_told_apart(shown):
    days = shown.find(MAP).get_by_role("listitem")
    assert days.count() == 9 and shown.find(f"{MAP} .course-map-planned").count() == 8
    lines = first_day(shown).inner_text().split("\n")
    assert lines[:2] == ["Day 1", "Attention by hand"]
    said = {"0 of 2 exercises · 0 of 5 points", f"lesson {duration(DAYS[0].minutes)} left", "exercises 30 min left"}
    assert said <= set(lines)
    assert "Next: To double (10 minutes)" in lines
    assert bar(shown) == 0
    assert shown.find(MAP).get_by_role("link").count() == 2


def test_the_button_reads_the_grades_again_by_keyboard_and_stays_focused(shown):
    shown.run("grade(one='passed', two='failed')")
    button = shown.find(MAP).get_by_role("button", name="Read grades and guesses again")
    button.focus()
    active = shown.page.evaluate("window.courseNotebook.content.activeCellIndex")
    shown.page.keyboard.press("Enter")
    shown.wait(
        lambda: "1 of 2 exercises, 2 of 5 points, 20 min left with the lessons." in told(shown), "the grades show"
    )
    assert "Next: day 1, To halve (20 minutes)." in told(shown)
    assert bar(shown) == pytest.approx(0.5, abs=0.02)
    assert button.evaluate("button => button === document.activeElement")
    assert shown.page.evaluate("window.courseNotebook.content.activeCellIndex") == active


def grade_button(notebook):
    return notebook.find(MAP).get_by_role("button", name="Save and grade")


def test_a_button_saves_grades_and_shows_what_came_of_it(shown):
    shown.run(
        "grade(one='passed'); text = (course / 'grades/progress.json').read_text();"
        " graded_by(f'import pathlib; pathlib.Path(\"grades/progress.json\").write_text({text!r})');"
        " (course / 'grades/progress.json').unlink()"
    )
    button = grade_button(shown)
    button.focus()
    shown.page.keyboard.press("Enter")
    assert button.get_attribute("aria-disabled") == "true" and "Saving." in shown.find(MAP).inner_text()
    shown.wait(lambda: "1 of 2 exercises, 2 of 5 points" in told(shown), "the grades show")
    shown.wait(lambda: button.get_attribute("aria-disabled") == "false", "one can grade again")
    assert shown.page.evaluate("!window.courseNotebook.context.model.dirty")


def test_what_went_wrong_with_grading_is_told(shown):
    shown.run("graded_by('raise SystemExit(\"there is no room on the disk\")')")
    grade_button(shown).click()
    shown.wait(lambda: "Nothing was graded: there is no room on the disk" in told(shown), "the trouble is told")


def test_new_grades_leave_the_focus_on_its_link(shown):
    link = shown.find(MAP).get_by_role("link", name="exercises of Day 1")
    link.focus()
    shown.run("grade(one='passed', two='passed'); shown.read()")
    shown.wait(lambda: "All done." in first_day(shown).inner_text(), "the grades show")
    assert link.evaluate("link => link === document.activeElement")
    assert bar(shown) == pytest.approx(1, abs=0.02)


def test_an_answer_that_changed_since_is_told(shown):
    shown.run("grade(one='passed')")
    shown.run("p = course / 'exercises' / 'day1_of √2.ipynb'; p.write_text(p.read_text().replace('x = 2', 'x = 3'))")
    shown.run("shown.read()")
    shown.wait(lambda: "changed since it was graded" in first_day(shown).inner_text(), "the change is told")
    shown.run("p.write_text(p.read_text().replace('x = 3', 'x = 2'))")


@pytest.mark.parametrize(
    ("name", "folder", "press"),
    [("lesson of Day 1", "notebooks", False), ("exercises of Day 1", "exercises", True)],
    ids=["lesson by mouse", "exercises by keyboard"],
)
def test_a_link_opens_its_notebook_in_jupyterlab(shown, name, folder, press):
    link = shown.find(MAP).get_by_role("link", name=name)
    shown.page.evaluate("window.stayed = true")  # a page that loads anew forgets it
    link.focus()
    if press:
        shown.page.keyboard.press("Enter")
    else:
        link.click()
    path = "() => window.jupyterapp?.shell?.currentWidget?.context?.path"
    shown.wait(lambda: shown.page.evaluate(path) == f"a course/{folder}/day1_of √2.ipynb", f"{folder} opens")
    assert shown.page.evaluate("window.stayed")
    # What was opened stays open, since a kernel that is stopped while it starts complains.
    shown.page.evaluate("window.jupyterapp.shell.activateById(window.courseNotebook.id)")


def test_no_axe_violations_in_either_theme(shown):
    shown.run("grade(one='passed', two='failed'); shown.read()")
    shown.wait(lambda: "1 of 2" in told(shown), "the grades show")
    shown.check_accessible(MAP)


def test_nothing_went_wrong_on_the_way(shown):
    shown.check_clean()
