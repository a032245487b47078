"""The plane of a query without a browser: what it computes, refuses, says and draws."""

import json

import numpy as np
import pytest
import torch
from as_page import on_page, send
from matplotlib.colors import to_hex

from course_utils.attention import arrays, lists, tensors
from course_utils.views import QueryPlane, palette
from course_utils.views.widgets.query_plane_picture import SIDE, place

KEYS = [[1, 0], [0, 1], [-1, 1]]
VALUES = [[0, 0], [2, 0], [1, 2]]
NAMES = ["parcel", "letter", "arrived"]


def plane(query=(1, 0.5), **more):
    return QueryPlane(list(query), KEYS, VALUES, NAMES, **more)


def unscaled(q, k, v):
    powers = np.exp(np.asarray(q) @ np.asarray(k).T)
    weights = powers / powers.sum()
    return weights @ np.asarray(v), weights


def test_weights_and_output_are_those_of_the_course():
    widget = plane()
    output, weights = arrays.attention(np.array([widget.query]), np.array(KEYS, float), np.array(VALUES, float))
    np.testing.assert_allclose(widget.weights, weights[0])
    np.testing.assert_allclose(widget.output, output[0])
    widget.query = torch.tensor([0.25, -2.0])
    assert widget.query == [0.25, -2.0] and widget.weights[0] > widget.weights[1]


def test_a_query_of_length_zero_gives_the_mean_and_a_long_one_a_value():
    widget = plane((0, 0))
    np.testing.assert_allclose(widget.output, np.mean(VALUES, axis=0))
    widget.query = [12, 0]
    np.testing.assert_allclose(widget.output, VALUES[0], atol=0.01)


@pytest.mark.parametrize("kind", [list, np.array, lambda rows: torch.tensor(rows, dtype=torch.float64)])
@pytest.mark.parametrize("attention", [lists.attention, arrays.attention, tensors.attention])
def test_a_right_function_agrees_whatever_it_works_on(kind, attention):
    widget = QueryPlane([1, 0.5], kind(KEYS), kind(VALUES), NAMES, attention=attention)
    assert widget.verdict == "attention agrees with the arithmetic for this query." and widget.problem == ""
    widget.query = [0, -1]
    assert on_page(widget).theirs["query"] == [0, -1] and "agrees" in widget.verdict


def test_a_wrong_function_is_reported_where_it_differs():
    assert plane(attention=unscaled).verdict == (
        "unscaled differs: its weight of “parcel” is 0.55, the arithmetic gives 0.49."
    )

    def turned(q, k, v):
        output, weights = arrays.attention(np.asarray(q), np.asarray(k), np.asarray(v))
        return output[:, ::-1], weights

    assert plane(attention=turned).verdict == (
        "turned differs: its weights are right, but its output is (0.34, 0.85), not (0.85, 0.34)."
    )


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (lambda q, k, v: 1 / 0, "raised ZeroDivisionError"),
        (lambda q, k, v: np.eye(3), "the pair (output, weights) was expected"),
        (lambda q, k, v: (np.ones((1, 3)), np.ones((1, 3))), "output of shape (1, 3): (1, 2) was expected"),
        (lambda q: q, "raised TypeError"),
    ],
)
def test_a_function_that_fails_becomes_a_message(attention, message):
    widget = plane(attention=attention)
    assert message in widget.problem and widget.verdict == widget.problem and message in widget.as_text()


def test_nan_from_a_function_travels_as_json_and_is_reported():
    widget = plane(attention=lambda q, k, v: (np.full((1, 2), np.nan), np.array([[np.inf, np.nan, 0]])))
    json.dumps(widget.get_state(), default=str, allow_nan=False)
    assert on_page(widget).theirs["output"] == ["NaN", "NaN"]
    assert "differs: its weight of “parcel” is ∞" in widget.verdict


def test_what_a_function_prints_is_not_shown(capsys):
    def loud(q, k, v):
        print("here")
        return unscaled(q, k, v)

    widget = plane(attention=loud)
    send(widget, query=[0.5, 0.5])
    assert widget.query == [0.5, 0.5] and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": [1, 2, 3]}, r"query has shape \(3,\): give one row of 2 to 2 numbers"),
        ({"query": "north"}, "query is 'north': give a list of numbers"),
        ({"query": [float("nan"), 0]}, r"query\[0\] is nan"),
        ({"query": [1e5, 0]}, "give numbers from -1000 to 1000"),
        ({"keys": KEYS[:2], "values": VALUES[:2]}, "there are 2 keys: the plane shows 3 to 8"),
        ({"keys": [[1, 0]] * 9}, "there are 9 keys"),
        ({"keys": [[1, 0, 0]] * 3}, r"keys is \(3, 3\): give two numbers for each"),
        ({"keys": [[1, float("inf")]] * 3}, r"keys\[0, 1\] is inf"),
        ({"values": VALUES[:2]}, r"values is \(2, 2\) but keys is \(3, 2\): one value per key"),
        ({"values": [[1e9, 0]] * 3}, "values holds 1e.09: give numbers up to 1000"),
        ({"names": ["a"]}, "there are 1 names but 3 keys"),
        ({"names": "abc"}, "names is one string"),
        ({"attention": 3}, "attention is int: give a function"),
    ],
)
def test_what_does_not_fit_is_reported(change, message):
    with pytest.raises(ValueError, match=message):
        QueryPlane(**{"query": [1, 0.5], "keys": KEYS, "values": VALUES, "names": NAMES, **change})


def test_a_query_that_is_too_long_is_refused_and_the_old_one_stays():
    widget = plane()
    with pytest.raises(ValueError, match="query is 100 long: here it may be up to 12"):
        widget.query = [100, 0]
    assert widget.query == [1, 0.5]


@pytest.mark.parametrize(
    ("query", "keys", "values"),
    [
        ([0, 0], [[0, 0]] * 3, [[0, 0]] * 3),
        ([1e-9, 0], [[1e-9, 0]] * 3, [[1e-9, 2e-9]] * 3),
        ([900, 900], [[1000, -1000]] * 8, [[1000, 1000]] * 8),
        ([1, 1], [[0.3, 0.3]] * 4, [[1, 1], [2, 2], [3, 3], [4, 4]]),
    ],
)
def test_extremes_can_be_drawn(query, keys, values):
    widget = QueryPlane(query, keys, values)
    widget.figure()
    json.dumps(on_page(widget).scene, allow_nan=False)
    assert "nan" not in widget.as_text() and len(on_page(widget).scene["outputs"]["hull"]) >= 1


def test_keys_values_and_labels_stand_within_their_planes():
    scene = on_page(plane()).scene
    for frame, points in ((scene["queries"], KEYS), (scene["outputs"], VALUES)):
        assert all(0 <= part <= SIDE for point in points for part in place(frame, point))
        assert all(0 <= part <= SIDE for spot in frame["labels"] for part in spot)


def test_labels_of_keys_at_one_place_do_not_cover_each_other():
    spots = on_page(QueryPlane([1, 0], [[1, 1]] * 4, [[1, 1]] * 4)).scene["queries"]["labels"]
    assert len({tuple(spot) for spot in spots}) == 4


def test_a_key_that_the_query_lies_along_is_drawn_on_it_and_thinner():
    widget = QueryPlane([1, 1], [[1, 0], [0, 1], [1, 1]], VALUES, NAMES)
    arrows = [text for text in widget.figure().axes[0].texts if getattr(text, "arrow_patch", None)]
    query, key = (arrow.arrow_patch for arrow in arrows if arrow.xy == arrows[-1].xy)
    assert [to_hex(each.get_edgecolor()).upper() for each in (query, key)] == [palette.QUERY, palette.KEY]
    assert query.get_linewidth() > 2 * key.get_linewidth()


def test_labels_keep_clear_of_axes_of_numbers_and_of_the_edge():
    names = ["the", "parcel", "arrived"]
    scene = on_page(QueryPlane([1, 1], [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [0, 0]], names)).scene
    for name, crossed in (("queries", True), ("outputs", False)):
        numbers = [place(scene[name], (0, value))[1] for value, _ in scene[name]["ticks"][1]]
        for (left, baseline), label in zip(scene[name]["labels"], names, strict=True):
            right = left + 6 * len(label)
            top = baseline - 10
            assert min(left, top) >= 8 and max(right, baseline) <= SIDE - 8
            assert left > 24 or all(not top - 4 < y < baseline + 4 for y in numbers)
            if crossed:
                assert not top < SIDE / 2 < baseline and not left < SIDE / 2 < right


def test_the_text_is_a_table():
    assert plane().as_text().splitlines() == [
        "query (1.00, 0.50), length 1.12",
        "key      q·k/√2  weight",
        "parcel     0.71    0.49",
        "letter     0.35    0.34",
        "arrived   −0.35    0.17",
        "output (0.85, 0.34)",
    ]
    assert "its weights: parcel 0.49, letter 0.34, arrived 0.17" in plane().alt()
