"""Tell whose code a file holds or a frame runs: Python's, an installed package's, the course's or a learner's."""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from types import FrameType

STANDARD = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")})
COURSE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep
CHECKS = (f"{COURSE}checks{os.sep}", f"{COURSE}days{os.sep}")
INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib")})


@cache
def is_library(filename: str) -> bool:
    """Return whether a file belongs to Python, to an installed package or to the course, and not to a learner."""
    return filename.startswith(("<frozen", "<__array_function__")) or os.path.realpath(filename).startswith(
        (*STANDARD, *INSTALLED, COURSE)
    )


@cache
def is_installed(filename: str) -> bool:
    """Return whether a file belongs to an installed package other than the course."""
    path = os.path.realpath(filename)
    return path.startswith(INSTALLED) and not path.startswith(COURSE)


@cache
def is_of_python(filename: str) -> bool:
    """Return whether a file belongs to Python's standard library."""
    return filename.startswith("<frozen") or (
        os.path.realpath(filename).startswith(STANDARD) and not os.path.realpath(filename).startswith(INSTALLED)
    )


def is_own(frame: FrameType) -> bool:
    """Return whether a frame runs the learner's code."""
    return not is_library(frame.f_code.co_filename)


def has_own(frame: FrameType | None) -> bool:
    """Return whether the learner's code runs in a frame or in any of its callers."""
    while frame and not is_own(frame):
        frame = frame.f_back
    return frame is not None
