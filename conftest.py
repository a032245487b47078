"""How a test run is shared out, what it leaves to `make test-all`, how solutions are compared, and how it ends.

Two hooks for those who write tests. A test that takes long by nature is marked `@pytest.mark.thorough("what it does")`
and runs with `--all`. What a test needs and a machine may lack stands in `tests/helpers/needs.py`.
"""

import argparse
import os
import re
import statistics
import time
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

ROOT = Path(__file__).parent
MAY_SKIP_IN_CI = ("no GPU",)  # starts of reasons; CI machines have no accelerator
FOLDERS = {
    "tests/browser": "widgets, notebooks and pages are used in Chromium",
    "notebooks": "lessons are executed, and their outputs compared",
    "solutions": "solutions are executed, and their outputs compared",
}  # left to `make test-all` unless a path is named
FIRST = (
    "tests/browser/test_site.py",
    "tests/browser/test_lessons.py",
    "tests/browser/test_answers_in_page.py",
    "tests/browser/",
    "notebooks/",
    "solutions/",
    "tests/checks/test_checks.py",
    "tests/checks/test_mutants.py",
    "tests/grading/test_hostile.py",
)  # the longest, in parts of a run
BY_DAY = re.compile(r"(tests/(?:checks/test_(?:checks|mutants|smallest)|grading/test_graded_days)\.py):.*\[(day\d+)\b")
SLOW = {"notebook", "course", "everything"}  # an open notebook, a course with a day added, all kernels compiled
MAX_WORKERS = 8  # each takes a gigabyte of memory
BUDGET = int(os.environ.get("BUDGET", 0))  # processor seconds that a run may take, as CI sets it; 0 is no limit
LOOP_SECONDS = 0.0073  # processor seconds of `_run_loop` on the machine for which CI's budget was set
LOOK_EVERY = 5.0  # seconds between two looks at how fast the machine is, which changes while others use it too
_skipped: Counter[str] = Counter()
_omitted: Counter[tuple[str, str]] = Counter()  # of (what is done, the folder or file)
_not_run: list[str] = []
_processor_seconds: list[float] = []  # processor seconds of each worker
_loop_seconds: list[float] = []  # of `_run_loop`, now and then while the tests run, in each worker
_looked = -LOOK_EVERY  # when that was last measured


@pytest.fixture
def one_thread():
    """Summing in a different order rounds differently, and training amplifies it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# What runs, and where -----------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run everything, too: make test-all")
    parser.addoption("--left", action="store_true", help="run only what make test leaves to make test-all")
    parser.addoption(
        "--share",
        metavar="K/N",
        type=_parse_share,
        default=(1, 1),
        help="of what --left runs, one of N equal shares: 1/3, 2/3 or 3/3",
    )


def pytest_ignore_collect(collection_path, config):
    return True if _chosen_by_us(config) and collection_path in [ROOT / folder for folder in FOLDERS] else None


def pytest_collection_modifyitems(config, items):
    items.sort(key=_rank)
    if config.option.left:
        share, shares = config.option.share
        unwanted = {item for item in items if not _is_left(item) or _share(item, shares) != share}
    else:
        unwanted = {item for item in items if _thorough_mark(item) and not config.option.all}
        _omitted.update((_thorough_mark(item).args[0], item.nodeid.split("::", 1)[0]) for item in unwanted)
    if _chosen_by_us(config):
        _omitted.update((what, folder) for folder, what in FOLDERS.items())
    config.hook.pytest_deselected(items=list(unwanted))
    items[:] = [item for item in items if item not in unwanted]


def _chosen_by_us(config) -> bool:
    """Return whether nobody said what to run."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return not (named or config.option.all or config.option.left)


def _thorough_mark(item):
    return item.get_closest_marker("thorough")


def _is_left(item) -> bool:
    """Return whether `make test` leaves this test to `make test-all`."""
    return bool(_thorough_mark(item) or item.nodeid.startswith(tuple(FOLDERS)))


def _parse_share(text: str) -> tuple[int, int]:
    if not (match := re.fullmatch(r"(\d+)/(\d+)", text)) or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text} is no share: write 1/3, 2/3 or 3/3")
    return int(match[1]), int(match[2])


def _share(item, shares: int) -> int:
    """Return the share, 1 to `shares`, that a test belongs to.

    The cells of a notebook belong to the same share, and so do the tests of a file that use one fixture of SLOW.
    """
    together = isinstance(item, IPyNbCell) or not SLOW.isdisjoint(item.fixturenames)
    name = item.nodeid.split("::", 1)[0] if together else item.nodeid
    return zlib.crc32(name.encode()) % shares + 1


def _rank(item) -> int:
    """Long parts of a run start first, so that no worker is left with one at the end."""
    return next((place for place, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    return min(MAX_WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


try:
    from xdist.scheduler import LoadScopeScheduling
except ImportError:  # a learner may run pytest too, without what contributors install
    pass
else:

    class ByFile(LoadScopeScheduling):
        """A file is run by one worker, and the checks are shared out day by day."""

        def _split_scope(self, nodeid):
            by_day = BY_DAY.match(nodeid)
            return "::".join(by_day.groups()) if by_day else nodeid.split("::", 1)[0]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(config, log):
        config.option.loadscopereorder = False  # as sorted above
        return ByFile(config, log)


# Solutions on another processor -------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collected = yield
    return [
        _CourseNotebook.from_parent(parent, path=each.path) if type(each) is IPyNbFile else each for each in collected
    ]


class _CourseNotebook(IPyNbFile):
    def collect(self):
        for cell in super().collect():
            yield _CourseCell.from_parent(
                self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
            )


class _CourseCell(IPyNbCell):
    """Evidence is compared as the judge does: the eighth digit of a float32 differs from processor to processor."""

    def compare_outputs(self, test, ref, skip_compare=None):
        from course_utils.authoring.compare_outputs import evidence_alike
        from course_utils.checks.kernel.outcome import MIME, evidence_of
        from course_utils.course import day_of

        for output, reference in zip(test, ref, strict=False):
            one = evidence_of(output)
            other = evidence_of(reference)
            if one and other and evidence_alike(day_of(self.parent.path.name), one, other):
                output["data"][MIME] = reference["data"][MIME]
        return super().compare_outputs(test, ref, skip_compare)


# How a run ends -----------------------------------------------------------------------------------------------------


def pytest_runtest_setup():
    global _looked
    if BUDGET and time.monotonic() - _looked > LOOK_EVERY:
        _loop_seconds.append(_run_loop())
        _looked = time.monotonic()


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped[_reason(report)] += 1
    elif hasattr(report, "wasxfail") and ".ipynb::" in report.nodeid:
        _not_run.append(report.nodeid)


def pytest_collectreport(report):
    if report.skipped:
        _skipped[_reason(report)] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    _processor_seconds.append(sum(os.times()[:4]))
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput |= {"omitted": list(_omitted.items()), "seconds": _processor_seconds}
        session.config.workeroutput["loops"] = _loop_seconds
    if session.exitstatus == 0 and (_not_run or _forbidden() or _over_budget()):
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """A worker of xdist has ended. Each collects everything, so one tells what all left out."""
    report = getattr(node, "workeroutput", {})
    _processor_seconds.extend(report.get("seconds", []))
    _loop_seconds.extend(report.get("loops", []))
    if not _omitted:
        _omitted.update({tuple(of): count for of, count in report.get("omitted", [])})


def pytest_terminal_summary(terminalreporter):
    def section(title, lines):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)

    section("cells not run after a time-out: the run fails", _not_run)
    section("not run on this machine, and why", [f"{_tests(n)}: {reason}" for reason, n in sorted(_skipped.items())])
    if _forbidden():
        terminalreporter.line("CI skips nothing else, so the run fails: install what is missing, or make the tests run")
    section("left out; make test-all runs everything", _left_out())
    section("processor seconds, with those of child processes", [f"{sum(_processor_seconds):.0f}" + _describe_budget()])


def _left_out() -> list[str]:
    """Return what was left out, a line each, with the command that runs it."""
    places = defaultdict(list)
    for (what, place), count in sorted(_omitted.items()):
        places[what].append((place, count))
    lines = []
    for what, places_of in places.items():
        where = " ".join(place for place, _ in places_of)
        many = where if where in FOLDERS else _tests(sum(count for _, count in places_of))
        lines.append(f"{many}: {what}\n    make test-all TESTS=" + (f'"{where}"' if " " in where else where))
    return lines


def _tests(count: int) -> str:
    return f"{count} test{'s' if count > 1 else ''}"


def _describe_budget() -> str:
    if not BUDGET:
        return ""
    slower = f" ({BUDGET} times {_slowness():.2f}, since this machine is slower)" if _slowness() > 1.05 else ""
    text = f" of {_budget():.0f}{slower}"
    return text + (": over the budget by more than a tenth, so the run fails" if _over_budget() else "")


def _over_budget() -> bool:
    return bool(BUDGET) and sum(_processor_seconds) > 1.1 * _budget()


def _budget() -> float:
    return BUDGET * _slowness()


def _slowness() -> float:
    """How many times as long as on the machine of LOOP_SECONDS a loop took while the tests ran, at least 1."""
    if not _loop_seconds:  # no test ran
        return 1.0
    return max(1.0, statistics.fmean(_loop_seconds) / LOOP_SECONDS)


def _run_loop() -> float:
    """Return how many processor seconds a loop takes."""
    began = time.process_time()
    total = 0
    table = {}
    for i in range(100_000):
        total += i * i % 7
        table[i % 1000] = total
    return time.process_time() - began


def _reason(report) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _forbidden() -> list[str]:
    """Return the reasons that CI does not accept. MAY_SKIP holds starts of others, separated by semicolons."""
    if not os.environ.get("CI"):
        return []
    others = [start for start in os.environ.get("MAY_SKIP", "").split(";") if start]
    accepted = (*MAY_SKIP_IN_CI, *others)
    return [reason for reason in _skipped if not reason.startswith(accepted)]
