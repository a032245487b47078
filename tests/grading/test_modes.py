"""The same grades, byte for byte, however kernels start and are held, for a twelfth of the corpus.

The whole corpus takes more than half an hour: `PYTHONPATH=tests python -m hostile.modes`.
"""

import pytest
from hostile.corpus import CORPUS, write_corpus
from hostile.modes import MODES, differences, grades, open_to
from needs import BUBBLEWRAP, LANDLOCK

NEEDS = {"landlock": LANDLOCK, "limits": ()}  # the other modes start kernels below bubblewrap
PART = list(CORPUS)[::12]


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    """The grades as this machine grades by itself; `test_hostile.py` says what they must be."""
    return grades("best", list(write_corpus(tmp_path_factory.mktemp("best"), PART).values()))


@pytest.mark.thorough(
    "a twelfth of the hostile corpus graded in every mode: confined warm and cold, by Landlock, by limits, on Dask"
)
@pytest.mark.parametrize(
    "mode", [pytest.param(name, marks=NEEDS.get(name, BUBBLEWRAP)) for name in MODES if name != "warm"]
)
def test_a_twelfth_of_the_corpus_gets_the_same_grades_in_another_mode(mode, best, tmp_path):
    part = PART[::3] if mode == "cold" else PART  # to start a cold kernel takes two seconds
    names = [name for name in part if name in open_to(mode)]
    other = grades(mode, list(write_corpus(tmp_path, names).values()))
    assert len(other) == len(names) >= 5
    assert differences(best, other) == []


def test_a_difference_of_one_byte_is_seen():
    ours = [{"student": name, "score": 3.0} for name in ("ada", "bob")]
    assert differences(ours, ours) == []
    assert differences(ours, [ours[0], {"student": "bob", "score": 3.0001}]) == ["bob"]
