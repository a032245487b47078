"""Time and peak memory of a function, on a CPU or a GPU, so that two numbers can be compared.

Time: call a few times first, then take the median of many, with its quartiles. To compare functions, run them in turns:
a busy moment of the machine then meets all of them, and ratios hold where milliseconds do not. On a GPU, CUDA events
time the work itself. Memory: a fresh process's largest resident set on a CPU, the allocator's largest total on a GPU.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.metadata
import math
import multiprocessing
import os
import pickle
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from course_utils.time_limits import PEAK_MEMORY_SECONDS

WIDE = 2  # so many times the lower quartile, the upper one tells that the machine was busy
MIME = "application/vnd.course.busy+json"  # type of an output: what was measured with wide quartiles
TOLD = "COURSE_TELL_BUSY"  # environment variable: if it is set, such a measurement gives that output too


class Timing(NamedTuple):
    """The median of repeated measurements and their quartiles, in seconds; or of ratios, which have no unit."""

    median: float
    low: float
    high: float
    samples: tuple

    @property
    def repeats(self) -> int:
        return len(self.samples)

    @classmethod
    def of(cls, samples: Iterable[float]) -> Timing:
        """From the samples themselves. The quartiles are those of the samples, without extrapolation."""
        samples = tuple(samples)
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        return cls(median, low, high, samples)


def time_call(
    function: Callable,
    repeats: int = 7,
    warmup: int = 2,
    calls: int = 1,
    device: Any = "cpu",
    flush_l2: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Seconds that function() takes: warm-up calls first, which do not count, then `repeats` measured ones.

    calls > 1 makes each measurement the mean of that many calls, for functions too quick for the clock. device="cuda"
    times with CUDA events and waits for the GPU. What the last call left in the L2 cache stays there, unless flush_l2
    overwrites it before each measurement, untimed. Returns a Timing. Raises ValueError for counts below their least and
    for other devices, RuntimeError where there is no GPU.
    """
    return time_together({"": function}, repeats, warmup, calls, device, flush_l2, clock)[""]


def time_together(
    functions: Mapping[str, Callable],
    repeats: int = 7,
    warmup: int = 2,
    calls: int = 1,
    device: Any = "cpu",
    flush_l2: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Seconds of several functions, {name: function}, measured in turns: round by round, one measurement of each.

    Sample number i of every Timing comes from round i, which is what `ratio` relies on. Every other round goes in
    reverse, so that none always follows the same neighbour. Arguments as in time_call. Returns {name: Timing}.
    """
    for name, number, least in (("repeats", repeats, 1), ("warmup", warmup, 0), ("calls", calls, 1)):
        if number < least:
            raise ValueError(f"{name} is {number}: it must be at least {least}")
    if not functions:
        raise ValueError("functions is empty: give at least one, as {name: function}")
    once = _stopwatch(device, calls, flush_l2, clock)
    for function in functions.values():
        for _ in range(warmup):
            function()
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(repeats):
        names = list(functions)
        for name in names if number % 2 == 0 else reversed(names):
            samples[name].append(once(functions[name]))
    timings = {name: Timing.of(seconds) for name, seconds in samples.items()}
    if os.environ.get(TOLD):
        _tell_busy(timings)
    return timings


def ratio(timing: Timing, reference: Timing) -> Timing:
    """Return how many times as long as the reference: the median and quartiles of the ratios of the same rounds.

    Both must come from one time_together. Raises ValueError when they have different numbers of rounds.
    """
    if timing.repeats != reference.repeats:
        raise ValueError(f"{timing.repeats} rounds against {reference.repeats}: take both from one time_together")
    return Timing.of(a / b for a, b in zip(timing.samples, reference.samples, strict=True))


def _tell_busy(timings: Mapping[str, Timing]) -> None:
    from IPython.display import display

    wide = {name: round(each.high / each.low, 1) for name, each in timings.items() if each.high > WIDE * each.low}
    if wide:
        display({MIME: wide}, raw=True)


def _stopwatch(device: Any, calls: int, flush_l2: bool, clock: Callable[[], float]) -> Callable[[Callable], float]:
    """A function that measures one turn: the mean seconds of `calls` calls."""
    if _device_kind(device) == "cpu":
        return lambda function: _by_clock(function, calls, clock)
    import torch

    filler = None
    if flush_l2:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        filler = torch.empty(2 * l2_bytes, dtype=torch.uint8, device=device)
    return lambda function: _by_events(function, calls, filler)


def _device_kind(device: Any) -> str:
    """ "cpu" or "cuda", of "cuda:1" too; ValueError for anything else, RuntimeError for a GPU that is not there."""
    kind = str(device).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f'device is {str(device)!r}: it must be "cpu" or "cuda"')
    if kind == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError('device is "cuda" but torch finds no GPU here: use device="cpu"')
    return kind


def _by_clock(function: Callable, calls: int, clock: Callable[[], float]) -> float:
    began = clock()
    for _ in range(calls):
        function()
    return (clock() - began) / calls


def _by_events(function: Callable, calls: int, filler: Any) -> float:
    import torch

    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if filler is not None:
        filler.zero_()
    began.record()
    for _ in range(calls):
        function()
    ended.record()
    ended.synchronize()
    return began.elapsed_time(ended) / 1000 / calls


# --- memory ---------------------------------------------------------------------------------------------------------


def peak_memory(
    function: Callable,
    *arguments: Any,
    prepare: Callable | None = None,
    rehearse: tuple | None = None,
    device: Any = "cpu",
    timeout: float = PEAK_MEMORY_SECONDS,
) -> int:
    """Bytes by which memory grows, at its largest, while function(*arguments) runs, over what was there before.

    prepare, if given, makes what the function gets: function(*prepare(*arguments)), and its results are not counted.
    rehearse, if given, is a tuple of small arguments for one run before, so that what a library sets up once is not
    counted either. On a CPU this runs in a fresh process, since a process that has once been large may stay large; so
    function and prepare must be defined at the top of a module. The number is the growth of the peak resident set:
    VmHWM on Linux, getrusage elsewhere, in steps of a page, and blind to memory asked for but never touched. On a GPU
    it runs here, and counts what torch allocates.
    In a notebook, a function of a library can be sent, and one typed in a cell cannot: put `%%writefile mine.py` on top
    of its cell, and then `from mine import` it.
    Raises ValueError for a function that cannot be sent to a process or another device, RuntimeError with its message
    when it fails there and where there is no GPU, TimeoutError after `timeout` seconds.
    """
    job = (function, arguments, prepare, rehearse)
    if _device_kind(device) == "cuda":
        return _run(*job, _AllocatorPeak(device))
    _check_sendable(*job)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_in_fresh_process, args=(sender, *job), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            raise TimeoutError(f"{_name(function)} did not end within {timeout} s; give a larger timeout or less work")
        succeeded, outcome = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"{_name(function)} ended its process with exit code {process.exitcode} "
            "(-9 is what a system out of memory does)"
        ) from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if not succeeded:
        raise RuntimeError(f"{_name(function)} failed in its own process: {outcome}")
    return outcome


def _run(
    function: Callable,
    arguments: tuple,
    prepare: Callable | None,
    rehearse: tuple | None,
    peak: _ResidentPeak | _AllocatorPeak,
) -> int:
    prepared = (lambda *arguments: arguments) if prepare is None else prepare
    if rehearse is not None:
        function(*prepared(*rehearse))
    inputs = prepared(*arguments)
    peak.start()
    result = function(*inputs)
    grown = peak.growth()
    del result  # kept until here, since what the function returns is part of what it takes
    return grown


def _in_fresh_process(
    sender: Any, function: Callable, arguments: tuple, prepare: Callable | None, rehearse: tuple | None
) -> None:
    try:
        outcome: tuple[bool, int | str] = True, _run(function, arguments, prepare, rehearse, _ResidentPeak())
    except BaseException as error:
        outcome = False, f"{type(error).__name__}: {_short(error)}"
    sender.send(outcome)
    sender.close()


class _ResidentPeak:
    """The largest resident set of this process since start(), over what it was then."""

    def start(self) -> None:
        if sys.platform == "linux":
            self._forget_earlier_peak()
            self.before = _status_bytes("VmRSS")
        else:
            self.before = _largest_resident_set()

    def growth(self) -> int:
        after = _status_bytes("VmHWM") if sys.platform == "linux" else _largest_resident_set()
        return max(0, after - self.before)

    def _forget_earlier_peak(self) -> None:
        """Lower VmHWM to what is resident now; where the system does not allow it, an earlier peak may hide growth."""
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


class _AllocatorPeak:
    """The largest total of torch's CUDA allocator since start(), over what it was then."""

    def __init__(self, device: Any) -> None:
        import torch

        self.cuda = torch.cuda
        self.device = device

    def start(self) -> None:
        self.cuda.synchronize(self.device)
        self.cuda.reset_peak_memory_stats(self.device)
        self.before = self.cuda.memory_allocated(self.device)

    def growth(self) -> int:
        self.cuda.synchronize(self.device)
        return self.cuda.max_memory_allocated(self.device) - self.before


def _status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}: peak memory cannot be read on this system")


def _largest_resident_set() -> int:
    try:
        import resource
    except ImportError:
        raise RuntimeError("peak memory cannot be read on this system: it has neither /proc nor getrusage") from None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _check_sendable(function: Callable, arguments: tuple, prepare: Callable | None, rehearse: tuple | None) -> None:
    """Raise ValueError for what a fresh process could not be given, or would not find."""
    main = sys.modules["__main__"]
    for one in map(_unwrap, filter(None, (function, prepare))):
        typed_in = getattr(one, "__module__", None) == "__main__" and not hasattr(main, "__file__")
        if typed_in or "<" in getattr(one, "__qualname__", ""):
            raise ValueError(
                f"{_name(one)} cannot be sent to a fresh process: define it at the top of a module, in a file "
                "(in a notebook: %%writefile mine.py on top of its cell, then import it from mine)"
            )
    try:
        pickle.dumps((function, arguments, prepare, rehearse))
    except Exception as error:
        reason = _short(error)
        raise ValueError(f"{_name(function)} or its arguments cannot be sent to a fresh process: {reason}") from None


def _unwrap(function: Callable) -> Callable:
    """The function inside any number of functools.partial, which have neither name nor module of their own."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function: Callable) -> str:
    """Its name, without its arguments: a partial that holds tensors would print them whole."""
    function = _unwrap(function)
    return getattr(function, "__qualname__", type(function).__qualname__)


def _short(error: BaseException, longest: int = 300) -> str:
    words = str(error)
    return words if len(words) <= longest else f"{words[:longest]} …"


# --- what was it measured on, and what does it say ------------------------------------------------------------------


def environment(device: Any = "cpu") -> dict[str, Any]:
    """What a measurement has to carry: device, CPU, cores, threads, versions and the date (UTC, ISO 8601), as a dict.

    Threads are torch's if it is loaded, else what OMP_NUM_THREADS says. load is how many processes wanted a core in the
    last minute, None where that is not known: above the number of cores, trust ratios only. The name of the machine is
    left out.
    """
    loaded = sys.modules.get("torch")
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    threads = loaded.get_num_threads() if loaded else int(limit or os.cpu_count() or 1)
    facts = {"device": _cpu_name(), "cpu": _cpu_name(), "cores": os.cpu_count(), "threads": threads}
    facts["load"] = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    if _device_kind(device) == "cuda":
        import torch

        card = torch.cuda.get_device_properties(device)
        facts |= {"device": card.name, "memory_bytes": card.total_memory, "cuda": torch.version.cuda}
    facts |= {"system": f"{platform.system()} {platform.machine()}", "python": platform.python_version()}
    facts |= {name: _version(name) for name in ("torch", "triton", "numpy")}
    return facts | {"date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}


def growth_exponent(sizes: Sequence[float], amounts: Sequence[float]) -> float:
    """Return the p of amount ≈ c·sizeᵖ, by least squares on the logarithms: 1 is linear growth, 2 is quadratic.

    Raises ValueError unless there are two different sizes and all numbers are above 0.
    """
    pairs = list(zip(sizes, amounts, strict=True))
    if len(set(sizes)) < 2 or any(x <= 0 or y <= 0 for x, y in pairs):
        raise ValueError(f"sizes {list(sizes)} and amounts {list(amounts)}: need two different sizes, and all above 0")
    return statistics.linear_regression([math.log(x) for x, _ in pairs], [math.log(y) for _, y in pairs]).slope


def overtakes_from(sizes: Sequence[float], seconds: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the least size from which on `seconds` stay below the reference's; None if they do not at the largest.

    All three are lists in order of size.
    """
    first = None
    for size, mine, theirs in zip(sizes, seconds, reference, strict=True):
        if mine >= theirs:
            first = None
        elif first is None:
            first = size
    return first


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
