"""Pencil practice: problems without end that are never degenerate, and a judge that finds the first wrong step."""

import re
import subprocess
import sys

import numpy as np
import pytest

from course_utils.practice import KINDS, problem, read_entry
from course_utils.practice.kinds import UnknownKind
from course_utils.practice.session import describe_kinds, practise, write_typed

MANY = pytest.mark.thorough("a thousand problems of a kind are posed")
kinds = pytest.mark.parametrize("kind", KINDS)


def rounded(posed, decimals=2):
    """What somebody writes down who rounds every step and goes on with that."""
    values = {}
    for step in posed.steps:
        value = np.asarray(step.compute({**posed.inputs, **values}), dtype=float)
        values[step.name] = value if step.count else value.round(decimals)
    return values


@pytest.mark.parametrize("problems", [50, pytest.param(1000, marks=MANY)])
@kinds
def test_problems_of_a_kind_are_none_of_them_degenerate(kind, problems):
    statements = set()
    for number in range(problems):
        posed = problem(kind, number)
        assert not posed.is_degenerate() and len(posed.known_missteps()) >= 5
        assert all(np.isfinite(right).all() for right in posed.solution().values())
        statements.add(posed.statement)
    assert len(statements) > problems / 10


@kinds
def test_all_problems_of_a_kind_are_as_hard(kind):
    """The same steps, shapes and number of exponentials that are no whole numbers."""
    shapes, hard = set(), set()
    for number in range(100):
        posed = problem(kind, number)
        solution = posed.solution()
        shapes.add(tuple((name, right.shape) for name, right in solution.items()))
        if "exponentials" in solution:
            hard.add(int((solution["exponentials"] % 1 != 0).sum()))
    assert len(shapes) == 1 and len(hard) <= 1


@kinds
def test_a_number_names_a_problem(kind):
    assert problem(kind, 7).statement == problem(kind, 7).statement != problem(kind, 8).statement


def test_the_same_number_is_the_same_problem_on_every_machine():
    assert problem("attention", 17).statement.splitlines()[1:] == [
        "Q = [2  0; −1  2]",
        "K = [2  −1; 1  0]",
        "V = [−2  3; −1  3]",
    ]


def test_problems_of_serving_are_solved_as_by_hand():
    """Number 1 of each kind, worked on paper from its statement."""
    batching, paged, drafted = (problem(kind, 1) for kind in ("batching", "paged-slot", "speculation"))
    assert batching.statement.splitlines()[1:4] == ["tokens of A: 3", "tokens of B: 14", "tokens of C: 6"]
    assert {name: float(each) for name, each in batching.solution().items()} == {
        "static": 20, "continuous": 14, "use": pytest.approx(23 / 28)
    }  # fmt: skip
    assert "block table: 6 11 18" in paged.statement and "the token, counted from 0: 16" in paged.statement
    assert {name: float(each) for name, each in paged.solution().items()} == {
        "blocks": 3, "empty": 13, "block": 11, "slot": 176
    }  # fmt: skip
    assert drafted.statement.splitlines()[1:4] == [
        "p of tokens 0, 1, 2: 0.1  0.5  0.4",
        "q of them: 0.4  0.1  0.5",
        "drafted: 2",
    ]
    right = drafted.solution()
    assert right["kept"] == pytest.approx(0.8) and right["remainder"].tolist() == [0, 1, 0]
    assert right["alpha"] == pytest.approx(0.6) and right["tokens"] == pytest.approx(1.96)


@kinds
def test_right_answers_are_right_exact_and_rounded_at_every_step(kind):
    for number in range(50):
        posed = problem(kind, number)
        for entered in (posed.solution(), rounded(posed), rounded(posed, 4)):
            assert {mark.status for mark in posed.judge(entered)} == {"right"}


@kinds
def test_every_slip_is_located_at_its_step_and_what_follows_counts(kind):
    planted = named = 0
    for number in range(15):
        posed = problem(kind, number)
        names = [step.name for step in posed.steps]
        for step, misstep in posed.known_missteps():
            marks = posed.judge(posed.worked({step.name: misstep}))
            assert [mark.status for mark in marks].index("wrong") == names.index(step.name)
            assert {mark.status for mark in marks[names.index(step.name) + 1 :]} <= {"right", "follows"}
            planted += 1
            named += marks[names.index(step.name)].misstep is misstep
    assert named >= 0.9 * planted


def test_two_slips_are_two_wrong_steps_and_the_first_is_named_first():
    posed = problem("attention", 3)
    entered = posed.worked({"scaled": next(s for s in posed.steps[1].missteps if s.name == "divided by d_k")})
    entered["output"] = entered["output"] + 1
    statuses = [mark.status for mark in posed.judge(entered)]
    assert statuses == ["right", "wrong", "follows", "follows", "wrong"]
    assert posed.first_wrong(entered).misstep.name == "divided by d_k"


def test_steps_may_be_left_out():
    posed = problem("attention", 3)
    solution = posed.solution()
    marks = posed.judge({"weights": solution["weights"], "output": solution["output"] + 1})
    assert [mark.status for mark in marks] == ["empty", "empty", "empty", "right", "wrong"]


def test_a_number_that_nothing_explains_is_wrong_without_a_name():
    posed = problem("softmax", 1)
    mark = posed.judge({"sum": 1234.5})[2]
    assert mark.status == "wrong" and mark.misstep is None and str(mark) == "sum: not right"


@pytest.mark.parametrize(
    ("entered", "said"),
    [
        ({"nothing": 1}, "there is no step 'nothing'; this problem has shifted, exponentials"),
        ({"sum": [1, 2]}, "sum: 2 numbers here, one number asked for"),
        ({"shifted": [[1, 2], [3, 4]]}, "shifted: 2 rows of 2 here, 3 numbers asked for"),
        ({"sum": "much"}, "sum: 'much' is neither a number nor rows of numbers"),
    ],
)
def test_what_cannot_be_judged_is_refused(entered, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        problem("softmax", 1).judge(entered)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("1/3", 1 / 3),
        ("2e9", 2e9),
        ("45,097,156,608", 45097156608),
        ("4*512**2", 4 * 512**2),
        ("4*512^2", 4 * 512**2),
        ("−1.5", -1.5),
        ("1 2 3", [1, 2, 3]),
        ("[1, 2, 3]", [1, 2, 3]),
        ("1 2; 3 4", [[1, 2], [3, 4]]),
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("", None),
    ],
)
def test_numbers_are_read_as_people_type_them(text, value):
    assert read_entry(text) == value


NO_NUMBERS = ["one", "1; 2 3", "__import__('os')", "1/0", "9**9**9", "1+", "x" * 500, "True", "1j"]


@pytest.mark.parametrize("text", [*NO_NUMBERS, ",", ";", "[,;]", "1e999", "1e999 - 1e999", "1, 2e400"])
def test_anything_else_is_no_number(text):
    with pytest.raises(ValueError, match=r"not a number|different lengths|characters"):
        read_entry(text)


@pytest.mark.parametrize(("kind", "number"), [("chess", 1), ("softmax", -1), ("softmax", 2.5), ("softmax", 10**10)])
def test_a_kind_or_a_number_that_there_is_not(kind, number):
    with pytest.raises(UnknownKind):
        problem(kind, number)


class TestTerminal:
    def session(self, kind, number, lines):
        typed, prompts = iter(lines), []

        def ask(prompt):
            prompts.append(prompt)
            try:
                return next(typed)
            except StopIteration:
                raise EOFError from None

        return practise(kind, number, ask, prompts.append), "\n".join(prompts)

    def test_it_asks_step_by_step_and_says_what_was_right(self):
        right = [write_typed(value) for value in problem("attention", 5).solution().values()]
        marks, text = self.session("attention", 5, right)
        assert [mark.status for mark in marks] == ["right"] * 5
        assert "scores: the dot product of each query with each key (2 rows of 2)" in text
        assert "first wrong" not in text and text.endswith("course practice attention --number 5")

    def test_the_first_wrong_step_is_told_with_its_slip_and_what_is_right(self):
        posed = problem("attention", 5)
        entered = posed.worked({"scaled": posed.steps[1].missteps[0]})
        _, text = self.session("attention", 5, [write_typed(value) for value in entered.values()])
        assert "✗ scaled: not right. These are the scores. Divide them by √2." in text
        assert "✓ output: correct from your value on" in text
        assert f"The first wrong step is scaled. The right answer is {write_typed(posed.solution()['scaled'])}." in text

    def test_what_cannot_be_read_is_asked_again_and_the_end_of_input_leaves_the_rest_empty(self):
        marks, text = self.session(
            "softmax", 2, ["abc", "1 2", write_typed(problem("softmax", 2).solution()["shifted"])]
        )
        assert "'abc' is not a number" in text and "2 numbers here, 3 numbers asked for" in text
        assert [mark.status for mark in marks] == ["right", "empty", "empty", "empty"]

    def test_without_a_number_it_draws_one(self):
        assert re.search(r"^softmax, number \d+\n", self.session("softmax", None, [])[1])

    def run(self, *args, typed=""):
        command = [sys.executable, "-m", "course_utils", "practice", *args]
        return subprocess.run(command, input=typed, capture_output=True, text=True, check=False)

    def test_the_command(self):
        ran = self.run("cache-bytes", "--number", "3", typed="1\n\n")
        assert ran.returncode == 0 and "✗ numbers a token: not right" in ran.stdout
        assert self.run().stdout == describe_kinds() + "\n"

    def test_the_command_refuses_a_kind_that_there_is_not(self):
        ran = self.run("chess")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("course: unknown kind: 'chess'; the kinds are softmax, attention")
