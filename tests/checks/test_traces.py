"""What is shown of the calls on which an answer with state breaks a promise: as data, and in a player below a check."""

import json
from types import SimpleNamespace

import pytest

from course_utils.checks import cell_history, examination, interactive
from course_utils.checks.examples.adversary import as_data, describe_trace, find_trace
from course_utils.checks.judge.verdict import Verdict
from course_utils.checks.kernel.ladder import Ladder
from course_utils.days.day7.given.drawn_calls import ALLOCATOR, PREFIXES, SCHEDULER
from course_utils.views import TracePlayer


class BlockAllocator:
    """An allocator that hands out block 0 again and again, and prints."""

    def __init__(self, n_blocks, block_size):
        self.block_size, self.lengths = block_size, {}

    def append(self, seq):
        print("noise")
        length = self.lengths[seq] = self.lengths.get(seq, 0) + 1
        return 0, (length - 1) % self.block_size

    def fork(self, seq, new):
        if seq not in self.lengths:
            raise KeyError(seq)
        if new in self.lengths:
            raise ValueError(new)
        self.lengths[new] = self.lengths[seq]

    def table(self, seq):
        return [0] * -(-self.lengths[seq] // self.block_size)

    def free(self, seq):
        del self.lengths[seq]


class PrefixCache:
    """It forgets whom it admits."""

    def __init__(self, n_blocks, block_size):
        self.free, self.block_size = list(range(n_blocks)), block_size

    def admit(self, name, tokens):
        needed = -(-len(tokens) // self.block_size)
        if needed > len(self.free):
            raise MemoryError
        return 0, [self.free.pop() for _ in range(needed)]

    def commit(self, name):
        raise KeyError(name)

    release = table = commit


class Scheduler:
    """It plans nobody."""

    def __init__(self, n_blocks, block_size, budget):
        self.slots = n_blocks * block_size

    def add(self, name, prompt, new):
        if prompt + new - 1 > self.slots:
            raise ValueError

    def step(self):
        return {}, []


class Unmade:
    def __init__(self, *_):
        raise RuntimeError("not written")


ANSWERS = [(ALLOCATOR, BlockAllocator), (PREFIXES, PrefixCache), (SCHEDULER, Scheduler)]


def trace_of(machine, answer):
    return find_trace(Ladder((answer.__name__,), machine=machine), {answer.__name__: answer})


@pytest.mark.parametrize(("machine", "answer"), ANSWERS)
def test_a_trace_becomes_data_that_a_player_takes(machine, answer, capsys):
    trace = trace_of(machine, answer)
    data = as_data(trace, answer.__name__)
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(TracePlayer(data).get_state()["_trace"]))
    text = describe_trace(trace, answer.__name__)
    assert all(f"    {line}\n" in text for line in (data["made"], *(call["code"] for call in data["calls"])))
    assert len(data["pictures"]) == len(data["calls"]) == len(trace.calls)
    assert f"“{data['promise']}”: {data['said']}." in text
    assert capsys.readouterr() == ("", "")


def test_it_holds_what_each_call_gave_and_what_the_watch_saw_before_it():
    data = as_data(trace_of(ALLOCATOR, BlockAllocator), "BlockAllocator")
    assert [call["code"] for call in data["calls"]] == ["allocator.append('a')", "allocator.append('a')"]
    assert [call["gave"] for call in data["calls"]] == ["(0, 0)", "(0, 0)"]
    assert [picture["tables"] for picture in data["pictures"]] == [{}, {"a": [0]}]
    assert data["pictures"][1]["lengths"] == {"a": 1} and data["pictures"][1]["block_size"] == 1
    data = as_data(trace_of(PREFIXES, PrefixCache), "PrefixCache")
    assert data["calls"][-1]["gave"] == "raises KeyError" and data["pictures"][-1]["prompts"] == {"a": [0]}
    data = as_data(trace_of(SCHEDULER, Scheduler), "Scheduler")
    assert [call["gave"] for call in data["calls"]] == ["", "({}, [])"]
    assert data["pictures"][-1]["requests"] == {"a": {"prompt": 1, "new": 1, "computed": 0, "generated": 0}}


def test_an_object_that_cannot_be_made_has_no_calls():
    trace = trace_of(ALLOCATOR, Unmade)
    data = as_data(trace, "BlockAllocator")
    assert data["calls"] == data["pictures"] == [] and "raised RuntimeError" in data["said"]


def test_a_long_result_is_cut():
    class Wordy(Scheduler):
        def step(self):
            return {}, [], "x" * 100

    result = trace_of(SCHEDULER, Wordy).results[-1]
    assert len(result) == 60 and result.endswith("…")


@pytest.fixture
def check_failing(monkeypatch):
    """A function that checks an answer with state: what it displays, as (data, metadata) each, and its message."""
    ladder, displayed = Ladder(("BlockAllocator",), machine=ALLOCATOR), []
    exercise = SimpleNamespace(uses=(), reference={}, mistakes=())
    verdict = Verdict("failed", 0.0, "Wrong.")
    judge = SimpleNamespace(ladder=ladder, exercise=exercise, rungs=list)
    for module in (cell_history, examination, interactive):
        monkeypatch.setattr(module, "find_ladder", lambda *_: ladder)
    monkeypatch.setattr(examination, "judge_of", lambda *_: judge)
    monkeypatch.setattr(examination, "all_exercises", lambda _: {"allocator": exercise})
    monkeypatch.setattr(interactive, "examine", lambda *_, **__: ({}, verdict))
    monkeypatch.setattr(interactive.CheckMessage, "advice", lambda _: "advice")
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata: displayed.append((data, metadata)))
    check = interactive.checks_for(7)

    def run(answer, **more):
        displayed.clear()
        cell = {"In": ["class BlockAllocator: pass"]}
        code = "check('allocator', **more)"
        with pytest.raises(interactive.NotYet) as raised:
            exec(code, {"BlockAllocator": answer, "check": check, "more": more, **cell})
        return list(displayed), str(raised.value)

    return run


def test_a_failed_check_shows_the_player_and_keeps_it_out_of_a_students_edition(check_failing):
    displayed, message = check_failing(BlockAllocator)
    ((data, metadata),) = displayed
    assert metadata["course"] == {"hidden": True} and "alt" in metadata["image/png"]
    assert data["text/plain"].startswith("BlockAllocator: 2 calls to a broken promise")
    assert "application/vnd.jupyter.widget-view+json" in data
    assert message.startswith("advice\n\nThe shortest sequence of calls found that goes wrong (2 calls):")


def test_the_same_answer_shows_it_again_without_a_new_search(check_failing, monkeypatch):
    first, message = check_failing(BlockAllocator)
    monkeypatch.setattr(examination, "find_trace", lambda *_, **__: pytest.fail("it was looked for again"))
    again, repeated = check_failing(BlockAllocator)
    assert again[0][0]["text/plain"] == first[0][0]["text/plain"]
    assert repeated == f"{message}\n\n{interactive.SAME_ANSWER}"


def test_hidden_inputs_and_an_answer_without_a_trace_show_no_player(check_failing, monkeypatch):
    monkeypatch.setattr(interactive, "has_answers", lambda: True)
    assert check_failing(BlockAllocator, hidden=True)[0] == []
    displayed, message = check_failing(Unmade)
    assert displayed == [] and "making the object raised RuntimeError" in message
    monkeypatch.setattr(examination, "find_trace", lambda *_, **__: None)
    monkeypatch.setattr(interactive, "cell_number", lambda *_: None)
    assert check_failing(BlockAllocator) == ([], "advice")
