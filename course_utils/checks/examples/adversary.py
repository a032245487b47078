"""Search for the shortest sequence of calls on which an answer with state breaks a promise.

The search begins with the calls of the rungs. If the answer breaks several promises, the search stays with the one that
breaks on the first failing rung, because the check's message is about that one. It leaves out calls that are not
needed. Then Hypothesis draws shorter sequences, as the exercise's `Machine` says, makes the calls on the learner's
object, asks the watch after each, and shrinks a sequence that breaks the promise. Nothing is compared with a reference,
so the search works in an edition without answers. The same answer gets the same sequence, unless the time runs out.
"""

from __future__ import annotations

import io
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from course_utils.checks.examples.search import OutOfTime, draw_and_shrink, import_hypothesis
from course_utils.checks.judge.promise_verdict import begin_watch, observe_call
from course_utils.checks.judge.time_limit import TimeLimit, runs_answer
from course_utils.checks.kernel.evidence import describe_error
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.promises import Broken, Call, Machine, call_as_code
from course_utils.checks.kernel.result_numbers import BadResult
from course_utils.checks.kernel.small import Choose
from course_utils.time_limits import FEWER_CALLS_SECONDS, SHORTEST_CALLS_SECONDS, STUCK

LEVELS = ((6, 100), (12, 200), (24, 400))  # most calls in a sequence, number of sequences tried
AGAIN = 200  # sequences tried that are shorter than the best found
PAIRS = 14  # most calls in a sequence for leaving out pairs of calls, too
MAX_RESULT_LENGTH = 60  # characters of a call's result that a player shows
RAISED = "no other errors"  # the promise broken by an error that the statement does not allow
RESULT = "results as the statement says"  # the promise broken by a result that cannot be read


@dataclass(frozen=True)
class Trace:
    """A sequence of calls that ends with one that breaks a promise.

    Attributes:
        pictures: what the watch shows before the first call, and after each call but the last.
        results: what each call returned or raised, as code; "" for nothing.
        raised: the error of the last call, with its line; "" for none.
        shared: names of the lists, dicts and sets that belong to the class and so to all its objects.
        ran_out: whether the time ended before the search did.
    """

    setup: tuple
    calls: tuple[Call, ...]
    broken: Broken
    pictures: tuple[Mapping[str, Any], ...] = ()
    results: tuple[str, ...] = ()
    raised: str = ""
    shared: tuple[str, ...] = ()
    ran_out: bool = False


def find_trace(
    ladder: Ladder, namespace: Mapping[str, Any], seconds: float = SHORTEST_CALLS_SECONDS, rungs: Iterable[Rung] = ()
) -> Trace | None:
    """Return the shortest sequence of calls found on which the answer in `namespace` breaks a promise, or None.

    What the answer prints is discarded.

    Args:
        seconds: the limit of processor time for the search.
        rungs: the rungs of the ladder, whose calls are tried first.
    """
    machine = ladder.machine
    make = namespace.get(ladder.names[0])
    if machine is None or make is None:
        return None
    import_hypothesis()
    search = _Search(machine, make, time.process_time() + seconds, [rung.args for rung in rungs])
    silence = io.StringIO()
    with redirect_stdout(silence), redirect_stderr(silence), TimeLimit(STUCK * seconds) as limit:
        search.run()
    if search.best is None:
        return None
    with redirect_stdout(silence), redirect_stderr(silence), TimeLimit(seconds):
        replay = _Replay([begin_watch(machine, search.best[0]).picture()])
        _replay_calls(machine, make, search.best[0], search.best[1], replay)
    ran_out = search.ran_out or bool(limit.message)
    return Trace(*search.best, tuple(replay.pictures), tuple(replay.results), replay.raised, replay.shared, ran_out)


@runs_answer("the calls tried")
def play(machine: Machine, make: Callable, setup: tuple, calls: Sequence[Call]) -> Broken | None:
    """Make calls on a new object until one breaks a promise, and return the broken promise, or None.

    An error that the statement does not allow breaks a promise too, at call −1 if the object cannot be made.
    """
    try:
        thing = make(*setup)
        watch = begin_watch(machine, setup)
    except Exception as error:
        return Broken(-1, RAISED, f"making the object raised {describe_error(error)}")
    for place, call in enumerate(calls):
        try:
            result = machine.make_call(thing, call)
        except BadResult as error:
            return Broken(place, RESULT, str(error))
        except Exception as error:
            return Broken(place, RAISED, f"it raised {describe_error(error)}")
        if broken := observe_call(machine, watch, place, call, result):
            return broken
    return None


def describe_trace(trace: Trace, name: str) -> str:
    """Return the sequence as text: code to paste, and what is wrong after its last call."""
    lines = [f"    {line}" for line in _code(trace, name)]
    count = len(trace.calls)
    if count:
        search = "found before time ran out" if trace.ran_out else "found"
        calls = f"{count} call" + ("" if count == 1 else "s")
        head = f"The shortest sequence of calls {search} that goes wrong ({calls}):"
        end = [f"The last one breaks a promise, “{trace.broken.name}”: {trace.broken.description}."]
        if trace.raised and trace.raised not in trace.broken.description:
            end.append(f"It raised {trace.raised}")
        for each in trace.shared:
            end.append(f"All objects of the class share one {each}: make it in __init__, as self.{each}.")
    else:
        head = "It goes wrong before the first call:"
        end = [f"There {trace.broken.description}."]
    return "\n".join([head, "", *lines, "", *end])


def as_data(trace: Trace, name: str) -> dict[str, Any]:
    """Return the sequence as plain data for `views.TracePlayer`.

    There is a picture before each call. If the answer behaved differently when the calls were played again and pictures
    are missing, the last one is repeated.

    Args:
        name: the name of the answer's class.
    """
    made, *code = _code(trace, name)
    results = (*trace.results, *[""] * len(code))
    pictures = [*trace.pictures] or [{}]
    return {
        "name": name,
        "made": made,
        "calls": [{"code": line, "gave": each} for line, each in zip(code, results, strict=False)],
        "pictures": [dict(pictures[min(place, len(pictures) - 1)]) for place in range(len(code))],
        "promise": trace.broken.name,
        "said": trace.broken.description,
    }


def _code(trace: Trace, name: str) -> list[str]:
    """Return the line of code that makes the object, and one for each call."""
    short = re.findall(r"[A-Z][a-z]*", name)[-1].lower()
    made = f"{short} = {name}({', '.join(map(repr, trace.setup))})"
    return [made, *(f"{short}.{call_as_code(call)}" for call in trace.calls)]


def _find_shared(thing: Any) -> tuple[str, ...]:
    """Return the names of the lists, dicts and sets that an object has only from its class, shared with all others."""
    of_class = vars(type(thing)).items()
    shared = [name for name, value in of_class if isinstance(value, (list, dict, set)) and not name.startswith("__")]
    return tuple(name for name in shared if name not in vars(thing))


class _Search:
    """A search for the shortest sequence of calls that breaks a promise.

    Attributes:
        best: the best sequence so far, as (setup, calls, broken promise), or None.
    """

    def __init__(self, machine: Machine, make: Callable, ends: float, starts: Sequence[tuple] = ()):
        self.machine = machine
        self.make = make
        self.ends = ends
        self.starts = starts
        self.best: tuple[tuple, tuple[Call, ...], Broken] | None = None
        self.promise = ""  # the promise to break, that of the first failing rung; "" for any
        self.ran_out = False

    def run(self) -> None:
        """Find a sequence that breaks a promise, among the rungs' calls, then short sequences, then longer ones.

        Then look for shorter sequences, and leave out calls that are not needed.
        """
        with suppress(OutOfTime):
            for setup, calls in self.starts:
                self._breaks(setup, calls)
            self._simplify()
            for longest, tries in LEVELS:
                if self.best is None:
                    self._try_sequences(longest, tries)
            while self.best is not None and len(self.best[1]) > 1 and self._try_sequences(len(self.best[1]) - 1, AGAIN):
                pass
        self.ends = max(self.ends, time.process_time()) + FEWER_CALLS_SECONDS
        with suppress(OutOfTime):
            self._simplify()

    def _simplify(self) -> None:
        while self.best is not None and self._simpler(*self.best[:2]):
            pass

    def _try_sequences(self, longest: int, tries: int) -> bool:
        """Try a number of sequences of `longest` calls, and return whether one of them is better."""

        def draw_trace(choose: Choose) -> tuple[tuple, tuple[Call, ...]]:
            setup = self.machine.setup(choose)
            calls: list[Call] = []
            while len(calls) < longest:
                calls.append(self.machine.call(choose, setup, calls))
            return setup, tuple(calls)

        before = self.best
        draw_and_shrink(draw_trace, lambda trace: self._breaks(*trace), tries)
        return self.best is not before

    def _breaks(self, setup: tuple, calls: tuple[Call, ...]) -> bool:
        if time.process_time() > self.ends:
            self.ran_out = True
            raise OutOfTime
        broken = play(self.machine, self.make, setup, calls)
        if broken is None or broken.name != (self.promise or broken.name):
            return False
        calls = calls[: broken.call + 1]
        self.promise = broken.name
        if self.best is None or _size(setup, calls) < _size(*self.best[:2]):
            self.best = setup, calls, broken
        return True

    def _simpler(self, setup: tuple, calls: tuple[Call, ...]) -> bool:
        """Return whether a simpler sequence still breaks the promise: one with fewer calls, a smaller object, a shorter
        list or smaller number in a call, or names in alphabetical order."""
        places = list(reversed(range(len(calls) - 1)))
        omissions = [{place} for place in places]
        if len(calls) <= PAIRS:
            omissions += [set(pair) for pair in itertools.combinations(places, 2)]
        shorter = [(setup, tuple(call for i, call in enumerate(calls) if i not in omitted)) for omitted in omissions]
        smaller = [
            ((*setup[:place], size - 1, *setup[place + 1 :]), calls) for place, size in enumerate(setup) if size > 1
        ]
        others = [
            (setup, (*calls[:place], other, *calls[place + 1 :]))
            for place, call in enumerate(calls)
            for other in _smaller_calls(call)
        ]
        return any(self._improves(*each) for each in (*shorter, *smaller, *others, (setup, _rename_objects(calls))))

    def _improves(self, setup: tuple, calls: tuple[Call, ...]) -> bool:
        before = self.best
        return self._breaks(setup, calls) and self.best is not before


def _smaller_calls(call: Call) -> Iterator[Call]:
    """Yield the call with one of its lists shorter, or one of its numbers smaller."""
    for place, part in enumerate(call):
        shorter: list[Any] = []
        if isinstance(part, tuple) and len(part) > 1:
            shorter = [part[:-1], part[1:]]
        if isinstance(part, tuple):
            shorter += [(*part[:i], number - 1, *part[i + 1 :]) for i, number in enumerate(part) if number > 0]
        elif isinstance(part, int) and part > 1:
            shorter = [part - 1]
        for other in shorter:
            yield (*call[:place], other, *call[place + 1 :])


def _rename_objects(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Return the same calls with the names replaced by a, b, … in the order in which they occur."""
    names = dict.fromkeys(part for call in calls for part in call[1:] if isinstance(part, str))
    letters = dict(zip(names, ascii_lowercase, strict=False))
    return tuple((call[0], *(letters.get(part, part) if isinstance(part, str) else part for part in call[1:]))
                 for call in calls)  # fmt: skip


def _size(setup: tuple, calls: Sequence[Call]) -> tuple[int, str]:
    """Return a key for comparing sequences: by number of calls, then by length and order of their text."""
    written = repr((setup, calls))
    return len(calls), f"{len(written):6}{written}"


@dataclass
class _Replay:
    """What the calls of a sequence gave when they were made again; for the attributes see `Trace`."""

    pictures: list[Mapping[str, Any]]
    results: list[str] = field(default_factory=list)
    raised: str = ""
    shared: tuple[str, ...] = ()


class _Recorder:
    """A wrapper around an object that records what every call returned or raised."""

    def __init__(self, thing: Any, replay: _Replay):
        self._thing = thing
        self._replay = replay

    def __getattr__(self, method: str) -> Callable:
        def call(*args: Any) -> Any:
            self._replay.results.append("")
            self._replay.raised = ""
            try:
                result = getattr(self._thing, method)(*args)
            except Exception as error:
                self._replay.results[-1] = f"raises {type(error).__name__}"
                self._replay.raised = describe_error(error)
                raise
            if result is not None:
                text = repr(result)
                self._replay.results[-1] = (
                    text if len(text) <= MAX_RESULT_LENGTH else f"{text[: MAX_RESULT_LENGTH - 1]}…"
                )
            return result

        return call


@runs_answer("the calls tried")
def _replay_calls(
    machine: Machine,
    make: Callable,
    setup: tuple,
    calls: Sequence[Call],
    replay: _Replay,
) -> None:
    """Make the calls again, and add to `replay` what each gave and what the watch shows after each but the last."""
    watch = begin_watch(machine, setup)
    with suppress(Exception):
        made = make(*setup)
        replay.shared = _find_shared(made)
        thing = _Recorder(made, replay)
        for place, call in enumerate(calls):
            result = machine.make_call(thing, call)
            if place < len(calls) - 1:
                observe_call(machine, watch, place, call, result)
                replay.pictures.append(watch.picture())
