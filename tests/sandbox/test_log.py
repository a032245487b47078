"""The log of kernels: what each was asked, what came back, how it ended."""

import json

import pytest
from hostile.entries import in_answers
from in_process import course

from course_utils.errors import CourseError
from course_utils.grading.grade import grade_notebook
from course_utils.sandbox.log import LONGEST, KernelLog, begin_log


def events(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


SLIPS = {"softmax_row": "def softmax_row(row):\n    return 1 / 0", "scores": "import os\nos._exit(3)"}


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A class of two who handed in the same: its folder, its grades without seconds, and what its log tells."""
    folder = tmp_path_factory.mktemp("logged")
    for student in ("ada", "grace"):
        (folder / "class" / student).mkdir(parents=True)
        in_answers(SLIPS)(folder / "class" / student).rename(folder / "class" / student / "day1.ipynb")
    log = folder / "log.jsonl"
    out = folder / "grades"
    assert course("grade", folder / "class", "--out", out, "--jobs", 1, "--log", log)[0] == 0
    records = json.loads((out / "grades.json").read_text(encoding="utf-8"))["submissions"]
    return folder / "class", [each | {"seconds": 0} for each in records], events(log)


def test_it_tells_of_each_kernel_what_it_was_asked_and_how_it_ended(logged):
    entries = logged[2]
    assert {each["student"] for each in entries} == {"ada"}  # the other's notebook is the same, and not run again
    assert all(each["kernel"] for each in entries)
    lost = [each for each in entries if each["event"] == "lost"]  # by all answers together, and by this one alone
    assert len(lost) == 2 and {each["status"] for each in lost} == {"killed"}
    assert all("ended the Python process" in each["why"] for each in lost)
    for kernel in {each["kernel"] for each in entries}:
        mine = [each["event"] for each in entries if each["kernel"] == kernel]
        assert mine[0] == "started" and mine[-1] == "stopped" and mine.count("cell") >= mine.count("answered") > 0
    first = [each for each in entries if each["kernel"] == lost[0]["kernel"]]
    assert [each["source"] for each in first if each["event"] == "cell"][-1] == SLIPS["scores"]
    answered = [each for each in entries if each["event"] == "answered"]
    assert all(each["seconds"] >= 0 and each["received"] > 0 and each["status"] in ("ok", "error") for each in answered)


def test_grades_are_as_without_it(logged):
    folder, records, _ = logged
    graded = grade_notebook(folder / "ada" / "day1.ipynb")
    for student, record in zip(("ada", "grace"), records, strict=True):
        plain = {**graded.as_record(), "student": student, "seconds": 0}
        assert record == json.loads(json.dumps(plain))


def test_it_begins_empty_and_cuts_what_is_long(tmp_path):
    path = tmp_path / "log"
    path.write_text("old")
    log = KernelLog(begin_log(path), "ada")
    log.note("cell", source="x" * (LONGEST + 1))
    (entry,) = events(path)
    assert entry["event"] == "cell" and len(entry["source"]) == LONGEST and entry["student"] == "ada"


def test_a_place_that_cannot_be_written_is_an_error_before_anything_is_graded(tmp_path):
    with pytest.raises(CourseError, match="no log can be written there"):
        begin_log(tmp_path / "none" / "log")
    notebook = in_answers({})(tmp_path)
    code, _, complaint = course("grade", notebook, "--log", tmp_path)
    assert code == 2 and "no log can be written there" in complaint


def test_a_log_that_vanishes_stops_nothing(tmp_path):
    log = KernelLog(str(tmp_path / "gone" / "log"))
    log.note("cell", source="1")
    KernelLog().note("cell", source="1")
    assert not list(tmp_path.iterdir())


def test_a_cluster_writes_none_here(tmp_path):
    code, _, complaint = course("grade", tmp_path, "--log", tmp_path / "log", "--dask", "tcp://127.0.0.1:1")
    assert code == 2 and "leave out --log or --dask" in complaint
