"""What a kernel asks its grader: line for line, and nothing that it does with the pipes stops the grader."""

import os
import threading

import pytest

from course_utils.errors import KernelLost
from course_utils.sandbox import pipe
from course_utils.sandbox.pipe import ASKED, LONGEST_LINE, TOLD, Talk


@pytest.fixture
def talking(tmp_path):
    """A talk that shouts back, and its folder."""
    one = Talk(tmp_path, str.upper)
    yield one, tmp_path
    one.close()
    one.close()


def test_questions_are_answered_in_order_however_they_are_cut(talking):
    one, folder = talking
    said = []
    with open(folder / ASKED, "wb", buffering=0) as asked, open(folder / TOLD, "rb") as told:
        for part in (b"a", b"b\n", b"c\n", b"\xff\n"):
            asked.write(part)
            one.go_on()
            if part.endswith(b"\n"):
                said.append(told.readline().decode())
    assert said == ["AB\n", "C\n", "�\n"]


def test_an_answer_larger_than_a_pipe_holds_arrives(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "REPLY_SECONDS", 600.0)
    one, said = Talk(tmp_path, lambda question: "x" * 500_000), []

    def ask():
        with open(tmp_path / ASKED, "wb") as asked, open(tmp_path / TOLD, "rb") as told:
            asked.write(b"?\n")
            asked.flush()
            said.append(len(told.readline()))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    while thread.is_alive():
        one.go_on()
    one.close()
    assert said == [500_001]


def test_a_line_without_an_end_is_no_question(talking):
    one, folder = talking
    asked = os.open(folder / ASKED, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(KernelLost, match="does not end"):
        for _ in range(2 * LONGEST_LINE // 4096):
            os.write(asked, b"x" * 4096)
            one.go_on()
    os.close(asked)


def test_two_questions_at_once_are_no_talk(talking):
    one, folder = talking
    with open(folder / ASKED, "wb") as asked:
        asked.write(b"a\nb\n")
    with pytest.raises(KernelLost, match="a way that a check does not"):
        one.go_on()


def test_what_lies_in_the_place_of_a_pipe_is_not_opened(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(os, "mkfifo", lambda path, mode: path.symlink_to(victim))
    with pytest.raises(OSError):
        Talk(tmp_path)
    monkeypatch.setattr(os, "mkfifo", lambda path, mode: os.link(victim, path) if not path.is_symlink() else None)
    for name in (ASKED, TOLD):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(OSError, match="is no pipe"):
        Talk(tmp_path)
    assert victim.read_text() == "mine"


def test_who_does_not_listen_is_not_waited_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "REPLY_SECONDS", 0.0)
    one = Talk(tmp_path, lambda question: "x" * 500_000)
    with open(tmp_path / ASKED, "wb") as asked:
        asked.write(b"y\n")
    with pytest.raises(KernelLost, match="did not listen"):
        one.go_on()
    one.close()
