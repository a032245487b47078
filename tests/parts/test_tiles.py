"""The learner's tiles in a layer of the real model: their memory is counted, and what is wrong with them is said."""

import pytest

from course_utils.attention import tiled
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.models import real
from course_utils.parts import memory_of_tiles
from course_utils.parts.notebook import PASSED, Parts, Row
from course_utils.parts.slots import slot_of

pytestmark = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")
MISTAKES = {each.name: each.answer for each in all_exercises(6)["tiled_attention"].mistakes}


def answered(answer):
    return Parts((Row(slot_of("tiled_attention"), answer, PASSED),))


def right(q, k, v, block_q, block_k, causal=False):
    return tiled.forward(q, k, v, causal, block_q, block_k)


def raises(*args, **options):
    raise ZeroDivisionError("division by zero")


def test_tiles_take_less_than_all_scores_and_larger_ones_hardly_more():
    small, large = (memory_of_tiles(real.load(), answered(right), n=250, block_q=b, block_k=b) for b in (16, 64))
    assert small.yours and small.equal and small.tiled <= large.tiled < small.naive / 2
    assert "in your tiles. The outputs agree." in str(small) and repr(small) == str(small)


def test_without_an_answer_the_tiles_are_those_of_the_course():
    result = memory_of_tiles(real.load(), answered(None), n=250)
    assert not result.yours and "in the course's tiles. The outputs agree." in str(result)


def test_tiles_that_are_wrong_and_those_that_raise_are_reported():
    wrong = memory_of_tiles(real.load(), answered(MISTAKES["acc is not rescaled"]), n=250)
    assert not wrong.equal and "The outputs do not agree" in str(wrong)
    assert "In your tiles it raised ZeroDivisionError: division by zero." in str(
        memory_of_tiles(real.load(), answered(raises), n=250)
    )
