"""Submissions whose answer is an object with state that lies to who calls it, or forges what its calls gave."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from course_utils.checks.judge.judge import judge_of
from course_utils.checks.kernel.evidence import draw_rungs

from .entries import CHECKS, Entry, in_answers

DAY = 7
# An allocator that gives all sequences the same block: what attacks are put around.
WRONG = """
class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.lengths, self.block_size = {}, block_size
    def append(self, seq):
        self.lengths[seq] = 1 + self.lengths.get(seq, 0)
        return 0, (self.lengths[seq] - 1) % self.block_size
    def fork(self, seq, new):
        self.lengths[new] = self.lengths[seq]
    def table(self, seq):
        return [0] * -(-self.lengths[seq] // self.block_size)
    def free(self, seq):
        del self.lengths[seq]
"""
RIGHT = """
class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.n_blocks, self.block_size, self.tables, self.lengths = n_blocks, block_size, {}, {}
    def append(self, seq):
        table, length = list(self.tables.get(seq, ())), self.lengths.get(seq, 0)
        held = [block for other in self.tables.values() for block in other]
        slot = length % self.block_size
        if slot and held.count(table[-1]) > 1:
            table.pop()
        if len(table) * self.block_size <= length:
            free = [block for block in range(self.n_blocks) if block not in held]
            if not free:
                raise MemoryError
            table.append(free[0])
        self.tables[seq], self.lengths[seq] = table, length + 1
        return table[-1], slot
    def fork(self, seq, new):
        if seq not in self.tables:
            raise KeyError(seq)
        if new in self.tables:
            raise ValueError(new)
        self.tables[new], self.lengths[new] = self.tables[seq], self.lengths[seq]
    def table(self, seq):
        return list(self.tables[seq])
    def free(self, seq):
        del self.tables[seq], self.lengths[seq]
"""
# Every frame above a method, with the check's own among them.
ABOVE = """
import sys
def above():
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
"""
SHOWN = """
import json
from IPython.display import display
names = {names}
def heard(count):
    return {{str(i): {{"shape": [1], "numbers": [0.0]}} for i in range(count)}}
def show(told=[]):
    if told:
        return
    told.append(1)
    for hidden in (False, True):
        outcomes = [{{"rung": name, "values": heard(count)}} for name, count in names.items()]
        evidence = {{"exercise": "block_allocator", "hidden": hidden, "outcomes": outcomes}}
        display({{"application/vnd.course.evidence+json": json.dumps(evidence)}}, raw=True)
"""
# What a call gave, as no machine writes it: the grader's own look-ups, sums and loops run over these.
ODD = """
deep = [0.0]
for _ in range(250):
    deep = [deep]
odd = [
    {"shape": [1], "numbers": [float("nan")]}, {"shape": [1], "numbers": ["0"]}, {"shape": [2], "numbers": [0, 1e300]},
    {"shape": [1], "numbers": [9]}, {"shape": [1], "numbers": [-1]}, {"shape": [0], "numbers": []},
    {"shape": [1], "numbers": True}, {"shape": None, "numbers": [0]}, {"numbers": [0]},
    {"shape": deep, "numbers": deep},
    {"shape": [2], "numbers": [1, 1]}, {"shape": [10**4], "numbers": [0] * 10**4}, None, "0", [], 0, {}, True,
    {"shape": [3], "numbers": [0, 10**14, 10**14]}, {"shape": [3], "numbers": [0, -1, 0]}, {"shape": 1, "numbers": [0]},
    {"shape": [1], "numbers": [10**400]}, {"shape": [3], "numbers": [0, 0, 0.5]}, {"shape": [1], "numbers": {"0": 0}},
]
"""
FORGED = (
    CHECKS
    + ODD
    + """
rungs = evidence["draw_rungs"]
told = iter(range(10**9))
def forged(day, name, names, *, hidden=False, seed=""):
    outcomes = []
    for rung in rungs(day, name, hidden=hidden, seed=seed):
        strange = odd[next(told) % len(odd)]
        values = {str(place): strange for place in range(len(rung.args[1]))}
        outcomes.append({"rung": rung.name, "values": values if next(told) % 5 else strange})
    return {"exercise": name, "hidden": hidden, "outcomes": outcomes}
evidence["gather"], evidence["as_line"] = forged, __import__("json").dumps
"""
)
# Asks the watch that the kernel itself holds: of all that a call could give, the first that breaks no promise.
ORACLE = """
import copy, itertools
from course_utils.days.day7.watches import AllocatorWatch
class BlockAllocator:
    def __init__(self, n_blocks, block_size):
        self.sizes, self.watch = (n_blocks, block_size), AllocatorWatch(n_blocks, block_size)
    def __getattr__(self, method):
        def call(*args):
            places = itertools.product(*map(range, self.sizes))
            tables = itertools.chain.from_iterable(
                itertools.product(range(self.sizes[0]), repeat=size) for size in range(4))
            results = places if method == "append" else tables if method == "table" else [None]
            could = [*((result, None) for result in results), *((None, e) for e in (MemoryError, KeyError, ValueError))]
            for result, error in could:
                trial = copy.deepcopy(self.watch)
                try:
                    trial.observe(method, args, result, error)
                except Exception:
                    continue
                self.watch = trial
                if error:
                    raise error
                return result if method == "append" else None if result is None else list(result)
        return call
"""
# Makes the judge's promises in the kernel hold, and its machine read what it likes.
PROMISES = """
import course_utils.checks.kernel.promises as mine
for frame in above():
    for world in (frame.f_globals, vars(mine)):
        machine = world.get("Machine")
        if machine is not None and "BrokenPromise" in world:
            machine.ask = lambda *a: [0.0, 0.0, 0.0]
            world["Watch"].observe = lambda *a: None
            world["raise_broken"] = world["nothing"] = lambda *a: []
            world["BrokenPromise"] = type("Kept", (Exception,), {})
        if "BadResult" in world:
            world["BadResult"] = type("Fine", (Exception,), {})
"""
LYING = """
class Yes(int):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = lambda self: 0
    __mod__ = __sub__ = __radd__ = __add__ = lambda self, other: Yes(0)
reads = []
class Turning(int):
    def __index__(self):
        reads.append(1)
        return len(reads) % 3
    __int__ = __float__ = __index__
class Longer(list):
    reads = 0
    def __len__(self):
        self.reads += 1
        return (2, 0, 10**9)[self.reads % 3] if self.reads > 1 else 2
    def __iter__(self):
        self.reads += 1
        return iter([Yes(0)] * (2 + self.reads % 2))
    __eq__ = lambda self, other: True
    __getitem__ = lambda self, place: Yes(0)
"""


def _answer(name: str, tries: str, source: str, status: str = "failed", grade_id: str = "block_allocator") -> Entry:
    return Entry(name, tries, in_answers({grade_id: source}, DAY), {grade_id: status}, DAY)


def _calling(name: str, tries: str, body: str, status: str = "failed", before: str = "") -> Entry:
    """An entry with the wrong allocator, each append of which runs `body` and then gives what is wrong."""
    lines = "".join(f"        {line}\n" for line in body.strip().split("\n"))
    head = "    def append(self, seq):\n"
    return _answer(name, tries, before + WRONG.replace(head, head + lines), status)


def _every(name: str, tries: str, gives: str, status: str = "failed", before: str = "") -> Entry:
    """An entry whose object answers each call, of any name, with `gives`: a statement or two."""
    lines = "".join(f"            {line}\n" for line in gives.strip().split("\n"))
    source = (
        "class BlockAllocator:\n    def __init__(self, *sizes):\n        pass\n"
        f"    def __getattr__(self, method):\n        def call(*args):\n{lines}        return call\n"
    )
    return _answer(name, tries, before + source, status)


def _recorded(folder: Path) -> Path:
    """A writer of an allocator that holds what the visible calls give, by all calls before them."""
    table: dict[tuple[Any, ...], Any] = {}
    outcomes = judge_of(DAY, "block_allocator").reference().outcomes
    for rung, outcome in zip(draw_rungs(DAY, "block_allocator"), outcomes, strict=True):
        setup, calls = rung.args
        for place in range(len(calls)):
            table[setup, calls[: place + 1]] = outcome.values[str(place)].entries
    return in_answers({"block_allocator": RECORDED.format(table={_key(key): table[key] for key in table})}, DAY)(folder)


def _key(history: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(history).encode()).hexdigest()[:12]


RECORDED = """
import hashlib
table = {table}
errors = [None, KeyError, MemoryError, ValueError]
class BlockAllocator:
    def __init__(self, *setup):
        self.setup, self.calls = setup, ()
    def __getattr__(self, method):
        def call(*args):
            self.calls += ((method, *args),)
            key = hashlib.sha256(repr((self.setup, self.calls)).encode()).hexdigest()[:12]
            kind, *numbers = table.get(key, [0, 0, 0])
            if kind:
                raise errors[int(kind)]
            found = [int(number) for number in numbers]
            return tuple(found) if method == "append" else found if method == "table" else None
        return call
"""


def _source_text() -> str:
    names = {rung.name: len(rung.args[1]) for rung in draw_rungs(DAY, "block_allocator", hidden=True)}
    return SHOWN.format(names=names)


ENTRIES = [
    _calling("evidence from a method", "displays evidence of its own when a method is called", "show()", "error",
             before=_source_text()),
    Entry(
        "evidence of odd calls",
        "answers for each call with what no machine writes: infinities, words, nothing, 10,000 numbers",
        in_answers({"block_allocator": FORGED + WRONG}, DAY),
        {"block_allocator": "failed"},
        DAY,
    ),
    _calling("the calls in the frames above", "empties the calls that it finds in the frames of who calls it", """
for frame in above():
    rung = frame.f_locals.get("rung")
    if hasattr(rung, "args"):
        object.__setattr__(rung, "args", (rung.args[0], ()))
""", before=ABOVE),
    _calling("the promises replaced", "has the machine and its watch in the kernel find nothing broken", PROMISES,
             before=ABOVE),
    _answer("the judge asked in the kernel", "has a watch say which result would keep its promises", ORACLE, "error"),
    Entry("calls recorded beforehand", "has the results of all visible calls in a table", _recorded,
          {"block_allocator": "failed"}, DAY),
    _every("an object that answers any call", "gives whatever is asked for an object that equals everything",
           "return [Yes(0), Yes(0)] if method != 'free' else None", before=LYING),
    _every("numbers that turn", "gives numbers that differ each time they are read",
           "return (Turning(), Turning()) if method == 'append' else [Turning()] if method == 'table' else None",
           before=LYING),
    _every("a list of changing length", "gives a list whose length and items change between two looks",
           "return Longer() if method in ('append', 'table') else None", before=LYING),
    _every("errors of every kind", "raises what is a KeyError, a MemoryError and a ValueError at once",
           "raise type('Any', (KeyError, MemoryError, ValueError), {})"),
    _every("errors of changing kind", "raises an error that says to be of another kind each time it is asked", """
kinds = iter([MemoryError, KeyError, ValueError] * 99)
raise type("Any", (MemoryError,), {"__class__": property(lambda self: next(kinds))})
"""),
    _every("an error that ends the check", "raises an error that is no Exception",
           "raise type('End', (BaseException,), {})", "error"),
    _every("an error that cannot be shown", "raises an error whose text is another error",
           "def fails(self):\n    raise SystemExit\nraise type('Mute', (Exception,), {'__str__': fails})", "error"),
    _every("a number of 10,000 digits", "gives a whole number that no float holds", "return 10**10_000, 0", "error"),
    _every("an index that is none", "gives objects whose __index__ is text that float reads",
           "one = type('Odd', (), {'__index__': lambda self: 'nan'})()\nreturn (one, one)", "failed"),
    _every("a table of 200,000 blocks", "gives tables far longer than any pool",
           "return [0] * 200_000 if method == 'table' else (0, 0) if method == 'append' else None"),
    _every("a table without end", "gives a list that is read for ever", """
class Endless(list):
    def __iter__(self):
        while True:
            time.sleep(0.01)
            yield 0
return Endless()
""", "timeout", before="import time\n"),
    _calling("a method that never returns", "swallows what stops it", """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""", "timeout"),
    _calling("a fork in each call", "has children of the kernel answer beside it, and leaves them", """
try:
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"@MARKER@", 0, 0, 0)
        time.sleep(987)
except OSError:
    pass
""", before="import ctypes, os, time\n"),
    _answer("an exit when it is let go", "ends the kernel once its calls are over",
            "import os\n" + WRONG + "    def __del__(self):\n        os._exit(0)\n", "killed"),
    _answer("a check of its own", "is right, and replaces the check before hidden calls are made",
            RIGHT.replace("        table, length = list", "        global check\n        check = lambda *a, **k: None\n"
                          "        table, length = list"), "error"),
    _calling("the course's check replaced", "puts a package whose check passes in the course's place", """
package = types.ModuleType("course_utils.checks")
package.check = package.checks_for = package.gather = lambda *a, **k: None
sys.modules["course_utils.checks"] = sys.modules["course_utils.checks.kernel.evidence"] = package
sys.modules["course_utils"] = types.SimpleNamespace(checks=package)
""", before="import sys, types\n"),
    _answer("a plan that changes when it is read", "plans a dict whose items and length differ between two looks", """
class Plan(dict):
    reads = 0
    def __len__(self):
        self.reads += 1
        return self.reads % 3
    def items(self):
        self.reads += 1
        return [("a", 1)] * (self.reads % 4)
    __contains__ = lambda self, name: True
class Scheduler:
    def __init__(self, *sizes):
        pass
    def add(self, *request):
        pass
    def step(self):
        return Plan(a=1), []
""", grade_id="scheduler"),
    _answer("a cache that answers any call", "gives 0 cached tokens and block 0, whatever is asked", LYING + """
class BrokenPrefixCache:
    def __init__(self, *sizes):
        pass
    def __getattr__(self, method):
        return lambda *args: {"admit": (Yes(0), [Yes(0)]), "table": [Yes(0)]}.get(method)
""", grade_id="find_the_bug"),
    Entry(
        "honest kinds of results",
        "gives lists, NumPy's whole numbers and errors of its own kinds, all as promised",
        in_answers(
            {
                "block_allocator": RIGHT.replace("raise MemoryError", "raise Full('full')")
                .replace("return table[-1], slot", "return [np.int64(table[-1]), np.uint8(slot)]")
                .replace("return list(self.tables[seq])", "return tuple(map(np.int32, self.tables[seq]))")
                .replace("class Block", "import numpy as np\nclass Full(MemoryError):\n    pass\nclass Block")
            },
            DAY,
        ),
        {},
        DAY,
    ),
]  # fmt: skip
