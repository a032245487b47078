"""A loop in Python is seen however it is written, and on every version of Python alike.

PYTEST_DONT_REWRITE: the assert statements of the answers have to stay as Python compiles them.
"""

import bdb
import gc
import linecache
import sys
import threading

import numpy as np
import pytest

from course_utils.checks.kernel.measures import bytecodes_grow
from course_utils.checks.kernel.steps import StepCounter

FEW, MANY = (np.ones((size, 3, 4)) for size in (2, 60))


def one(x):
    return x @ x.T


def in_a_list(x):
    return [one(each) for each in x]


def after_an_assert_on_the_same_line(x):
    assert x.ndim == 3; return [each @ each.T for each in x]  # fmt: skip # noqa: E702


def within_an_assert(x):
    products = []
    assert [products.append(each @ each.T) for each in x]
    return products


def within_an_assert_by_einsum(x):
    products = []
    assert all(products.append(np.einsum("nd,md->nm", each, each)) is None for each in x)
    return products


def in_a_thread(x):
    thread = threading.Thread(target=in_a_list, args=(x,))
    thread.start()
    thread.join()


def beside_a_debugger(x):
    debugger = bdb.Bdb()
    debugger.reset()
    debugger.set_continue()
    return in_a_list(x)


def with_another_source(x):
    lines = ["assert 1\n"] * 200
    linecache.cache[__file__] = 1, None, lines, __file__
    try:
        return in_a_list(x)
    finally:
        del linecache.cache[__file__]


def with_counting_turned_off(x):
    if hasattr(sys, "monitoring"):
        for tool in range(6):
            if sys.monitoring.get_tool(tool):
                sys.monitoring.set_events(tool, 0)
    else:
        sys.settrace(None)
    return in_a_list(x)


LOOPS = (
    in_a_list,
    after_an_assert_on_the_same_line,
    within_an_assert,
    within_an_assert_by_einsum,
    in_a_thread,
    beside_a_debugger,
    with_another_source,
    with_counting_turned_off,
)


@pytest.mark.parametrize("answer", LOOPS, ids=lambda answer: answer.__name__)
def test_a_loop_shows_in_every_run(answer):
    assert [bytecodes_grow(answer, (FEW,), (MANY,)) for _ in range(2)] == [1.0, 1.0]


def every_instruction(code):
    return frozenset(range(0, len(code.co_code), 2))


def test_a_new_thread_with_the_number_of_one_that_ended_is_counted():
    ending = threading.Event()
    earlier = threading.Thread(target=ending.wait)
    earlier.start()
    with StepCounter(every_instruction) as counter:
        ending.set()
        earlier.join()
        before = counter.count
        in_a_thread(FEW)  # Linux gives it the free number
        of_few = counter.count - before
    assert of_few > 0
    with StepCounter(every_instruction) as counter:
        in_a_thread(FEW)
    assert of_few >= 0.9 * counter.count


def without_a_loop(x):
    scores = x @ x.swapaxes(-1, -2)
    assert all(row >= 0 for row in scores.sum(-1).ravel().tolist()), "a score below 0"
    return repr(scores)


def test_asserts_and_what_numpy_prints_are_no_loop():
    assert [bytecodes_grow(without_a_loop, (FEW,), (MANY,)) for _ in range(2)] == [0.0, 0.0]


def test_each_run_of_a_function_counts_the_same():
    def loop(n):
        return [number for number in range(n)]

    counts = []
    for _ in range(3):
        with StepCounter(every_instruction) as steps:
            loop(50)
        counts.append(steps.count)
    assert min(counts) == max(counts) > 50


class Garbage:
    """An object that only the garbage collector frees, in many steps."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        for _ in range(1000):
            pass


def test_steps_of_the_garbage_collector_are_none_of_the_answer():
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with StepCounter(every_instruction) as steps:
            for _ in range(9):
                Garbage()
        assert 0 < steps.count < 1000
    finally:
        gc.set_threshold(*thresholds)
    assert gc.isenabled()


if hasattr(sys, "monitoring"):

    def test_nobody_is_said_to_loop_where_steps_cannot_be_counted():
        tools = [tool for tool in (3, 4) if sys.monitoring.get_tool(tool) is None]
        for tool in tools:
            sys.monitoring.use_tool_id(tool, "another tool")
        try:
            assert bytecodes_grow(in_a_list, (FEW,), (MANY,)) == 0.0
        finally:
            for tool in tools:
                sys.monitoring.free_tool_id(tool)
