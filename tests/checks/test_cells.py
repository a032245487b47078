"""Which statements of other cells an answer takes along, and where they go."""

import json

import pytest

from course_utils.answer_key.key import COURSE
from course_utils.checks.cells import as_python, defines, modules_not_graded, used_names
from course_utils.checks.complete_answer import complete_answer
from course_utils.checks.judge.review import lines_to_review
from course_utils.grading.intake.answers import read_answers
from course_utils.grading.intake.submitted_notebook import read_notebook


def completed(source, *above, after=(), below=(), names=("answer",), known=()):
    return complete_answer(source, above, after, below, names, known)


def run(source):
    namespace = {}
    exec(compile(source, "<answer>", "exec", dont_inherit=True), namespace)
    return namespace


ANSWER = "def answer():\n    return TABLE[2]"


def test_an_indented_cell_is_read_as_ipython_reads_it():
    for cell in (
        "    def answer():\n        return 1",
        "\n\t\n\tdef answer():\n\t    return 1",
        "  %%time\n  answer = 1",
    ):
        assert defines(cell, ["answer"]) and defines(as_python(cell), ["answer"]), cell
    assert not defines("    def answer():\nreturn 1", ["answer"])
    assert defines("\ufeffdef answer():\n    return 1", ["answer"])


def answers_of(day, *cells):
    """What the grader reads of code cells, each with its id and its source."""
    made = [{"cell_type": "code", "id": id_, "metadata": {}, "outputs": [], "source": source} for id_, source in cells]
    data = json.dumps({"cells": made, "nbformat": 4, "metadata": {}}).encode()
    return read_answers(read_notebook(data, "a.ipynb"), COURSE.exercises(day))


def test_a_teacher_sees_the_lines_of_an_indented_answer_too():
    answers = answers_of(1, ("softmax_row", "    import gc\n    def softmax_row(row): return gc"))
    assert lines_to_review(answers["softmax_row"]).startswith("line 1 names gc (the garbage collector)")


def test_a_stub_that_was_left_below_the_answer_replaces_nothing():
    stub = next(each.stub for each in COURSE.exercises(1) if each.grade_id == "softmax_row")
    answer = "def softmax_row(row):\n    return [1.0]"
    answers = answers_of(1, ("mine", answer), ("softmax_row", stub), ("check_softmax_row", "check('softmax_row')"))
    assert answers["softmax_row"] == answer


def test_answers_bound_together_are_found_by_their_names():
    both = "scores, scale_scores = lambda Q, K: [], lambda S, d_k: S"
    assert answers_of(1, ("mine", both)) == {"scores": both, "scale_scores": both}


def test_a_class_that_was_given_counts_as_answered_where_a_method_is_replaced():
    stub = next(each.stub for each in COURSE.exercises(7) if each.grade_id == "find_the_bug")
    name = next(each.names[0] for each in COURSE.exercises(7) if each.grade_id == "find_the_bug")
    mended = f"{stub}\n\ndef commit(self):\n    pass\n\n{name}.commit = commit"
    assert answers_of(7, ("find_the_bug", mended))["find_the_bug"] == mended
    assert answers_of(7, ("find_the_bug", stub)) == {}


@pytest.mark.parametrize(
    "cells",
    [
        ["TABLE = {}", "TABLE[2] = 5"],
        ["TABLE = {}", "for i in range(5):\n    if i:\n        TABLE[i] = 5"],
        ["TABLE = {}", "TABLE.update({2: 5})"],
        ["TABLE = {}", "def fill(n):\n    TABLE[n] = 5\n    return lambda f: f", "@fill(2)\ndef two(): pass"],
        ["class Table(dict): pass", "TABLE = Table()", "Table.__getitem__ = lambda self, i: 5"],
        ["TABLE = {2: 1}", "OTHER = {2: 5}", "TABLE = {**TABLE, **OTHER}"],
        ["TABLE = [1, 1]", "TABLE += [5]"],
        ["TABLE = [1, 1]", "FIVE = 5", "TABLE.append(FIVE)"],
        ["TABLE = [5, 1, 1]", "TABLE.reverse()"],
        ["TABLE = [1, 1, 5, 1]", "TABLE.sort()", "TABLE.reverse()", "TABLE.sort()\nTABLE.pop(0)"],
        ["from collections import deque\nTABLE = deque([1, 1, 1, 5])", "TABLE.popleft()"],
        ["from collections import deque\nTABLE = deque([1, 5, 1])", "TABLE.rotate()"],
        ["import numpy as np\nTABLE = np.ones(3)", "np.copyto(TABLE, 5)"],
        ["import numpy as np\nTABLE = np.ones(3)", "np.add(TABLE, 4, out=TABLE)"],
        ["TABLE = {2: 1}", "def fill():\n    global TABLE\n    TABLE = {2: 5}", "fill()"],
        ["TABLE = {2: 1}", "def fill():\n    global TABLE\n    TABLE = {**TABLE, 2: 5}\n\nfill()"],
    ],
)
def test_what_changes_a_value_that_the_answer_uses_comes_along_in_order(cells):
    assert run(completed(ANSWER, *cells).source)["answer"]() == 5
    assert run(completed(ANSWER, *cells, after=["TABLE = None", "TABLE = {2: 7}"]).source)["answer"]() == 7
    assert run(completed(ANSWER, cells[0], after=cells[1:]).source)["answer"]() == 5


@pytest.mark.parametrize(
    "above",
    [
        ["match [1, 1, 5]:\n    case [*TABLE]: pass"],
        ["match {2: 5}:\n    case {1: 1}: pass\n    case {**TABLE}: pass"],
        ["match {2: 5}:\n    case dict() as TABLE: pass"],
        ["rows = [TABLE := {2: each} for each in (1, 5)]"],
        ["def fill():\n    global TABLE\n    TABLE = {2: 5}", "fill()"],
        ["def fill():\n    global TABLE\n    TABLE = {2: 5}\n\nfill()"],
    ],
)
def test_a_name_is_found_however_a_cell_binds_it(above):
    found = completed(ANSWER, *above)
    assert found.missing == frozenset() and run(found.source)["answer"]() == 5
    in_one = completed("\n".join([*above, ANSWER]))
    assert in_one.missing == frozenset() and run(in_one.source)["answer"]() == 5


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("z = [each for each in each]", {"each"}),
        ("z = [a(x[0]) for a in b] + [a for x in c]", {"a", "b", "c", "x"}),
        ("z = {k: v + w for k, v in d.items()}; y = [[a for a in b] for b in c]", {"c", "d", "w"}),
        ("def f():\n    return [q for q in {r for r in s}]", {"s"}),
    ],
)
def test_the_variable_of_a_comprehension_is_no_name_of_the_cell(source, names):
    assert used_names(source) == names


def test_a_global_that_nobody_sets_does_not_hide_its_definition():
    unused = "def fill():\n    global TABLE\n    TABLE = None"
    assert run(completed(ANSWER, "TABLE = {2: 5}", unused).source)["answer"]() == 5
    lazy = "def answer():\n    global TABLE\n    TABLE = {2: 5}\n    return TABLE[2]"
    assert completed(lazy).missing == frozenset() and completed(lazy).source == lazy


def test_nothing_else_comes_along():
    cells = ["import numpy as np", "np.weights = 1", "np.random.seed(0)", "x = {}", "x[0] = 1", "print(x)"]
    alone = "def answer():\n    return np.zeros(1)"
    assert completed(alone, *cells, known=["np"]).source == alone
    assert "weights" not in completed(alone, *cells).source and "seed" not in completed(alone, *cells).source
    assert (
        completed(alone, after=["answer()", "y = answer()", "assert answer() is not None"], known=["np"]).source
        == alone
    )
    with_scratch = "answer = 3\nout = answer"
    assert completed(with_scratch, after=["out = later()"]).source == with_scratch


@pytest.mark.parametrize(
    "later",
    [
        ["answer = lambda: 5"],
        ["def five():\n    return 5", "answer = five"],
        ["def traced(f):\n    return lambda: f() + 4", "answer = traced(answer)"],
        ["def helper():\n    return 5"],
        ["answer.__code__ = (lambda: 5).__code__"],
    ],
)
def test_what_cells_between_an_answer_and_its_check_change_counts(later):
    first = "def helper():\n    return 1\n\ndef answer():\n    return helper()"
    assert run(completed(first, after=later).source)["answer"]() == 5
    assert run(completed(first, below=later).source)["answer"]() == 1


@pytest.mark.parametrize("above", ["def sum(x):\n    return 5", "sum = lambda x: 5", "from statistics import *"])
def test_a_built_in_name_that_the_notebook_replaced_stays_replaced(above):
    answer = "def answer():\n    return sum([2, 3]) if 'mean' not in globals() else mean([2, 8])"
    assert run(completed(answer, above).source)["answer"]() == 5
    assert run(completed(answer, below=["def sum(x):\n    return 7"]).source)["answer"]() == 5


def test_a_class_or_function_that_continues_an_earlier_one_takes_it_along():
    cells = ["class answer:\n    a = 1", "class answer(answer):\n    b = 4"]
    last = run(completed("class answer(answer):\n    c = 0", *cells).source)["answer"]
    assert last.a + last.b + last.c == 5


@pytest.mark.parametrize(
    ("source", "above"),
    [
        ("_plain = two\ndef two(): return 3 + _plain()", ["def two(): return 2"]),
        ("def two(): return 3 + old()", ["def two(): return 2", "old = two"]),
        ("def two(): return 3 + old()", ["def two(): return 2\nold = two"]),
        ("class Two(Old): pass\ntwo = lambda: 3 + Two.n", ["class Two: n = 2", "Old = Two"]),
    ],
)
def test_what_a_second_try_keeps_of_the_first_comes_along(source, above):
    assert run(completed(source, *above, names=("two",)).source)["two"]() == 5


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import numba\nexcept ImportError:\n    numba = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numba",
        "import importlib.util\nif importlib.util.find_spec('numba'):\n    import numba",
    ],
)
def test_a_module_that_an_answer_does_without_may_be_missing(source):
    assert modules_not_graded(source) == []
    assert modules_not_graded(f"{source}\nimport scipy") == ["scipy"]


def test_what_only_jupyter_remembers_is_missing():
    assert completed("answer = _", "1 + 1").missing == {"_"}
    assert completed("def answer():\n    return [0 for _ in range(2)]").missing == frozenset()


def test_imports_from_the_future_come_first():
    cells = ['"""Notes."""\nfrom __future__ import annotations', "import math"]
    own = "from __future__ import annotations\n\ndef answer(x: Unknown) -> Unknown:\n    return math.pi"
    assert run(completed(own, *cells).source)["answer"](0) > 3
    assert run(completed(own.partition("\n\n")[2], cells[0], known=["math"]).source)["answer"].__annotations__
    assert completed(own, known=["math"]).source == own


@pytest.mark.parametrize("separator", ["\u2028", "\x0c", "\x85", "\x1c"])
def test_a_character_that_ends_no_line_of_python_cuts_nothing(separator):
    helper = f"# pasted:{separator}from a page\nimport math\ndef double(x):\n    return math.prod([2, x])"
    code = completed("def answer():\n    return double(4)", helper)
    assert run(code.source)["answer"]() == 8


def test_statements_on_one_line_come_along_once_each():
    code = completed("def answer():\n    return table", "table = []", "table.append(1); table.append(2)")
    assert run(code.source)["answer"]() == [1, 2]
