"""Run somebody's code silently, while other threads go on printing.

In JupyterLab a widget gets its page's messages in a thread of its own, also while a cell runs.
`contextlib.redirect_stdout` and `warnings.catch_warnings` change what all threads share: two that overlap leave it
changed for good, and nothing that is printed in the notebook shows any more.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STREAMS = ("stdout", "stderr")
_here = threading.local()  # .silenced: how many `hide_prints` this thread is in
_lock = threading.Lock()
_inside = 0  # of all threads


class _Stream:
    """A stream that drops what a silenced thread writes, and otherwise passes everything on to the real one."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        return len(text) if getattr(_here, "silenced", 0) else self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextmanager
def hide_prints() -> Iterator[None]:
    """Hide everything that this thread prints inside, warnings too."""
    _enter(1)
    _here.silenced = getattr(_here, "silenced", 0) + 1
    try:
        yield
    finally:
        _here.silenced -= 1
        _enter(-1)


def _enter(change):
    """Replace the streams for the first thread inside; after the last put them back, unless somebody replaced them."""
    global _inside
    with _lock:
        _inside += change
        for name in _STREAMS:
            stream = getattr(sys, name)
            if _inside and not isinstance(stream, _Stream):
                setattr(sys, name, _Stream(stream))
            elif not _inside and isinstance(stream, _Stream):
                setattr(sys, name, stream._stream)
