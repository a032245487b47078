"""The line under a check that takes long."""

import threading

import pytest

from course_utils.checks import NotYet, checks_for
from course_utils.checks.kernel import evidence
from course_utils.views import running_line
from course_utils.views.running_line import RunningLine


@pytest.fixture
def lines_shown(monkeypatch):
    """What was shown, in order; `appeared` is set with the first."""

    class Shown(list):
        appeared = threading.Event()

        def update(self, data, raw):
            self.append(data["text/plain"])
            self.appeared.set()

    lines = Shown()

    def display(data, raw, display_id=None, metadata=None):
        lines.update(data, raw)
        return lines

    monkeypatch.setattr("IPython.display.display", display)
    return lines


def test_it_appears_where_somebody_watches_and_says_in_the_end_how_long_it_was(monkeypatch, lines_shown):
    monkeypatch.setattr(running_line, "AFTER", 0.01)
    monkeypatch.setattr(running_line, "_is_watched", lambda: True)
    with RunningLine() as line:
        assert lines_shown.appeared.wait(60)
    line.thread.join(60)
    assert (
        lines_shown[0].startswith("The check has run for 0 s: it worked for 0 s and waited for 0 s.")
        and "■" in lines_shown[0]
    )
    assert lines_shown[-1].startswith("The check ran for ") and "■" not in lines_shown[-1]


def test_it_says_how_far_the_check_is(monkeypatch, lines_shown):
    monkeypatch.setattr(running_line, "AFTER", 0.01)
    monkeypatch.setattr(running_line, "_is_watched", lambda: True)

    def tells_right(f):
        if evidence.PROGRESS.number == 7:
            assert lines_shown.appeared.wait(60)
            lines_shown.appeared.clear()
            assert lines_shown.appeared.wait(60)
        return True

    with pytest.raises(NotYet):
        exec("check('tells_right')", {"tells_right": tells_right, "check": checks_for(day=1)})
    assert any("It is at implementation 7 of 44. Interrupt" in line for line in lines_shown)


def test_a_short_check_has_none(monkeypatch, lines_shown):
    monkeypatch.setattr(running_line, "_is_watched", lambda: True)
    with RunningLine() as line:
        pass
    line.thread.join(60)
    assert lines_shown == []


def test_where_nobody_watches_there_is_none():
    with RunningLine() as line:
        assert not hasattr(line, "thread")
