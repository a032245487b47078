"""What no submission can do: earn a point that it should not, touch another's grade, or leave anything behind."""

import json
from dataclasses import replace

import pytest
from hostile.corpus import (
    CORPUS,
    harmed,
    left_lying,
    left_running,
    listener,
    record_of,
    verdicts,
    write_corpus,
    write_entry,
)
from hostile.entries import UNREADABLE, in_answers
from needs import EITHER

from course_utils.grading.classroom import grade_class
from course_utils.grading.grade import Settings, grade_submission
from course_utils.grading.intake.collect import Submission
from course_utils.sandbox.limits import Limits

SETTINGS = Settings(limits=Limits(cell_seconds=3, idle_seconds=4, memory_bytes=2**31))
WORST = (
    "later exercises sabotaged",
    "a kill from within",
    "a shot at the parent",
    "50 MB in one print",
    "50 MB past Python",
    "other submissions changed",
    "folders that cannot be deleted",
    "evidence of 12 MB",
    "a zip bomb",
)
WAITING = [name for name, entry in CORPUS.items() if "timeout" in getattr(entry.deserves, "values", list)()]
TOGETHER = (*WAITING, *WORST)  # graded as one class: most wait out a limit


@pytest.fixture(scope="module")
def call():
    with listener() as (port, heard):
        yield port, heard


@pytest.fixture(scope="module", autouse=True)
def scratch(tmp_path_factory):
    """The folder for temporary files of this module's tests."""
    folder = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        yield folder


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=EITHER if entry.needs == "files" else ())
        for name, entry in CORPUS.items()
        if name not in TOGETHER
    ],
)
def test_it_gets_what_it_deserves_and_leaves_nothing(name, tmp_path, call, scratch):
    entry, (port, heard) = CORPUS[name], call
    record = record_of(grade_submission(write_entry(entry, tmp_path, port), SETTINGS))
    assert verdicts(record) == entry.deserves
    assert record["score"] == entry.score
    assert [text for text in entry.untold if text in json.dumps(record)] == []
    assert left_running() == []
    assert left_lying(scratch, *tmp_path.iterdir()) == []
    assert harmed(tmp_path) == []
    assert heard == []


def test_the_corpus_is_as_large_as_it_should_be():
    assert len(CORPUS) >= 60
    assert {entry.day for entry in CORPUS.values()} == {1, 2, 3, 4, 5, 6, 7}
    assert sum(entry.deserves == UNREADABLE for entry in CORPUS.values()) < len(CORPUS) / 3


def test_a_class_of_the_worst_changes_no_honest_grade_and_leaves_nothing(tmp_path, call, scratch):
    port, heard = call
    honest = Submission("ada", in_answers({})(tmp_path), 1)
    of_machines = Submission("eve", in_answers({}, 7)(tmp_path), 7)
    written = write_corpus(tmp_path / "class", TOGETHER, port)
    submissions = [honest, of_machines, *written.values(), replace(honest, student="zoe")]
    graded = grade_class(submissions, SETTINGS, jobs=8).graded
    assert [each.score for each in (graded[0], graded[-1])] == [27, 27]
    assert graded[1].score == CORPUS["honest kinds of results"].score
    records = {name: record_of(each) for name, each in zip(TOGETHER, graded[2:-1], strict=True)}
    assert {name: verdicts(record) for name, record in records.items()} == {
        name: CORPUS[name].deserves for name in TOGETHER
    }
    assert {name: record["score"] for name, record in records.items()} == {
        name: CORPUS[name].score for name in TOGETHER
    }
    assert left_running() == []
    assert left_lying(scratch, tmp_path / "class", *(tmp_path / "class").iterdir()) == []
    assert harmed(tmp_path / "class") == []
    assert heard == []
