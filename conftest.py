"""How a test run is shared out, what it leaves to `make test-all`, how solutions are compared, and how it ends.

Two hooks for those who write tests. A test that takes long by nature is marked `@pytest.mark.thorough("what it does")`
and runs with `--all`. What a test needs and a machine may lack stands in `tests/needs.py`.
"""

import os
import re
from collections import Counter

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

MAY_SKIP_IN_CI = ("no GPU",)  # starts of reasons; CI machines have no accelerator
FIRST = (
    "tests/browser/",
    "notebooks/",
    "solutions/",
    "tests/checks/test_checks.py",
    "tests/grading/test_hostile.py",
)  # the longest, in parts of a run
BY_DAY = re.compile(r"(tests/(?:checks/test_checks|grading/test_graded_days)\.py)::.*\[(day\d+)[-\]]")
_skipped: Counter[str] = Counter()
_left: Counter[str] = Counter()
_not_run: list[str] = []


@pytest.fixture
def one_thread():
    """Sums in another order round otherwise, and training makes that large."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# What runs, and where -----------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the tests that take long, too: make test-all")


def pytest_collection_modifyitems(config, items):
    items.sort(key=_place)
    if not config.option.all:
        long = [item for item in items if item.get_closest_marker("thorough")]
        _left.update(item.get_closest_marker("thorough").args[0] for item in long)
        items[:] = [item for item in items if item not in set(long)]
        config.hook.pytest_deselected(items=long)


def _place(item) -> int:
    """Long parts of a run start first, so that no worker is left with one at the end."""
    return next((place for place, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))


try:
    from xdist.scheduler import LoadScopeScheduling
except ImportError:  # a learner may run pytest too, without what contributors install
    pass
else:

    class ByFile(LoadScopeScheduling):
        """A file is run by one worker, the checks day by day; all browser tests by one, since they share a page."""

        def _split_scope(self, nodeid):
            if nodeid.startswith("tests/browser/"):
                return "tests/browser"
            by_day = BY_DAY.match(nodeid)
            return "::".join(by_day.groups()) if by_day else nodeid.split("::", 1)[0]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(config, log):
        config.option.loadscopereorder = False  # as sorted above
        return ByFile(config, log)


# Solutions on another processor -------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    found = yield
    return [_CourseNotebook.from_parent(parent, path=each.path) if type(each) is IPyNbFile else each for each in found]


class _CourseNotebook(IPyNbFile):
    def collect(self):
        for cell in super().collect():
            yield _CourseCell.from_parent(
                self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell, options=cell.options
            )


class _CourseCell(IPyNbCell):
    """Evidence is compared as the judge does: the eighth digit of a float32 differs from processor to processor."""

    def compare_outputs(self, test, ref, skip_compare=None):
        from course_utils.authoring.alike import evidence_alike
        from course_utils.checks.evidence import MIME

        for given, wanted in zip(test, ref, strict=False):
            given, wanted = (output.get("data", {}) for output in (given, wanted))
            if MIME in given and MIME in wanted and evidence_alike(self.parent.path.name, given[MIME], wanted[MIME]):
                given[MIME] = wanted[MIME]
        return super().compare_outputs(test, ref, skip_compare)


# How a run ends -----------------------------------------------------------------------------------------------------


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
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = dict(_left)
    if session.exitstatus == 0 and (_not_run or _forbidden()):
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """A worker of xdist has ended. Each collects everything, so one tells what all left out."""
    if not _left:
        _left.update(getattr(node, "workeroutput", {}).get("left", {}))


def pytest_terminal_summary(terminalreporter):
    if _not_run:
        terminalreporter.section("cells not run after a time-out: the run fails")
        for name in _not_run:
            terminalreporter.line(name)
    for title, counted in (("not run on this machine, and why", _skipped), ("left to make test-all", _left)):
        if counted:
            terminalreporter.section(title)
            for reason, count in sorted(counted.items()):
                terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    if _forbidden():
        terminalreporter.line("CI skips nothing else, so the run fails: install what is missing, or make the tests run")


def _reason(report) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _forbidden() -> list[str]:
    """The reasons that CI does not accept. MAY_SKIP holds starts of others, separated by semicolons."""
    if not os.environ.get("CI"):
        return []
    accepted = (*MAY_SKIP_IN_CI, *filter(None, os.environ.get("MAY_SKIP", "").split(";")))
    return [reason for reason in _skipped if not reason.startswith(accepted)]
