"""Reports: what teachers, students, CI and learning platforms are told, and what no student can do to it."""

import csv
import io
import json
import re
import statistics
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from as_cells import POINTS
from markdown_it import MarkdownIt

from course_utils.answer_key.key import COURSE
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.errors import CourseError
from course_utils.files import write_whole
from course_utils.grading.intake.late import with_lateness
from course_utils.grading.reports.canvas import canvas_csv
from course_utils.grading.reports.feedback import MAX_CODE_LENGTH, feedback_page, feedback_zips, write_feedback
from course_utils.grading.reports.gradebook import fill_gradebook, totals_csv
from course_utils.grading.reports.gradebook_rows import people
from course_utils.grading.reports.moodle import moodle_csv, moodle_worksheet
from course_utils.grading.reports.report import (
    MAX_SUMMARY_BYTES,
    as_csv,
    as_json,
    as_junit,
    as_markdown,
    own_summary,
    write_gradebook,
    write_reports,
)
from course_utils.grading.reports.tasks import day_title, formula_html, tasks
from course_utils.grading.results import Graded, Result

NASTY = "On “x” it raised E: <script>|`**\x00\x1b[31m=cmd()"
RESULTS = (Result("one", "passed", 1.0, 1.0), Result("two", "failed", 0.5, 2.0, NASTY, "no scaling"))
SAMPLE = [
    Graded("=ada", "day1_a.ipynb", 1, "failed", 1.5, 3.0, 0.5, RESULTS),
    Graded("bob", "day1_b.ipynb", 1, "unreadable", 0.0, 3.0, 0.0, (), "day1_b.ipynb: empty file"),
]
HOSTILE = '=HYPERLINK("http://evil.example")|*x*</script><img src=x>[a](javascript:b)\u202e\ud800\x00'


def graded(student, day=1, wrong=(), lms_id="", verdict="failed", **changes):
    """A submission of a day in which the exercises named in `wrong` have the verdict, and the others are passed."""
    results = tuple(
        Result(q.grade_id, verdict, 0.0, q.points, f"Look at {q.grade_id}.")
        if q.grade_id in wrong
        else Result(q.grade_id, "passed", q.points, q.points)
        for q in COURSE.exercises(day)
    )
    score = sum(each.score for each in results)
    full = sum(each.max_score for each in results)
    stands = {"status": "failed" if wrong else "passed", "score": score, "max_score": full, "seconds": 0.1}
    about = stands | {"exercises": results, "lms_id": lms_id} | changes
    return Graded(**{"student": student, "notebook": f"day{day}_x.ipynb", "day": day} | about)


def points(day):
    """All points of a day, as a table writes them."""
    return f"{sum(exercise.points for exercise in all_exercises(day).values()):g}"


def unreadable(student, day=1, lms_id=""):
    return graded(student, day, status="unreadable", score=0.0, exercises=(), message="empty file", lms_id=lms_id)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


# Files for programs -------------------------------------------------------------------------------------------------


def test_reports_are_written_whole(tmp_path):
    write_reports([*SAMPLE, graded("eve", 2, lms_id="7")], tmp_path / "new" / "folder")
    names = {"grades.json", "grades.csv", "junit.xml", "summary.md", "canvas.csv", "moodle.csv", "moodle_day2.csv"}
    names.add("totals.csv")
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == names


def test_what_an_earlier_run_left_to_be_sent_is_named(tmp_path):
    old = ["feedback/Ada/day3.html", "feedback/Ada L/day1.html", "feedback_x.zip", "gradebook.csv", "moodle_day3.csv"]
    for name in [*old, "feedback/Ada/day1.html", "moodle_day1.csv", "my notes.csv", ".results/a.html"]:
        write_whole(tmp_path / name, "old")
    class_ = [graded("Ada", lms_id="77")]
    assert write_reports(class_, tmp_path) == sorted(old)
    filled = fill(tmp_path, class_, WORKSHEET)
    assert "gradebook.csv" not in write_reports(class_, tmp_path, filled=filled)
    assert write_reports(class_, tmp_path, is_one_learner=True) == []


def test_a_learner_alone_gets_no_files_for_a_classs_platform(tmp_path):
    write_reports([graded("day1_x"), graded("day2_x", 2)], tmp_path, is_one_learner=True)
    names = {"grades.json", "grades.csv", "junit.xml", "summary.md"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "class" not in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_totals_have_a_row_a_student_and_a_column_a_day():
    class_ = [graded("ada", 1, ["scores"]), graded("ada", 2), unreadable("bob"), graded("bob", 2), graded("=eve", 1)]
    most = float(points(1)) + float(points(2))
    rows = [list(row.values()) for row in table(totals_csv(class_))]
    assert rows == [
        ["ada", "29", points(2), f"{29 + float(points(2)):g}", f"{most:g}", f"{100 * (most - 2) / most:.0f}", ""],
        ["bob", "", points(2), points(2), f"{most:g}", "", "no grade yet for day 1"],
        ["'=eve", points(1), "", points(1), f"{most:g}", f"{100 * float(points(1)) / most:.0f}", ""],
    ]


def test_totals_have_no_points_where_nothing_was_graded_and_a_row_for_who_handed_in_nothing(tmp_path):
    class_ = [graded("ada", lms_id="101"), unreadable("grace", lms_id="102"), replace(unreadable("bob"), day=None)]
    filled = fill(tmp_path, [*class_, graded("ada", 2, lms_id="101")], EXPORT.replace("N/A", "EX"))
    assert filled.handed_in_nothing == (
        "=Eve",
        "Student, Test",
        "Hopper, Grace",
    )  # the last is excused from day 1, not from day 2
    rows = [list(row.values())[1:] for row in table(totals_csv(class_, handed_in_nothing=filled.handed_in_nothing[:1]))]
    assert rows[1:] == [
        ["", "", f"{POINTS}", "", "no grade yet for day 1"],
        ["", "", f"{POINTS}", "", "no grade yet for a file that tells no day"],
        ["", "0", f"{POINTS}", "0", "handed in nothing"],
    ]
    alone = [graded("ada", lms_id="77")]
    write_reports(alone, tmp_path / "out", filled=fill(tmp_path, alone, WORKSHEET))
    assert '"Grace Hopper","","0"' in (tmp_path / "out" / "totals.csv").read_text(encoding="utf-8")


def test_a_filled_gradebook_lies_beside_the_other_reports(tmp_path):
    (tmp_path / "exported.csv").write_text(EXPORT, encoding="utf-8")
    filled = write_gradebook(tmp_path / "exported.csv", [graded("ada", lms_id="101")], tmp_path / "out")
    assert (tmp_path / "out" / "gradebook.csv").read_bytes() == filled.text.encode()


def test_grades_json_has_schema_1():
    record = json.loads(as_json(SAMPLE))
    assert (record["schema"], record["day"]) == (1, 1)
    first, second = record["submissions"]
    assert set(first) == {"student", "notebook", "day", "status", "score", "max_score", "seconds", "exercises"}
    assert set(first["exercises"][0]) == {"id", "status", "score", "max_score", "message", "misconception"}
    assert second["message"] == "day1_b.ipynb: empty file"


def test_grades_csv_has_a_line_a_submission_and_no_formulas():
    rows = table(as_csv(SAMPLE))
    assert [row["student"] for row in rows] == ["'=ada", "bob"]
    assert (rows[0]["two"], rows[1]["two"]) == ("0.5", "0")


def test_exercises_of_one_name_on_several_days_have_columns_of_their_own():
    (first, second) = table(as_csv([graded("ada", 1, ["find_the_bug"]), graded("ada", 2)]))
    assert (first["day1.find_the_bug"], first["day2.find_the_bug"]) == ("0", "")
    assert second["day1.find_the_bug"] == "" and float(second["day2.find_the_bug"]) > 0


def test_junit_is_well_formed_whatever_a_student_is_called_or_raised():
    root = ElementTree.fromstring(as_junit([*SAMPLE, unreadable(HOSTILE)]))
    cases = [(case.get("name"), [child.tag for child in case]) for case in root.iter("testcase")]
    assert cases == [("one", []), ("two", ["failure"]), ("notebook", ["error"]), ("notebook", ["error"])]


def test_junit_keeps_to_the_schemas_of_jenkins():
    """junit-10.xsd of the xunit plugin and jenkins-junit.xsd: points can only be properties of a suite, put first."""
    root = ElementTree.fromstring(as_junit([*SAMPLE, graded("ada", 2)]))
    for suite in root:
        assert [child.tag for child in suite] == ["properties"] + ["testcase"] * int(suite.get("tests"))
        assert set(suite.attrib) == {"name", "tests", "failures", "errors", "time"}
        assert re.fullmatch(r"\d+\.\d\d", suite.get("time"))
        assert all(set(case.attrib) == {"classname", "name"} for case in suite.iter("testcase"))
    first = {p.get("name"): p.get("value") for p in root[0].find("properties")}
    assert (first["two.score"], first["two.max_score"], first["score"]) == ("0.5", "2", "1.5")


def test_junit_names_no_two_cases_of_a_student_alike():
    root = ElementTree.fromstring(as_junit([graded("ada", 1), graded("ada", 2)]))
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(cases)) == len(cases)


# Canvas and Moodle --------------------------------------------------------------------------------------------------

EXPORT = """\
Student,ID,SIS User ID,SIS Login ID,Section,Day 1 warm-up (1),"Day 1: Attention by hand (2)",Day 1 Final Score,Notes
,,,,,,Manual Posting,,
    Points Possible,,,,,5,50,(read only),
"Lovelace, Ada",101,S1,ada@x.org,A,4,12,80,é
"Hopper, Grace",102,S2,grace,A,,33,81,
"Hopper, Grace",103,S3,grace2,B,,N/A,82,
=Eve,104,S4,eve,B,,,83,
"Student, Test",105,,x9,A,,,,
"""


def test_a_student_of_several_days_is_one_row_of_the_canvas_file():
    class_ = [graded("ada", 1, ["softmax_row"], "101"), graded("bob", 2, lms_id="102"), graded("ada", 2, lms_id="101")]
    head, ada, bob = table(canvas_csv(class_))
    assert list(head)[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert (head["Student"], head["Day 1: Attention by hand"]) == ("    Points Possible", f"{POINTS}")
    assert (ada["ID"], ada["Day 1: Attention by hand"], ada["Day 2: Why √dₖ"]) == ("101", "29", points(2))
    assert (bob["Day 1: Attention by hand"], bob["Day 2: Why √dₖ"]) == ("", points(2))


NO_KERNEL = {"message": "Not graded: no kernel starts on this machine.", "machine_failed": True}
NOT_THEIR_FAULT = {
    "unreadable": unreadable("bob", lms_id="5"),
    "not graded": graded("bob", score=0.0, exercises=(Result("scores", "error", 0.0, 2.0, **NO_KERNEL),), lms_id="5"),
}


@pytest.mark.parametrize("kind", NOT_THEIR_FAULT)
def test_what_could_not_be_graded_has_no_grade_rather_than_zero(kind):
    one = [NOT_THEIR_FAULT[kind], graded("ada", wrong=["scores"])]
    assert [row["Day 1: Attention by hand"] for row in table(canvas_csv(one))[1:]] == ["", "29"]
    assert [row["Day 1: Attention by hand"] for row in table(moodle_csv(one))] == ["-", "29"]
    assert [row["Grade"] for row in table(moodle_worksheet(one, 1))] == ["", "29"]


def test_a_zero_that_was_earned_is_a_zero():
    ids = [question.grade_id for question in COURSE.exercises(1)]
    assert table(canvas_csv([graded("ada", 1, ids)]))[1]["Day 1: Attention by hand"] == "0"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@", " +", "＝", "\u200b=", "\u2212", "\ufe62"])
def test_no_cell_of_a_student_starts_a_formula(start):
    name = f"{start}1+1;=2,=3"
    class_ = [graded(name, lms_id="1"), graded(f"{name}2", status="unreadable", exercises=(), message=f"{name}: bad")]
    for text in (canvas_csv(class_), moodle_csv(class_), moodle_worksheet(class_, 1), as_csv(class_)):
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row if cell != "-"]
        assert not any(re.match(r"\s*[=+\-@＝＋－＠\u2212\ufe62]", cell) for cell in cells)
        assert all(
            line[0] == line[-1] == '"' for line in text.splitlines()
        )  # every cell is quoted, also for those who split at ";"


def test_a_student_called_points_possible_does_not_set_the_points_in_canvas():
    rows = table(canvas_csv([graded("Points Possible", 1, ["scores"], "9")]))
    assert ["Points Possible" in row["Student"] for row in rows] == [True, False]
    assert rows[1]["ID"] == "9"


def test_a_moodle_worksheet_has_the_columns_that_moodle_asks_for_and_comments_that_cannot_be_html():
    evil = Result("scores", "failed", 0.0, 2.0, "On “<script>alert(1)</script>” it differs.")
    (row,) = table(moodle_worksheet([graded("Ada Lovelace", exercises=(evil,), lms_id="1234567")], 1))
    assert (row["Identifier"], row["Last modified (grade)"]) == ("Participant 1234567", "-")
    assert row["Feedback comments"].startswith("6. The score matrix: 0 of 2. On “&lt;script&gt;alert")


def test_a_student_whose_number_differs_by_day_as_in_moodle_is_one_row():
    (ada,) = people([graded("ada", 1, lms_id="11"), graded("ada", 2, lms_id="22")])
    assert (ada.lms_id, sorted(ada.days)) == ("", [1, 2])


def test_two_students_of_one_name_stay_apart():
    first, second = people([graded("ada", 1, ["scores"], "11"), graded("ada", 1, (), "22"), graded("ada", 2, (), "22")])
    assert (first.lms_id, sorted(first.days)) == ("11", [1])
    assert (second.lms_id, sorted(second.days)) == ("22", [1, 2])


def fill(tmp_path, class_, text=EXPORT):
    path = tmp_path / "exported.csv"
    path.write_text(text, encoding="utf-8")
    return fill_gradebook(path, class_)


def test_a_canvas_export_is_filled_in_and_nothing_in_it_is_lost(tmp_path):
    class_ = [graded("lovelaceada", 1, ["softmax_row"], "101"), graded("x", 2, lms_id="102")]
    filled = fill(tmp_path, class_)
    before, after = (list(csv.reader(io.StringIO(text))) for text in (EXPORT, filled.text))
    title = "Day 1: Attention by hand (2)"
    assert table(filled.text)[2][title] == "46.77"
    assert after[0][-1] == "Day 2: Why √dₖ"
    assert [row[-1] for row in after[1:4]] == ["", points(2), ""] and after[4][-1] == points(2)
    after[3][6], after[6][0] = "12", "=Eve"
    assert [row[:-1] for row in after] == before
    assert (filled.students, filled.unmatched) == (2, ())


def test_a_column_that_canvas_only_reads_out_takes_no_grades(tmp_path):
    text = EXPORT.replace("Day 1 warm-up (1)", "Warm-up").replace("Day 1: Attention by hand (2)", "Essay")
    (head, *_, last) = csv.reader(io.StringIO(fill(tmp_path, [graded("x", lms_id="105")], text).text))
    assert (head[-1], last[-1]) == ("Day 1: Attention by hand", f"{POINTS}")


def test_grades_are_scaled_to_the_points_that_the_teacher_gave(tmp_path):
    assert fill(tmp_path, [graded("a", lms_id="101")]).notes == (
        f"Day 1: Attention by hand (2) is worth 50 points there and {POINTS} here: grades were scaled.",
    )


def test_filling_in_clears_no_grade(tmp_path):
    filled = fill(tmp_path, [unreadable("grace", lms_id="102"), graded("ada", lms_id="101")])
    assert table(filled.text)[3]["Day 1: Attention by hand (2)"] == "33"


def test_who_got_no_grade_is_not_counted_as_filled_in(tmp_path):
    class_ = [unreadable("grace", lms_id="102"), graded("ada", lms_id="101"), graded("ada", 2, lms_id="101")]
    assert fill(tmp_path, class_).students == 1
    moodle = [unreadable("grace", lms_id="78"), graded("ada", lms_id="77")]
    assert fill(tmp_path, moodle, WORKSHEET).students == 1


@pytest.mark.parametrize("mark", ["EX", "ex"])
def test_an_excused_student_stays_excused_and_is_named(tmp_path, mark):
    filled = fill(tmp_path, [graded("grace", lms_id="102"), graded("ada", lms_id="101")], EXPORT.replace("33", mark))
    assert [row["Day 1: Attention by hand (2)"] for row in table(filled.text)[2:4]] == ["50", mark]
    assert "grace is excused from Day 1: Attention by hand (2): left as it is." in filled.notes
    assert filled.students == 1


SPLIT = EXPORT.replace('"Lovelace, Ada"', "Lovelace,Ada").replace('"Hopper, Grace"', "Hopper,Grace").replace(
    '"Student, Test"', "Student,Test").replace("Student,ID", "LastName,FirstName,ID").replace(
    ",,,,,,Manual", ",,,,,,,Manual").replace("Possible,", "Possible,,").replace("=Eve", ",=Eve")  # fmt: skip


def test_an_export_of_canvas_with_split_names_is_filled_in(tmp_path):
    assert len({len(row) for row in csv.reader(io.StringIO(SPLIT))}) == 1
    filled = fill(tmp_path, [graded("x", lms_id="102"), graded("Ada Lovelace"), graded("eve")], SPLIT)
    rows = table(filled.text)
    title = "Day 1: Attention by hand (2)"
    assert [row[title] for row in rows] == ["Manual Posting", "50", "50", "50", "N/A", "50", ""]
    assert [rows[5][name] for name in ("LastName", "FirstName")] == ["", "'=Eve"]
    assert (filled.students, filled.unmatched) == (3, ())


def test_a_formula_in_an_exported_name_is_disarmed_where_canvas_looks_at_the_number(tmp_path):
    evil = EXPORT.replace("=Eve", '"=""x""+cmd()"')
    assert table(fill(tmp_path, [], evil).text)[5]["Student"].startswith("'=")


UNMATCHED = {
    "a number that is not there": (graded("Ada Lovelace", lms_id="999"), 0),
    "a name that two have": (graded("Grace Hopper"), 0),
    "a name that none has": (graded("Nobody"), 0),
    "no name": (graded(""), 0),
    "a name the other way round": (graded("ADA  lovelace"), 1),
    "a login": (graded("grace2"), 1),
}


@pytest.mark.parametrize("kind", UNMATCHED)
def test_students_match_by_number_or_else_by_a_name_of_their_own(tmp_path, kind):
    one, matched = UNMATCHED[kind]
    filled = fill(tmp_path, [one])
    assert (filled.students, filled.unmatched) == (matched, () if matched else (one.student,))


def test_a_row_that_two_claim_is_given_to_neither(tmp_path):
    filled = fill(tmp_path, [graded("Ada", lms_id="101"), graded("Ada Lovelace")])
    assert (filled.students, sorted(filled.unmatched)) == (0, ["Ada", "Ada Lovelace"])
    assert table(filled.text)[2]["Day 1: Attention by hand (2)"] == "12"


def test_an_export_with_semicolons_and_a_mark_of_byte_order_stays_so(tmp_path):
    text = "\ufeff" + EXPORT.replace("Lovelace, Ada", "Lovelace; Ada").replace(",", ";").replace("50", "25,0")
    filled = fill(tmp_path, [graded("a", lms_id="101")], text)
    assert filled.text.startswith('\ufeff"Student";"ID"')
    assert list(csv.reader(io.StringIO(filled.text[1:]), delimiter=";"))[3][6] == "25"


WORKSHEET = """\
Identifier,Full name,ID number,Email address,Status,Grade,Maximum grade,Last modified (grade),Feedback comments
Participant 77,Ada Lovelace,,ada@x.org,Submitted,,100,-,
Participant 78,Grace Hopper,,grace@x.org,Submitted,55,100,"Monday, 2 March 2026, 9:00 AM",good
"""


def test_a_moodle_worksheet_is_filled_in(tmp_path):
    filled = fill(tmp_path, [graded("x", 1, ["scores"], "77")], WORKSHEET)
    ada, grace = table(filled.text)
    assert (ada["Grade"], grace["Grade"], grace["Feedback comments"]) == ("93.55", "55", "good")
    assert ada["Feedback comments"] == "6. The score matrix: 0 of 2. Look at scores."
    assert filled.notes == (f"The assignment is worth 100 points and {POINTS} here: scaled.",)


def test_a_comment_that_a_teacher_wrote_in_a_worksheet_stays_above_ours(tmp_path):
    text = WORKSHEET.replace(",good", ",<b>good</b><br>work").replace("100,-,", "100,-,6. The score matrix: well begun")
    class_ = [graded("x", 1, ["scores"], "77"), unreadable("y", lms_id="78")]
    filled = fill(tmp_path, class_, text)
    ours = "6. The score matrix: 0 of 2. Look at scores."
    comments = [row["Feedback comments"] for row in table(filled.text)]
    own = "6. The score matrix: well begun"
    assert comments == [f"{own}<br>{ours}", "<b>good</b><br>work"]  # the second has a grade, and no file to read
    assert "Feedback comments that were there and stay, with ours below them: 2." in filled.notes
    again = fill(tmp_path, [graded("x", 1, ["softmax_row"], "77"), unreadable("y", lms_id="78")], filled.text)
    assert table(again.text)[0]["Feedback comments"].startswith(f"{own}<br>1. Softmax of a row: 0 of 2.")
    assert ours not in again.text
    (lost,) = table(fill(tmp_path, [unreadable("x", lms_id="77")], text.partition("Participant 78")[0]).text)
    assert lost["Feedback comments"] == f"{own}<br>This file could not be graded: empty file"


def test_moodles_gradebook_names_students_by_what_moodle_finds_them_by(tmp_path):
    class_ = [graded("Ada Lovelace", lms_id="77"), graded("Grace Hopper", lms_id="78"), graded("Eve", lms_id="9")]
    by_email = table(moodle_csv(class_, filled=fill(tmp_path, class_, WORKSHEET)))
    assert [list(row.values()) for row in by_email] == [["ada@x.org", f"{POINTS}"], ["grace@x.org", f"{POINTS}"]]
    numbered = WORKSHEET.replace("Lovelace,,", "Lovelace,s1,").replace("Hopper,,", "Hopper,s2,")
    by_number = table(moodle_csv(class_, filled=fill(tmp_path, class_, numbered)))
    assert [row["ID number"] for row in by_number] == ["s1", "s2"]
    assert [row["Student"] for row in table(moodle_csv(class_))] == ["Ada Lovelace", "Grace Hopper", "Eve"]
    write_reports(class_, tmp_path / "out", filled=fill(tmp_path, class_, WORKSHEET))
    assert "ada@x.org" in (tmp_path / "out" / "moodle.csv").read_text(encoding="utf-8")


NO_GRADEBOOK = {
    "a table of another kind": ("name,points\nada,1\n", "neither a Canvas gradebook"),
    "empty": ("", "neither a Canvas gradebook"),
    "no points": (EXPORT.replace("Points Possible", "Points"), "without its row"),
    "two columns of one day": (EXPORT.replace("Day 1: Attention by hand (2)", "Day 1 again"), "may both be day 1"),
    "torn": (EXPORT + '"', "not a CSV file"),
}


@pytest.mark.parametrize("kind", NO_GRADEBOOK)
def test_a_file_that_cannot_be_filled_in_is_an_error_that_says_why(tmp_path, kind):
    text, reason = NO_GRADEBOOK[kind]
    with pytest.raises(CourseError, match=re.escape(reason)):
        fill(tmp_path, [graded("ada")], text)


# The summary --------------------------------------------------------------------------------------------------------


def rendered(markdown):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)


def test_the_summary_of_one_student_keeps_its_table_whatever_was_raised():
    text = as_markdown(SAMPLE[:1])
    (row,) = (line for line in text.splitlines() if line.startswith("| two"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "<script>" not in rendered(text)


def test_the_summary_of_a_learner_has_the_days_in_order_each_with_its_page_of_feedback(tmp_path):
    fresh = graded("day3_x", 3, [question.grade_id for question in COURSE.exercises(3)], verdict="missing")
    class_ = [graded("day2_x", 2), fresh, graded("day1_x-Copy1", 1, ["scores"], notebook="day1_x-Copy1.ipynb")]
    text = own_summary(class_)
    points = [sum(each.score for each in class_), sum(each.max_score for each in class_)]
    assert f"{points[0]:g} of {points[1]:g} points in 3 notebooks." in text
    assert re.findall(r"(?m)^## Day (\d): .*: \d+ of \d+ points$", text) == ["1", "2", "3"]
    for each in (class_[2], class_[0]):
        page = write_feedback(each, COURSE, tmp_path)
        assert f"]({page.relative_to(tmp_path).as_posix()})" in text
    elsewhere = own_summary(class_, links_feedback=False)
    assert "](" not in elsewhere and elsewhere.count("Feedback, with hints and your code: feedback/") == 2
    untouched_day = text[text.index("## Day 3") :]
    assert "Nothing is answered yet" in untouched_day and "|" not in untouched_day and "feedback" not in untouched_day


def test_the_summary_of_a_learner_keeps_the_reason_of_a_file_that_cannot_be_read():
    lost = Graded("x", "x.ipynb", None, "unreadable", 0.0, 0.0, 0.0, message="x.ipynb: neither its name nor …")
    text = own_summary([lost, graded("day1_x")])
    assert text.index("## Day 1") < text.index("## x.ipynb") < text.index("unreadable: x.ipynb: neither")


def test_the_summary_of_a_class_tells_how_it_did():
    wrong = [["scores", "softmax_row"], ["scores"], ["scores"], []]
    class_ = [graded(f"s{number}", 1, each) for number, each in enumerate(wrong)] + [unreadable("late")]
    text = as_markdown(class_, ["Confined by bubblewrap."])
    scores = [each.score for each in class_[:4]]
    first, median, third = statistics.quantiles(scores, n=4, method="inclusive")
    assert "5 students, 5 submissions. 1 file could not be read." in text
    assert f"4 submissions, {POINTS} points: median {median:g}, quartiles {first:g} and {third:g}, lowest 27" in text
    bars = re.findall(r"(?m)^ *\d+ to +(\d+) % +(\d+)  (█+)$", text)
    assert [(end, count) for end, count, _ in bars] == [("90", "1"), ("100", "3")]
    hardest = text[text.index("## The hardest") :].splitlines()[4:6]
    assert hardest[0] == "| 1 | 6. The score matrix | 1 of 4 (25%) | 25% |"
    assert hardest[1].startswith("| 1 | 1. Softmax of a row | 3 of 4 (75%)")
    assert "- Confined by bubblewrap." in text


def test_a_mistake_is_counted_by_student_and_explained_once():
    mistake = all_exercises(1)["softmax_row"].mistakes[0]
    slip = (Result("softmax_row", "failed", 0.0, 2.0, f"Wrong on hidden inputs. {mistake.message}", mistake.name),)
    text = as_markdown([graded(name, exercises=slip) for name in ("ada", "bob", "bob")] + [graded("eve")])
    (row,) = (line for line in text.splitlines() if "| softmax_row |" in line)
    assert row.startswith(f"| 1 | softmax_row | {mistake.name} | 2 |")
    assert "hidden inputs" not in row


@pytest.mark.parametrize("status", ["timeout", "killed", "forbidden"])
def test_what_needs_a_teachers_eye_is_listed_by_student(status):
    text = as_markdown([graded("ada", 1, ["scores"], verdict=status), graded("bob", 1, ["scores"]), unreadable("cy")])
    section = text[text.index("## Needs your eye") : text.index("## Students")]
    assert f"| ada | 1 | {status} in scores |" in section
    assert "| cy | 1 | unreadable: empty file |" in section
    assert "bob" not in section


def section(text, title):
    """The rows of a table in a summary."""
    lines = text.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    return [line for line in lines if line.startswith("| ")][1:]


def test_who_did_not_hand_in_is_listed_from_the_gradebook_or_else_by_the_other_days(tmp_path):
    class_ = [graded("ada", lms_id="101"), unreadable("grace", lms_id="102"), graded("ada", 2, lms_id="101")]
    filled = fill(tmp_path, class_, EXPORT.replace("N/A", "EX"))
    away = [(1, "=Eve"), (1, "Student, Test")]
    assert [each for each in filled.absent if each[0] == 1] == away
    assert len(filled.absent) == 2 + 4
    listed = section(as_markdown(class_, absent=away), "Not handed in")
    assert listed == ["| 1 | =Eve |", "| 1 | Student, Test |"]
    assert fill(tmp_path, [graded("ada", lms_id="77")], WORKSHEET).absent == ((1, "Grace Hopper"),)
    assert section(as_markdown([graded("ada"), graded("ada", 2), unreadable("bob")]), "Not handed in") == [
        "| 2 | bob |"
    ]
    assert "## Not handed in" not in as_markdown([graded("ada"), graded("bob")])


def test_a_name_that_may_be_two_students_is_told_and_nothing_is_concluded_for_it():
    two = [graded(f"anna ({number})", day, shared="anna") for day, number in ((1, 201), (1, 202), (2, 701))]
    class_ = [*two, graded("ben"), graded("cleo", 2)]
    text = as_markdown(class_)
    assert section(text, "Not handed in") == ["| 1 | cleo |", "| 2 | ben |"]
    assert "## WARNING: names of several students" in text and "- anna: anna (201), anna (202), anna (701)" in text
    notes = [row["Note"] for row in table(totals_csv(class_))]
    assert notes == ["may be several students called anna: days not joined"] * 3 + ["", ""]
    assert "WARNING" not in as_markdown([graded("ben"), graded("cleo", 2)])


def test_who_handed_in_a_file_that_tells_no_day_did_hand_in(tmp_path):
    class_ = [graded("ada", lms_id="101"), replace(unreadable("grace", lms_id="102"), day=None)]
    assert "Hopper, Grace" not in [name for _, name in fill(tmp_path, class_, EXPORT.replace("N/A", "EX")).absent]
    assert "## Not handed in" not in as_markdown(class_)


def test_who_was_late_and_whose_answers_are_equal_is_listed_by_day():
    class_ = [graded("ada", alike="x"), graded("ada", 2, alike="x"), graded("bob", late=True, alike="x")]
    text = as_markdown([*class_, graded("cyd", alike="y"), graded("dan"), graded("eve")])
    assert section(text, "Late") == ["| 1 | bob |  |"]
    assert section(text, "Equal answers") == ["| 1 | ada, bob |"]
    assert "equal short answers prove nothing" in text
    assert not {"## Late", "## Equal answers"} & set(as_markdown([graded("ada"), graded("bob")]).splitlines())


def test_a_moodle_worksheet_tells_who_was_late_and_how_late(tmp_path):
    text = WORKSHEET.replace("Status,", "Status,Last modified (submission),").replace("Submitted,", "Submitted,9 May,")
    text = text.replace("Submitted,9 May,55", "Submitted for grading - 21 hours 10 mins late,10 May,55")
    class_ = [graded("ada", lms_id="77"), unreadable("grace", lms_id="78"), replace(unreadable("eve"), day=None)]
    with_late = with_lateness(class_, fill(tmp_path, class_, text).late)
    assert section(as_markdown(with_late), "Late") == ["| 1 | grace | 21 hours 10 mins late, 10 May |"]
    overdue = fill(tmp_path, class_, WORKSHEET.replace("Submitted", "Overdue by 2 days"))
    assert with_lateness(class_, overdue.late) == class_


def test_names_and_messages_stay_text_in_the_summary():
    class_ = [graded(f"{HOSTILE} http://evil.example www.evil.example @all #1 $x$ ~~y~~"), unreadable(HOSTILE)]
    text = as_markdown(class_, [HOSTILE])
    displayed = rendered(text)
    assert re.findall(r"<(?!/?(?:h\d|p|table|thead|tbody|tr|th|td|pre|code|ul|li)\b)[^>]*>", displayed) == []
    assert re.search(r"https?:|www\.|[^\u200b]@|\u202e", text) is None
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| =HYPER")} == {4, 5}


def test_the_summary_of_a_huge_class_fits_into_a_job_summary_and_says_what_is_left_out():
    one = graded("x", 1, ["scores"], verdict="timeout")
    class_ = [graded("é" * 500 + str(number), exercises=one.exercises, score=1.0) for number in range(2500)]
    text = as_markdown(class_)
    assert MAX_SUMMARY_BYTES // 2 < len(text.encode()) <= MAX_SUMMARY_BYTES
    omitted, again = map(int, re.findall(r"(?m)^(\d+) more are left out here", text))
    assert omitted + text[: text.index("## Students")].count("timeout in scores") == 2500
    assert omitted > 100 and again < 2400  # each table has its share of the room
    assert again + text[text.index("## Students") :].count(f"| 1 of {POINTS} |") == 2500


# The page of feedback -----------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """What elements and attributes a page has, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name) for name, _ in attrs]

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_verdict_message_mistake_hints_and_code():
    slip = Result("softmax_row", "failed", 0.0, 2.0, "Subtract max(row).", "softmax without max-shift")
    right = Result("scores", "passed", 2.0, 2.0)
    code = {"softmax_row": "def softmax_row(row):\n    return row\n", "scores": "def scores(Q, K): pass"}
    text = Elements(feedback_page(graded("ada", exercises=(slip, right), answers=code), COURSE)).text
    displayed = " ".join(text.split())
    for text_part in ("1. Softmax of a row", "✗ not right yet, 0 of 2 points", "Subtract max(row).", "Hint 3 of 3"):
        assert text_part in displayed
    assert "softmax without max-shift" in displayed and "Which entry of the row determines it?" in displayed
    assert "1def softmax_row(row): 2 return row" in displayed
    assert "zip(query, key)" not in displayed  # no hints where the exercise is passed


def test_the_page_says_where_to_begin():
    half = feedback_page(graded("ada", wrong=("scores", "attention_batched")), COURSE)
    assert 'Begin with <a href="#scores">6. The score matrix</a>' in half
    whole = feedback_page(graded("ada"), COURSE)
    assert "Every exercise passed." in whole and "Begin with" not in whole


def test_the_page_does_not_blame_a_student_for_the_machine():
    failed = Result("scores", "error", 0.0, 2.0, "Not graded: no kernel starts on this machine.", machine_failed=True)
    right = Result("softmax_row", "passed", 2.0, 2.0)
    text = " ".join(Elements(feedback_page(graded("ada", exercises=(right, failed)), COURSE)).text.split())
    assert "No grade yet" in text and "– not graded" in text
    assert "error" not in text and "0 of 2" not in text and "Begin with" not in text


def test_a_page_of_ones_own_notebook_calls_nobody_by_its_name():
    assert "Feedback on day1_x.ipynb" in Elements(feedback_page(graded("day1_x"), COURSE)).text
    assert "Feedback for ada on day1_x.ipynb" in Elements(feedback_page(graded("ada"), COURSE)).text


def test_what_is_not_answered_is_said_once_and_a_single_point_is_one():
    one = Result("scale_scores", "missing", 0.0, 1.0, "Not answered.")
    text = Elements(feedback_page(graded("ada", exercises=(one,)), COURSE)).text
    assert text.lower().count("not answered") == 2  # in the table, and at the exercise
    assert "not answered, 0 of 1 point\n" in text


def test_nothing_of_a_students_is_html_in_the_page():
    evil = (Result("scores", "failed", 0.0, 2.0, HOSTILE),)
    page = feedback_page(graded(HOSTILE, exercises=evil, answers={"scores": HOSTILE}), COURSE)
    elements = Elements(page)
    assert not {"script", "img", "iframe", "link", "base", "object", "form"} & set(elements.tags)
    assert not any(name.startswith("on") or name in ("src", "style", "srcset") for _, name in elements.attributes)
    assert elements.text.count("javascript:b") == 4  # title, heading, message, code
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#scores"}


def test_characters_that_hide_or_turn_the_text_are_spelt_out():
    slip = Result("scores", "failed", 0.0, 2.0, mistake="raises ValueError: \x1b\u202d")
    one = graded("a\u202eb", exercises=(slip,), answers={"scores": "x = '\u2066\x00\ud800'"})
    page = feedback_page(one, COURSE)
    assert not re.search(r"[\u202e\u202d\u2066\x00\x1b\ud800]", page)
    for code in ("U+202E", "U+202D", "U+2066", "U+0000", "U+001B", "U+D800"):
        assert code in page


def test_a_name_that_no_platform_gives_is_in_no_zip_of_feedback(tmp_path):
    names = [
        "a_5_8_day1.ipynb",
        "C:\\day1.ipynb",
        "a_5_8_\nday1.ipynb",
        "a_\u202e5_8_day1.ipynb",
        "a" * 4000 + ".ipynb",
    ]
    all_of_them = [replace(graded(f"s{i}"), back=f"Week/{name}") for i, name in enumerate(names)]
    for each in all_of_them:
        write_feedback(each, COURSE, tmp_path)
    (data,) = feedback_zips(all_of_them, tmp_path).values()
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == names[:1]


@pytest.mark.parametrize("long", ["x" * 2 * 2**20, "x\n" * 2**20, "\u202e" * 2**20, "(" * 100_000], ids=range(4))
def test_endless_code_is_cut_with_a_note(long):
    page = feedback_page(
        graded("a", exercises=(Result("scores", "failed", 0.0, 2.0),), answers={"scores": long}), COURSE
    )
    assert f"the answer has {len(long):,} characters" in page
    assert len(page) < 20_000 + 20 * MAX_CODE_LENGTH


def test_a_line_without_end_is_cut_so_that_colouring_it_is_no_work():
    long = "def scores(Q, K):\n    match" + 19_900 * " " + "end"
    page = feedback_page(graded("a", answers={"scores": long}), COURSE)
    assert "only the beginning of lines is shown" in page
    assert max(len(line) for line in Elements(page).text.splitlines()) < 1000


def test_a_full_disk_is_told_with_the_path_and_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "grades.csv"
    write_whole(path, "before")

    def full(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CourseError, match=r"grades.csv: cannot be written \(No space left on device\); make room"):
        write_whole(path, "after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_code_of_an_ordinary_size_is_not_cut():
    source = "def scores(Q, K):\n" + "    x = 1\n" * 100
    page = feedback_page(graded("a", answers={"scores": source}), COURSE)
    assert "Cut here" not in page and Elements(page).text.count("x = 1") == 100


def test_an_unreadable_submission_gets_a_page_that_says_why_and_what_to_do():
    text = Elements(feedback_page(unreadable("ada"), COURSE)).text
    assert "empty file" in text and "What to do" in text and "points" not in text


def test_a_notebook_of_no_known_day_has_a_page(tmp_path):
    lost = Graded("ada", "x.ipynb", None, "unreadable", 0.0, 0.0, 0.0, message="x.ipynb: neither its name nor …")
    assert "neither its name" in write_feedback(lost, COURSE, tmp_path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a\n\x00b", "..", "", "é" * 500, "\ud800"], ids=range(7))
def test_a_page_stays_in_its_folder_whatever_the_student_is_called(tmp_path, name):
    path = write_feedback(graded(name), COURSE, tmp_path / "out")
    assert path.parent.parent == tmp_path / "out" / "feedback" and path.name == "day1.html"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_two_students_never_share_a_page(tmp_path):
    names = ["a/b", "a_b", "a\\b", "a:b", " a_b"]
    assert len({write_feedback(graded(name), COURSE, tmp_path) for name in names}) == len(names)


@pytest.mark.parametrize("day", range(1, 7))
def test_every_exercise_has_a_title_and_hints_without_raw_markup(day):
    tasks_of_day = tasks(COURSE, day)
    assert list(tasks_of_day) == [question.grade_id for question in COURSE.exercises(day)]
    assert day_title(COURSE, day).startswith(f"Day {day}: ")
    for task in tasks_of_day.values():
        assert re.match(r"\d+\. [^*]+\Z", task.title) and len(task.hints) >= 2
        prose = re.sub(r"<code>.*?</code>", "", " ".join(task.hints), flags=re.DOTALL)
        assert not re.search(r"[$\\{}]|&lt;/?(details|summary)|\*\*", prose)


@pytest.mark.parametrize(
    ("tex", "displayed"),
    [
        (r"\sqrt{d_k}", "√d<sub>k</sub>"),
        (r"\sqrt 2", "√2"),
        (r"\frac{QK^\top}{\sqrt{d_k + 1}}", "QK<sup>T</sup>/(√(d<sub>k</sub> + 1))"),
        (r"e^{x_l - c}", "e<sup>x<sub>l</sub> − c</sup>"),
        (r"\text{block\_size} \le -\infty", "block_size ≤ −∞"),
        (r"\unheard{a<b}", "unhearda&lt;b"),
        (r"a^", "a<sup></sup>"),
        (r"}a", ""),
    ],
)
def test_a_formula_is_readable_text(tex, displayed):
    assert re.sub(r"</?i>", "", formula_html(tex)) == f'<span class="formula">{displayed}</span>'
