"""Tests that learners write: what implementations they meet, what a test is worth, and how far calls reach."""

import json
import re
import textwrap
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_utils.checks import NotYet, checks_for
from course_utils.checks.judge.duel_server import Arena
from course_utils.checks.judge.duel_verdict import board_of, describe_duel, describe_limits
from course_utils.checks.judge.exercise_tables import days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.rungs import (
    added_implementations,
    calls_of,
    evidence_for,
    implementations,
    visible_implementations,
)
from course_utils.checks.kernel.evidence import all_ladders, find_ladder, gather, outcome_of, verdict_of
from course_utils.checks.kernel.ladder import Rung
from course_utils.checks.kernel.outcome import Evidence, Outcome
from course_utils.checks.kernel.remote import (
    MAX_CALLS,
    Candidate,
    CandidateObject,
    FailedInside,
    LocalCaller,
    Refused,
    RemoteCaller,
    offered_candidates,
    serve,
    unpack,
)
from course_utils.checks.kernel.result_numbers import Numbers
from course_utils.course import ROOT
from course_utils.days.shared import attention_duel as attention

NAME = "tells_right"
DAYS = [day for day in days_with_exercises() if NAME in all_ladders(day)]
EACH_DAY = pytest.mark.parametrize("day", DAYS, ids="day{}".format)
OTHER_DAYS = pytest.mark.thorough("implementations and weak tests of the other days are judged too")


def quickly(*quick, days=DAYS):
    """Days whose tests run by default; the others are left to --all."""
    return pytest.mark.parametrize(
        "day", [pytest.param(day, id=f"day{day}", marks=() if day in quick else OTHER_DAYS) for day in days]
    )


def judged(day, test, hidden=False):
    return judge_of(day, NAME).judge(evidence_for(day, NAME, {NAME: test}, hidden=hidden))


# What there is ------------------------------------------------------------------------------------------------------


@EACH_DAY
def test_there_are_enough_right_and_wrong_ones_with_names_of_their_own(day):
    everyone = implementations(day, hidden=True)
    assert sum(each.right for each in visible_implementations(day)) >= 10
    assert sum(not each.right for each in visible_implementations(day)) >= 25
    assert {each.right for each in added_implementations(day)} == {True, False}
    assert len({each.name for each in everyone}) == len(everyone)
    assert sum(each.gross for each in everyone) >= 3
    for each in visible_implementations(day):
        assert each.explanation.endswith(".") and (each.right or each.hint.endswith((".", "?"))), each


@quickly(1, 2, 3, 4, 5, 6)
def test_the_reference_is_right_about_all_of_them(day):
    for hidden in (False, True):
        outcomes = evidence_for(day, NAME, judge_of(day, NAME).exercise.reference, hidden=hidden).outcomes
        verdicts = {each.rung: each.values["verdict"].entries == (1.0,) for each in outcomes}
        assert verdicts == {each.name: each.right for each in implementations(day, hidden)}


@EACH_DAY
def test_the_statement_says_how_many_there_are_and_what_a_test_may_ask(day):
    (source,) = (ROOT / "sources/exercises").glob(f"day{day}_*.md")
    text = " ".join(source.read_text(encoding="utf-8").split())
    right, wrong = re.search(r"is tried on (\d+) right (?:ones|implementations) and (\d+) wrong ones", text).groups()
    visible = visible_implementations(day)
    assert int(right) == sum(each.right for each in visible) and int(wrong) == sum(not each.right for each in visible)
    assert describe_limits(day) in text


# The day's own check of the implementations ---------------------------------------------------------------------------


def numpy_of(*tensors):
    return [each.numpy() if torch.is_tensor(each) else np.asarray(each) for each in tensors]


def as_softmax(f):
    def softmax(x, axis=-1):
        x = np.moveaxis(np.asarray(x, dtype=float), axis, -1)
        return np.moveaxis(f(x, np.zeros_like(x))[0], -1, axis)

    return softmax


def as_jacobian(f):
    def softmax_jacobian(p):
        if p.ndim > 1:
            return np.stack([softmax_jacobian(row) for row in p])
        x = np.log(np.asarray(p, dtype=float))
        return np.stack([f(x, np.eye(len(x))[i])[1] for i in range(len(x))])

    return softmax_jacobian


def as_attention_backward(f):
    def attention_backward(q, k, v, do):
        scale = 1 / np.sqrt(q.shape[-1])
        s = np.asarray(q @ np.swapaxes(k, -1, -2) * scale, dtype=float)
        p, ds = f(s, do @ np.swapaxes(v, -1, -2))
        return ds @ k * scale, np.swapaxes(ds, -1, -2) @ q * scale, np.swapaxes(p, -1, -2) @ do

    return attention_backward


def tensor(part, like):
    return torch.as_tensor(np.array(part)).to(like.dtype)


def as_masked(f):
    def broken_masked_attention(q, k, v, mask):
        return tuple(tensor(part, q) for part in f(*numpy_of(q, k, v, mask)))

    return broken_masked_attention


def as_masked_softmax(f):
    def masked_softmax(scores, mask):
        m = scores.shape[-1]
        one = np.broadcast_to(np.eye(m), (*scores.shape[:-2], m, m))
        q = scores.numpy().astype(float) * m**0.5
        return tensor(f(q, one, one, mask.numpy())[1], scores)

    return masked_softmax


def as_causal(f):
    def causal_attention(x, W_q, W_k, W_v):
        n = x.shape[-2]
        return tuple(tensor(part, x) for part in f(*numpy_of(x @ W_q, x @ W_k, x @ W_v), np.tri(n, dtype=bool)))

    return causal_attention


def as_grouped(f):
    def grouped_query_attention(q, k, v, mask=None):
        B, h, n, d = q.shape
        packed = [np.ascontiguousarray(x.swapaxes(1, 2)).reshape(B, x.shape[2], -1) for x in numpy_of(q, k, v)]
        return tensor(f(*packed, np.eye(h * d), h, k.shape[1]).reshape(B, n, h, d).swapaxes(1, 2), q)

    return grouped_query_attention


def as_ring(f):
    class RingCache:
        def __init__(self, window):
            self.cache = f(window)

        def append(self, k, v):
            self.cache.append(*numpy_of(k, v))

        def view(self):
            return tuple(tensor(part, torch.zeros(1)).clone() for part in self.cache.view())

    return RingCache


def as_tiles(f):
    def tiled_attention(q, k, v, block_q, block_k, causal=False):
        return tuple(tensor(part, q) for part in f(*numpy_of(q, k, v), block_q, block_k, causal))

    return tiled_attention


def as_allocator(f):
    class BlockAllocator:
        def __init__(self, n_blocks, block_size):
            self.pool, self.known = f(n_blocks, block_size), set()

        def number(self, seq):
            if seq not in self.known:
                raise KeyError(seq)
            return ord(seq)

        def append(self, seq):
            place = self.pool.append(ord(seq))
            if place is None:
                raise MemoryError
            self.known.add(seq)
            return place

        def fork(self, seq, new):
            number = self.number(seq)
            if new in self.known:
                raise ValueError(new)
            self.pool.fork(number, ord(new))
            self.known.add(new)

        def table(self, seq):
            return self.pool.table(self.number(seq))

        def free(self, seq):
            self.pool.free(self.number(seq))
            self.known.remove(seq)

    return BlockAllocator


# The exercises of a day with which its implementations can be checked, each with the name of what it asks for. Those of
# day 8 have only a property in common: test_checks_day8.py tries it.
OWN = {
    1: (("attention_batched", "attention_batched", lambda f: f),),
    2: (
        ("stable_softmax", "softmax", as_softmax),
        ("softmax_jacobian", "softmax_jacobian", as_jacobian),
        ("attention_backward", "attention_backward", as_attention_backward),
    ),
    3: (
        ("find_the_bug", "broken_masked_attention", as_masked),
        ("masked_softmax", "masked_softmax", as_masked_softmax),
        ("causal_attention", "causal_attention", as_causal),
    ),
    4: (("grouped_query", "grouped_query_attention", as_grouped),),
    5: (("ring_cache", "RingCache", as_ring),),
    6: (("tiled_attention", "tiled_attention", as_tiles),),
    7: (("block_allocator", "BlockAllocator", as_allocator),),
}
# What a right one in another style need not hold there: how it works, or more digits than float32 has.
OTHERWISE = {
    "no loop over batch and heads",
    "the memory does not grow",
    "nor does it while nobody asks for a view",
    "each block of queries skips",
    "scores that float32 cannot tell apart",
    "large entries that lie close together",
    "24 tokens, scores near 40 000",
    "values that nearly cancel",
    "scores that differ in the seventh digit",
}
# Wrong ones that these checks of the day let pass, and why they cannot see them.
BLIND = {
    "equal keys counted once": "all its keys are drawn, and no two are the same",
    "nothing mixed": "W_O is no part of it",
    "W_O turned": "W_O is no part of it",
    "after the fiftieth token": "its sequences of calls are shorter",
}


def rungs_that_fail(day, grade_id, name, answer):
    evidence = gather(day, grade_id, {name: answer})
    return {rung for rung, ok in judge_of(day, grade_id).judge(replace(evidence, called=())).rungs if not ok}


def fails_in_its_day(day):
    """(an implementation, the rungs of the day's own exercises that it fails and the first right one does not)"""
    first, *_ = implementations(day)
    for each in implementations(day, hidden=True):
        found = set()
        for grade_id, name, adapted in OWN[day]:
            found |= rungs_that_fail(day, grade_id, name, adapted(each.function)) - rungs_that_fail(
                day, grade_id, name, adapted(first.function)
            )
        yield each, found


@quickly(1, 2, days=OWN)
@pytest.mark.filterwarnings("ignore")
def test_the_days_own_checks_pass_right_ones_and_fail_wrong_ones(day):
    right, wrong = {}, []
    for each, found in fails_in_its_day(day):
        if each.right and found - OTHERWISE:
            right[each.name] = found - OTHERWISE
        if not each.right and not found and each.name not in BLIND:
            wrong.append(each.name)
    assert (right, wrong) == ({}, [])


# What a test is worth -------------------------------------------------------------------------------------------------

WORTHLESS = {"everything passes": 0, "nothing passes": 0}
WEAK = {  # the share of the points that each known weak test earns when it is graded, in percent
    1: {"one example": 35, "square only": 38, "no leading axes": 81, "small scores only": 81, "output only": 95},
    2: {"one example": 41, "one row only": 38, "small entries only": 63, "the weights alone": 19},
    3: {"one example": 25, "no query that sees nothing": 71, "causal masks alone": 20, "small scores only": 95,
        "the weights of a single text": 80},
    4: {"one example": 33, "one key head for each head": 78, "one text only": 78, "n = m only": 64,
        "groups of two only": 64},
    5: {"one example": 60, "a look at the end only": 73, "never two caches": 94, "short texts only": 84},
    6: {"one example": 35, "never causal": 63, "blocks that divide": 48, "one tile": 21, "output only": 72},
    7: {"one example": 2, "never forks": 29, "never frees": 54, "never looks at a table": 90, "never full": 47,
        "never two allocators": 95},
    8: {"one example": 36, "RoPE alone is right": 0, "near the beginning only": 72, "two numbers only": 68,
        "never a later key": 95, "the same place only": 49},
}  # fmt: skip


@quickly(1, 2, 3, 4)
def test_a_weak_test_earns_what_it_should(day):
    shares = {
        mistake.name: round(100 * judge_of(day, NAME).judge(known).share)
        for mistake, known in judge_of(day, NAME).mistakes(hidden=True)
    }
    condemns_right_ones = "a certain block" if day == 7 else "no room for float32"
    assert shares == WORTHLESS | {condemns_right_ones: 0} | WEAK[day]


def test_equal_bits_and_equal_shapes_are_worth_nothing():
    def exact(f):
        q, k, v = np.array([[1.0, 0.3]]), np.array([[0.2, 0.7], [1.1, -0.4]]), np.eye(2)
        return all(np.array_equal(*parts) for parts in zip(f(q, k, v), attention.in_lists(q, k, v), strict=True))

    def shapes(f):
        return [part.shape for part in f(np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 5)))] == [(2, 5), (2, 4)]

    assert (judged(1, exact).share, judged(1, shapes).share) == (0, 0)


def test_a_test_by_assertions_is_a_test():
    def tells_right(f):
        output, weights = f([[1.0, 2.0]], [[1.0, 0.0]], [[3.0]])
        assert np.allclose(output, 3.0)
        assert np.allclose(weights, 1.0)
        return True

    found = dict(judged(1, tells_right).rungs)
    assert found["in lists and loops"] and found["equal weights"] is False and found["no negative values"] is False
    assert found["exponentials not divided"] is False  # e^0 is 1: one key shows nothing
    assert found["one more in the sum"]


def test_an_error_of_the_test_condemns_and_is_told():
    def tells_right(f):
        output, _ = f(np.eye(2), np.eye(2), np.eye(2))
        if output.dtype == np.float32:
            raise KeyError("single")
        return True

    verdict = judged(1, tells_right)
    assert verdict.share == 0
    assert "On it the test raised KeyError: 'single'" in verdict.message


@pytest.mark.parametrize(("returned", "description"), [(None, "None"), ("yes", "the text 'yes'"), (0.5, "a float")])
def test_what_is_no_verdict_is_named(returned, description):
    verdict = judged(1, lambda f: returned)
    assert verdict.status == "error"
    assert f"the test returned {description}; it should return True or False" in verdict.message


def test_a_verdict_of_numpy_or_pytorch_is_one():
    for yes in (True, np.True_, torch.tensor(True), np.array(True)):
        assert judged(1, lambda f, yes=yes: yes).mistake == "everything passes"


def test_hidden_implementations_are_not_named():
    names = [each.name for each in added_implementations(1)]
    for mistake, known in judge_of(1, NAME).mistakes(hidden=True):
        message = judge_of(1, NAME).judge(known).message
        assert not [name for name in names if name in message], mistake.name


# In the notebook ------------------------------------------------------------------------------------------------------


def checked(source, capsys):
    namespace = {"np": np}
    exec(textwrap.dedent(source), namespace)
    namespace["check"] = checks_for(day=1)
    with pytest.raises(NotYet) as raised:
        exec(f"check({NAME!r})", namespace)
    return str(raised.value), capsys.readouterr().out


def test_the_check_counts_names_what_was_caught_and_hints_at_what_got_away(capsys):
    message, alt_text = checked(
        """
        def tells_right(f):
            output, weights = f(np.eye(3), np.eye(3), np.eye(3))
            return np.allclose(weights.sum(-1), 1)
        """,
        capsys,
    )
    assert max(map(len, message.splitlines())) <= 88
    assert message.startswith("tells_right: not yet, ")
    assert "✓ keeps all 12 right implementations" in message
    assert re.search(r"✗ catches \d+ of 32 wrong ones, not number \d+", message)
    assert "softmax over the queries" not in message  # on a symmetric matrix it got away
    message = " ".join(message.split())
    assert "Caught: " in message and "a sigmoid" in message and "A hint at one that got away: " in message
    assert "wrong ones caught, 12 of 12 right ones kept." in alt_text


def test_the_board_tells_of_what_got_away_by_hints_alone():
    judge = judge_of(1, NAME)
    evidence = evidence_for(1, NAME, {NAME: lambda f: True})
    one = next(known for mistake, known in judge.mistakes() if mistake.name == "one example")
    tiles = board_of(1, judge.judge(evidence).rungs, one.outcomes)
    assert [tile["held"] for tile in tiles] == [tile["right"] for tile in tiles]
    assert all(len(tile["hints"]) == 2 for tile in tiles if not tile["right"])
    hints = {tile["name"]: tile["hints"][0] for tile in tiles if not tile["right"]}
    assert hints["no scale"] == "It is wrong on most inputs."
    assert hints["equal keys counted once"] == "It is right on most inputs, and wrong on some."
    assert "Caught" not in describe_duel(1, judge.judge(evidence).rungs)


# What can be called, and how ------------------------------------------------------------------------------------------


def here(function, **methods):
    return LocalCaller(function, {"": ("x", "y"), **methods})


def far_away(function, **methods):
    """The same implementation as a grading kernel has it."""
    caller = here(function, **methods)
    return RemoteCaller(lambda text: json.dumps(serve(caller, json.loads(text))), 0, [])


BOTH = pytest.mark.parametrize("caller_of", [here, far_away])


@BOTH
def test_what_goes_in_and_comes_out_are_numbers(caller_of):
    got = []

    def function(x, y):
        got.append((x, y))
        return np.float32([1, 2]), [1.5, None], True

    f = Candidate(caller_of(function))
    assert repr(f) == "<an implementation: call it>"
    result = f([[1, 2]], y=np.float64(2))
    assert isinstance(result, tuple) and result[0].dtype == np.float32 and result[1:] == ([1.5, None], True)
    f(y=torch.ones(2), x=np.array([True]))
    f((1.5, 2), None)
    f([np.ones(2), np.zeros(2)], np.int64(3))
    assert [each[0].tolist() for each in got] == [[[1, 2]], [True], [1.5, 2], [[1, 1], [0, 0]]]
    assert got[0][1] == 2.0 and got[1][1].tolist() == [1, 1] and got[2][1] is None and got[3][1] == 3


@BOTH
def test_one_number_in_float32_comes_out_with_a_grain_too(caller_of):
    f = Candidate(caller_of(lambda x, y: np.float32(1.5)))
    assert f(1, 2) == np.float32(1.5)
    grainy = LocalCaller(lambda x, y: np.float32(1.5), {"": ("x", "y")}, 16.0)
    reply = json.loads(json.dumps(serve(grainy, {"object": None, "method": "", "args": [1, 2], "kwargs": {}})))
    assert abs(float(unpack(reply["value"])) - 1.5) < 1e-6


@BOTH
def test_arguments_are_copies(caller_of):
    def function(x, y):
        x += y
        return x

    x = np.zeros(2)
    assert Candidate(caller_of(function))(x, 1).tolist() == [1, 1] and x.tolist() == [0, 0]


@BOTH
def test_of_an_error_of_an_implementation_nothing_is_told_that_could_name_it(caller_of):
    def only_this_one(x, y):
        raise IndexError("beyond")

    with pytest.raises(FailedInside) as raised:
        Candidate(caller_of(only_this_one))(1, 2)
    assert str(raised.value) == "the implementation raised an error"
    with pytest.raises(Refused, match=r"call it as f\(x, y\)"):
        Candidate(caller_of(only_this_one))(nope=1)
    with pytest.raises(FailedInside):
        Candidate(caller_of(lambda x, y: np.array([None])))(1, 2)


@BOTH
@pytest.mark.parametrize(
    "x",
    [
        np.zeros(2001),
        [0.0] * 2001,
        "text",
        np.array(["a"]),
        object(),
        1_001,
        np.array(10**9),
        [[[[[[[[1]]]]]]]],
        lambda: 1,
        {"a": 1},
        np.zeros((20_000, 0)),
        [],
        [[]] * 5000,
        [[1.0], [1.0, 2.0]],
        [1, "a"],
        [None],
        np.zeros((300, 1, 1)),
        np.zeros((300, 1, 1)).tolist(),
    ],
    ids=lambda x: f"{type(x).__name__} {str(np.shape(x) if isinstance(x, np.ndarray) else x)[:20]}",
)
def test_what_no_implementation_takes_is_refused(caller_of, x):
    with pytest.raises(Refused):
        Candidate(caller_of(lambda x, y: 1.0))(x, np.zeros((1, 900, 1)))


def test_queries_and_keys_may_not_be_too_many():
    f = Candidate(implementations(6)[0].caller(calls_of(6)))
    with pytest.raises(Refused, match="90,000 scores"):
        f(np.ones((300, 1)), np.ones((300, 1)), np.ones((300, 1)), 1, 1, False)
    x = np.ones((300, 3))
    assert Candidate(implementations(2)[0].caller(calls_of(2)))(x, x)[0].shape == (300, 3)


@BOTH
def test_a_whole_number_that_is_too_large_is_told_with_the_largest(caller_of):
    with pytest.raises(Refused, match=r"1024 is too large: .* at most 1,000"):
        Candidate(caller_of(lambda x, y: 1.0))(1024, 16)


@BOTH
def test_calls_and_results_have_an_end(caller_of):
    f = Candidate(caller_of(lambda x, y: np.zeros((x, y))))
    with pytest.raises(Refused, match="a result of"):
        f(500, 500)
    for _ in range(MAX_CALLS - 1):
        f(1, 1)
    with pytest.raises(Refused, match=f"may be called {MAX_CALLS:,} times"):
        f(1, 1)


@BOTH
def test_an_object_has_the_methods_that_a_day_says_and_no_more(caller_of):
    class Counter:
        def __init__(self, x, y):
            self.count = x

        def add(self, by):
            self.count += by
            return self.count

        def reveal(self):
            return 7

    f = Candidate(caller_of(Counter, add=("by",)))
    one, two = f(0, 0), f(0, 0)
    assert isinstance(one, CandidateObject) and (one.add(1), one.add(by=4), two.add(1)) == (1, 5, 1)
    for call in (one.reveal, one.secret, lambda: one.add(), lambda: one.add(1, 2), lambda: one.add(1, by=1)):
        with pytest.raises(Refused):
            call()
    with pytest.raises(AttributeError):
        _ = one._hidden


@pytest.mark.parametrize(
    "question",
    [
        "",
        "[",
        "7",
        "null",
        '{"of": -1}',
        '{"of": 100000}',
        '{"of": true}',
        '{"of": 0, "object": 3, "method": "x"}',
        '{"of": 0, "object": 0.5}',
        '{"of": 0, "method": 3}',
        '{"of": 0, "args": 5}',
        '{"of": 0, "args": [{"a": 5}]}',
        '{"of": 0, "args": [{"a": ["|O", [1], "AAAAAAAAAAA="]}]}',
        '{"of": 0, "args": [{"a": ["<f8", [3], "AAAA"]}]}',
        '{"of": 0, "kwargs": []}',
        "[" * 100_000,
        '{"of": 0, "args": [' + "[" * 5000 + "]" * 5000 + "]}",
    ],
)
def test_a_question_that_is_none_is_refused(question):
    arena = Arena(1)
    reply = json.loads(arena.answer(question))
    assert reply.keys() == {"refused"} and "right" not in str(reply)


def ask(arena, **question):
    return json.loads(arena.answer(json.dumps(question)))


@EACH_DAY
def test_in_the_arena_all_are_met_in_a_new_order_and_some_again(day):
    arena, other = Arena(day), Arena(day)
    count = len(implementations(day, hidden=True))
    assert ask(arena, how="many") == {"many": len(arena.order)}
    assert set(arena.order) == set(range(count)) and arena.order != other.order
    again = {i for i in arena.order if arena.order.count(i) > 1}
    assert all(arena.implementations[i].gross for i in again)
    assert max(arena.order.count(i) for i in again) > 45 and len(arena.order) - count >= 45


def test_each_can_be_called_until_its_own_verdict_and_no_longer():
    arena, call = Arena(1), {"args": [[[1.0]], [[1.0]], [[2.0]]]}
    assert ask(arena, of=1, **call) == {"refused": "it is not its turn"}
    assert "value" in ask(arena, of=0, **call) and "value" in ask(arena, of=1, verdicts=[1.0], **call)
    for place in (0, 2):
        assert ask(arena, of=place, **call) == {"refused": "it is not its turn"}
    assert arena.verdicts == [1.0] and "value" in ask(arena, of=1, verdicts="01", **call) and arena.verdicts == [1.0]
    ask(arena, verdicts=[0.0] * 1000)
    assert arena.done and len(arena.verdicts) == len(arena.order)


def test_what_counts_are_the_verdicts_that_were_sent_and_of_several_the_worst():
    arena = Arena(1)
    again = next(i for i in arena.order if arena.order.count(i) > 1 and arena.implementations[i].gross)
    third = [place for place, i in enumerate(arena.order) if i == again][2]
    for place, i in enumerate(arena.order):
        ask(arena, of=place + 1, verdicts=[1.0 if place == third else float(arena.implementations[i].right)])
    assert arena.done and ask(arena, of=len(arena.order), verdicts=[1.0]) == {"refused": "it is not its turn"}
    forged = Evidence(NAME, True, [Outcome(str(place), {"verdict": Numbers((), (0.0,))}) for place in range(200)])
    by_name = arena.by_name(forged)
    missed = dict(judge_of(1, NAME).judge(by_name).rungs)
    assert [name for name, ok in missed.items() if not ok] == [arena.implementations[again].name]
    assert judge_of(1, NAME).judge(Arena(1).by_name(forged)).share == 0


def try_in(arena, test):
    """What a kernel does: try the test on each implementation. Returns the evidence and the number of questions."""
    questions, outcomes = [], []

    def send(text):
        questions.append(text)
        return arena.answer(text)

    for place, (candidate, send_verdict) in enumerate(offered_candidates(send)):
        outcomes.append(outcome_of(Rung(str(place), (candidate,), "", verdict_of), find_ladder(1, NAME), {NAME: test}))
        send_verdict(None if outcomes[-1].error else outcomes[-1].values["verdict"].entries[0])
    return arena.by_name(Evidence(NAME, True, outcomes)), len(questions)


def games_of(day):
    """A test of objects that makes many calls, each time others where its generator is one of its own."""

    def tells_right(f, rng=None):
        rng = rng or np.random.default_rng()
        for _ in range(30):
            made, keys_so_far = f(3), []
            for key in rng.normal(size=(int(rng.integers(1, 6)), 2)):
                keys_so_far.append(key)
                made.append(key, -key)
                if rng.random() < 0.5:
                    keys, values = made.view()
                    if not (np.allclose(keys, keys_so_far[-3:], atol=1e-3) and np.allclose(values, -keys, atol=1e-3)):
                        return False
        return True

    return tells_right


def test_calls_that_were_made_to_earlier_implementations_cost_hardly_a_question():
    calls = []

    def tells_right(f):
        rng, near = np.random.default_rng(1), True
        for _ in range(100):
            x = rng.normal(size=(3, 2))
            calls.append(x)
            near &= bool(np.allclose(f(x, x, x)[1].sum(-1), 1))
        return near

    arena = Arena(1)
    evidence, questions = try_in(arena, tells_right)
    assert judge_of(1, NAME).judge(evidence).share > 0
    assert len(calls) == 100 * len(arena.order) > 10 * questions


@pytest.mark.parametrize("seeded", [True, False], ids=["the same calls each time", "others each time"])
def test_objects_that_a_test_goes_another_way_with_are_as_if_nothing_had_been_called_in_advance(seeded):
    def tells_right(f):
        return games(f, np.random.default_rng(7 if seeded else None))

    games = games_of(5)
    evidence, _ = try_in(Arena(5), tells_right)
    held = dict(judge_of(5, NAME).judge(evidence).rungs)
    assert all(held[each.name] for each in implementations(5, hidden=True) if each.right)
    assert held["odd windows"]


def test_the_courses_own_tests_of_objects_are_right_about_all_also_where_calls_are_made_in_advance():
    for day in (5, 7):
        test = judge_of(day, NAME).exercise.reference[NAME]
        assert judge_of(day, NAME).judge(try_in(Arena(day), test)[0]).share == 1


def test_a_test_that_trusts_the_most_frequent_of_all_plausible_results_earns_nothing():
    """It asks for weights that are shares and for outputs blended with them; the rest it leaves to the vote."""
    q, k, v = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[1.0, 0.5], [-1.0, 2.0], [0.0, 1.0]]), np.eye(3)
    votes = Counter()

    def tells_right(f):
        output, weights = f(q, k, v)
        if np.min(weights) < 0 or not np.allclose(weights.sum(-1), 1) or not np.allclose(output, weights @ v):
            return False
        mine = tuple(np.round(weights, 3).ravel())
        votes[mine] += 1
        return votes[mine] + 3 > votes.most_common(1)[0][1]  # the first ones have the benefit of the doubt

    shares = []
    for _ in range(10):
        votes.clear()
        shares.append(judge_of(1, NAME).judge(try_in(Arena(1), tells_right)[0]).share)
    assert shares == [0] * 10


def test_random_numbers_are_the_same_for_each_implementation():
    import random

    drawn, namespace = [], {"np": np, "random": random, "torch": torch, "drawn": []}
    source = """
    mine, other = np.random.default_rng(3), random.Random(3)
    def tells_right(f):
        drawn.append((mine.random(), other.random(), random.random(), np.random.rand(), torch.rand(1).item()))
        return True
    """
    exec(textwrap.dedent(source), namespace)
    drawn = namespace["drawn"]
    judged(1, namespace[NAME])
    assert len(drawn) > 40 and len(set(drawn)) == 1


def test_what_several_caches_share_is_gone_with_its_line():
    by_name = {each.name: each for each in implementations(5, hidden=True)}
    for name in ("two caches in one", "keys of another cache"):
        for _ in range(2):
            cache = Candidate(by_name[name].caller(calls_of(5)))(2)
            cache.append([1.0], [2.0])
            assert cache.view()[0].tolist() == [[1.0]], name
            cache.append([3.0], [4.0])


def test_only_these_exercises_are_duels():
    assert all(find_ladder(day, NAME).duel for day in DAYS)


def test_a_test_that_calls_all_right_or_all_wrong_is_told_without_a_list_of_numbers():
    from course_utils.checks.judge.duel_verdict import describe_duel
    from course_utils.checks.judge.rungs import visible_implementations

    names = [each.name for each in visible_implementations(3)]
    text = describe_duel(3, [(name, False) for name in names])
    assert "✗ keeps none of the 12 right implementations" in text and "✗ catches none of the 32 wrong ones" in text
    text = describe_duel(3, [(name, True) for name in names])
    assert "✓ keeps all 12 right implementations" in text and "✓ catches all 32 wrong ones" in text
