"""The record of the course's answers in the real model: finding a fault by halves, and what was written down."""

import pytest
import torch

from course_utils.attention.multihead import merge_heads
from course_utils.parts import answers_record
from course_utils.parts.slots import SLOTS

NAMES = list("abcdefg")


@pytest.mark.parametrize("fault", NAMES)
def test_halving_finds_each_fault_in_three_tests_at_most(fault):
    tests = answers_record.find_fault(NAMES, lambda swapped: fault in swapped)
    assert tests[-1]["left"] == [fault] and len(tests) <= 3


def test_the_planted_fault_does_not_show_with_one_token():
    x = torch.arange(24.0).view(1, 3, 4, 2)
    first = x[:, :, :1]
    assert torch.equal(answers_record.merge_without_moving(first), merge_heads(first))
    wrong, right = answers_record.merge_without_moving(x), merge_heads(x)
    assert wrong.shape == right.shape and not torch.equal(wrong, right)


def test_the_recorded_tests_found_the_planted_fault():
    fault = answers_record.fact("fault")
    assert fault["tests"][-1]["left"] == [fault["part"]] == [answers_record.FAULTY]
    assert fault["alone"] < 1e-3 < 1 < min(fault["by_token"])


def test_every_answer_was_measured_and_changes_numbers_by_rounding_alone():
    *rows, together = answers_record.fact("shares")["rows"]
    assert [row["name"] for row in rows] == [slot.name for slot in SLOTS]
    assert all(row["same"] and row["difference"] < 1e-4 for row in (*rows, together))
    written = answers_record.fact("written")
    assert written["answers"] == written["reference"]


def test_the_table_shows_a_line_for_each_answer():
    assert len(answers_record.shares_table().splitlines()) == len(SLOTS) + 2
