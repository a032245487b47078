"""What a kernel may ask its grader while a cell runs: a line each way, through two pipes in the kernel's folder.

Jupyter has a channel for that, which `input` uses; a question takes ten times as long there.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable
from pathlib import Path

from course_utils.errors import KernelLost

ASKED, TOLD = "asked", "told"  # the pipes: what the kernel writes to, and what it reads from
LONGEST_LINE = 2**18  # bytes of a question
MOMENT = 0.003  # seconds to wait for the next question before anything else is looked at
TURN = 0.1  # seconds until something else is looked at anyway
PATIENCE = 5.0  # seconds for a kernel to take an answer
NO_TALK = "The cell asked in a way that a check does not"


class Talk:
    """The grader's end. answer: makes the answer to a question; both are a line of text.

    Make it before student code runs in the kernel: later a pipe could be exchanged for a link. `fileno` is ready to be
    read when a question waits; `go_on` answers it. Close it with `close`. Raises OSError where a pipe cannot be made.
    """

    def __init__(self, folder: Path, answer: Callable[[str], str] | None = None):
        self.answer, self.heard, self.open = answer, b"", True
        for name in (ASKED, TOLD):
            os.mkfifo(folder / name, 0o600)
        # Open to both sides, so that neither waits for a kernel to open the other end, nor hears of its end.
        self.asked, self.told = (_opened(folder / name) for name in (ASKED, TOLD))

    def fileno(self) -> int:
        """What to wait at for a question."""
        return self.asked

    def go_on(self) -> None:
        """Answer what is asked, and what is asked next if it comes soon. Raises KernelLost for what is no talk.

        Whoever has asked waits for the answer, so there is never more than one question to be read.
        """
        end = time.monotonic() + TURN
        while time.monotonic() < end and select.select([self.asked], [], [], MOMENT)[0]:
            try:
                self.heard += os.read(self.asked, 65536)
            except BlockingIOError:  # the kernel has read its own question
                raise KernelLost("killed", NO_TALK) from None
            line, ended, rest = self.heard.partition(b"\n")
            if rest:
                raise KernelLost("killed", NO_TALK)
            if len(self.heard) > LONGEST_LINE:
                raise KernelLost("killed", "The cell asked a question that does not end")
            if ended and self.answer is not None:
                self.heard = b""
                self._tell(self.answer(line.decode("utf-8", "replace")).encode() + b"\n")

    def _tell(self, text: bytes) -> None:
        end = time.monotonic() + PATIENCE
        while text:
            try:
                text = text[os.write(self.told, text) :]
            except BlockingIOError:  # it is full
                if not select.select([], [self.told], [], max(0.0, end - time.monotonic()))[1]:
                    raise KernelLost("killed", "The cell asked, and did not listen to the answer") from None

    def close(self) -> None:
        """Close the grader's ends."""
        if self.open:
            self.open = False
            os.close(self.asked)
            os.close(self.told)


def _opened(path: Path) -> int:
    """A pipe, and nothing that stands in its place."""
    number = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISFIFO(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is no pipe")
    return number
