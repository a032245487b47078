"""What an index finds: on scores made up for it, and on the queries and keys of the model that repeats."""

import numpy as np
import pytest

from course_utils.models import chosen_keys

pytestmark = pytest.mark.usefixtures("one_thread")
SCORES = np.log([[1.0, 2.0, 3.0, 4.0]])  # as weights 0.1, 0.2, 0.3, 0.4, with a scale of 1


@pytest.mark.parametrize(
    ("index", "recall", "weight"),
    [([1, 2, 3, 4], 1, 0.7), ([4, 3, 2, 1], 0, 0.3), ([1, 4, 2, 3], 0.5, 0.6)],
)
def test_recall_counts_the_heaviest_keys_and_weight_adds_those_chosen(index, recall, weight):
    choice = chosen_keys.measure(SCORES, np.array([index], dtype=float), [2], d=1)
    assert (choice.recall, choice.weight) == ([recall], pytest.approx([weight]))


def test_the_weight_is_that_of_scaled_scores():
    (weight,) = chosen_keys.measure(2 * SCORES, SCORES, [1], d=4).weight
    assert weight == pytest.approx(0.4)


def test_an_index_of_all_directions_is_exact_and_fewer_are_not():
    q, k = chosen_keys.queries_and_keys(4)
    d = q.shape[-1]
    exact = chosen_keys.exact(q, k)
    assert np.allclose(chosen_keys.cut(q, k, chosen_keys.directions(k, d)), exact, atol=1e-10)
    errors = [np.abs(chosen_keys.cut(q, k, chosen_keys.directions(k, n)) - exact).mean() for n in (12, 8, 4)]
    assert 0.1 < errors[0] < errors[1] < errors[2]


def test_directions_are_those_in_which_keys_are_longest():
    k = np.array([[[[3.0, 0, 0], [0, 1, 0], [0, 0, 2]]]])
    assert np.abs(chosen_keys.directions(k, 2))[0].T.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_block_is_scored_by_its_mean():
    q, k = np.array([[[1.0, 0]]]), np.array([[[[1.0, 5], [3, 5], [0, 5], [-2, 5]]]])
    assert chosen_keys.by_block(q, k, 2).tolist() == [[[2, 2, -1, -1]]]


def test_the_head_looks_for_a_key_29_places_back():
    q, k = chosen_keys.queries_and_keys(16)
    heaviest = chosen_keys.exact(q, k).argmax(axis=-1)  # (texts, h)
    wanted = 2 * chosen_keys.PERIOD - 1 - 29
    assert (heaviest == wanted).mean() > 0.5


def test_every_way_but_the_exact_one_misses_keys_and_a_larger_index_fewer():
    choices = chosen_keys.compare((8, 48))
    recalls = {name: choice.recall[0] for name, choice in choices.items()}
    assert recalls["exact scores"] == 1
    assert recalls["the latest keys"] < recalls["means of 4 keys"] < recalls["index of 4 numbers"]
    assert recalls["index of 4 numbers"] < recalls["index of 8 numbers"] < 1
    assert all(choice.weight[0] < choice.weight[1] for choice in choices.values())
