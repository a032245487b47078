"""Questions from a kernel to its grader while a cell runs: a line each way, through two pipes in the kernel's folder.

Jupyter has a channel for questions, which `input` uses, but a question takes ten times as long there.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable
from pathlib import Path

from course_utils.errors import KernelLost
from course_utils.time_limits import REPLY_SECONDS

QUESTIONS = "asked"  # name of the pipe to which the kernel writes
ANSWERS = "told"  # name of the one from which it reads
MAX_LINE_LENGTH = 2**18  # bytes of a question
MOMENT = 0.003  # seconds to wait for the next question before looking at anything else
TURN = 0.1  # seconds of answering before looking at something else anyway
UNUSUAL_QUESTION = "The cell sent a question that no check sends"


class Talk:
    """The grader's end of the pipes.

    Create it before student code runs in the kernel, because later that code could replace a pipe with a link. `fileno`
    is ready to be read when a question waits, `go_on` answers it, and `close` closes the pipes.

    Args:
        folder: the kernel's folder.
        answer: returns the answer to a question; both are a line of text.

    Raises:
        OSError: if a pipe cannot be made.
    """

    def __init__(self, folder: Path, answer: Callable[[str], str] | None = None):
        self.answer = answer
        self.received = b""
        self.open = True
        for name in (QUESTIONS, ANSWERS):
            os.mkfifo(folder / name, 0o600)
        # Opened for reading and writing, so that opening does not wait for the kernel, nor reading end with it.
        self.questions, self.answers = (_open_pipe(folder / name) for name in (QUESTIONS, ANSWERS))

    def fileno(self) -> int:
        """Return the file descriptor to wait on for a question."""
        return self.questions

    def go_on(self) -> None:
        """Answer the question that waits, and the next ones if they come soon.

        The kernel waits for each answer, so there is never more than one question to read.

        Raises:
            KernelLost: if the kernel sends anything but one question at a time, or does not read the answer.
        """
        end = time.monotonic() + TURN
        while time.monotonic() < end and select.select([self.questions], [], [], MOMENT)[0]:
            try:
                self.received += os.read(self.questions, 65536)
            except BlockingIOError:  # the kernel has read its own question
                raise KernelLost("killed", UNUSUAL_QUESTION) from None
            line, ended, rest = self.received.partition(b"\n")
            if rest:
                raise KernelLost("killed", UNUSUAL_QUESTION)
            if len(self.received) > MAX_LINE_LENGTH:
                raise KernelLost("killed", "The cell sent a question that does not end")
            if ended and self.answer is not None:
                self.received = b""
                self._send(self.answer(line.decode("utf-8", "replace")).encode() + b"\n")

    def _send(self, text: bytes) -> None:
        end = time.monotonic() + REPLY_SECONDS
        while text:
            try:
                text = text[os.write(self.answers, text) :]
            except BlockingIOError:  # the pipe is full
                if not select.select([], [self.answers], [], max(0.0, end - time.monotonic()))[1]:
                    raise KernelLost("killed", "The cell sent a question and did not read the answer") from None

    def close(self) -> None:
        """Close the grader's ends."""
        if self.open:
            self.open = False
            os.close(self.questions)
            os.close(self.answers)


def _open_pipe(path: Path) -> int:
    """Open a pipe, and refuse anything else in its place."""
    number = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no pipe")
    return number
