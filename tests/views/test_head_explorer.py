"""The head explorer without a browser: what it takes, refuses, measures, says and sends."""

import json

import numpy as np
import pytest
from as_page import on_page, send
from letter_model import of_letters
from matplotlib.patches import PathPatch

from course_utils.models import real_sentences
from course_utils.models.pretrained import store
from course_utils.views import HeadExplorer
from course_utils.views.static_page import page_state

TEXT = "abcab"


@pytest.fixture
def tiny():
    return of_letters()


@pytest.fixture
def no_model(monkeypatch):
    monkeypatch.setenv("COURSE_MODEL", "none")


def test_it_begins_with_the_parcel_and_needs_no_model_for_that(no_model):
    widget = HeadExplorer()
    assert (widget.head, widget.query, widget.key) == ((13, 8), 5, 1)
    assert widget.as_text().splitlines()[3:6] == [
        "layer 13, head 8, from 5 “arrived” to",
        "  1 “parcel”  0.96",
        "  2 “that”  0.03",
    ]
    assert "most to 1 “parcel”, 0.96" in widget.alt() and "layer 13, head 8 leads with 0.96" in widget.alt()
    assert "COURSE_MODEL is none" in on_page(widget).field["missing"]


def test_where_the_model_is_missing_a_sentence_of_ones_own_says_how_to_get_it(no_model):
    widget = HeadExplorer()
    with pytest.raises(store.NoModel, match="COURSE_MODEL is none"):
        widget.look("The cat sat")
    send(widget, typed={"text": "The cat sat", "recorded": False, "number": 1})
    assert on_page(widget).said["number"] == 1 and "COURSE_MODEL is none" in on_page(widget).said["text"]
    assert on_page(widget).shown["text"] == real_sentences.SENTENCES[0]
    send(widget, typed={"text": real_sentences.SENTENCES[1], "recorded": True, "number": 2})
    assert on_page(widget).said == {"text": "", "number": 2} and widget.tokens[-1] == " were"
    assert (widget.query, widget.key) == (9, 1), "the last token, and where this head looks most"


def test_the_sentences_that_ask_about_it_are_shown_from_it_and_others_from_their_last_token():
    for text in HeadExplorer.recorded():
        widget = HeadExplorer(text)
        asked = " it" if "because it" in text else widget.tokens[-1]
        assert widget.tokens[widget.query] == asked and on_page(widget).shown["query"] == widget.query
        assert widget.key == widget.weights[(*widget.head, widget.query)].argmax()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "Type a sentence first."),
        ("a", "That is one token, which can only look at itself: type two or more."),
        ("a" * 25, "That is 25 tokens long: at most 24 fit here. Leave some words out."),
        ("a" * 401, "That is 401 letters long: at most 400 fit, and at most 24 tokens."),
    ],
)
def test_what_does_not_fit_is_reported_and_changes_nothing(tiny, text, message):
    widget = HeadExplorer(TEXT, model=tiny)
    before = page_state(widget)["_alone"]
    with pytest.raises(ValueError, match=message):
        widget.look(text)
    send(widget, typed={"text": text, "recorded": False, "number": 1})
    assert on_page(widget).said == {"text": message, "number": 1}
    assert page_state(widget)["_alone"] == before


def test_a_typed_sentence_is_read_and_shown_from_its_last_token(tiny):
    widget = HeadExplorer(TEXT, head=(1, 2), model=tiny)
    widget.query = 1
    send(widget, typed={"text": "  xyzzy x ", "recorded": False, "number": 1})
    assert widget.tokens == [*"xyzzy", " ", "x"] and widget.query == 6 and widget.head == (1, 2)
    np.testing.assert_allclose(widget.weights, tiny.look("xyzzy x")[1].numpy(), atol=0.5 / 255 + 1e-6)
    assert widget.key == widget.weights[1, 2, 6].argmax()
    sent = on_page(widget).shown
    assert len(sent["levels"]) == 2 * 3 * 7 * 8 / 2, "a byte for each weight up to the diagonal"
    assert sent["tokens"] == ["x", "…y", "…z", "…z", "…y", "␣", "…x"] and sent["source"] == "computed here by tiny"


def test_shares_are_means_over_the_tokens_that_can_have_them(tiny):
    widget = HeadExplorer(TEXT, model=tiny)
    w = widget.weights
    widget.query = 3
    widget.key = 2
    expected = {
        "pair": w[:, :, 3, 2],
        "before": sum(w[:, :, i, i - 1] for i in range(1, 5)) / 4,
        "first": w[:, :, 1:, 0].mean(-1),
        "itself": sum(w[:, :, i, i] for i in range(1, 5)) / 4,
        "again": (w[:, :, 3, 1] + w[:, :, 4, 2]) / 2,  # the second a and the second b, at what followed the first
    }
    for measure, shares in expected.items():
        widget.measure = measure
        np.testing.assert_allclose(widget.shares(), shares, atol=1e-12)
        ranked = widget.ranked()
        assert [share for _, share in ranked] == sorted(widget.shares().ravel().tolist(), reverse=True)
        assert all(widget.shares()[head] == share for head, share in ranked)


def test_where_nothing_is_repeated_that_share_is_nothing(tiny):
    widget = HeadExplorer("abc", model=tiny)
    widget.measure = "again"
    assert not widget.shares().any()


def test_what_is_chosen_has_to_be_there(tiny):
    widget = HeadExplorer(TEXT, model=tiny)
    for name, value, text in (
        ("head", (2, 0), r"head is \(2, 0\): layers go from 0 to 1, heads from 0 to 2"),
        ("query", 5, "query is 5 but there are 5 tokens: 0 to 4"),
        ("key", -1, "key is -1 but there are 5 tokens"),
    ):
        with pytest.raises(ValueError, match=text):
            setattr(widget, name, value)
    widget.query = 3
    widget.key = 3
    widget.query = 1
    assert widget.key <= 1, "no token looks ahead"
    with pytest.raises(ValueError, match="key is 2 and query 1: a token looks at itself and earlier ones"):
        widget.key = 2
    with pytest.raises(ValueError, match="layers go from 0 to 1"):
        HeadExplorer(TEXT, head=(13, 8), model=tiny)


def test_another_model_may_have_fewer_heads_than_the_recorded_one(tiny, monkeypatch):
    widget = HeadExplorer()
    monkeypatch.setattr(real_sentences, "here", lambda: (tiny, "a tiny one"))
    widget.look(TEXT)
    assert widget.weights.shape[:2] == (2, 3) and widget.head < (2, 3) and "by a tiny one" in widget.as_text()


def test_a_page_without_a_kernel_gets_what_is_shown_and_recorded_sentences_as_room_allows():
    longest = HeadExplorer("ab" * 12, model=of_letters(30, 9))
    states = [page_state(HeadExplorer()), page_state(longest)]
    for state in states:
        assert len(json.dumps(state)) < 150_000
        sent = [sentence and sentence["text"] for sentence in state["_alone"]["sentences"]]
        assert sent.pop(state["_alone"]["at"]) is None, "what is shown is sent once"
        assert sent == [text for text in state["_offered"] if text != state["_shown"]["text"]]
    assert states[0]["_offered"] == [*HeadExplorer.recorded()] == [*real_sentences.SENTENCES]
    assert states[1]["_offered"] == ["ab" * 12, real_sentences.SENTENCES[0], real_sentences.SENTENCES[-1]]


def test_the_picture_has_an_arc_as_thick_as_each_weight(no_model):
    widget = HeadExplorer()
    widget.query = 4  # “sent” looks at “we” .59, “parcel” .29, and four more
    widths = sorted(arc.get_linewidth() for arc in widget.figure().findobj(PathPatch))
    row = np.sort(widget.weights[13, 8, 4])
    np.testing.assert_allclose(widths, 0.8 + 6 * row[row >= 5 / 255])
