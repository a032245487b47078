"""The same grades, byte for byte, however kernels start and are held; `hostile.modes` does it for the whole corpus."""

import pytest
from hostile.corpus import CORPUS, write_corpus
from hostile.modes import MODES, differences, grades, open_to

SAMPLE = (
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
)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return grades("warm", list(write_corpus(tmp_path_factory.mktemp("warm"), SAMPLE).values()))


def test_the_sample_gets_what_it_deserves(first):
    assert [each["score"] for each in first] == [CORPUS[name].score for name in SAMPLE]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "warm"])
def test_another_mode_gives_the_same_grades(mode, first, tmp_path):
    assert set(SAMPLE) <= set(open_to(mode))
    other = grades(mode, list(write_corpus(tmp_path, SAMPLE).values()))
    assert differences(first, other) == [] and len(other) == len(SAMPLE)


def test_a_difference_of_one_byte_is_seen(first):
    (one, *rest) = first
    assert differences(first, [{**one, "score": one["score"] + 0.0001}, *rest]) == [one["student"]]
