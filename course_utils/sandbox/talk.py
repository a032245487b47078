"""What a kernel may ask its grader while a cell runs: a line each way, through two pipes in the kernel's folder.

Jupyter has a channel for that, which `input` uses; a question takes ten times as long there.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from course_utils.errors import KernelLost

ASKED, TOLD = "asked", "told"  # the pipes: what the kernel writes to, and what it reads from
LONGEST_LINE = 2**18  # bytes of a question
MOMENT = 0.003  # seconds to wait for the next question before anything else is looked at
TURN = 0.1  # seconds until something else is looked at anyway
PATIENCE = 5.0  # seconds for a kernel to take an answer


class Talk:
    """The grader's end. answer: makes the answer to a question; both are a line of text.

    `fileno` is ready to be read when a question waits; `go_on` answers it. Close it with `close`.
    """

    def __init__(self, folder: Path, answer: Callable[[str], str]):
        self.answer, self.heard, self.open = answer, b"", True
        for name in (ASKED, TOLD):
            os.mkfifo(folder / name, 0o600)
        # Open to both sides, so that neither waits for a kernel to open the other end, nor hears of its end.
        self.asked, self.told = (os.open(folder / name, os.O_RDWR | os.O_NONBLOCK) for name in (ASKED, TOLD))

    def fileno(self) -> int:
        """What to wait at for a question."""
        return self.asked

    def go_on(self) -> None:
        """Answer what is asked, and what is asked next if it comes soon. Raises KernelLost for what is no talk."""
        end = time.monotonic() + TURN
        while time.monotonic() < end and select.select([self.asked], [], [], MOMENT)[0]:
            *lines, self.heard = (self.heard + os.read(self.asked, 65536)).split(b"\n")
            if len(self.heard) > LONGEST_LINE:
                raise KernelLost("killed", "The cell asked a question that does not end")
            for line in lines:
                self._tell(self.answer(line.decode("utf-8", "replace")).encode() + b"\n")

    def _tell(self, text: bytes) -> None:
        end = time.monotonic() + PATIENCE
        while text:
            if not select.select([], [self.told], [], max(0.0, end - time.monotonic()))[1]:
                raise KernelLost("killed", "The cell asked, and did not listen to the answer")
            text = text[os.write(self.told, text) :]

    def close(self) -> None:
        """Close the grader's ends."""
        if self.open:
            self.open = False
            os.close(self.asked)
            os.close(self.told)
