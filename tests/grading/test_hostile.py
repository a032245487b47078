"""What no submission can do: earn a point that it should not, touch another's grade, or leave anything behind."""

import json

import pytest
from hostile.corpus import (
    CORPUS,
    THEMES,
    harmed,
    listener,
    owners,
    record_of,
    remaining_files,
    remaining_processes,
    verdicts,
    write_corpus,
)
from hostile.entries import UNREADABLE, in_answers
from needs import EITHER

from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.grading.classroom import grade_class
from course_utils.grading.intake.collect import Submission
from course_utils.grading.results import Settings
from course_utils.sandbox.limits import Limits

SETTINGS = Settings(limits=Limits(cell_seconds=8, idle_seconds=4, memory_bytes=2**31), jobs=2)
SAMPLE = (
    "edited checks",
    "a zip that slips",
    "a background process",
    "a shot at the parent",
    "folders that cannot be deleted",
    "the checks patched",
    "evidence shown in the check",
    "the answer fetched",
    "a library of its own",
    "the modes switched off",
    "labels in the frames",
    "numbers that turn",
)  # of each theme one at least
BY_FILES = tuple(name for name, entry in CORPUS.items() if entry.needs == "files")
REST = [name for name in CORPUS if name not in {*SAMPLE, *BY_FILES}]
CLASS = 45  # entries graded as one class: to start costs once
WHOLE = pytest.mark.thorough("the whole hostile corpus graded in classes")


@pytest.fixture(scope="module")
def call():
    with listener() as (port, received):
        yield port, received


@pytest.fixture(scope="module", autouse=True)
def scratch(tmp_path_factory):
    """The folder for temporary files of this module's tests."""
    folder = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        yield folder


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SAMPLE, id="a sample"),
        pytest.param(BY_FILES, id="by files", marks=[WHOLE, EITHER]),
        *(pytest.param(REST[at : at + CLASS], id=f"from {at}", marks=WHOLE) for at in range(0, len(REST), CLASS)),
    ],
)
def test_in_a_class_each_gets_what_it_deserves_changes_no_honest_grade_and_leaves_nothing(
    names, tmp_path, call, scratch
):
    port, received = call
    ada = in_answers({})(tmp_path)
    zoe = tmp_path / "day1_zoe.ipynb"
    zoe.write_bytes(ada.read_bytes() + b"\n")  # the same file would not be graded again
    written = write_corpus(tmp_path / "class", names, port)
    submissions = [Submission("ada", ada, 1), *written.values(), Submission("zoe", zoe, 1)]
    graded = grade_class(submissions, SETTINGS).graded
    records = {name: record_of(each) for name, each in zip(names, graded[1:-1], strict=True)}
    assert {name: (verdicts(record), record["score"]) for name, record in records.items()} == {
        name: (CORPUS[name].deserves, CORPUS[name].score) for name in names
    }
    leaks = {name: [text for text in CORPUS[name].withheld if text in json.dumps(records[name])] for name in names}
    assert {name: texts for name, texts in leaks.items() if texts} == {}
    listed = {
        name: [each["id"] for each in records[name]["exercises"] if each.get("review")]
        for name in names
        if CORPUS[name].listed
    }
    assert listed == {name: [*CORPUS[name].listed] for name in listed}
    assert [graded[0].score, graded[-1].score] == [27, 27]
    assert owners(remaining_processes()) == []
    assert owners(remaining_files(scratch, tmp_path / "class", *(tmp_path / "class").iterdir())) == []
    assert owners(harmed(tmp_path / "class")) == []
    assert owners(received) == []


def test_the_corpus_is_as_large_as_it_should_be():
    assert len(CORPUS) >= 60
    assert {entry.day for entry in CORPUS.values()} == set(days_with_exercises())
    assert sum(entry.deserves == UNREADABLE for entry in CORPUS.values()) < len(CORPUS) / 3
    assert all(any(entry.name in SAMPLE for entry in entries) for entries in THEMES.values())
