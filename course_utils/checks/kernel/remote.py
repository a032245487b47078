"""The implementations that a learner's test can call, while everything else about them is out of its reach.

In the learner's notebook the implementation runs in the same process. A grading kernel holds no implementation: each
call goes to the grader as a line of JSON, and the result comes back, so that the kernel sees only numbers.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np

# The limits of a duel. `duel_verdict.describe_limits` puts them in words, which `course build` writes into statements.
MAX_CALLS = 10_000  # per implementation
MAX_NUMBERS = 2_000  # in the arguments of one call
MAX_SCORES = 40_000  # query-key pairs of one text
MAX_WHOLE_NUMBER = 1_000  # for numbers outside arrays and lists, such as a block size
MAX_BROADCAST_NUMBERS = 100_000  # numbers in the shape that the arrays of one call broadcast to
MAX_RESULT_NUMBERS = 200_000
MAX_OBJECTS = 1_000  # objects that one implementation may make
DEEPEST = 6  # lists in lists


class Refused(ValueError):
    """Raised for a call that no implementation takes: too many numbers or calls, or an argument without numbers."""


class FailedInside(RuntimeError):
    """Raised when an implementation raised an error. The error itself is withheld, since its text could name it."""


class Caller(Protocol):
    """Makes the calls to one implementation.

    A call takes the number of the object whose method is called, or None for the implementation itself. It returns a
    value, or ("made", number) for an object that the implementation made.
    """

    def __call__(self, object_number: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Any: ...


class Candidate:
    """An implementation as a test sees it: it can be called, and nothing else."""

    __slots__ = ("__call",)

    def __init__(self, caller: Caller):
        self.__call = caller

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _wrap(self.__call, self.__call(None, "", args, kwargs))

    def __deepcopy__(self, memo: dict) -> Candidate:
        return self

    def __repr__(self) -> str:
        return "<an implementation: call it>"


class CandidateObject:
    """An object that an implementation made, as a test sees it: its methods can be called."""

    __slots__ = ("__call",)

    def __init__(self, call: Callable):
        self.__call = call

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.__call, name)


def _wrap(caller: Caller, value: Any) -> Any:
    """Return what a caller returned as a test sees it: a `CandidateObject` in place of an object's number."""
    if isinstance(value, tuple) and isinstance(value[0], str):  # ("made", number)
        number = value[1]
        return CandidateObject(lambda method, *args, **kwargs: _wrap(caller, caller(number, method, args, kwargs)))
    return value


Calls = Mapping[str, tuple[str, ...]]  # what may be called, with its parameters; "" is the implementation
Prepared = tuple[int | None, str, tuple]  # a call: the object, if it is a method, its name, and plain arguments


class LocalCaller:
    """Makes the calls to an implementation in this process. A call may raise Refused or FailedInside.

    Arguments are copied. Results are arrays, numbers, and tuples or lists of them.

    Args:
        function: the implementation.
        calls: the calls that it takes, with their parameters.
        grain: multiples of the rounding error by which its floats are off, the same in each call, so that no two
            callers of one implementation give the same bits.
    """

    def __init__(self, function: Callable, calls: Calls, grain: float = 0.0):
        self.function = function
        self.calls = calls
        self.grain = grain
        self.objects: list[Any] = []  # made by the implementation, which a test knows by their numbers
        self.called = 0

    def __call__(self, object_number: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        return self.run(self.prepare(object_number, method, args, kwargs))

    def prepare(self, object_number: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Prepared:
        """Return a call with its arguments in order, as numbers and arrays that nobody else holds. Raises Refused."""
        arguments = self.bind("" if object_number is None else method or "?", args, kwargs)
        budget = [MAX_NUMBERS]
        plain = {name: _as_plain_value(each, budget) for name, each in arguments.items()}
        _verify_together(plain)
        _verify_scores(plain.get("q"), plain.get("k"))
        return object_number, method, tuple(plain.values())

    def run(self, prepared: Prepared) -> Any:
        """Make a call that was prepared, by this caller or by another one of the same day."""
        self.called += 1
        if self.called > MAX_CALLS:
            raise Refused(f"an implementation may be called {MAX_CALLS:,} times")
        object_number, method, arguments = prepared
        if object_number is not None and not 0 <= object_number < len(self.objects):
            raise Refused("there is no such object")
        call = self.function if object_number is None else getattr(self.objects[object_number], method)
        args = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        try:
            with np.errstate(all="ignore"):
                return self.as_received(call(*args))
        except Refused:
            raise
        except Exception:
            raise FailedInside("the implementation raised an error") from None

    def bind(self, name: str, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, in the order in which every implementation takes them."""
        parameters = self.calls.get(name)
        if parameters is None:
            raise Refused(f"it has no {name}; there is {', '.join(each for each in self.calls if each)}")
        by_place = dict(zip(parameters, args, strict=False))
        if len(args) > len(parameters) or by_place.keys() & kwargs.keys() or {*by_place, *kwargs} != set(parameters):
            raise Refused(f"call it as {name or 'f'}({', '.join(parameters)})")
        return {each: {**by_place, **kwargs}[each] for each in parameters}

    def as_received(self, result: Any) -> Any:
        """Return a result as the test receives it; an object stays here and is returned as a number."""
        if isinstance(result, float):
            return result * (1 + self.grain * np.finfo(np.float64).eps)
        if result is None or isinstance(result, (bool, int)):
            return result
        if isinstance(result, (np.ndarray, np.generic)):
            if result.dtype.kind not in "fiub":  # the bytes of an object array are addresses
                raise TypeError
            if np.size(result) > MAX_RESULT_NUMBERS:
                raise Refused(f"a result of {np.size(result):,} numbers: smaller ones show every mistake")
            array = np.array(result)
            if self.grain and array.dtype == np.float64:
                array *= 1 + self.grain * np.finfo(np.float64).eps
            elif self.grain and array.dtype == np.float32:  # less, since a log-sum-exp of thousands has few digits
                off = self.grain / 32 * float(np.finfo(np.float32).eps)
                array = np.asarray(array.astype(np.float64) * (1 + off), dtype=np.float32)  # one number is an array too
            return array
        if isinstance(result, (tuple, list)):
            return type(result)(self.as_received(each) for each in result)
        if len(self.objects) >= MAX_OBJECTS:
            raise Refused(f"an implementation may make {MAX_OBJECTS} objects")
        self.objects.append(result)
        return "made", len(self.objects) - 1


class RemoteCaller:
    """Makes the calls to an implementation that the grader has. A call may raise Refused or FailedInside.

    A test mostly makes the same calls to each implementation. So the grader sends with a reply those to the calls that
    it expects next, and a call that was expected costs no question.

    Args:
        ask: sends a text to the grader and returns its reply.
        number: the place of the implementation in the grader's order.
        verdicts: those on the implementations before it that the grader does not know yet; the next question takes
            them along.
    """

    def __init__(self, ask: Callable[[str], str], number: int, verdicts: list[float | None]):
        self.ask = ask
        self.number = number
        self.verdicts = verdicts
        self.ahead = deque[Any]()  # [mark, reply] of each call that the grader expected next
        self.used = 0  # of these the calls that were made since the last question

    def __call__(self, object_number: int | None, method: str, args: tuple, kwargs: Mapping[str, Any]) -> Any:
        budget = [MAX_NUMBERS]
        call = {
            "object": object_number,
            "method": method,
            "args": [pack(_as_plain_value(each, budget)) for each in args],
            "kwargs": {name: pack(_as_plain_value(each, budget)) for name, each in kwargs.items()},
        }
        text = json.dumps(call)
        mark = zlib.crc32(text.encode())
        if self.ahead and self.ahead[0][0] == mark:
            self.used += 1
            return _value_in(self.ahead.popleft()[1])
        question = json.dumps({"of": self.number, "verdicts": self.verdicts, "mark": mark, "used": self.used})
        self.verdicts.clear()
        self.used = 0
        reply = json.loads(self.ask(f"{question[:-1]}, {text[1:]}"))
        self.ahead = deque(reply.get("ahead", ()))
        return _value_in(reply)


def _value_in(reply: Mapping[str, Any]) -> Any:
    """Return the value in a reply, or raise the error in it."""
    if "refused" in reply:
        raise Refused(reply["refused"])
    if "failed" in reply:
        raise FailedInside(reply["failed"])
    return unpack(reply["value"])


def serve(caller: Caller, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question from `RemoteCaller` with a call; return the reply. Never raises, whatever was sent."""

    def called() -> Any:
        object_number = question.get("object")
        method = question.get("method", "")
        if not (object_number is None or isinstance(object_number, int)) or not isinstance(method, str):
            raise Refused("no such call")
        args = tuple(unpack(each) for each in question.get("args", ()))
        kwargs = {str(name): unpack(each) for name, each in dict(question.get("kwargs", {})).items()}
        return caller(object_number, method, args, kwargs)

    return reply_of(called)


def reply_of(call: Callable[[], Any]) -> dict[str, Any]:
    """Make a call and return the reply for `RemoteCaller`. Never raises."""
    try:
        return {"value": pack(call())}
    except FailedInside as error:
        return {"failed": str(error)}
    except Exception as error:  # no question, whatever it holds, may stop the grader
        return {"refused": str(error)[:200] if isinstance(error, Refused) else "the call cannot be read"}


def pack(value: Any) -> Any:
    """Return a value as JSON data: {"a": [dtype, shape, bytes]} for an array, {"t": […]} for a tuple."""
    if isinstance(value, np.ndarray):
        return {"a": [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, tuple):
        return {"t": [pack(each) for each in value]}
    if isinstance(value, list):
        return [pack(each) for each in value]
    return value


def unpack(packed: Any) -> Any:
    """Return the value that `pack` was given.

    Raises:
        Refused: for an array of other things than floats, whole numbers or booleans.
    """
    if isinstance(packed, list):
        return [unpack(each) for each in packed]
    if not isinstance(packed, dict):
        return packed
    if "t" in packed:
        return tuple(unpack(each) for each in packed["t"])
    kind, shape, text = packed.get("a", ("", (), ""))
    if kind not in ("<f8", "<f4", "<f2", "<i8", "<i4", "|b1"):
        raise Refused("give arrays of floats, whole numbers, or True and False")
    return np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy()


def _as_plain_value(value: Any, budget: list[int]) -> Any:
    """Return an argument as a number or an array, and subtract its numbers from the budget. Raises Refused."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)):
        value = _array_of(value)
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in "fiub":
            raise Refused(f"an array of {value.dtype} does not hold numbers")
        if not value.size or value.ndim > DEEPEST:
            raise Refused(f"an array of shape {value.shape}: sizes are at least 1, of at most {DEEPEST} axes")
        if not value.ndim:
            return _as_plain_value(float(value) if value.dtype.kind == "f" else value.item(), budget)
        _spend(budget, value.size)
        return np.array(value, dtype=np.int64 if value.dtype.kind in "iu" else _narrow(value.dtype))
    if value is None or isinstance(value, (bool, float, int)):
        _spend(budget, 1)
        if isinstance(value, int) and abs(value) > MAX_WHOLE_NUMBER:
            raise Refused(f"{value} is too large: a whole number outside an array is at most {MAX_WHOLE_NUMBER:,}")
        return value
    raise Refused(f"an implementation takes numbers and arrays, not a {type(value).__name__}")


def _narrow(dtype: np.dtype) -> np.dtype:
    """Return the dtype, or float64 for one of more than 64 bits."""
    return np.dtype(np.float64) if dtype.itemsize > 8 else dtype


def _array_of(value: list | tuple) -> np.ndarray:
    """Return lists of numbers or of arrays as one array. Raises Refused if they do not form one."""
    budget = 2 * MAX_NUMBERS  # of lists and numbers together
    unread: list[tuple[Any, int]] = [(value, 1)]
    while unread:
        item, depth = unread.pop()
        is_array = hasattr(item, "dtype") and not isinstance(item, (list, tuple))
        budget -= int(np.size(item)) if is_array else 1
        if budget < 0 or depth > DEEPEST:
            raise Refused(f"lists of at most {MAX_NUMBERS:,} numbers, at most {DEEPEST} deep")
        if isinstance(item, (list, tuple)):
            unread += [(each, depth + 1) for each in item[: 2 * MAX_NUMBERS + 1]]
    try:
        return np.array(value)
    except (ValueError, TypeError, OverflowError):
        raise Refused("rows of a list have to be equally long, and hold numbers") from None


def _verify_together(arguments: Mapping[str, Any]) -> None:
    """Raise Refused for small arrays that broadcast to a huge one; of a mask only the axes in front count."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    shapes = [((1, 1, *x.shape[-3::-1]) if name == "mask" else x.shape[::-1]) for name, x in arrays.items()]
    if math.prod(max(sizes) for sizes in zip_longest(*shapes, fillvalue=1)) > MAX_BROADCAST_NUMBERS:
        raise Refused("the leading axes have to be the same for all, or few")


def _verify_scores(q: Any, k: Any) -> None:
    """Raise Refused for more scores than a loop over them computes in a second."""
    rows = [x.shape[-2] for x in (q, k) if isinstance(x, np.ndarray) and x.ndim > 1]
    if math.prod(rows) > MAX_SCORES:
        raise Refused(f"{math.prod(rows):,} scores: fewer queries and keys show every mistake")


def _spend(budget: list[int], numbers: int) -> None:
    budget[0] -= numbers
    if budget[0] < 0:
        raise Refused(f"a call may hold {MAX_NUMBERS:,} numbers: small ones show every mistake")


class GraderConnection:
    """The kernel's connection to its grader: call it with a line of text, and it returns the reply.

    Args:
        connection_file: Jupyter's connection file; the two pipes are in the same folder.
    """

    def __init__(self, connection_file: str):
        folder = os.path.dirname(connection_file)
        self.questions = open(os.path.join(folder, "asked"), "wb", buffering=0)  # noqa: SIM115  # both end with the kernel
        self.replies = open(os.path.join(folder, "told"), "rb")  # noqa: SIM115

    def __call__(self, question: str) -> str:
        line = question.encode() + b"\n"
        while line:
            line = line[self.questions.write(line) :]
        return self.replies.readline().decode()


def offered_candidates(ask: Callable[[str], str]) -> Iterator[tuple[Candidate, Callable[[float | None], None]]]:
    """Yield the implementations that the grader offers, in its order, each with a function that takes the verdict."""
    count = json.loads(ask(json.dumps({"how": "many"})))["many"]
    verdicts: list[float | None] = []
    for number in range(count):
        yield Candidate(RemoteCaller(ask, number, verdicts)), verdicts.append
    ask(json.dumps({"of": count, "verdicts": verdicts}))
