"""What a kernel asks its grader: line for line, and nothing that it does with the pipes stops the grader."""

import os
import threading
import time

import pytest

from course_utils.errors import KernelLost
from course_utils.sandbox import talk
from course_utils.sandbox.talk import ASKED, LONGEST_LINE, TOLD, Talk


@pytest.fixture
def talking(tmp_path):
    """A talk that shouts back, and its folder."""
    one = Talk(tmp_path, str.upper)
    yield one, tmp_path
    one.close()
    one.close()


def serve(one, seconds=10.0):
    """Answer until nothing was asked for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        one.go_on()


def test_questions_are_answered_in_order_however_they_are_cut(talking):
    one, folder = talking
    said = []

    def ask():
        with open(folder / ASKED, "wb", buffering=0) as asked, open(folder / TOLD, "rb") as told:
            for part in (b"a", b"b\nc\n", b"d\n\xff\n"):
                asked.write(part)
                time.sleep(0.02)
            said.extend(told.readline().decode() for _ in range(4))

    thread = threading.Thread(target=ask)
    thread.start()
    serve(one, 0.5)
    thread.join(5)
    assert said == ["AB\n", "C\n", "D\n", "�\n"]


def test_an_answer_larger_than_a_pipe_holds_arrives(tmp_path):
    one, said = Talk(tmp_path, lambda question: "x" * 500_000), []

    def ask():
        with open(tmp_path / ASKED, "wb") as asked, open(tmp_path / TOLD, "rb") as told:
            asked.write(b"?\n")
            asked.flush()
            said.append(len(told.readline()))

    thread = threading.Thread(target=ask)
    thread.start()
    serve(one, 1.0)
    thread.join(5)
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


def test_who_does_not_listen_is_not_waited_for_long(talking, monkeypatch):
    monkeypatch.setattr(talk, "PATIENCE", 0.2)
    one, folder = talking
    asked = os.open(folder / ASKED, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(KernelLost, match="did not listen"):
        for _ in range(1000):
            os.write(asked, b"y" * 1000 + b"\n")
            one.go_on()
    os.close(asked)
