"""Finding a class's submissions: every layout a teacher has, and whatever a student put into it."""

import io
import os
import random
import stat
import struct
import warnings
import zipfile
from functools import cache

import nbformat
import pytest
from as_cells import POINTS
from in_process import course

from course_utils.answer_key.key import COURSE
from course_utils.answer_key.strip_answers import release_exercise
from course_utils.course import day_of
from course_utils.errors import Unreadable
from course_utils.grading.grade import grade_submission
from course_utils.grading.intake import collect
from course_utils.grading.intake.collect import Submission
from course_utils.grading.intake.files import list_members, read_member
from course_utils.grading.intake.names import safe_name, without_day
from course_utils.grading.intake.submitted_notebook import read_notebook

TITLES = {day: COURSE.path(day).name for day in (1, 2, 3)}


class _Notebooks(dict):
    """The bytes of a fresh notebook by day, made when they are asked for."""

    def __missing__(self, day):
        self[day] = nbformat.writes(release_exercise(COURSE.notebook(day))).encode()
        return self[day]


NOTEBOOKS = _Notebooks()


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """A zip's bytes. members: {name or ZipInfo: content}, or pairs, for names that come twice."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that comes twice
        for name, content in members.items() if isinstance(members, dict) else members:
            made.writestr(name, content)
    return data.getvalue()


def place(folder, files):
    """Write {path: content} below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def at(path, seconds):
    os.utime(path, (seconds, seconds))


def summarize(submissions):
    """Student, number and day of each submission."""
    return [(each.student, each.lms_id, each.day) for each in submissions]


def only(submissions):
    (submission,) = submissions
    return submission


def reason(submission):
    with pytest.raises(Unreadable) as why:
        submission.read()
    assert "\n" not in str(why.value)
    return str(why.value)


# Layouts ------------------------------------------------------------------------------------------------------------


def test_a_notebook_named_by_the_teacher_is_a_submission_by_its_file_name(tmp_path):
    place(tmp_path, {"day1_ada.ipynb": NOTEBOOKS[1], "bob.ipynb": NOTEBOOKS[1]})
    submissions = collect.collect([tmp_path / "day1_ada.ipynb", tmp_path / "bob.ipynb"])
    assert summarize(submissions) == [("bob", "", None), ("day1_ada", "", 1)]
    assert submissions[0].read() == NOTEBOOKS[1]


def test_notebooks_of_one_name_named_one_by_one_are_told_apart_by_their_folders(tmp_path):
    place(tmp_path, {f"{who}/day1/work.ipynb": NOTEBOOKS[1] for who in ("ada", "bob")})
    assert summarize(collect.collect(sorted(tmp_path.glob("*/*/*.ipynb")))) == [("ada", "", 1), ("bob", "", 1)]


@pytest.mark.parametrize("above", ["", "submitted/"])
def test_nbgraders_layout(tmp_path, above):
    files = {
        "ada/day1/day1_attention_by_hand.ipynb": NOTEBOOKS[1],
        "ada/day1/timestamp.txt": b"2026-11-20 10:00:00.000000 UTC",
        "ada/day2/answers.ipynb": NOTEBOOKS[2],
        "bob/ps1/day1_attention_by_hand.ipynb": NOTEBOOKS[1],
    }
    others = {f"{room}/ada/day1/x.ipynb": NOTEBOOKS[1] for room in ("source", "release", "autograded", "feedback")}
    place(tmp_path, {above + name: content for name, content in files.items()} | (others if above else {}))
    submissions = collect.collect([tmp_path])
    assert summarize(submissions) == [("ada", "", 1), ("ada", "", 2), ("bob", "", 1)]
    assert [each.read() for each in submissions] == [NOTEBOOKS[1], NOTEBOOKS[2], NOTEBOOKS[1]]


def test_the_newest_by_nbgraders_timestamp_counts(tmp_path):
    place(
        tmp_path,
        {
            "ada/day1/x.ipynb": NOTEBOOKS[1],
            "ada/day1/timestamp.txt": b"2026-11-20 10:00:00.000000 UTC",
            "ada/day1_again/x.ipynb": NOTEBOOKS[1] + b" ",
            "ada/day1_again/timestamp.txt": b"2026-11-21 10:00:00.000000 UTC",
        },
    )
    at(tmp_path / "ada/day1_again/x.ipynb", 1)
    submissions = collect.collect([tmp_path])
    assert only(submissions).read() == NOTEBOOKS[1] + b" "
    assert submissions.notes == ["ada: day1/x.ipynb is left out: what counts is day1_again/x.ipynb (day 1)"]


def test_a_flat_folder_names_students_by_files(tmp_path):
    names = ["ada.ipynb", "bob_day1_attention_by_hand.ipynb", "day1_cleo.ipynb", "day1_attention_by_hand_dan.ipynb"]
    place(tmp_path, dict.fromkeys(names, NOTEBOOKS[1]) | {"Zoë Ñandú.ipynb": NOTEBOOKS[1], "list.csv": b""})
    submissions = collect.collect([tmp_path], day=1)
    assert summarize(submissions) == [(name, "", 1) for name in ("ada", "bob", "cleo", "dan", "Zoë Ñandú")]
    assert "list.csv" in only(submissions.notes)
    assert [each.day for each in collect.collect([tmp_path])] == [None, 1, 1, 1, None]


def test_a_folder_of_ones_own_is_one_student_with_many_days(tmp_path):
    place(tmp_path / "ada", {TITLES[day]: NOTEBOOKS[day] for day in TITLES})
    assert summarize(collect.collect([tmp_path / "ada"])) == [("ada", "", 1), ("ada", "", 2), ("ada", "", 3)]


def test_a_folder_for_each_day(tmp_path):
    place(
        tmp_path,
        {
            "Day 1/ada.ipynb": NOTEBOOKS[1],
            "Day 2/Ada Lovelace_77_assignsubmission_file_/work.ipynb": NOTEBOOKS[2],
            "day3.zip": zipped({"lovelaceada_12_99_work.ipynb": NOTEBOOKS[3]}),
        },
    )
    submissions = collect.collect([tmp_path])
    assert summarize(submissions) == [("ada", "", 1), ("Ada Lovelace", "77", 2), ("lovelaceada", "12", 3)]


MOODLE = {
    "folders": "{}_{}_assignsubmission_file_/" + TITLES[1],
    "folders of newer versions": "{}_{}_assignsubmission_file/sub/" + TITLES[1],
    "no folders": "{}_{}_assignsubmission_file_" + TITLES[1],
}


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "unpacked"])
@pytest.mark.parametrize("form", MOODLE)
def test_moodles_download_keeps_names_and_numbers(tmp_path, form, packed):
    people = [("Ada Lovelace", "1234567"), ("Zoë Ñandú", "1234568"), ("山田 太郎", "1234569")]
    files = {MOODLE[form].format(*who): NOTEBOOKS[1] for who in people}
    files["Ada Lovelace_1234567_assignsubmission_onlinetext_/onlinetext.html"] = b"<p>"
    if packed:
        (tmp_path / "CS-Day 1-42.zip").write_bytes(zipped(files))
    else:
        place(tmp_path, files)
    submissions = collect.collect([tmp_path / "CS-Day 1-42.zip" if packed else tmp_path])
    assert summarize(submissions) == [(*who, 1) for who in people]
    assert {each.read() for each in submissions} == {NOTEBOOKS[1]}


def test_moodles_groups_and_hidden_names(tmp_path):
    place(
        tmp_path,
        {
            "Default group_assignsubmission_file/day1.ipynb": NOTEBOOKS[1],
            "Participant_8_assignsubmission_file_/day1.ipynb": NOTEBOOKS[1],
            "Participant_9_assignsubmission_file_/day1.ipynb": NOTEBOOKS[1],
        },
    )
    assert summarize(collect.collect([tmp_path])) == [
        ("Default group", "", 1),
        ("Participant (8)", "8", 1),
        ("Participant (9)", "9", 1),
    ]


def test_a_student_whom_moodle_numbers_anew_for_each_assignment_stays_one(tmp_path):
    for day, number in ((1, 70), (2, 91)):
        name = f"Ada Lovelace_{number}_assignsubmission_file_/work.ipynb"
        (tmp_path / f"day{day}.zip").write_bytes(zipped({name: NOTEBOOKS[day]}))
    submissions = collect.collect(sorted(tmp_path.iterdir()))
    assert [(each.student, each.lms_id) for each in submissions] == [("Ada Lovelace", "70"), ("Ada Lovelace", "91")]


def test_canvass_download_keeps_names_and_numbers(tmp_path):
    (tmp_path / "submissions.zip").write_bytes(
        zipped(
            {
                "lovelaceada_12345_67890_day1_attention_by_hand-1.ipynb": NOTEBOOKS[1],
                "ñandúzoë_LATE_12346_67891_day2_why_sqrt_dk.ipynb": NOTEBOOKS[2],
                "anon_A1b2C_67892_day1_attention_by_hand.ipynb": NOTEBOOKS[1],
                "boolegeorge_12347_67893_essay.pdf": b"%PDF",
            }
        )
    )
    submissions = collect.collect([tmp_path / "submissions.zip"])
    assert summarize(submissions) == [
        ("anon_A1b2C", "", 1),
        ("boolegeorge", "12347", None),
        ("lovelaceada", "12345", 1),
        ("ñandúzoë", "12346", 2),
    ]
    assert reason(submissions[1]) == "boolegeorge_12347_67893_essay.pdf: not a notebook"
    assert submissions[2].name == "lovelaceada_12345_67890_day1_attention_by_hand-1.ipynb"
    assert [each.student for each in submissions if each.late] == ["ñandúzoë"]


def answered(day):
    """A notebook with an answer to one exercise."""
    return NOTEBOOKS[day].replace(b"raise NotImplementedError", b"return 0", 1)


@pytest.mark.parametrize("outer", [False, True], ids=["in a folder", "in Moodle's zip"])
def test_an_untouched_notebook_in_a_zip_of_several_days_is_not_handed_in(tmp_path, outer):
    files = {
        "Ada_7_assignsubmission_file_/all.zip": zipped({"x/day1.ipynb": answered(1), "x/day3.ipynb": NOTEBOOKS[3]}),
        "Bob_8_assignsubmission_file_/all.zip": zipped({"day1.ipynb": NOTEBOOKS[1], "day3.ipynb": NOTEBOOKS[3]}),
        "Cleo_9_assignsubmission_file_/day3.ipynb": NOTEBOOKS[3],
        "Dan_5_assignsubmission_file_/day3.zip": zipped({"day3.ipynb": NOTEBOOKS[3]}),
    }
    moodle = tmp_path / "moodle.zip"
    if outer:
        moodle.write_bytes(zipped(files))
    else:
        place(moodle, files)
    submissions = collect.collect([moodle])
    assert summarize(submissions) == [("Ada", "7", 1), ("Bob", "8", None), ("Cleo", "9", 3), ("Dan", "5", 3)]
    assert reason(submissions[1]) == "all.zip: nothing is answered in any of its notebooks"
    assert "Ada: " in only(submissions.notes) and "x/day3.ipynb counts as not handed in" in only(submissions.notes)
    assert [each.day for each in collect.collect([moodle], day=3)] == [3] * 4


def test_each_notebook_is_parsed_once(tmp_path, monkeypatch):
    parsed = []
    monkeypatch.setattr(collect, "read_notebook", lambda data, name: parsed.append(name) or read_notebook(data, name))
    files = {"x/day1.ipynb": answered(1), "x/another.ipynb": answered(2), "x/day3.ipynb": NOTEBOOKS[3], "b.ipynb": b"{"}
    place(tmp_path / "class", {"Ada_7_assignsubmission_file_/all.zip": zipped(files)})
    assert [each.day for each in collect.collect([tmp_path / "class"])] == [1, 2]
    assert sorted(parsed) == ["another.ipynb", "b.ipynb", "day1.ipynb", "day3.ipynb"]


@pytest.mark.parametrize("outer", [False, True], ids=["in a folder", "in Moodle's zip"])
def test_a_students_zip_with_several_days_is_opened(tmp_path, outer):
    whole = {f"course/exercises/{TITLES[day]}": answered(day) for day in TITLES}
    junk = {"__MACOSX/course/._day1.ipynb": b"x", "course/.ipynb_checkpoints/day1-checkpoint.ipynb": b"x"}
    junk[f"course/exercises/kept/{TITLES[1]}"] = NOTEBOOKS[1]
    lesson = {f"course/lessons/{TITLES[1]}": b'{"nbformat": 4, "cells": []}'}
    inner = zipped(whole | junk | lesson)
    name = "Ada Lovelace_7_assignsubmission_file_/my days.zip"
    if outer:
        (tmp_path / "moodle.zip").write_bytes(zipped({name: inner}))
    else:
        place(tmp_path / "moodle.zip", {name: inner})
    submissions = collect.collect([tmp_path / "moodle.zip"])
    assert summarize(submissions) == [("Ada Lovelace", "7", day) for day in TITLES]
    assert [each.read() for each in submissions] == [answered(day) for day in TITLES]
    assert submissions[0].name == TITLES[1]
    assert "lessons" in only(submissions.notes)


def test_the_zip_of_a_folder_is_as_the_folder(tmp_path):
    (tmp_path / "mine.zip").write_bytes(
        zipped({"mine/ada/day1/x.ipynb": NOTEBOOKS[1], "mine/bob/day1/x.ipynb": NOTEBOOKS[1]})
    )
    assert summarize(collect.collect([tmp_path / "mine.zip"])) == [("ada", "", 1), ("bob", "", 1)]


@pytest.mark.parametrize("how", ["utf-8 flag", "cp437", "utf-8 without its flag"])
def test_names_survive_however_the_zip_was_made(tmp_path, how):
    name = "Zoë Müller_7_assignsubmission_file_/day1.ipynb"
    data = zipped({name: NOTEBOOKS[1]})
    if how == "cp437":
        data = zipped({"Zoe Muller" + name[10:]: NOTEBOOKS[1]}).replace(b"Zoe Muller", "Zoë Müller".encode("cp437"))
    elif how == "utf-8 without its flag":
        data = zipped({"Zo-- M--ller" + name[10:]: NOTEBOOKS[1]}).replace(b"Zo-- M--ller", "Zoë Müller".encode())
    (tmp_path / "a.zip").write_bytes(data)
    submission = only(collect.collect([tmp_path / "a.zip"]))
    assert (submission.student, submission.read()) == ("Zoë Müller", NOTEBOOKS[1])


def test_what_systems_and_graders_leave_is_passed_over(tmp_path):
    rubbish = [
        "__MACOSX/ada/x",
        ".hidden/x",
        "ada/.ipynb_checkpoints/x",
        "ada/._day1",
        "feedback/ada/x",
        "ada/feedback/x",
    ]
    place(tmp_path, {f"{name}.ipynb": b"" for name in rubbish} | {"ada/day1.ipynb": NOTEBOOKS[1]})
    assert summarize(collect.collect([tmp_path])) == [("ada", "", 1)]


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("day1_x", 1),
        ("Day 02", 2),
        ("ada_day3", 3),
        ("day-4", 4),
        ("holiday5", None),
        ("ada", None),
        ("day" + "9" * 5000, None),
    ],
    ids=["day1", "Day 02", "behind", "dash", "holiday", "none", "digits"],
)
def test_the_day_in_a_name(name, day):
    assert day_of(f"{name}.ipynb") == day


# Which of several counts --------------------------------------------------------------------------------------------


def test_of_resubmissions_the_newest_counts_and_a_note_says_so(tmp_path):
    files = {"ada_1_20_day1.ipynb": NOTEBOOKS[1] + b" ", "ada_1_3_day1-1.ipynb": NOTEBOOKS[1]}
    submissions = collect.collect([place(tmp_path, files)])
    assert only(submissions).read() == NOTEBOOKS[1] + b" "
    assert "ada_1_3_day1-1.ipynb is left out" in only(submissions.notes)


@pytest.mark.parametrize("newest", ["a", "b"])
def test_without_numbers_the_time_of_the_file_decides(tmp_path, newest):
    place(tmp_path, {f"ada/day1_{name}.ipynb": NOTEBOOKS[1] for name in "ab"})
    for name in "ab":
        at(tmp_path / f"ada/day1_{name}.ipynb", 2e9 if name == newest else 1e9)
    assert only(collect.collect([tmp_path])).name == f"day1_{newest}.ipynb"


def test_in_a_zip_the_date_of_the_member_decides(tmp_path):
    dated = {
        zipfile.ZipInfo(f"Ada_1_assignsubmission_file_/day1_{y}.ipynb", (y, 1, 1, 0, 0, 0)): NOTEBOOKS[1]
        for y in (2025, 2024)
    }
    (tmp_path / "a.zip").write_bytes(zipped(dated))
    assert only(collect.collect([tmp_path / "a.zip"])).name == "day1_2025.ipynb"


def test_a_newer_notebook_without_the_days_exercises_does_not_count(tmp_path):
    place(tmp_path, {"ada/day1.ipynb": NOTEBOOKS[1], "ada/lesson_day1.ipynb": b'{"nbformat": 4, "cells": []}'})
    at(tmp_path / "ada/day1.ipynb", 1)
    assert only(collect.collect([tmp_path])).name == "day1.ipynb"


def test_days_that_no_name_tells_are_read_from_the_cells(tmp_path):
    place(tmp_path, {"ada/one.ipynb": NOTEBOOKS[2], "ada/two.ipynb": NOTEBOOKS[1], "ada/shopping.ipynb": b"{}"})
    submissions = collect.collect([tmp_path])
    assert [(each.day, each.name) for each in submissions] == [(1, "two.ipynb"), (2, "one.ipynb")]


def test_where_folder_and_name_disagree_the_cells_decide(tmp_path):
    place(tmp_path, {"ada/day1/day2.ipynb": NOTEBOOKS[1], "bob/day1/day2.ipynb": NOTEBOOKS[2]})
    assert summarize(collect.collect([tmp_path])) == [("ada", "", 1), ("bob", "", 2)]


def test_with_a_day_given_the_notebooks_of_other_days_are_left_out(tmp_path):
    place(tmp_path, {"ada/day1.ipynb": NOTEBOOKS[1], "ada/day2.ipynb": NOTEBOOKS[2], "bob/day2.ipynb": NOTEBOOKS[1]})
    submissions = collect.collect([tmp_path], day=1)
    assert [(each.student, each.day, each.name) for each in submissions] == [
        ("ada", 1, "day1.ipynb"),
        ("bob", 1, "day2.ipynb"),
    ]
    assert len(submissions.notes) == 1


def test_a_day_that_the_course_does_not_have_is_looked_for_in_the_cells(tmp_path):
    place(tmp_path, {"ada/day99.ipynb": b"{}"})
    submission = only(collect.collect([tmp_path]))
    assert submission.day is None
    assert grade_submission(submission).status == "unreadable"


def test_what_cannot_be_read_counts_only_where_nothing_else_does(tmp_path):
    place(
        tmp_path,
        {
            "ada/day1.ipynb": NOTEBOOKS[1],
            "ada/day1.zip": b"PK",
            "source/x/day1.ipynb": NOTEBOOKS[1],
            "bob/backup.zip": b"PK",
            "cleo/day1.txt": b"",
        },
    )
    submissions = collect.collect([tmp_path])
    assert [each.problem == "" for each in submissions] == [True, False, False]
    assert "day1.zip" in only(submissions.notes)
    assert ("broken" in reason(submissions[1]), "day1.txt" in reason(submissions[2])) == (True, True)


COPIES = ["{}-Copy1", "{} - Copy", "{} - Copy (2)", "{} copy 2", "Copy of {}"]


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_gives_its_student_no_other_name(tmp_path, copy):
    stem = TITLES[1].removesuffix(".ipynb")
    assert without_day(copy.format(stem)) == ""
    assert without_day(copy.format(f"{stem}_ada")) == "ada"
    files = [f"ada/{copy.format(stem)}.ipynb", f"bob/{stem}.ipynb"]
    submissions = collect.collect([place(tmp_path, dict.fromkeys(files, NOTEBOOKS[1]))])
    assert [each.student for each in submissions] == ["ada", "bob"]


def test_students_of_one_name_stay_two(tmp_path):
    names = [f"Ada Lovelace_{number}_assignsubmission_file_/day1.ipynb" for number in (1, 2)]
    submissions = collect.collect([place(tmp_path, dict.fromkeys(names, NOTEBOOKS[1]))])
    assert [each.student for each in submissions] == ["Ada Lovelace (1)", "Ada Lovelace (2)"]


def moodle_zips(folder, *downloads):
    """Moodle's downloads, each of a day with the participant's number of each student called Anna and of Ben."""
    for place_, (day, *numbers) in enumerate(downloads):
        people = [("Ben", 10 * day), *(("Anna", number) for number in numbers)]
        files = {f"{who}_{number}_assignsubmission_file_/day{day}.ipynb": NOTEBOOKS[day] for who, number in people}
        (folder / f"{place_}.zip").write_bytes(zipped(files))
    return collect.collect(sorted(folder.iterdir()))


SHARED = {
    "two of one name": ([(1, 201, 202), (3, 701, 702)], True),
    "two on one of the days": ([(1, 201, 202), (3, 701)], True),
    "two downloads of one day": ([(1, 201), (1, 301)], True),
    "one student with a number a day": ([(1, 201), (3, 701)], False),
    "one assignment downloaded twice": ([(1, 201), (1, 201)], False),
    "a single download": ([(1, 201, 202)], False),
}


@pytest.mark.parametrize("kind", SHARED)
def test_a_name_that_may_be_two_students_is_told_and_its_days_are_not_joined(tmp_path, kind):
    downloads, doubtful = SHARED[kind]
    submissions = moodle_zips(tmp_path, *downloads)
    annas = [each for each in submissions if each.student.startswith("Anna")]
    numbers = {number for _, *own in downloads for number in own}
    assert {each.shared for each in annas} == {"Anna" if doubtful else ""}
    assert any("WARNING: Anna may be several students" in note for note in submissions.notes) == doubtful
    assert len({each.student for each in annas}) == (len(numbers) if doubtful or len(downloads) == 1 else 1)
    assert {(each.student, each.shared) for each in submissions} - {(e.student, e.shared) for e in annas} == {
        ("Ben", "")
    }


def test_a_run_says_at_its_end_what_is_of_an_earlier_one(tmp_path):
    files = {"Ada_7_assignsubmission_file_/day1.ipynb": b"", "Bob_8_assignsubmission_file_/day1.ipynb": b""}
    (tmp_path / "a.zip").write_bytes(zipped(files))
    place(tmp_path / "out", {"feedback/Cleo/day1.html": b"old"})
    _, _, complaint = course("grade", tmp_path / "a.zip", "--out", tmp_path / "out")
    assert "files of an earlier run" in complaint and complaint.endswith("(1 in all): feedback/Cleo/day1.html\n")


def test_students_whose_folders_would_be_one_on_some_system_stay_two(tmp_path):
    (tmp_path / "a.zip").write_bytes(
        zipped({f"{name}/day1.ipynb": NOTEBOOKS[1] for name in ("AdA", "ADA", "bob\u200b", "bob")})
    )
    submissions = collect.collect([tmp_path / "a.zip"])
    assert [each.student for each in submissions] == ["ADA", "AdA #2", "bob", "bob #2"]
    assert len({safe_name(each.student).casefold() for each in submissions}) == 4


@pytest.mark.parametrize(
    "names",
    [["eve_7_12_99_day1.ipynb"], ["eve_7_50_day1.ipynb", "lovelaceada_7_51_day1.ipynb"]],
    ids=["a name that ends in a number", "two names with one number"],
)
def test_nobody_hands_in_under_anothers_number(tmp_path, names):
    submissions = collect.collect([place(tmp_path, dict.fromkeys(names, NOTEBOOKS[1]))])
    assert {(each.lms_id, each.back) for each in submissions} == {("", "")}
    assert len(submissions) == len(names)


def test_the_order_is_by_student_and_day_whatever_the_order_of_files(tmp_path):
    names = [f"{who}/day{day}.ipynb" for who in ("bob", "Ada", "cleo") for day in (2, 1)]
    for number in range(5):
        random.Random(number).shuffle(names)
        (tmp_path / f"{number}.zip").write_bytes(zipped({name: NOTEBOOKS[int(name[-7])] for name in names}))
    orders = [summarize(collect.collect([tmp_path / f"{number}.zip"])) for number in range(5)]
    assert orders[0] == [(who, "", day) for who in ("Ada", "bob", "cleo") for day in (1, 2)]
    assert orders.count(orders[0]) == 5


# What a student can put into it -------------------------------------------------------------------------------------


def link(name, target="/etc/passwd"):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return {info: target}


def patched(data, offset, value):
    """A zip with two bytes changed at offsets from the start of the local header and of the list of members."""
    data = bytearray(data)
    local, listed = offset
    struct.pack_into("<H", data, local, value)
    struct.pack_into("<H", data, data.index(b"PK\1\2") + listed, value)
    return bytes(data)


def understated():
    """A zip whose list says that a notebook is smaller than it is."""
    data = bytearray(zipped({"day1.ipynb": NOTEBOOKS[1]}))
    struct.pack_into("<L", data, 22, 10)
    struct.pack_into("<L", data, data.index(b"PK\1\2") + 24, 10)
    return bytes(data)


HOSTILE = {
    "slip": (lambda: zipped({"../../day1.ipynb": NOTEBOOKS[1]}), "out of the zip"),
    "slip beside a notebook": (lambda: zipped({"day1.ipynb": NOTEBOOKS[1], "../../../bin/sh": b""}), "out of the zip"),
    "absolute": (lambda: zipped({"/tmp/day1.ipynb": NOTEBOOKS[1]}), "out of the zip"),
    "drive": (lambda: zipped({"C:/day1.ipynb": NOTEBOOKS[1]}), "out of the zip"),
    "backslash": (lambda: zipped({"a\\day1.ipynb": NOTEBOOKS[1]}), "backslash"),
    "control": (lambda: zipped({"day1\n\x1b[2J.ipynb": NOTEBOOKS[1]}), "control character"),
    "nul": (lambda: zipped({"day1_.ipynb": NOTEBOOKS[1]}).replace(b"day1_", b"day1\0"), "control character"),
    "twice": (lambda: zipped([("day1.ipynb", NOTEBOOKS[1]), ("day1.ipynb", b"{}")]), "2 times"),
    "encrypted": (lambda: patched(zipped({"day1.ipynb": NOTEBOOKS[1]}), (6, 8), 1), "encrypted"),
    "unusual": (lambda: zipped({"day1.ipynb": NOTEBOOKS[1]}, zipfile.ZIP_LZMA), "ordinary zip"),
    "link": (lambda: zipped(link("day1.ipynb")), "symbolic link"),
    "large": (lambda: zipped({"day1.ipynb": bytes(51 * 2**20)}), "more than the 50 allowed"),
    "bomb": (lambda: zipped({"day1.ipynb": bytes(20 * 2**20)}), "bomb"),
    "understated": (understated, "broken"),
    "many": (lambda: zipped({f"{number}.ipynb": b"" for number in range(61)}), "more than 60"),
    "many files": (
        lambda: zipped({f"{number}.txt": b"" for number in range(2001)} | {"day1.ipynb": NOTEBOOKS[1]}),
        "2000 files",
    ),
    "deep": (lambda: zipped({"a/" * 5000 + "day1.ipynb": NOTEBOOKS[1]}), "folders deep"),
    "zips in zips": (lambda: zipped({"day1.zip": zipped({"day1.ipynb": NOTEBOOKS[1]})}), "only day1.zip"),
    "cut off": (lambda: zipped({"day1.ipynb": NOTEBOOKS[1]})[:-30], "broken"),
    "no zip": (lambda: b"hello", "broken"),
    "empty": (lambda: b"", "broken"),
}


@cache
def hostile(kind):
    return HOSTILE[kind][0]()


@pytest.mark.parametrize("form", ["in a folder", "in a zip", "named"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_zip_is_one_unreadable_submission_and_touches_no_other(tmp_path, monkeypatch, kind, form):
    data = hostile(kind)
    problem = HOSTILE[kind][1]
    room = tmp_path / "room"
    files = {"Eve_6_assignsubmission_file_/work.zip": data, "Ada_7_assignsubmission_file_/day1.ipynb": NOTEBOOKS[1]}
    if form == "in a folder":
        paths = [place(room, files)]
    elif form == "in a zip":
        paths = [place(room, {"moodle.zip": zipped(files, zipfile.ZIP_STORED)}) / "moodle.zip"]
    else:
        place(room, {f"{name.partition('/')[0]}{name.partition('/')[2]}": content for name, content in files.items()})
        paths = [room]
    before = sorted(tmp_path.rglob("*"))
    ada, eve = collect.collect(paths)
    assert (ada.student, ada.read(), eve.student, eve.lms_id) == ("Ada", NOTEBOOKS[1], "Eve", "6")
    assert problem in reason(eve)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["slip", "absolute", "backslash", "twice", "encrypted", "link", "large", "bomb"])
def test_a_hostile_member_of_a_class_is_one_students(tmp_path, kind):
    bad = hostile(kind)
    problem = HOSTILE[kind][1]
    with zipfile.ZipFile(io.BytesIO(bad)) as made:
        inner = made.infolist()[0]
    folder = "Eve_6_assignsubmission_file_"
    names = {
        "slip": f"../{folder}/day1.ipynb",
        "absolute": f"/{folder}/day1.ipynb",
        "backslash": f"{folder}\\day1.ipynb",
    }
    name = names.get(kind, f"{folder}/day1.ipynb")
    info = zipfile.ZipInfo(name)
    info.external_attr = inner.external_attr
    info.compress_type = zipfile.ZIP_DEFLATED
    content = bytes(inner.file_size) if kind in ("large", "bomb") else NOTEBOOKS[1]
    pairs = [(info, content)] * (2 if kind == "twice" else 1)
    data = zipped(pairs if kind == "twice" else dict(pairs))
    if kind == "encrypted":
        data = patched(data, (6, 8), 1)
    data = io.BytesIO(data)
    with zipfile.ZipFile(data, "a") as made:
        made.writestr("Ada_7_assignsubmission_file_/day1.ipynb", NOTEBOOKS[1])
    (tmp_path / "moodle.zip").write_bytes(data.getvalue())
    ada, eve = collect.collect([tmp_path / "moodle.zip"])
    assert (ada.student, ada.read(), eve.student) == ("Ada", NOTEBOOKS[1], "Eve")
    assert problem in reason(eve)


def test_a_list_of_too_many_members_is_not_read(tmp_path):
    data = zipped({f"{number:060}.txt": b"" for number in range(700)})
    assert len(list_members(data, "a.zip")) == 700
    with pytest.raises(Unreadable, match="too many members"):
        list_members(data, "a.zip", largest_list=70_000)


def test_a_whole_class_among_the_students_is_not_taken_for_one(tmp_path):
    names = [f"{who}_{number}_assignsubmission_file_/day1.ipynb" for who, number in (("Ada", 1), ("Bob", 2))]
    place(tmp_path, {"CS-Day 1-42.zip": zipped(dict.fromkeys(names, NOTEBOOKS[1])), "cleo/day1.ipynb": NOTEBOOKS[1]})
    submissions = collect.collect([tmp_path])
    assert [(each.student, bool(each.problem)) for each in submissions] == [("cleo", False), ("CS", True)]
    assert "several students" in reason(submissions[1])


def test_endless_folders_are_one_unreadable_submission(tmp_path):
    place(tmp_path, {"ada/day1.ipynb": NOTEBOOKS[1], "bob/" + "a/" * 25 + "day1.ipynb": NOTEBOOKS[1]})
    for number in range(2001):
        (tmp_path / "cleo" / str(number % 50) / str(number)).mkdir(parents=True)
    submissions = collect.collect([tmp_path])
    assert [bool(each.problem) for each in submissions] == [False, True, True]
    assert ("folders deep" in reason(submissions[1]), "2000 files" in reason(submissions[2])) == (True, True)


def test_no_damage_to_a_zip_raises_anything_but_unreadable():
    whole = zipped({"a/day1.ipynb": NOTEBOOKS[1][:300], "b.txt": b"x" * 50})
    dice = random.Random(6)
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.choice([dice.randrange(len(data)), -dice.randint(1, 140)])] = dice.randrange(256)
        try:
            for member in list_members(bytes(data), "a.zip"):
                read_member(bytes(data), member.name, "a.zip")
        except Unreadable:
            pass


def test_links_in_a_class_are_not_followed_and_links_of_the_teacher_are(tmp_path):
    secret = place(tmp_path / "other", {"day1.ipynb": NOTEBOOKS[1]})
    room = place(tmp_path / "room", {"ada/day1.ipynb": NOTEBOOKS[1], "ada/more/x.txt": b""})
    (room / "ada" / "data").symlink_to(secret)
    (room / "bob").symlink_to(secret)
    (room / "cleo").mkdir()
    (room / "cleo" / "day1.ipynb").symlink_to(secret / "day1.ipynb")
    (room / "dan.ipynb").symlink_to(secret / "day1.ipynb")
    (tmp_path / "link").symlink_to(room)
    (tmp_path / "one.ipynb").symlink_to(secret / "day1.ipynb")
    submissions = collect.collect([tmp_path / "link", tmp_path / "one.ipynb"])
    assert [(each.student, bool(each.problem)) for each in submissions] == [
        ("ada", False),
        ("bob", True),
        ("cleo", True),
        ("dan", True),
        ("one", False),
    ]
    assert all("symbolic link" in reason(each) for each in submissions[1:4])
    assert submissions[4].read() == NOTEBOOKS[1]


def test_pipes_and_folders_called_notebooks_and_folders_that_cannot_be_listed(tmp_path):
    (tmp_path / "ada").mkdir()
    os.mkfifo(tmp_path / "ada" / "day1.ipynb")
    os.mkfifo(tmp_path / "ada.zip")
    (tmp_path / "bob.ipynb").mkdir()
    (tmp_path / "cleo").mkdir()
    submissions = collect.collect([tmp_path])
    assert {each.student for each in submissions} == {"ada", "bob.ipynb", "cleo"}
    assert all(each.problem for each in submissions)


def test_a_file_that_is_not_there_is_unreadable(tmp_path):
    for name in ("nope.ipynb", "nope.zip", "nope"):
        assert "no such file" in reason(only(collect.collect([tmp_path / name])))


def test_names_that_no_terminal_should_see_become_names_that_can_be_shown(tmp_path):
    for name in (b"\xff\xfe", b"\x1b[31m\n", b"<b>=cmd()"):
        place(tmp_path, {os.fsdecode(name) + "/day1.ipynb": NOTEBOOKS[1]})
    submissions = collect.collect([tmp_path])
    assert [each.student for each in submissions] == ["<b>=cmd()", "[31m", "unnamed"]
    assert all(each.student.isprintable() and each.read() == NOTEBOOKS[1] for each in submissions)


HARD_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "CON",
    "nul.txt",
    "x" * 400,
    "é" * 400,
    "a\n",
    " a",
    "a.",
    "a:b",
    "\udcff",
]


@pytest.mark.parametrize("name", HARD_NAMES, ids=range(len(HARD_NAMES)))
def test_a_name_of_a_folder_is_safe_and_its_own(tmp_path, name):
    safe = safe_name(name)
    assert safe not in ("", ".", "..") and len(safe.encode()) < 100
    assert not set(safe) & set('/\\:*?"<>|\n') and safe == safe.strip(" .")
    assert safe.upper().partition(".")[0] not in ("CON", "NUL")
    (tmp_path / safe).mkdir()
    assert len({safe_name(other) for other in HARD_NAMES}) == len(HARD_NAMES)


def test_a_decent_name_of_a_folder_stays_as_it_is():
    assert [safe_name(name) for name in ("Zoë Ñandú", "山田 太郎", "O'Neil (7)")] == [
        "Zoë Ñandú",
        "山田 太郎",
        "O'Neil (7)",
    ]


# Grading what was found ---------------------------------------------------------------------------------------------


def test_the_number_of_the_lms_goes_into_the_grade_and_only_where_there_is_one(tmp_path):
    place(tmp_path, {"Ada_7_assignsubmission_file_/day1.ipynb": b"", "bob/day1.ipynb": b""})
    ada, bob = (grade_submission(each) for each in collect.collect([tmp_path]))
    assert (ada.lms_id, ada.as_record()["lms_id"], ada.max_score) == ("7", "7", POINTS)
    assert "lms_id" not in bob.as_record()


def test_a_submission_holds_no_content(tmp_path):
    place(tmp_path, {f"student{number}/day1.ipynb": b"x" * 1000 for number in range(300)})
    submissions = collect.collect([tmp_path])
    assert len(submissions) == 300
    assert all(
        isinstance(each, Submission) and not any(isinstance(v, bytes) for v in vars(each).values())
        for each in submissions
    )


def test_a_notebook_that_was_looked_into_is_not_opened_again_unless_a_class_has_too_much(tmp_path, monkeypatch):
    files = {"ada/one.ipynb": NOTEBOOKS[2], "ada/two.ipynb": NOTEBOOKS[1], "bob/day1/day2.ipynb": NOTEBOOKS[1]}
    place(tmp_path, files)
    opened = []
    monkeypatch.setattr(collect, "read_file", lambda path: opened.append(path.name) or path.read_bytes())
    for most, times in ((collect.MAX_HELD_BYTES, 1), (0, 2)):
        monkeypatch.setattr(collect, "MAX_HELD_BYTES", most)
        opened.clear()
        assert [each.read() for each in collect.collect([tmp_path])] == [NOTEBOOKS[1], NOTEBOOKS[2], NOTEBOOKS[1]]
        assert sorted(opened) == sorted(["day2.ipynb", "one.ipynb", "two.ipynb"] * times)


def test_no_python_is_read_to_find_the_day_and_each_student_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("course_utils.checks.cells.statements", None)
    names = "score_33 = weights_3 = order_output = delayed_output = 1\n"
    book = nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(names)])).encode()
    place(tmp_path, {f"class/{who}/{name}.ipynb": book for who in ("ada", "bob") for name in "xy"})
    students = []
    assert summarize(collect.collect([tmp_path / "class"], on_student=students.append)) == [
        ("ada", "", 1),
        ("bob", "", 1),
    ]
    assert students == ["ada", "bob"]
