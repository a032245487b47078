"""Code run in silence by one thread, while others print."""

import io
import subprocess
import sys
import threading
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from course_utils.views import silence
from course_utils.views.silence import hide_prints


@contextmanager
def caught():
    """What reaches standard output and standard error meanwhile, as the streams there are."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err
        assert (sys.stdout, sys.stderr) == (out, err), "the streams were not put back"


class Other:
    """A thread that enters `hide_prints` and leaves it when it is told."""

    def __init__(self):
        self.inside = threading.Event()
        self.leave = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.inside.wait(100)

    def run(self):
        with hide_prints():
            print("other")
            self.inside.set()
            self.leave.wait(100)
            print("other", file=sys.stderr)

    def end(self):
        self.leave.set()
        self.thread.join(100)


def test_nothing_that_is_printed_or_warned_of_shows():
    code = """
import sys, warnings
from course_utils.views.silence import hide_prints
with hide_prints():
    print("out")
    print("err", file=sys.stderr)
    warnings.warn("a warning")
    with hide_prints():
        print("deeper")
    print("out")
print("after")
warnings.warn("another")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "after\n"
    assert "another" in ran.stderr and "a warning" not in ran.stderr and "err" not in ran.stderr


def test_another_thread_prints_meanwhile():
    with caught() as streams:
        other = Other()
        print("cell")
        print("cell", file=sys.stderr)
        other.end()
    assert [stream.getvalue() for stream in streams] == ["cell\n", "cell\n"]


def test_threads_that_leave_in_the_order_in_which_they_came_put_everything_back():
    with caught() as (out, _):
        first = Other()
        with hide_prints():
            first.end()
            print("still silent")
        print("after")
    assert out.getvalue() == "after\n"


@pytest.mark.parametrize("begun", ["before", "inside"])
def test_a_cell_that_redirects_meanwhile_gets_what_it_prints_and_nothing_is_lost_afterwards(begun):
    with caught() as (out, _):
        other = Other() if begun == "before" else None
        with redirect_stdout(io.StringIO()) as own:
            other = other or Other()
            print("caught")
            if begun == "inside":
                other.end()
        other.end()
        print("after")
        with hide_prints():
            print("silent")
    assert (own.getvalue(), out.getvalue()) == ("caught\n", "after\n")


def test_an_error_inside_ends_the_silence():
    with caught() as (out, _):
        with pytest.raises(ZeroDivisionError), hide_prints():
            raise ZeroDivisionError
        print("after")
    assert out.getvalue() == "after\n"


def test_no_widget_changes_what_all_threads_share():
    shared = "redirect_stdout", "redirect_stderr", "catch_warnings"
    files = [path for path in Path(silence.__file__).parent.rglob("*.py") if path.name != "silence.py"]
    assert len(files) > 15
    assert [(path.name, name) for path in files for name in shared if name in path.read_text("utf-8")] == []
