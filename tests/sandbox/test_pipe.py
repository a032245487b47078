"""What a kernel asks its grader: line for line, and nothing that it does with the pipes stops the grader."""

import os
import threading

import pytest

from course_utils.errors import KernelLost
from course_utils.sandbox import pipe
from course_utils.sandbox.pipe import ANSWERS, MAX_LINE_LENGTH, QUESTIONS, Talk


@pytest.fixture
def talking(tmp_path):
    """A talk that shouts back, and its folder."""
    one = Talk(tmp_path, str.upper)
    yield one, tmp_path
    one.close()
    one.close()


def test_questions_are_answered_in_order_however_they_are_cut(talking):
    one, folder = talking
    replies = []
    with open(folder / QUESTIONS, "wb", buffering=0) as questions, open(folder / ANSWERS, "rb") as answers:
        for part in (b"a", b"b\n", b"c\n", b"\xff\n"):
            questions.write(part)
            one.go_on()
            if part.endswith(b"\n"):
                replies.append(answers.readline().decode())
    assert replies == ["AB\n", "C\n", "�\n"]


def test_an_answer_larger_than_a_pipe_holds_arrives(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "REPLY_SECONDS", 600.0)
    one = Talk(tmp_path, lambda question: "x" * 500_000)
    replies = []

    def ask():
        with open(tmp_path / QUESTIONS, "wb") as questions, open(tmp_path / ANSWERS, "rb") as answers:
            questions.write(b"?\n")
            questions.flush()
            replies.append(len(answers.readline()))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    while thread.is_alive():
        one.go_on()
    one.close()
    assert replies == [500_001]


def test_a_line_without_an_end_is_no_question(talking):
    one, folder = talking
    questions = os.open(folder / QUESTIONS, os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(KernelLost, match="does not end"):
        for _ in range(2 * MAX_LINE_LENGTH // 4096):
            os.write(questions, b"x" * 4096)
            one.go_on()
    os.close(questions)


def test_two_questions_at_once_are_no_talk(talking):
    one, folder = talking
    with open(folder / QUESTIONS, "wb") as questions:
        questions.write(b"a\nb\n")
    with pytest.raises(KernelLost, match="a question that no check sends"):
        one.go_on()


def test_what_lies_in_the_place_of_a_pipe_is_not_opened(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(os, "mkfifo", lambda path, mode: path.symlink_to(victim))
    with pytest.raises(OSError):
        Talk(tmp_path)
    monkeypatch.setattr(os, "mkfifo", lambda path, mode: os.link(victim, path) if not path.is_symlink() else None)
    for name in (QUESTIONS, ANSWERS):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(OSError, match="is no pipe"):
        Talk(tmp_path)
    assert victim.read_text() == "mine"


def test_who_does_not_listen_is_not_waited_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "REPLY_SECONDS", 0.0)
    one = Talk(tmp_path, lambda question: "x" * 500_000)
    with open(tmp_path / QUESTIONS, "wb") as questions:
        questions.write(b"y\n")
    with pytest.raises(KernelLost, match="did not read the answer"):
        one.go_on()
    one.close()
