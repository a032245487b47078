"""The same grades, byte for byte, however kernels start and are held: in CI for the whole corpus, else for a sample."""

import os

import pytest
from hostile.corpus import CORPUS, write_corpus
from hostile.modes import MODES, differences, grades, open_to

SAMPLE = [
    "moved cells",
    "half a character",
    "a zip bomb",
    "a list without end",
    "a kill from within",
    "a memory bomb at once",
    "the checks patched",
    "evidence of words",
    "the answer fetched",
    "a mask of yes on day 3",
]
NAMES = list(CORPUS) if os.environ.get("CI") else SAMPLE


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("warm"), NAMES)


@pytest.fixture(scope="module")
def first(written):
    return grades("warm", list(written.values()))


def test_each_gets_what_it_deserves(written, first):
    found = {each["student"]: each["score"] for each in first}
    assert found == {submission.student: CORPUS[name].score for name, submission in written.items()}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "warm"])
def test_another_mode_gives_the_same_grades(mode, first, tmp_path):
    names = [name for name in NAMES if name in open_to(mode)]
    assert set(SAMPLE) <= set(names)
    other = grades(mode, list(write_corpus(tmp_path, names).values()))
    assert differences(first, other) == [] and len(other) == len(names)


def test_a_difference_of_one_byte_is_seen(first):
    (one, *rest) = first
    assert differences(first, [{**one, "score": one["score"] + 0.0001}, *rest]) == [one["student"]]
