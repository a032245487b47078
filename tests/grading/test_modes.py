"""The same grades, byte for byte, however kernels start and are held, for a sample and for a sixth of the corpus.

The whole corpus takes more than half an hour: `PYTHONPATH=tests python -m hostile.modes`.
"""

import pytest
from hostile.corpus import CORPUS, write_corpus
from hostile.modes import MODES, differences, grades, open_to
from needs import BUBBLEWRAP, LANDLOCK

SAMPLE = ["moved cells", "half a character", "a kill from within", "the checks patched", "a mask of yes on day 3"]
NEEDS = {"landlock": LANDLOCK, "limits": ()}  # the other modes start kernels below bubblewrap
SHORT = ("landlock", "limits")
PART = list(CORPUS)[::6]
IN_EVERY_MODE = pytest.mark.thorough(
    "a sixth of the hostile corpus graded in every mode: confined warm and cold, by Landlock, by limits, on Dask"
)


def modes(names):
    return [pytest.param(name, marks=NEEDS.get(name, BUBBLEWRAP)) for name in names if name != "warm"]


def compared(mode, first, names, folder):
    """The students whose grades another mode changes."""
    names = [name for name in names if name in open_to(mode)]
    other = grades(mode, list(write_corpus(folder, names).values()))
    assert len(other) == len(names) >= len(SAMPLE)
    return differences(first, other)


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    """The grades of the sample as this machine grades by itself."""
    return grades("best", list(write_corpus(tmp_path_factory.mktemp("best"), SAMPLE).values()))


@pytest.mark.thorough("a sample of the hostile corpus graded by Landlock and by limits")
@pytest.mark.parametrize("mode", modes(SHORT))
def test_a_sample_gets_the_same_grades_in_another_mode(mode, best, tmp_path):
    assert compared(mode, best, SAMPLE, tmp_path) == []


def test_a_difference_of_one_byte_is_seen():
    ours = [{"student": name, "score": 3.0} for name in ("ada", "bob")]
    assert differences(ours, ours) == []
    assert differences(ours, [ours[0], {"student": "bob", "score": 3.0001}]) == ["bob"]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The submissions of a sixth of the corpus, and their grades."""
    written = write_corpus(tmp_path_factory.mktemp("warm"), PART)
    return written, grades("warm", list(written.values()))


@BUBBLEWRAP
@IN_EVERY_MODE
def test_each_of_them_gets_what_it_deserves(warm):
    written, first = warm
    found = {each["student"]: each["score"] for each in first}
    assert found == {submission.student: CORPUS[name].score for name, submission in written.items()}


@BUBBLEWRAP
@IN_EVERY_MODE
@pytest.mark.parametrize("mode", modes(MODES))
def test_a_sixth_of_the_corpus_gets_the_same_grades_in_another_mode(mode, warm, tmp_path):
    names = PART[::3] if mode == "cold" else PART  # a cold kernel takes two seconds to start
    assert compared(mode, warm[1], names, tmp_path) == []
