"""The head explorer without a browser: what it takes, refuses, measures, says and sends."""

import json

import numpy as np
import pytest
from as_page import on_page, send
from matplotlib.patches import PathPatch
from of_letters import of_letters

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
    shown = HeadExplorer()
    assert (shown.head, shown.query, shown.key) == ((13, 8), 5, 1)
    assert shown.as_text().splitlines()[3:6] == [
        "layer 13, head 8, from 5 “arrived” to",
        "  1 “parcel”  0.96",
        "  2 “that”  0.03",
    ]
    assert "most to 1 “parcel”, 0.96" in shown.alt() and "layer 13, head 8 leads with 0.96" in shown.alt()
    assert "COURSE_MODEL is none" in on_page(shown).field["missing"]


def test_where_the_model_is_missing_a_sentence_of_ones_own_says_how_to_get_it(no_model):
    shown = HeadExplorer()
    with pytest.raises(store.NoModel, match="COURSE_MODEL is none"):
        shown.look("The cat sat")
    send(shown, typed={"text": "The cat sat", "recorded": False, "number": 1})
    assert on_page(shown).said["number"] == 1 and "COURSE_MODEL is none" in on_page(shown).said["text"]
    assert on_page(shown).shown["text"] == real_sentences.SENTENCES[0]
    send(shown, typed={"text": real_sentences.SENTENCES[1], "recorded": True, "number": 2})
    assert on_page(shown).said == {"text": "", "number": 2} and shown.tokens[-1] == " were"
    assert (shown.query, shown.key) == (9, 1), "the last token, and where this head looks most"


def test_the_sentences_that_ask_about_it_are_shown_from_it_and_others_from_their_last_token():
    for text in HeadExplorer.recorded():
        shown = HeadExplorer(text)
        asked = " it" if "because it" in text else shown.tokens[-1]
        assert shown.tokens[shown.query] == asked and on_page(shown).shown["query"] == shown.query
        assert shown.key == shown.weights[(*shown.head, shown.query)].argmax()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" ", "Type a sentence first."),
        ("a", "That is one token, which can only look at itself: type two or more."),
        ("a" * 25, "That is 25 tokens long: at most 24 fit here. Leave some words out."),
        ("a" * 401, "That is 401 letters long: at most 400 fit, and at most 24 tokens."),
    ],
)
def test_what_does_not_fit_is_told_and_changes_nothing(tiny, text, told):
    shown = HeadExplorer(TEXT, model=tiny)
    before = page_state(shown)["_alone"]
    with pytest.raises(ValueError, match=told):
        shown.look(text)
    send(shown, typed={"text": text, "recorded": False, "number": 1})
    assert on_page(shown).said == {"text": told, "number": 1}
    assert page_state(shown)["_alone"] == before


def test_a_typed_sentence_is_read_and_shown_from_its_last_token(tiny):
    shown = HeadExplorer(TEXT, head=(1, 2), model=tiny)
    shown.query = 1
    send(shown, typed={"text": "  xyzzy x ", "recorded": False, "number": 1})
    assert shown.tokens == [*"xyzzy", " ", "x"] and shown.query == 6 and shown.head == (1, 2)
    np.testing.assert_allclose(shown.weights, tiny.look("xyzzy x")[1].numpy(), atol=0.5 / 255 + 1e-6)
    assert shown.key == shown.weights[1, 2, 6].argmax()
    sent = on_page(shown).shown
    assert len(sent["levels"]) == 2 * 3 * 7 * 8 / 2, "a byte for each weight up to the diagonal"
    assert sent["tokens"] == ["x", "…y", "…z", "…z", "…y", "␣", "…x"] and sent["source"] == "computed here by tiny"


def test_shares_are_means_over_the_tokens_that_can_have_them(tiny):
    shown = HeadExplorer(TEXT, model=tiny)
    w = shown.weights
    shown.query, shown.key = 3, 2
    wanted = {
        "pair": w[:, :, 3, 2],
        "before": sum(w[:, :, i, i - 1] for i in range(1, 5)) / 4,
        "first": w[:, :, 1:, 0].mean(-1),
        "itself": sum(w[:, :, i, i] for i in range(1, 5)) / 4,
        "again": (w[:, :, 3, 1] + w[:, :, 4, 2]) / 2,  # the second a and the second b, at what followed the first
    }
    for measure, shares in wanted.items():
        shown.measure = measure
        np.testing.assert_allclose(shown.shares(), shares, atol=1e-12)
        ranked = shown.ranked()
        assert [share for _, share in ranked] == sorted(shown.shares().ravel().tolist(), reverse=True)
        assert all(shown.shares()[head] == share for head, share in ranked)


def test_where_nothing_is_repeated_that_share_is_nothing(tiny):
    shown = HeadExplorer("abc", model=tiny)
    shown.measure = "again"
    assert not shown.shares().any()


def test_what_is_chosen_has_to_be_there(tiny):
    shown = HeadExplorer(TEXT, model=tiny)
    for name, value, told in (
        ("head", (2, 0), r"head is \(2, 0\): layers go from 0 to 1, heads from 0 to 2"),
        ("query", 5, "query is 5 but there are 5 tokens: 0 to 4"),
        ("key", -1, "key is -1 but there are 5 tokens"),
    ):
        with pytest.raises(ValueError, match=told):
            setattr(shown, name, value)
    shown.query, shown.key = 3, 3
    shown.query = 1
    assert shown.key <= 1, "no token looks ahead"
    with pytest.raises(ValueError, match="key is 2 and query 1: a token looks at itself and earlier ones"):
        shown.key = 2
    with pytest.raises(ValueError, match="layers go from 0 to 1"):
        HeadExplorer(TEXT, head=(13, 8), model=tiny)


def test_another_model_may_have_fewer_heads_than_the_recorded_one(tiny, monkeypatch):
    shown = HeadExplorer()
    monkeypatch.setattr(real_sentences, "here", lambda: (tiny, "a tiny one"))
    shown.look(TEXT)
    assert shown.weights.shape[:2] == (2, 3) and shown.head < (2, 3) and "by a tiny one" in shown.as_text()


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
    shown = HeadExplorer()
    shown.query = 4  # “sent” looks at “we” .59, “parcel” .29, and four more
    widths = sorted(arc.get_linewidth() for arc in shown.figure().findobj(PathPatch))
    row = np.sort(shown.weights[13, 8, 4])
    np.testing.assert_allclose(widths, 0.8 + 6 * row[row >= 5 / 255])
