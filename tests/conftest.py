"""How the test run is shared out and how it ends: what was skipped and why, and in CI nothing is.

nbval marks the cells after a time-out as expected failures, which pytest does not count; here they fail the run.
"""

import os
from collections import Counter

import pytest
from xdist.scheduler import LoadScopeScheduling

MAY_SKIP_IN_CI = ("no GPU",)  # starts of reasons; CI machines have no accelerator
_skipped: Counter[str] = Counter()
_not_run: list[str] = []


@pytest.fixture
def one_thread():
    """Sums in another order round otherwise, and training makes that large."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class ByFile(LoadScopeScheduling):
    """A file is run by one worker, and all browser tests by one, since they share a server and a page."""

    def _split_scope(self, nodeid):
        return "tests/browser" if nodeid.startswith("tests/browser/") else nodeid.split("::", 1)[0]


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


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
    if session.exitstatus == 0 and (_not_run or _forbidden()):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    if _not_run:
        terminalreporter.section("cells not run after a time-out: the run fails")
        for name in _not_run:
            terminalreporter.line(name)
    if _skipped:
        terminalreporter.section("not run on this machine, and why")
        for reason, count in _skipped.items():
            terminalreporter.line(f"{count} test{'s' if count > 1 else ''}: {reason}")
    if _forbidden():
        terminalreporter.line("CI skips nothing, so the run fails: install what is missing, or make the tests run")


def _reason(report) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _forbidden() -> list[str]:
    """The reasons that CI does not accept."""
    if not os.environ.get("CI"):
        return []
    return [reason for reason in _skipped if not reason.startswith(MAY_SKIP_IN_CI)]
