"""Bytes of tensors counted while they live: what is made counts, what was there and what is let go does not."""

import pytest
import torch

from course_utils.costs.live_memory import peak_of_tensors

BYTES = 4 * 100  # of a row of float32


def let_go(x):
    for _ in range(5):
        y = x + 1
        del y


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (lambda x: x + 1, 1),
        (lambda x: [x + 1, x + 2], 2),
        (let_go, 1),
        (lambda x: (x + 1) * 2, 2),  # the first sum is needed until the product is there
        (lambda x: (x + 1).view(10, 10).mT[2:], 1),
        (lambda x: x.view(10, 10).mT, 0),
        (lambda x: (x + 1).add_(1).mul_(2), 1),
        (lambda x: (torch.zeros(100), x.clone()), 2),
    ],
)
def test_the_peak_counts_storages_that_are_new_as_long_as_they_live(function, rows):
    assert peak_of_tensors(function, torch.ones(100))[1] == rows * BYTES


def test_the_result_is_that_of_the_function_and_needs_no_gradient():
    x = torch.ones(3, requires_grad=True)
    result, _ = peak_of_tensors(lambda x: x * 2, x)
    assert result.tolist() == [2, 2, 2] and not result.requires_grad


def test_a_call_is_counted_alike_when_it_is_counted_again():
    q = torch.randn(50, 8)
    peaks = {peak_of_tensors(lambda q: torch.softmax(q @ q.T, -1) @ q, q)[1] for _ in range(3)}
    assert len(peaks) == 1 and peaks.pop() >= 2 * 50 * 50 * 4
