"""What two machines may give differently, and what they may not."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imsave

from course_utils.authoring.compare_outputs import evidence_alike, outputs_alike
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.outcome import MIME, as_json, as_line, read_evidence


def evidence(shift=0.0, exercise="multi_head", hidden=False):
    """The evidence of an exercise whose first number is off by a share of itself."""
    record = as_json(judge_of(4, exercise).reference(hidden))
    numbers = next(iter(record["outcomes"][-1]["values"].values()))["numbers"]
    numbers[0] *= 1 + shift
    return read_evidence(record)


def picture(shade):
    pixels = np.full((4, 6, 3), 100, np.uint8)
    pixels[1, 2] = shade
    file = io.BytesIO()
    imsave(file, pixels, format="png")
    return [{"output_type": "display_data", "data": {"image/png": base64.b64encode(file.getvalue()).decode()}}]


def test_the_eighth_digit_of_evidence_may_differ_and_the_third_may_not():
    assert evidence_alike(4, evidence(3e-8), evidence())
    assert not evidence_alike(4, evidence(3e-3), evidence())


def test_evidence_of_another_exercise_or_of_hidden_inputs_is_not_the_same():
    assert not evidence_alike(4, evidence(exercise="grouped_query"), evidence())
    assert not evidence_alike(4, evidence(hidden=True), evidence())
    assert not evidence_alike(None, evidence(), evidence())
    assert not evidence_alike(4, evidence(), replace(evidence(), outcomes=[]))


@pytest.mark.parametrize(("shade", "alike"), [(100, True), (102, True), (98, True), (103, False), (0, False)])
def test_a_picture_may_differ_by_two_steps_of_a_colour(shade, alike):
    assert outputs_alike(None, picture(shade), picture(100)) is alike


def test_words_outputs_and_kinds_are_the_same_or_not():
    text = [{"output_type": "stream", "name": "stdout", "text": "0.5035"}]
    assert outputs_alike(None, text, text)
    assert not outputs_alike(None, text, [{**text[0], "text": "0.5034"}])
    assert not outputs_alike(None, text, [])
    assert not outputs_alike(None, picture(100), text)


def test_evidence_counts_among_the_other_kinds_of_an_output():
    one, other = ([{"data": {MIME: as_line(evidence(shift)), "text/plain": "passed"}}] for shift in (0.0, 3e-8))
    assert one != other and outputs_alike(4, one, other)
    other[0]["data"]["text/plain"] = "not yet"
    assert not outputs_alike(4, one, other)
