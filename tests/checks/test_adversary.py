"""The adversary: it finds the calls that break a promise, never any for a right design, and tells them to be pasted."""

import random
import re
import statistics
from importlib import import_module

import pytest
from variants import RIGHT, WRONG, day7

from course_utils.checks import checks_for, interactive
from course_utils.checks.examples import adversary
from course_utils.checks.examples.adversary import describe_trace, find_trace, play
from course_utils.checks.interactive import NotYet
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import all_ladders, draw_rungs, find_ladder, gather

for number in days_with_exercises():
    import_module(f"variants.day{number}")  # registers its answers
MACHINES = [
    (day, grade_id) for day in days_with_exercises() for grade_id, ladder in all_ladders(day).items() if ladder.machine
]
FEW = 5  # one of so many answers is tried by default
OTHERS = pytest.mark.thorough("the adversary is set against all answers with state")
each_machine = pytest.mark.parametrize(
    ("day", "grade_id", "few"),
    [
        pytest.param(day, name, few, id=f"day{day}-{name}{'' if few else '-others'}", marks=() if few else OTHERS)
        for day, name in MACHINES
        for few in (True, False)
    ],
)
SECONDS = 30.0  # more than a learner is given, for a busy machine
MOST = 6  # calls, of the median sequence
UNSTEADY = {"AllocatorWithOneTableForAll"}  # keeps its tables in the class: the same calls give something else again


def wrong_answers(day, grade_id):
    known = all_exercises(day)[grade_id].mistakes
    written = [each for each in WRONG[day, grade_id] if each.__name__ not in UNSTEADY]
    return [*((each.name, each.answer) for each in known), *((each.__name__, each) for each in written)]


def some(answers, few):
    """Of (number, answer), every fifth, or all the others."""
    return [(number, answer) for number, answer in enumerate(answers) if (number % FEW == 0) == few]


def test_an_answer_that_is_another_each_time_has_a_sequence_too():
    for answer in WRONG[7, "block_allocator"]:
        if answer.__name__ in UNSTEADY:
            assert trace_of(7, "block_allocator", answer) is not None


def trace_of(day, grade_id, answer, seconds=SECONDS):
    ladder = find_ladder(day, grade_id)
    return find_trace(ladder, {ladder.names[0]: answer}, seconds, judge_of(day, grade_id).rungs())


def where(trace):
    """Not what its calls gave, which may differ for an answer that is wrong only now and then."""
    return trace.setup, trace.calls, trace.broken


def lines_of(text):
    return [line[4:] for line in text.split("\n\n")[1].splitlines()]


def run_as_told(trace, name, answer):
    """Run the text in a fresh namespace: what each call gives, or the kind of error that it raises."""
    made, *calls = lines_of(describe_trace(trace, name))
    namespace = {name: answer}
    exec(made, namespace)
    machine_calls = []
    for call in calls:
        try:
            machine_calls.append(eval(call, namespace))
        except Exception as error:
            machine_calls.append(type(error))
    return machine_calls


TWO_OBJECTS = {"WindowsThatShareSlots", "BatchThatSharesALine"}  # wrong only with two objects; a sequence is of one


@each_machine
def test_every_wrong_answer_has_a_sequence_and_the_median_is_short(day, grade_id, few):
    """Some are searched for twice with the same result; for some, no call can be dropped."""
    machine, (name,) = find_ladder(day, grade_id).machine, find_ladder(day, grade_id).names
    lengths = []
    for number, (called, answer) in some(wrong_answers(day, grade_id), few):
        trace = trace_of(day, grade_id, answer)
        if (trace is None or trace.shared) and getattr(answer, "__name__", "") in TWO_OBJECTS:
            continue
        assert trace is not None, called
        lengths.append(len(trace.calls))
        again = play(machine, answer, trace.setup, trace.calls)
        assert again == trace.broken and again.call == len(trace.calls) - 1, called
        assert len(trace.pictures) == len(trace.calls), called
        assert len(run_as_told(trace, name, answer)) == len(trace.calls), called
        assert number % 7 or trace == trace_of(day, grade_id, answer), called
        for place in range(len(trace.calls) - 1 if number % 5 == 0 else 0):
            fewer = trace.calls[:place] + trace.calls[place + 1 :]
            broken = play(machine, answer, trace.setup, fewer)
            assert broken is None or broken.name != trace.broken.name, (called, place)
    assert statistics.median_low(lengths) <= MOST
    assert max(lengths) <= 2 * MOST


@each_machine
def test_no_right_design_is_refuted(day, grade_id, few):
    for _, answer in some(RIGHT[day, grade_id], few):
        assert trace_of(day, grade_id, answer, 0.4) is None, answer


def test_of_two_faults_it_shows_the_one_that_the_check_speaks_of():
    class TwoFaults(all_exercises(7)["block_allocator"].reference["BlockAllocator"]):
        """What breaks on the first rung takes three calls, the other fault two."""

        def append(self, seq):
            self.tables.setdefault(seq, [])  # known although refused
            return super().append(seq)

        def fork(self, seq, new):
            if seq not in self.tables or new not in self.tables:
                super().fork(seq, new)

    evidence = gather(7, "block_allocator", {"BlockAllocator": TwoFaults}, arrays=True)
    verdict = judge_of(7, "block_allocator").judge(evidence)
    trace = trace_of(7, "block_allocator", TwoFaults)
    assert [call[0] for call in trace.calls] == ["append", "append", "table"]
    assert f"{trace.broken.description}." in verdict.message
    assert len(find_trace(find_ladder(7, "block_allocator"), {"BlockAllocator": TwoFaults}, SECONDS).calls) == 2


def test_the_text_can_be_pasted_and_its_last_call_does_what_it_says():
    mistakes = {each.name: each.answer for each in all_exercises(7)["block_allocator"].mistakes}
    answer = mistakes["no copy on write"]
    trace = trace_of(7, "block_allocator", answer)
    text = describe_trace(trace, "BlockAllocator")
    assert text == (
        "The shortest sequence of calls found that goes wrong (3 calls):\n\n"
        "    allocator = BlockAllocator(1, 2)\n    allocator.append('a')\n    allocator.fork('a', 'b')\n"
        "    allocator.append('b')\n\n"
        "The last one breaks a promise, “a shared block is not written to”: b writes to block 0, which a fork "
        "shares."
    )
    assert run_as_told(trace, "BlockAllocator", answer) == [(0, 0), None, (0, 1)]


def test_one_call_is_a_call():
    mistakes = {each.name: each.answer for each in all_exercises(7)["prefix_cache"].mistakes}
    trace = trace_of(7, "prefix_cache", mistakes["unknown names"])
    assert "that goes wrong (1 call):" in describe_trace(trace, "PrefixCache")
    assert lines_of(describe_trace(trace, "PrefixCache"))[0].startswith("cache = PrefixCache(")


@pytest.mark.parametrize(
    "grade_id",
    ["block_allocator", pytest.param("prefix_cache", marks=OTHERS), pytest.param("scheduler", marks=OTHERS)],
)
def test_without_references_it_finds_the_same(grade_id, monkeypatch):
    """A class has an edition without answers: nothing here asks for one."""
    answers = wrong_answers(7, grade_id)[::12]
    before = [where(trace_of(7, grade_id, answer)) for _, answer in answers]

    def none(*args, **named):
        raise AssertionError("a reference was asked for")

    judge = judge_of(7, grade_id)
    for name in ("reference", "mistakes"):
        monkeypatch.setattr(type(judge), name, none)
    for module in (interactive, import_module("course_utils.checks.judge.judge")):
        monkeypatch.setattr(module, "has_answers", lambda: False)
    assert [where(trace_of(7, grade_id, answer)) for _, answer in answers] == before


def test_without_rungs_it_looks_by_itself():
    ladder = find_ladder(7, "block_allocator")
    mistakes = {each.name: each.answer for each in all_exercises(7)["block_allocator"].mistakes}
    trace = find_trace(ladder, {"BlockAllocator": mistakes["never given back"]}, SECONDS)
    assert [call[0] for call in trace.calls] == ["append", "free", "append"]


def test_nothing_comes_from_hidden_calls(monkeypatch):
    drawn = draw_rungs

    def visible(day, grade_id, *, hidden=False, seed=""):
        assert not hidden
        return drawn(day, grade_id, hidden=hidden, seed=seed)

    monkeypatch.setattr("course_utils.checks.judge.rungs.draw_rungs", visible)
    assert trace_of(7, "scheduler", day7.SchedulerThatPreemptsTheSmallest)


def test_an_answer_that_never_ends_is_left_in_time():
    class BlockAllocator(RIGHT[7, "block_allocator"][0]):
        def append(self, seq):
            while True:
                pass

    assert trace_of(7, "block_allocator", BlockAllocator, 0.2) is None


def test_an_answer_that_prints_is_not_heard(capsys):
    class BlockAllocator(RIGHT[7, "block_allocator"][0]):
        def append(self, seq):
            print(seq)
            return 0, 0

    assert trace_of(7, "block_allocator", BlockAllocator) and capsys.readouterr().out == ""


def test_an_answer_that_is_wrong_only_now_and_then_raises_nothing():
    draw = random.Random(1)

    class BlockAllocator(RIGHT[7, "block_allocator"][0]):
        def append(self, seq):
            block, slot = super().append(seq)
            return block, slot + (draw.random() < 0.05)

    trace = trace_of(7, "block_allocator", BlockAllocator, 2.0)
    assert trace is None or trace.broken.name == "places in order"


def test_an_object_that_cannot_be_made_says_so():
    class Scheduler:
        def __init__(self, n_blocks):
            pass

    trace = trace_of(7, "scheduler", Scheduler)
    assert trace.broken.name == adversary.RAISED and not trace.calls
    lines = describe_trace(trace, "Scheduler").splitlines()
    assert lines[0] == "It goes wrong before the first call:" and lines[2] == "    scheduler = Scheduler(1, 1, 1)"
    assert lines[-1].startswith("There making the object raised TypeError")


def test_an_error_of_its_own_and_an_unreadable_result_are_told():
    class Raises(RIGHT[7, "block_allocator"][0]):
        def append(self, seq):
            raise ZeroDivisionError("oh")

    class Returns(RIGHT[7, "block_allocator"][0]):
        def append(self, seq):
            return "block"

    assert "it raised ZeroDivisionError: oh" in describe_trace(trace_of(7, "block_allocator", Raises), "BlockAllocator")
    assert "append returns (block, place)" in describe_trace(trace_of(7, "block_allocator", Returns), "BlockAllocator")


def test_an_error_that_a_statement_knows_is_told_with_its_line_and_what_all_objects_share_by_name():
    made = {}
    exec(
        "class BlockAllocator:\n    lengths = {}\n    tables = {}\n\n    def __init__(self, n_blocks, block_size):\n"
        "        self.tables = {}\n\n    def append(self, seq):\n        block, slot = (0,)\n",
        made,
    )
    lines = describe_trace(trace_of(7, "block_allocator", made["BlockAllocator"]), "BlockAllocator").splitlines()
    assert "it raised ValueError, though the call was valid" in lines[-3]
    assert lines[-2] == "It raised ValueError: not enough values to unpack (expected 2, got 1)"
    assert lines[-1] == "All objects of the class share one lengths: make it in __init__, as self.lengths."


def test_a_call_has_shorter_lists_and_smaller_numbers():
    assert [*adversary._smaller_calls(("admit", "a", (1, 0)))] == [
        ("admit", "a", (1,)), ("admit", "a", (0,)), ("admit", "a", (0, 0))
    ]  # fmt: skip
    assert [*adversary._smaller_calls(("add", "a", 2, 1))] == [("add", "a", 1, 1)]
    assert [*adversary._smaller_calls(("step",))] == []


class TestInTheCheck:
    def message_of(self, grade_id, **answers):
        with pytest.raises(NotYet) as error:
            exec(f"check({grade_id!r})", {"check": checks_for(7), **answers})
        return str(error.value)

    def test_it_stands_below_the_advice(self):
        answer = {each.name: each.answer for each in all_exercises(7)["block_allocator"].mistakes}["no copy on write"]
        message_of = self.message_of("block_allocator", BlockAllocator=answer)
        assert message_of.index("overwrites what that one wrote") < message_of.index(
            "The shortest sequence of calls found"
        )
        assert re.search(r"\n    allocator = BlockAllocator\(\d, \d\)\n", message_of)

    def test_not_where_nothing_is_written(self):
        class Scheduler:
            def __init__(self, *args):
                raise NotImplementedError("your code goes here")

        assert "sequence of calls" not in self.message_of("scheduler", Scheduler=Scheduler)
