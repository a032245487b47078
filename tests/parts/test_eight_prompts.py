"""Eight prompts to the real model, planned by the learner's scheduler or the course's; what is amiss is said."""

import pytest

from course_utils.answers.day7.exercises import BatchScheduler, WaitsForTheBatch
from course_utils.models import real
from course_utils.parts import eight_prompts
from course_utils.parts import serve_prompts as module
from course_utils.parts.notebook import PASSED, Parts, Row
from course_utils.parts.slots import slot_of

pytestmark = pytest.mark.skipif(bool(real.missing()), reason="the real model is not here: make model")
FEW = {"The capital of France is": 3, "Water boils at": 2, "Name three fruits.": 2}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(module, "PROMPTS", FEW)
    monkeypatch.setattr(module, "N_SLOTS", 2)


def answered(answer):
    return Parts((Row(slot_of("batch_scheduler"), answer, PASSED),))


def test_the_learners_scheduler_plans_and_every_text_is_that_of_the_prompt_alone():
    result = eight_prompts(real.load(), answered(BatchScheduler))
    assert result.yours and result.agree == len(FEW) and result.alone == sum(FEW.values())
    assert result.steps == 4 and "planned by your scheduler: 4 steps" in str(result) and repr(result) == str(result)
    assert eight_prompts(real.load(), answered(WaitsForTheBatch)).steps == 5


def test_without_an_answer_the_course_plans():
    result = eight_prompts(real.load(), answered(None))
    assert not result.yours and result.agree == 3 and "the course's scheduler" in str(result)


class TooMuch(BatchScheduler):
    def step(self):
        return dict.fromkeys(FEW, 100)


class Everybody(BatchScheduler):
    def __init__(self, n_slots, n_blocks, block_size):
        super().__init__(9, n_blocks, block_size)


class Still(BatchScheduler):
    def step(self):
        return {}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (TooMuch, "tokens to compute, and 100 are planned"),
        (Everybody, "3 requests run, and there are 2 slots"),
        (Still, "requests are left after 200 steps"),
    ],
)
def test_a_plan_that_no_engine_can_follow_is_told(answer, said):
    assert said in str(eight_prompts(real.load(), answered(answer)))
