"""Day 7's checks: answers with state, judged by what they promise. Its variants run in test_checks.py."""

import contextlib
import itertools
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from variants import RIGHT, WRONG
from variants import day7 as answers

from course_utils.answers.day7.exercises import (
    BY_HAND,
    BY_HAND_DRAFT,
    BlockAllocator,
    Request,
    Scheduler,
    accepting,
    verifying,
)
from course_utils.answers.day7.exercises import PrefixCache as Prefixes
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.promise_verdict import FORGED, LARGEST, first_broken
from course_utils.checks.kernel.evidence import all_ladders, draw_rungs, find_ladder, gather
from course_utils.checks.kernel.outcome import as_json, read_evidence
from course_utils.checks.kernel.promises import ANY_ORDER, drawn_calls
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.days.day7.given.drawn_calls import (
    ALLOCATOR,
    BATCHES,
    PREFIXES,
    SCHEDULER,
    admitted,
    place_of_a_token,
    planned,
)
from course_utils.days.day7.given.ladders import allocator_calls, prefix_calls, scheduler_calls

MACHINES = [grade_id for grade_id, ladder in all_ladders(7).items() if ladder.machine]
SOURCE = Path(__file__).parents[2] / "sources" / "exercises" / "day7_serving.md"
each_machine = pytest.mark.parametrize("grade_id", MACHINES)


def judged(grade_id, answer, hidden=False):
    (name,) = find_ladder(7, grade_id).names
    return judge_of(7, grade_id).judge(gather(7, grade_id, {name: answer}, hidden=hidden))


def broken_promise(machine, make, setup, calls):
    """The promise that is broken, and at which call; None where all are kept."""
    thing = make(*setup)
    broken = first_broken(machine, setup, calls, [machine.make_call(thing, call) for call in calls])
    return broken and (broken.name, broken.call)


def cells_of(*grade_ids):
    """The source of answer cells, by their grade_id."""
    text = SOURCE.read_text(encoding="utf-8")
    return [re.search(rf"---\n[^`]*?grade_id: {name}\n.*?---\n(.*?)```", text, re.DOTALL)[1] for name in grade_ids]


# Right designs and wrong ones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("grade_id", ["block_allocator", "prefix_cache", "scheduler"])
def test_there_are_right_designs_of_many_kinds(grade_id):
    assert len(RIGHT[7, grade_id]) >= 6


@each_machine
def test_right_designs_keep_their_promises_in_hundreds_of_drawn_sequences(grade_id):
    machine = find_ladder(7, grade_id).machine
    for answer in RIGHT[7, grade_id]:
        for seed in range(60):
            draw = random.Random(seed)
            setup = machine.setup(draw.randint)
            calls = drawn_calls(machine, draw.randint, setup, 5 + seed % 40)
            assert broken_promise(machine, answer, setup, calls) is None, (answer, setup, calls)


@each_machine
def test_most_wrong_answers_are_told_which_promise_they_broke(grade_id):
    verdicts = [judged(grade_id, answer) for answer in WRONG[7, grade_id]]
    assert sum(bool(verdict.mistake) for verdict in verdicts) >= 0.8 * len(verdicts)
    assert all(verdict.message for verdict in verdicts)


@pytest.mark.parametrize(
    ("grade_id", "answer", "name"),
    [
        ("prefix_cache", answers.PrefixesCachedToTheEnd, "nothing left to compute"),
        ("prefix_cache", answers.PrefixesInUnitsOfACommonMultiple, "only long beginnings"),
        ("scheduler", answers.SchedulerThatAsksForCompletions, "who has generated decodes"),
        ("block_allocator", answers.AllocatorThatCopiesOnFullBlocksToo, "full blocks copied"),
    ],
)
def test_a_known_mistake_is_recognised_in_another_design(grade_id, answer, name):
    assert judged(grade_id, answer).mistake == name


def test_a_message_says_after_which_calls_what_happened():
    message = judged("block_allocator", next(m.answer for m in all_exercises(7)["block_allocator"].mistakes)).message
    assert "On “a fork, then a token”, after append('a'); fork('a', 'b'); append('b'): " in message
    assert "b writes to block 0, which a fork shares. " in message


def test_hidden_calls_are_others_and_are_not_told():
    for grade_id in MACHINES:
        visible, hidden = (draw_rungs(7, grade_id, hidden=each) for each in (False, True))
        drawn = [rung.why == ANY_ORDER for rung in visible]
        assert sum(drawn) >= 3
        for one, other, is_drawn in zip(visible, hidden, drawn, strict=True):
            assert (one.args != other.args) == is_drawn, one.name
    verdict = judged("block_allocator", answers.AllocatorThatCountsFromOne, hidden=True)
    assert verdict.share == 0 and "append(" not in verdict.message and "block 3" not in verdict.message


def test_an_answer_that_is_not_written_is_missing():
    class BlockAllocator:
        def __init__(self, n_blocks, block_size):
            raise NotImplementedError("your code goes here")

    assert judged("block_allocator", BlockAllocator).status == "missing"


@pytest.mark.parametrize(("grade_id", "name"), [("find_the_bug", "BrokenPrefixCache"), ("another_bug", "BrokenWindow")])
def test_the_bug_that_is_given_is_known_and_the_notebooks_answers_pass(grade_id, name):
    (bug,) = cells_of(grade_id)
    namespace = {}
    exec(bug.split("### BEGIN SOLUTION")[0], namespace)
    assert judged(grade_id, namespace[name]).mistake == "the bug as it stands"
    exec(bug, namespace)
    assert judged(grade_id, namespace[name], hidden=True).status == "passed"


@pytest.mark.parametrize(
    ("grade_id", "lines"), [("find_the_bug", "let_go|line|commit let|twice|release"), ("another_bug", "rewind|cop")]
)
def test_what_is_said_of_the_bug_as_it_stands_does_not_give_it_away(grade_id, lines):
    mistake = all_exercises(7)[grade_id].mistakes[0]
    assert mistake.name == "the bug as it stands"
    assert not re.search(lines, mistake.message)


# What the watches find ----------------------------------------------------------------------------------------------


class Told:
    """Says what it is told to, whatever it is asked; an error is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, *setup):
        return self

    def __getattr__(self, name):
        answer = self.answers.pop(0)

        def method(*args):
            if isinstance(answer, type):
                raise answer
            return answer

        return method


@pytest.mark.parametrize(
    ("script", "answers", "name"),
    [
        ("a a a", [(0, 0), (0, 1), (0, 2)], "no more blocks than there are|places in order|a block has one owner"),
        ("a a", [(0, 0), (1, 0)], "an open block is filled first"),
        ("a a", [(0, 0), (0, 0)], "places in order"),
        ("a", [(2, 0)], "a block of the pool"),
        ("a", [(-1, 0)], "a block of the pool"),
        ("a b", [(0, 0), (0, 0)], "a block has one owner"),
        ("a", [MemoryError], "a free block is handed out"),
        ("a a", [(0, 0), MemoryError], "an open block is filled first"),
        ("a", [KeyError], "a valid call succeeds"),
        ("a b c", [(0, 0), (1, 0), KeyError], "no room is a MemoryError"),
        ("a ?a", [(0, 0), [1]], "a table keeps its blocks"),
        ("a ?a", [(0, 0), []], "a table keeps its blocks"),
        ("?a", [[]], "an unknown sequence is a KeyError"),
        ("-a", [ValueError], "an unknown sequence is a KeyError"),
        ("a>a", [ValueError], "an unknown sequence is a KeyError"),
        ("a a>a", [(0, 0), None], "fork makes a new sequence"),
        ("a a>b b", [(0, 0), None, (0, 1)], "a shared block is not written to"),
        ("a a>b ?b", [(0, 0), None, []], "a table keeps its blocks"),
        ("a a>b -a b", [(0, 0), None, None, (1, 1)], "an open block is filled first"),
        ("a -a a a", [(0, 0), None, (1, 0), (1, 1)], None),
        ("a a>b b a", [(0, 0), None, (1, 1), (0, 1)], None),
        ("a a b b a", [(0, 0), (0, 1), (1, 0), (1, 1), MemoryError], None),
    ],
)
def test_an_allocator_is_held_to_each_promise(script, answers, name):
    found = broken_promise(ALLOCATOR, Told(*answers), (2, 2), allocator_calls(script))
    assert found is None if name is None else found and re.fullmatch(name, found[0]), found


@pytest.mark.parametrize(
    ("script", "answers", "name"),
    [
        ("a=011", [(0, [0])], "a block for each block_size tokens"),
        ("a=011", [(0, [0, 1, 2])], "a block for each block_size tokens"),
        ("a=011", [(1, [0, 1])], "a block for each block_size tokens"),
        ("a=011", [(-2, [0, 1])], "a block for each block_size tokens"),
        ("a=01", [(2, [0])], "a token is left to compute"),
        ("a=011", [(0, [0, 0])], "a block has one owner"),
        ("a=011", [(0, [0, 9])], "a block of the pool"),
        ("a=011", [(2, [0, 1])], "what is shared is the same text"),
        ("a=01 +a b=011", [(0, [0]), None, (0, [1, 2])], "what is known is not computed again"),
        ("a=01 +a b=011", [(0, [0]), None, (2, [1, 2])], "what is shared is the same text"),
        ("a=01 b=011", [(0, [0]), (2, [0, 1])], "what is shared is the same text"),
        ("a=01 +a b=10", [(0, [0]), None, (0, [0])], "a block has one owner"),
        ("a=01 a=01", [(0, [0]), (0, [1])], "names are told apart"),
        ("+a", [None], "names are told apart"),
        ("a=01", [MemoryError], "what nobody holds makes room"),
        ("a=01 +a -a b=11", [(0, [0]), None, None, (0, [0])], "an empty block goes first"),
        ("a=01 ?a", [(0, [0]), [1]], "a table keeps its blocks"),
        ("a=01 -a", [(0, [0]), ValueError], "a valid call succeeds"),
        ("a=01 b=011011", [(0, [0]), KeyError], "no room is a MemoryError"),
        ("a=011011 -a b=111111", [(0, [0, 1, 2]), None, (0, [2, 0, 1])], None),
        ("a=011 +a b=010", [(0, [2, 0]), None, (2, [2, 1])], None),
        ("a=01 b=01 +a +b -b c=011", [(0, [0]), (0, [1]), None, None, None, (2, [1, 2])], None),
    ],
)
def test_a_cache_of_prefixes_is_held_to_each_promise(script, answers, name):
    found = broken_promise(PREFIXES, Told(*answers), (3, 2), prefix_calls(script))
    assert found is None if name is None else found and found[0] == name, found


def test_a_tree_may_keep_both_blocks_of_a_text_while_one_of_its_requests_runs():
    calls = prefix_calls("a=0 b=0 +a +b -a c=11 -b c=11")
    said = [(0, [0]), (0, [1]), None, None, None, MemoryError, None, (0, [0, 1])]
    assert broken_promise(PREFIXES, Told(*said), (2, 1), calls) is None
    said[-1] = MemoryError
    assert broken_promise(PREFIXES, Told(*said), (2, 1), calls) == ("what nobody holds makes room", 7)


@pytest.mark.parametrize(
    ("setup", "script", "answers", "name"),
    [
        ((2, 4, 2), ".", [{}], None),
        ((2, 4, 2), "a=3+1 .", [None, {}], "who fits comes in"),
        ((2, 4, 2), "a=3+1 .", [None, {"a": 2}], "a prompt is computed at once"),
        ((2, 4, 2), "a=3+1 2.", [None, {"a": 3}, {"a": 1}], "who is finished is not planned"),
        ((2, 4, 2), "a=3+2 2.", [None, {"a": 3}, {}], "who runs computes one token"),
        ((2, 4, 2), "a=3+2 2.", [None, {"a": 3}, {"a": 2}], "who runs computes one token"),
        ((1, 4, 2), "a=1+2 b=1+1 .", [None, None, {"a": 1, "b": 1}], "no more than there are slots"),
        ((2, 2, 2), "a=3+1 b=1+1 .", [None, None, {"a": 3, "b": 1}], "no more blocks than there are"),
        ((2, 9, 2), "a=3+1 b=1+1 .", [None, None, {"b": 1}], "first come, first served"),
        ((3, 2, 2), "a=1+2 b=3+1 c=1+1 .", [None, None, None, {"a": 1, "c": 1}], "first come, first served"),
        ((2, 4, 2), "a=3+1 .", [None, MemoryError], "a valid call succeeds"),
        ((2, 2, 1), "a=1+2 b=1+2 2.", [None, None, {"a": 1, "b": 1}, {"a": 1}], "no room is a MemoryError"),
        ((2, 2, 1), "a=1+2 b=1+2 3.", [None, None, {"a": 1, "b": 1}, MemoryError, {}], None),
        ((2, 2, 1), "a=2+2", [None], "who never fits is refused"),
        ((2, 2, 1), "a=2+1", [ValueError], "who fits is taken"),
        ((2, 3, 2), "a=3+2 b=2+1 c=1+1 2.", [None, None, None, {"b": 2, "a": 3}, {"a": 1, "c": 1}], None),
    ],
)
def test_a_batch_is_held_to_each_promise(setup, script, answers, name):
    found = broken_promise(BATCHES, Told(*answers), setup, scheduler_calls(script))
    assert found is None if name is None else found and found[0] == name, found


@pytest.mark.parametrize(
    ("setup", "script", "answers", "name"),
    [
        ((4, 2, 4), ".", [({}, [])], None),
        ((4, 2, 4), "a=3+1 .", [None, ({}, [])], "no starvation"),
        ((4, 2, 4), "a=3+1 .", [None, ({"a": 4}, [])], "no more than is left to compute"),
        ((4, 2, 4), "a=3+1 .", [None, ({"a": 0}, [])], "no more than is left to compute"),
        ((4, 2, 4), "a=3+1 .", [None, ({"a": 2}, [])], "no budget is left while there is work"),
        ((4, 2, 4), "a=3+1 .", [None, ({"b": 1}, [])], "who is finished is not planned"),
        ((4, 2, 4), "a=3+1 2.", [None, ({"a": 3}, []), ({"a": 1}, [])], "who is finished is not planned"),
        ((4, 2, 4), "a=3+1 .", [None, ({"a": 3}, ["a"])], "who is preempted held blocks, and waits"),
        ((4, 2, 2), "a=3+1 .", [None, ({"a": 3}, [])], "the budget is kept"),
        ((4, 2, 4), "a=3+1 b=1+1 .", [None, None, ({"b": 1}, [])], "first come, first served"),
        ((2, 1, 4), "a=2+1 b=1+1 .", [None, None, ({"a": 2, "b": 1}, [])], "no more blocks than there are"),
        ((2, 1, 4), "a=2+2", [None], "who never fits is refused"),
        ((2, 1, 4), "a=2+1", [ValueError], "who fits is taken"),
        ((4, 1, 4), "a=1+2 b=4+1 2.", [None, None, ({"a": 1, "b": 1}, []), ({"a": 1, "b": 2}, [])],
         "no budget is left while there is work"),
        ((9, 1, 4), "a=1+3 . b=5+1 .", [None, ({"a": 1}, []), None, ({"b": 4}, [])], "first come, first served"),
        ((9, 1, 4), "a=5+1 b=1+3 2.", [None, None, ({"a": 3, "b": 1}, []), ({"a": 2}, [])],
         "no decode waits for a prefill"),
        ((9, 1, 2), "a=5+1 b=1+3 2.", [None, None, ({"a": 1, "b": 1}, []), ({"b": 1, "a": 1}, [])], None),
        ((9, 1, 2), "a=5+1 b=1+3 c=1+3 2.", [None, None, None, ({"a": 1, "b": 1}, []), ({"b": 1, "c": 1}, [])],
         "first come, first served"),
        ((4, 1, 4), "a=1+3 b=1+2 2.", [None, None, ({"a": 1, "b": 1}, []), ({"a": 1}, ["b"])],
         "nobody is preempted without need"),
        ((3, 1, 4), "a=1+3 b=1+3 2.", [None, None, ({"a": 1, "b": 1}, []), ({"b": 1}, ["a"])],
         "first come, first served"),
        ((3, 1, 4), "a=1+3 b=1+3 2.", [None, None, ({"a": 1, "b": 1}, []), ({"a": 1}, ["b"])], None),
        ((3, 1, 4), "a=1+3 .", [None, RuntimeError], "a step is planned"),
    ],
)  # fmt: skip
def test_a_scheduler_is_held_to_each_promise(setup, script, answers, name):
    if RuntimeError in answers:
        with pytest.raises(RuntimeError):
            broken_promise(SCHEDULER, Told(*answers), setup, scheduler_calls(script))
        return
    found = broken_promise(SCHEDULER, Told(*answers), setup, scheduler_calls(script))
    assert found is None if name is None else found and found[0] == name, found


@pytest.mark.parametrize(
    ("read", "result"),
    [
        (place_of_a_token, None),
        (place_of_a_token, 3),
        (place_of_a_token, (1,)),
        (place_of_a_token, (1, True)),
        (place_of_a_token, (1.0, 0)),
        (place_of_a_token, ("0", 0)),
        (admitted, (0, None)),
        (admitted, [0, 1]),
        (admitted, (math.nan, [])),
        (planned, {}),
        (planned, ([("a", 1)], [])),
        (planned, ({"a": 1.5}, [])),
        (planned, ({"ab": 1}, [])),
        (planned, ({1: 1}, [])),
        (planned, ({"A": 1}, [])),
        (planned, ({}, None)),
        (planned, ({}, 3)),
    ],
)
def test_what_is_no_result_says_so(read, result):
    with pytest.raises((BadResult, TypeError)):
        read(result)


# Evidence is not believed -------------------------------------------------------------------------------------------


def forged(grade_id, change):
    """The reference's evidence, changed: change(values, outcome) is called for each rung."""
    evidence = as_json(judge_of(7, grade_id).reference())
    for outcome in evidence["outcomes"]:
        change(outcome["values"], outcome)
    return judge_of(7, grade_id).judge(read_evidence(evidence))


def each_heard(make):
    def change(values, outcome):
        for place in values:
            values[place] = make(values[place])

    return change


@each_machine
@pytest.mark.parametrize(
    "made",
    [
        {"shape": [2], "numbers": ["nan", "nan"]},
        {"shape": [2], "numbers": ["inf", 0]},
        {"shape": [1], "numbers": [10**400]},
        {"shape": [1], "numbers": [1e300]},
        {"shape": [1], "numbers": [LARGEST]},
        {"shape": [1], "numbers": [0.5]},
        {"shape": [1], "numbers": [-1]},
        {"shape": [1], "numbers": [7]},
        {"shape": [2], "numbers": [1, 0]},
        {"shape": [3], "numbers": [0, 0]},
        {"shape": [], "numbers": []},
        {"shape": [0], "numbers": []},
        {"shape": None, "numbers": [0, 0]},
        {"shape": [2], "numbers": "00"},
        {"shape": [1], "numbers": {"0": 0}},
        {"shape": [1], "numbers": [None]},
        {"shape": [1], "numbers": [[0]]},
        {"shape": [4], "numbers": [0, 1e14, 1e14, 1e14]},
        {"shape": [4], "numbers": [0, -1, -1, -1]},
        {"shape": [5], "numbers": [0, 1, 25, 1, 25]},
        {"shape": [4], "numbers": [0, 1, 26, 1]},
        {"shape": [10_001], "numbers": [0] * 10_001},
        {"shape": [2_000], "numbers": [0, *range(1_999)]},
        {"shape": [2_000], "numbers": [0] * 2_000},
        {"numbers": [0]},
        {"shape": [1]},
        [0],
        None,
        "0",
    ],
    ids=lambda made: str(made)[:40],
)
def test_a_result_that_is_made_up_earns_nothing(grade_id, made):
    verdict = forged(grade_id, each_heard(lambda _: made))
    assert verdict.share == 0 and verdict.status in ("failed", "error")
    assert len(verdict.message) < 3000


@each_machine
@pytest.mark.parametrize(
    "change",
    [
        lambda values, outcome: values.clear(),
        lambda values, outcome: values.popitem(),
        lambda values, outcome: outcome.update(values=None),
        lambda values, outcome: outcome.update(values=[values]),
        lambda values, outcome: outcome.update(values="0"),
        lambda values, outcome: outcome.update(values=7),
        lambda values, outcome: outcome.update(error="x" * 10**6),
        lambda values, outcome: outcome.update(error=None),
        lambda values, outcome: outcome.update(error={"a": [1]}),
        lambda values, outcome: outcome.pop("values"),
        lambda values, outcome: outcome.update(rung="another"),
        lambda values, outcome: values.update({place: values["0"] for place in list(values)[1:]}),
    ],
    ids=range(12),
)
def test_calls_that_are_missing_or_exchanged_earn_nothing(grade_id, change):
    verdict = forged(grade_id, change)
    assert verdict.share == 0 and (verdict.status == "error" or len(verdict.message) < 3000)


def test_what_cannot_be_read_is_told_as_such():
    verdict = forged("scheduler", each_heard(lambda _: {"shape": [1], "numbers": ["nan"]}))
    assert FORGED.description in verdict.message and verdict.mistake == FORGED.name


def test_calls_behind_the_last_one_change_nothing():
    verdict = forged("block_allocator", lambda values, outcome: values.update({"999": {"shape": [1], "numbers": [0]}}))
    assert verdict.status == "passed"


@pytest.mark.parametrize("machine", [ALLOCATOR, PREFIXES, SCHEDULER])
def test_a_watch_that_hears_anything_raises_nothing_but_what_the_judge_takes(machine):
    for seed in range(300):
        draw = random.Random(seed)
        setup = machine.setup(draw.randint)
        calls = drawn_calls(machine, draw.randint, setup, 6)
        said = [[draw.choice([0.0, 0.0, 1.0]), *draw.choices([-3, 0, 1, 2, 3, 26, 1e14], k=draw.randint(0, 6))]
                for _ in calls]  # fmt: skip
        said = [[0.0, *numbers[1:]] if len(numbers) > 1 else numbers for numbers in said]
        with contextlib.suppress(ArithmeticError, LookupError, TypeError, ValueError):
            first_broken(machine, setup, calls, said)


# The other exercises ------------------------------------------------------------------------------------------------


def test_the_numbers_by_pencil_are_those_of_what_runs():
    left, ends, running, queue = {"a": 2, "b": 6, "c": 3}, {}, ["a", "b"], ["c"]
    for step in itertools.count(1):
        for name in list(running):
            left[name] -= 1
            if not left[name]:
                ends[name] = step
                running.remove(name)
        running += [queue.pop(0) for _ in range(min(len(queue), 2 - len(running)))]
        if not running:
            break
    p, q = np.array([[0.5, 0.2, 0.3]] * 2), np.array([[0.2, 0.6, 0.2]])
    accepted, following = accepting()(p, q, [1], [0.7])
    assert accepted == 0
    assert BY_HAND["continuous_ends"] == [ends[name] for name in "abc"]
    assert BY_HAND["static_steps"] == max(2, 6) + 3
    assert BY_HAND["place"] == [[7, 4, 2][5 // 4], 5 % 4]
    np.testing.assert_allclose(BY_HAND_DRAFT["following"], following)


def test_what_is_drawn_after_accepting_is_distributed_as_p():
    """The sum over drafts and coins, by hand: q·min(1, p/q) + P(rejected)·remainder = p."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q = rng.dirichlet(np.ones(5), 2), rng.dirichlet(np.ones(5), 1)
        total = np.zeros(5)
        for token in range(5):
            ratio = min(1.0, p[0, token] / q[0, token])
            total[token] += q[0, token] * ratio
            if ratio < 1:
                _, following = accepting()(p, q, [token], [(1 + ratio) / 2])
                total += q[0, token] * (1 - ratio) * following
        np.testing.assert_allclose(total, p[0], atol=1e-12)


def test_no_other_choice_of_tokens_gives_more_for_each_unit_of_time():
    for rung in draw_rungs(7, "how_many"):
        survival, costs = rung.args
        n, flat = len(survival), survival.ravel()
        if rung.measure or flat.size > 9:
            continue
        best = verifying()(survival, costs)
        rates = {
            chosen: (n + flat[list(chosen)].sum()) / costs[n + len(chosen)]
            for size in range(flat.size + 1)
            for chosen in itertools.combinations(range(flat.size), size)
        }
        most = max(rates.values())
        assert min(len(chosen) for chosen, rate in rates.items() if rate >= most - 1e-12) == best, rung.name


def test_attention_through_a_table_is_attention_over_what_it_names():
    for rung in draw_rungs(7, "paged_attention"):
        if rung.measure:
            continue
        q, keys, values, table, length = rung.args
        k = np.concatenate([keys[block] for block in table])[:length]
        v = np.concatenate([values[block] for block in table])[:length]
        scores = k @ q / math.sqrt(len(q))
        weights = np.exp(scores - scores.max())
        outcome = next(o for o in judge_of(7, "paged_attention").reference().outcomes if o.rung == rung.name)
        np.testing.assert_allclose(outcome.values["output"].entries, weights @ v / weights.sum(), atol=1e-7)


def test_the_scheduler_lets_every_request_end():
    for seed in range(40):
        draw = random.Random(seed)
        scheduler = Scheduler(draw.randint(3, 8), draw.randint(1, 3), draw.randint(1, 6))
        for i in range(10):
            try:
                scheduler.add(str(i), draw.randint(1, 6), draw.randint(1, 5))
            except ValueError:
                continue
        steps = 0
        while scheduler.requests:
            scheduler.step()
            steps += 1
            assert steps < 1000
    assert Request(3, 2).todo == 3


def test_the_references_are_none_of_the_notebooks_names_twice():
    assert {type(x) for x in (BlockAllocator(1, 1), Prefixes(1, 1))} == {BlockAllocator, Prefixes}
