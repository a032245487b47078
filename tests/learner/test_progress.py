"""A learner's progress: read from the last grading of each notebook, shown on the command line and on the map."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
from as_page import on_page, send
from rich.console import Console

from course_utils import progress
from course_utils.answer_key.key import COURSE
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.cli import main
from course_utils.course import DAYS, duration
from course_utils.errors import CourseError
from course_utils.grading.reports.learner_record import are_one_learners, note_progress, own_exercises, show_progress
from course_utils.grading.reports.tasks import tasks
from course_utils.grading.results import Graded, Result
from course_utils.learner.reset import reset_exercise
from course_utils.notebooks import dump, read_notebook
from course_utils.views import ProgressMap
from course_utils.views.widgets import course_map

ROOT = Path(__file__).parents[2]
TITLES = {day.number: day.title for day in DAYS}
LESSON = {day.number: day.minutes for day in DAYS}
STUB = "raise NotImplementedError"
NAMES = {1: "day1_attention_by_hand", 2: "day2_why_sqrt_dk"}


def cell(source, kind="code", **nbgrader):
    return {"cell_type": kind, "source": source, "metadata": {"nbgrader": nbgrader} if nbgrader else {}}


def exercise_cells(names, answers=None):
    """A notebook with an exercise a name: 2 points and 10 minutes the first, 3 and 20 the second, and so on."""
    cells = []
    for i, name in enumerate(names, 1):
        head = f"## {i}. To {name}\n\n{i + 1} points · difficulty 1 of 5 · {10 * i} minutes · lesson part 2\n\nDo it."
        cells.append(cell(head, "markdown"))
        cells.append(cell((answers or {}).get(name, STUB), grade_id=name, solution=True, grade=False))
        cells.append(cell("check()", grade_id=f"check_{name}", solution=False, grade=True, points=i + 1))
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def course(tmp_path):
    """Two small days."""
    for day, names in ((1, ("one", "two")), (2, ("three",))):
        for folder in ("solutions", "exercises", "notebooks"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / f"{NAMES[day]}.ipynb").write_text(exercise_cells(names))
    (tmp_path / "grades").mkdir()
    return tmp_path


def exercise(course, day):
    return course / "exercises" / f"{NAMES[day]}.ipynb"


def graded(day, name=None, status="failed", **statuses):
    results = tuple(Result(key, value, 2.0 * (value == "passed"), 2.0) for key, value in statuses.items())
    return Graded("ada", name or f"{NAMES[day]}.ipynb", day, status, 0.0, 2.0, 0.1, results)


def grade(course, *results, paths=None):
    """What the grade command does around grading."""
    paths = [exercise(course, day) for day in NAMES] if paths is None else paths
    own = own_exercises(paths, course / "grades")
    return note_progress(results, own, course / "grades")


def day(course, number):
    return progress.read_progress(course).days[number - 1]


def printed(course):
    out = StringIO()
    show_progress(course, Console(file=out, width=100))
    return out.getvalue()


# What is asked -------------------------------------------------------------------------------------------------------


def test_every_exercise_of_the_course_has_its_title_minutes_and_points():
    days = {each.number: each for each in progress.read_progress(ROOT).days if each.exercises}
    assert set(days) == set(days_with_exercises())
    for number, of_day in days.items():
        assert [each.id for each in of_day.exercises] == list(all_exercises(number))
        for each in of_day.exercises:
            assert each.points == all_exercises(number)[each.id].points
            assert 3 <= each.minutes <= 60 and each.title and each.title != each.id, each


def test_the_names_of_the_days_are_those_of_the_lessons_the_readme_and_the_map():
    page = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \*\*\[?([^|\]]+?)(?:\]\(.*?\))?\.\*\*", page, re.MULTILINE)
    assert {int(number): title for number, title in rows} == TITLES
    page = (ROOT / "sources/lessons/course_map.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \[?([^|\]]+?)(?:\]\(.*\))? \|", page, re.MULTILINE)
    assert {int(number): title for number, title in rows} == TITLES
    for lesson in (ROOT / "sources/lessons").glob("day*.md"):
        number, title = re.search(r"^# Day (\d+): (.+)$", lesson.read_text(), re.MULTILINE).groups()
        short, long = sorted((title, TITLES[int(number)]), key=len)
        assert long.startswith(short)


def test_the_links_of_the_course_map_lead_to_notebooks():
    page = (ROOT / "sources/lessons/course_map.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", page)
    # the start, how an answer is graded, what to read, and the pages of masks and of variants
    assert len(links) == 2 * len(list((ROOT / "notebooks").glob("day*.ipynb"))) + 5
    for link in links:
        assert (ROOT / "notebooks" / link).is_file(), link


def test_what_is_asked_does_not_shrink_with_the_cells_that_a_learner_deletes(course):
    exercise(course, 1).write_text(exercise_cells(["one"]))
    assert [each.id for each in day(course, 1).exercises] == ["one", "two"]


def test_a_course_without_solutions_is_read_from_its_exercises(course):
    shutil.rmtree(course / "solutions")
    shutil.copy(exercise(course, 1), exercise(course, 1).with_stem(f"{NAMES[1]}-Copy1"))
    progress_of_day = day(course, 1)
    assert (progress_of_day.name, progress_of_day.points, progress_of_day.minutes) == (NAMES[1], 5, 30)


def test_a_day_that_is_built_for_the_first_time_is_read_from_its_source(course):
    for folder in ("solutions", "exercises"):
        shutil.rmtree(course / folder)
    shutil.copytree(progress.WORK_FOLDER / "sources" / "exercises", course / "sources" / "exercises")
    assert progress.exercises_of(1, course) == progress.exercises_of(1)


def test_a_day_without_notebooks_is_planned_and_one_without_exercises_says_so(course):
    shutil.copy(exercise(course, 1), course / "notebooks" / "day3_other.ipynb")
    text = printed(course)
    assert re.search(r"Causal masking +no exercises here", text) and re.search(r"Capstone +planned", text)


# What was graded -----------------------------------------------------------------------------------------------------


def test_never_graded_is_zero_everywhere_with_what_to_type(course):
    text = printed(course)
    assert (
        re.search(rf"together +0 of 3 +0 of 7 +{duration(LESSON[1] + LESSON[2] + 40)} ", text)
        and "run make grade" in text
    )
    assert text.count("never") == 2


def test_points_minutes_and_the_next_exercise_follow_the_grades(course):
    grade(course, graded(1, one="passed", two="failed"))
    text = printed(course)
    assert re.search(r"1 +Attention by hand +1 of 2 +2 of 5 +20 min +\d{4}-\d\d-\d\d \d\d:\d\d", text)
    assert f"Next: day 1, To two (20 minutes), in exercises/{NAMES[1]}.ipynb" in text and "changed" not in text


def test_what_is_left_is_one_sum_of_lessons_and_exercises_until_half_of_the_exercises_pass(course):
    assert [day(course, number).remaining for number in (1, 2)] == [
        {"lesson": LESSON[1], "exercises": 30},
        {"lesson": LESSON[2], "exercises": 10},
    ]
    hours = round((LESSON[1] + LESSON[2] + 40) / 60)
    assert f"about {hours} hours left with the lessons." in on_page(ProgressMap(course)).shown["lines"][0]
    lines = on_page(ProgressMap(course)).shown["cards"][0]["lines"]
    assert lines[1:] == [f"lesson {duration(LESSON[1])} left", "exercises 30 min left"]
    grade(course, graded(1, one="passed", two="failed"), graded(2, three="passed"))
    assert [day(course, number).remaining for number in (1, 2)] == [{"exercises": 20}, {}]
    assert " 20 min left with the lessons." in on_page(ProgressMap(course)).shown["lines"][0]


def test_in_the_picture_of_the_map_no_line_touches_the_next():
    fig = ProgressMap().figure()
    fig.draw_without_rendering()
    columns = {}
    for text in fig.axes[0].texts:
        box = text.get_window_extent()
        columns.setdefault(round(box.x0, -1), []).append(box)
    assert len(columns) == 3
    for boxes in columns.values():
        boxes.sort(key=lambda box: -box.y1)
        gaps = [above.y0 - below.y1 for above, below in pairwise(boxes)]
        assert min(gaps) >= 0 and all(gap > 12 for gap in gaps[2::3])  # a day has three texts


def test_a_lesson_counts_as_read_when_a_third_of_its_exercises_passed():
    for count, enough in ((2, 1), (5, 2), (12, 4)):
        for done in range(count + 1):
            each = [
                progress.ExerciseProgress(f"{i}", "", 1, 10, status="passed" if i < done else "failed")
                for i in range(count)
            ]
            remaining = progress.DayProgress(1, "", lesson=60, exercises=tuple(each)).remaining
            assert ("lesson" in remaining) == (done < enough), (done, count)


def test_the_map_that_has_a_button_says_to_press_it(course, monkeypatch):
    for able, how in ((True, "press Save and grade"), (False, "save the notebook, and run make grade")):
        monkeypatch.setattr(course_map, "can_grade", lambda able=able: able)
        (remark,) = [line for line in on_page(ProgressMap(course)).shown["lines"] if "graded yet" in line]
        assert how in remark and ("make grade" in remark) != able


def test_grading_one_day_keeps_what_is_known_of_the_others(course):
    grade(course, graded(1, one="passed", two="passed"))
    grade(course, graded(2, three="passed"), paths=[exercise(course, 2)])
    assert [day(course, number).done for number in (1, 2)] == [2, 1]
    assert "Every exercise is done." in printed(course)


def test_the_last_result_counts_a_later_failure_too(course):
    for status, done in (("passed", 1), ("failed", 0), ("passed", 1)):
        grade(course, graded(2, three=status))
        assert day(course, 2).done == done


def test_a_notebook_that_could_not_be_read_changes_nothing_that_is_known(course):
    grade(course, graded(2, three="passed"))
    grade(course, graded(2, status="unreadable"))
    assert day(course, 2).done == 1


def test_a_machine_that_failed_changes_nothing_that_is_known(course):
    grade(course, graded(2, three="passed"))
    failed = Result("three", "error", 0.0, 2.0, "Not graded: no kernel starts on this machine.", machine_failed=True)
    grade(course, replace(graded(2), exercises=(failed,)))
    assert day(course, 2).done == 1


def test_an_answer_that_changed_is_named_and_an_output_is_not(course):
    grade(course, graded(1, one="passed"), graded(2, three="passed"))
    notebook = json.loads(exercise(course, 2).read_text())
    notebook["cells"][1] |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "8"}]}
    exercise(course, 2).write_text(json.dumps(notebook))
    exercise(course, 1).write_text(exercise_cells(["one", "two"], {"two": "def two(): return 2"}))
    assert [day(course, number).changed for number in (1, 2)] == [True, False]
    assert printed(course).count("changed since") == 1


def test_an_answer_written_while_the_grader_ran_counts_as_changed(course):
    own = own_exercises([exercise(course, 2)], course / "grades")
    exercise(course, 2).write_text(exercise_cells(["three"], {"three": "def three(): return 3"}))
    note_progress([graded(2, three="missing")], own, course / "grades")
    assert day(course, 2).changed


def test_only_the_courses_notebooks_in_exercises_are_progress(course):
    others = [course / "exercises" / "kept" / f"{NAMES[1]}.ipynb", course / f"{NAMES[1]}.ipynb"]
    copied = exercise(course, 1).with_stem(f"{NAMES[1]}-Copy1")
    for path in (*others, copied):
        path.parent.mkdir(exist_ok=True)
        shutil.copy(exercise(course, 1), path)
        assert own_exercises([path], course / "grades") == {}
    assert own_exercises([exercise(course, 1)], course / "elsewhere" / "grades") == {}
    assert own_exercises([exercise(course, 1), others[1]], course / "grades") == {}  # two of one name: which is whose?
    grade(course, graded(1, name=copied.name, one="passed"))
    assert not (course / "grades" / progress.RECORD).exists()


def test_a_learner_alone_grades_the_courses_exercises_one_notebook_a_day(course):
    own = [exercise(course, day) for day in NAMES]
    assert are_one_learners(own, course / "grades") and are_one_learners(own[1:], course / "grades")
    assert are_one_learners([*own, own[0].with_stem(f"{NAMES[1]}-Copy2")], course / "grades")
    handed_in = [exercise(course, 1).with_name("ada_day1.ipynb"), course / "class" / f"{NAMES[1]}.ipynb"]
    for path in handed_in:
        assert not are_one_learners([*own, path], course / "grades") and not are_one_learners([path], course / "grades")
    assert not are_one_learners(own, course / "elsewhere" / "grades") and not are_one_learners([], course / "grades")


def test_a_student_is_alone_in_the_current_folder_too_with_a_day_that_is_missing(course, monkeypatch):
    own = [exercise(course, day) for day in NAMES]
    elsewhere = course / "elsewhere" / "grades"
    monkeypatch.chdir(course)
    own[1].unlink()
    assert are_one_learners(own, elsewhere) and are_one_learners([Path("exercises", own[0].name)], elsewhere)
    assert not are_one_learners([*own, course / "ada" / "exercises" / own[0].name], elsewhere)
    assert not are_one_learners([course / "ada" / "exercises" / own[0].name], elsewhere)


def test_the_grades_of_a_class_are_not_a_learners_progress(course):
    (course / "grades" / "grades.json").write_text('{"schema": 1, "submissions": [{}, {}, {}]}')
    assert "holds 3 submissions" in printed(course) and "that is not your progress" in printed(course)
    grade(course, graded(1, one="passed"))
    assert "that is not your progress" not in printed(course)


# A damaged record ----------------------------------------------------------------------------------------------------

RIGHT = {
    "notebook": "x.ipynb",
    "answers": "",
    "graded": "2026-01-01T00:00:00+00:00",
    "exercises": {"three": {"status": "passed", "score": 1, "max_score": 2}},
}
DAMAGED = {
    "not JSON": "{",
    "not UTF-8": b"\xff",
    "nested too deep": "[" * 100_000,
    "a list": "[]",
    "another schema": json.dumps({"schema": 2, "days": {"2": RIGHT}}),
    "no time": json.dumps({"schema": 1, "days": {"2": RIGHT | {"graded": "yesterday"}}}),
    "days that are none": json.dumps({"schema": 1, "days": {"2": 3}}),
    "more points than there are": json.dumps(
        {"schema": 1, "days": {"2": RIGHT | {"exercises": {"three": RIGHT["exercises"]["three"] | {"score": 3}}}}}
    ),
    "no number of points": json.dumps(
        {"schema": 1, "days": {"2": RIGHT | {"exercises": {"three": RIGHT["exercises"]["three"] | {"score": "1"}}}}}
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_record_is_told_counts_nothing_and_is_kept(course, damage):
    path = course / "grades" / progress.RECORD
    content = DAMAGED[damage]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CourseError, match=r"^grades/progress\.json is not a record of grades"):
        printed(course)
    assert [day(course, number).done for number in (1, 2)] == [0, 0]
    (course / "grades" / "progress-damaged-1.json").symlink_to("nowhere")
    before = path.read_bytes()
    output = grade(course, graded(2, three="passed"))
    assert "it is kept as progress-damaged-2.json" in output
    assert (course / "grades" / "progress-damaged-2.json").read_bytes() == before
    assert day(course, 2).done == 1


def test_the_record_that_the_damaged_ones_are_made_from_is_right(course):
    (course / "grades" / progress.RECORD).write_text(json.dumps({"schema": 1, "days": {"2": RIGHT}}))
    assert day(course, 2).done == 1


def test_a_record_is_written_whole_or_not_at_all(course, monkeypatch):
    grade(course, graded(1, one="passed"))
    before = sorted(path.name for path in (course / "grades").iterdir())
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no room")))
    with pytest.raises(CourseError, match=r"progress\.json: cannot be written \(no room\)"):
        grade(course, graded(1, one="failed"))
    assert day(course, 1).done == 1
    assert sorted(path.name for path in (course / "grades").iterdir()) == before


def test_a_folder_that_is_no_course_is_told(tmp_path):
    with pytest.raises(CourseError, match="run this in the course's folder"):
        printed(tmp_path)


# A fresh exercise ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def official():
    return read_notebook(ROOT / "solutions" / f"{NAMES[1]}.ipynb")[0]


@pytest.fixture
def whole(tmp_path, official):
    """A course with the real day 1 in solutions/, and a learner's work in exercises/."""
    for folder in ("solutions", "exercises"):
        (tmp_path / folder).mkdir()
    (tmp_path / "solutions" / f"{NAMES[1]}.ipynb").write_text(dump(official))
    exercise(tmp_path, 1).write_text("my work")
    return tmp_path


def test_reset_gives_the_exercises_as_they_were_and_keeps_every_old_one(whole, official):
    for number in (1, 2):
        exercise(whole, 1).write_text(f"my work {number}")
        fresh, copy = reset_exercise(whole, 1)
        assert fresh.read_text() == dump(release_exercise(official))
        assert copy == whole / f"exercises/kept/{NAMES[1]}-{number}.ipynb"
    assert [path.read_text() for path in sorted(copy.parent.iterdir())] == ["my work 1", "my work 2"]


def test_reset_of_a_fresh_or_a_missing_exercise_keeps_nothing(whole):
    reset_exercise(whole, 1)
    assert reset_exercise(whole, 1) == (exercise(whole, 1), None)
    exercise(whole, 1).unlink()
    assert reset_exercise(whole, 1) == (exercise(whole, 1), None) and exercise(whole, 1).is_file()
    assert len(list((whole / "exercises" / "kept").iterdir())) == 1


def test_a_kept_copy_is_never_written_to_not_even_through_a_link(whole):
    (whole / "exercises/kept").mkdir()
    (whole / f"exercises/kept/{NAMES[1]}-1.ipynb").symlink_to(whole / "elsewhere")
    assert reset_exercise(whole, 1)[1].name == f"{NAMES[1]}-2.ipynb"
    assert not (whole / "elsewhere").exists()


def test_reset_without_a_solution_to_cut_from_says_so_and_changes_nothing(whole):
    with pytest.raises(CourseError, match="no exercises for day 2"):
        reset_exercise(whole, 2)
    (whole / "solutions" / f"{NAMES[1]}.ipynb").write_text("{")
    with pytest.raises(CourseError, match=f"^solutions/{NAMES[1]}.ipynb: not a notebook"):
        reset_exercise(whole, 1)
    shutil.rmtree(whole / "solutions")
    with pytest.raises(CourseError, match=f"^solutions/{NAMES[1]}.ipynb: not there"):
        reset_exercise(whole, 1)
    assert exercise(whole, 1).read_text() == "my work" and not (whole / "exercises/kept").exists()


@pytest.mark.parametrize("place", ["exercises/day1_attention_by_hand.ipynb", "exercises/kept"])
def test_reset_leaves_a_symbolic_link_alone(whole, place):
    (whole / "target").write_text("mine")
    (whole / place).unlink(missing_ok=True)
    (whole / place).symlink_to(whole / "target")
    with pytest.raises(CourseError, match=f"{place}: a symbolic link"):
        reset_exercise(whole, 1)
    assert (whole / "target").read_text() == "mine" and (whole / place).is_symlink()


def test_reset_changes_nothing_where_it_cannot_keep_the_old_one(whole):
    (whole / "exercises" / "kept").write_text("a file where the folder should be")
    with pytest.raises(CourseError, match="kept: cannot be written"):
        reset_exercise(whole, 1)
    assert exercise(whole, 1).read_text() == "my work"


def test_a_full_disk_leaves_no_half_of_a_copy_and_is_told_with_the_path(whole):
    code = (
        "import resource, pathlib; from course_utils.files import keep_copy; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4)); keep_copy(pathlib.Path({str(exercise(whole, 1))!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"kept/{NAMES[1]}-1.ipynb: cannot be written (File too large)" in done.stderr
    assert list((whole / "exercises/kept").iterdir()) == []


# The command line and the map ----------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs `course …` in this process and in a folder: exit status, what it printed, what it complained of."""

    def run(*arguments, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["course", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_the_command_line_grades_shows_and_resets(whole, command):
    code, output, _ = command("reset", "1", cwd=whole)
    assert (code, f"kept/{NAMES[1]}-1.ipynb" in output, "Reload Notebook from Disk" in output) == (0, True, True)
    assert command("grade", f"exercises/{NAMES[1]}.ipynb", "--out", "grades", cwd=whole)[0] == 0
    code, output, _ = command("progress", cwd=whole)
    remaining = duration(sum(day(whole, 1).remaining.values()))
    assert code == 0 and re.search(rf"Attention by hand +0 of 12 +0 of 31 +{remaining} +\d{{4}}-", output)
    (whole / "grades" / progress.RECORD).write_text("{")
    code, output, complaint = command("progress", cwd=whole)
    assert (code, complaint.count("\n"), "never" in output) == (2, 1, True)


@pytest.mark.parametrize("error", [OSError(28, "No room", "/place/it"), CourseError("/place/it: No\n::room")])
@pytest.mark.parametrize("debug", ["", "1"])
def test_an_error_is_one_line_with_the_path_and_a_traceback_only_if_asked_for(
    error, debug, whole, command, monkeypatch
):
    def fail(*_):
        raise error

    monkeypatch.setenv("COURSE_DEBUG", debug)
    monkeypatch.setattr("course_utils.learner.reset.reset_exercise", fail)
    status, _, err = command("reset", "1", cwd=whole)
    *above, line = err.splitlines()
    assert status == 2 and line.startswith("course: /place/it: No ")
    assert ("COURSE_DEBUG=1" in line) == isinstance(error, OSError)
    assert bool(above) == bool(debug) and ("in fail" in err) == bool(debug)


def test_a_learner_is_shown_the_days_in_order_the_total_what_is_next_and_the_feedback(tmp_path, command):
    for folder in ("solutions", "exercises"):
        (tmp_path / folder).mkdir()
        for number in (1, 2, 3):
            notebook = COURSE.notebook(number)
            content = notebook if folder == "solutions" or number == 2 else release_exercise(notebook)
            (tmp_path / folder / COURSE.path(number).name).write_text(dump(content))
    names = [COURSE.path(number).name for number in (1, 2, 3)]
    arguments = [f"exercises/{name}" for name in reversed(names)]
    code, output, _ = command("grade", *arguments, "--out", "grades", "--jobs", "2", cwd=tmp_path)
    assert code == 0
    full = [sum(question.points for question in COURSE.exercises(number)) for number in (1, 2, 3)]
    titles = [
        f"{names[0]}: 0 of {full[0]:g}",
        f"{names[1]}: {full[1]:g} of {full[1]:g}",
        f"{names[2]}: 0 of {full[2]:g}",
    ]
    assert [output.index(title) for title in titles] == sorted(output.index(title) for title in titles)
    assert output.count("nothing is answered yet") == 2 and "missing" not in output
    assert f"Together {full[1]:g} of {sum(full):g} points" in output
    first = tasks(COURSE, 1)[next(iter(tasks(COURSE, 1)))].title.partition(". ")[2]
    assert f"Next: day 1, {first} (" in output and f", in exercises/{names[0]}" in output
    (page,) = re.findall(r"Feedback on day 2: (\S+)", output)
    assert (tmp_path / page).is_file() and output.count("Feedback on") == 1
    assert not list((tmp_path / "grades").glob("canvas*")) and not list((tmp_path / "grades").glob("moodle*"))


def test_the_folder_of_exercises_may_be_graded_as_a_whole(whole, official, command):
    exercise(whole, 1).write_text(dump(release_exercise(official)))
    assert command("grade", "exercises", "--out", "grades", "--jobs", "1", cwd=whole)[0] == 0
    assert day(whole, 1).graded


def test_what_reads_progress_loads_nothing_heavy():
    code = "import sys, course_utils.progress as p; p.read_progress(); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "numpy", "matplotlib", "nbformat", "rich"} & set(loaded)


def test_the_map_shows_the_grades_but_its_text_and_picture_hold_none(course):
    before = ProgressMap(course)._repr_mimebundle_()[0]
    fresh = ProgressMap(course)
    grade(course, graded(1, one="passed", two="passed"))
    widget = ProgressMap(course)
    assert on_page(widget).shown["cards"][0]["lines"] == ["2 of 2 exercises · 4 of 5 points"]
    assert (on_page(widget).shown["cards"][0]["part"], on_page(widget).shown["cards"][0]["next"]) == (1, "All done.")
    assert on_page(widget).shown["lines"][1] == "Next: day 2, To three (10 minutes)."
    assert on_page(widget).shown["cards"][8]["planned"] and on_page(widget).shown["cards"][8]["part"] is None
    after = widget._repr_mimebundle_()[0]
    assert [after[mime] for mime in ("text/plain", "image/png")] == [before["text/plain"], before["image/png"]]
    assert on_page(fresh).shown["cards"][0]["part"] == 0
    send(fresh, asked=1)  # as the button does
    assert on_page(fresh).shown == on_page(widget).shown


def test_the_map_counts_the_exercises_of_each_sitting(course):
    early, late = (
        progress.ExerciseProgress(name, name, 1, 10, part, status="passed")
        for name, part in (("early", 1), ("late", 8))
    )
    day_1 = replace(day(course, 1), exercises=(early, early, late))
    assert course_map._describe_sittings(day_1) == ["first sitting: 2 of 2", "second sitting: 1 of 1"]


def test_a_day_whose_answers_changed_is_not_called_done(course):
    grade(course, graded(1, one="passed", two="passed"))
    exercise(course, 1).write_text(exercise_cells(["one", "two"], {"two": "def two(): return 2"}))
    card = on_page(ProgressMap(course)).shown["cards"][0]
    assert (card["lines"][1], card["next"]) == ("changed since it was graded", "Grade it again.")


def test_the_map_tells_of_a_damaged_record(course):
    (course / "grades" / progress.RECORD).write_text("{")
    assert on_page(ProgressMap(course)).shown["lines"][1].startswith("grades/progress.json is not a record of grades")
