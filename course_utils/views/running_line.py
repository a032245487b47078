"""A line under a check that takes long: how far it is, how many seconds it has run, and how many of them it worked."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

AFTER = 2.0  # seconds after which it appears


class RunningLine(AbstractContextManager):
    """Context manager that shows the line while its block runs, in a notebook that a person watches.

    A front end that takes no input, as that of a test or of a build, has nobody who watches.

    Args:
        how_far: returns how far the block is, as "step 3 of 13"; "" where nobody knows.
    """

    def __init__(self, how_far: Callable[[], str] = lambda: "") -> None:
        self.how_far = how_far

    def __enter__(self) -> RunningLine:
        self.done = threading.Event()
        self.began = time.monotonic()
        if _is_watched() and hasattr(time, "pthread_getcpuclockid"):
            self.clock = time.pthread_getcpuclockid(threading.get_ident())
            self.worked = time.clock_gettime(self.clock)
            self.thread = threading.Thread(target=self._show_until_done, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()

    def _show_until_done(self) -> None:
        from IPython.display import display

        if self.done.wait(AFTER):
            return
        handle = display(self._line("has run for"), raw=True, display_id=True)
        while not self.done.wait(1):
            handle.update(self._line("has run for"), raw=True)
        handle.update(self._line("ran for"), raw=True)

    def _line(self, verb: str) -> dict[str, str]:
        passed = time.monotonic() - self.began
        worked = min(passed, time.clock_gettime(self.clock) - self.worked)
        hint = " Interrupt the kernel (■) to stop it." if verb == "has run for" else ""
        reached = self.how_far() if hint else ""
        text = f"The check {verb} {passed:.0f} s: it worked for {worked:.0f} s and waited for {passed - worked:.0f} s."
        return {"text/plain": text + (f" It is at {reached}." if reached else "") + hint}


def _is_watched() -> bool:
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
