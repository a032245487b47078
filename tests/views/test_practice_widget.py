"""Pencil practice as a widget: what it poses, judges, refuses and shows."""

import re

import pytest
from as_page import on_page, send

from course_utils.practice import KINDS, problem
from course_utils.practice.kinds import UnknownKind
from course_utils.practice.session import write_typed
from course_utils.views import Practice

ATTENTION = ["-1 -2; 1 -2", "-0.5 -1; 0.5 -1", "0.61 0.37; 1.65 0.37", "0.62 0.38; 0.82 0.18", ""]  # scaled by d_k


def right_entries(widget):
    solution = widget.problem.solution()
    return [write_typed(solution[step.name], step.count) for step in widget.problem.steps]


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_values_of_every_kind_are_right_as_they_are_shown(kind):
    widget = Practice(kind, 3)
    assert widget.as_text().startswith(f"{kind}, number 3\n\n{problem(kind, 3).statement}")
    assert {mark.status for mark in widget.marks} == {"empty"}
    widget.entries = right_entries(widget)
    assert {mark.status for mark in widget.marks} == {"right"}
    assert widget.as_text().endswith("All steps are right.")


def test_the_first_wrong_step_is_located_and_what_follows_counts():
    widget = Practice("attention")
    widget.entries = ATTENTION
    assert [mark.status for mark in widget.marks] == ["right", "wrong", "follows", "follows", "empty"]
    displayed = on_page(widget)
    assert displayed.summary == "The first wrong step is scaled."
    assert [each["sign"] for each in displayed.judged] == ["✓", "✗", "✓", "✓", ""]
    assert "You divided by d_k" in displayed.judged[1]["said"]
    assert displayed.judged[2]["said"] == "correct from your value on"


def test_an_empty_field_is_called_empty_and_not_wrong():
    widget = Practice("attention")
    widget.entries = [*right_entries(widget)[:2], "", " ", ""]
    assert [each["status"] for each in on_page(widget).judged] == ["right", "right", "empty", "empty", "empty"]
    assert on_page(widget).summary == "2 of 5 steps are right; 3 fields are empty."
    widget.entries = [*right_entries(widget)[:4], ""]
    assert on_page(widget).summary == "4 of 5 steps are right; 1 field is empty."


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a", "'a' is not a number"),
        (",", "',' is not a number"),
        ("1 2", "scores: 2 numbers here, 2 rows of 2 asked for"),
        ("1 2; 3", "different lengths"),
    ],
)
def test_what_cannot_be_read_is_reported_and_the_rest_is_judged(entry, message):
    widget = Practice("attention")
    widget.entries = [entry, *right_entries(widget)[1:]]
    judged = on_page(widget).judged
    assert judged[0]["status"] == "unread" and message in judged[0]["said"]
    assert {each["status"] for each in judged[1:]} == {"right"}


def test_a_new_number_is_a_new_problem_with_nothing_written():
    widget = Practice("softmax", 4)
    widget.entries = right_entries(widget)
    widget.shown = True
    widget.number = 5
    assert widget.problem.statement == problem("softmax", 5).statement == on_page(widget).posed["statement"]
    assert widget.entries == [""] * 4 and not widget.shown and on_page(widget).summary == ""
    send(widget, another=1)
    assert widget.number != 5 and widget.problem.statement == problem("softmax", widget.number).statement


def test_right_values_are_text_only_when_they_are_asked_for():
    widget = Practice("softmax")
    assert "right:" not in widget.as_text()
    widget.shown = True
    assert len(re.findall("right: ", widget.as_text())) == 4


def test_what_there_is_not_is_refused_and_nothing_changes():
    with pytest.raises(UnknownKind, match=r"unknown kind: 'atention', did you mean attention\?"):
        Practice("atention")
    with pytest.raises(UnknownKind, match="unknown kind: 'nothing'; the kinds are "):
        Practice("nothing")
    with pytest.raises(UnknownKind, match="a whole number from 0 to 1,000,000,000, not -1"):
        Practice("attention", -1)
    widget = Practice("attention")
    with pytest.raises(UnknownKind):
        widget.number = -1
    with pytest.raises(ValueError, match="there are 1 entries to 5 steps"):
        widget.entries = ["1"]
    assert widget.number == 1 and widget.entries == [""] * 5
