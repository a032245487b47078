"""Whose code a file holds, or a frame runs: Python's, an installed package's, the course's, or a learner's."""

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
    """Whether a file is one of Python, of an installed package or of the course, and no learner's."""
    return filename.startswith(("<frozen", "<__array_function__")) or os.path.realpath(filename).startswith(
        (*STANDARD, *INSTALLED, COURSE)
    )


@cache
def is_installed(filename: str) -> bool:
    """Whether a file is one of an installed package other than the course."""
    path = os.path.realpath(filename)
    return path.startswith(INSTALLED) and not path.startswith(COURSE)


@cache
def is_of_python(filename: str) -> bool:
    """Whether a file is one of Python's own modules."""
    return filename.startswith("<frozen") or (
        os.path.realpath(filename).startswith(STANDARD) and not os.path.realpath(filename).startswith(INSTALLED)
    )


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs code of the learner's."""
    return not is_library(frame.f_code.co_filename)


def has_own(frame: FrameType | None) -> bool:
    """Whether code of the learner's is at work in a frame or anywhere behind it."""
    while frame and not is_own(frame):
        frame = frame.f_back
    return frame is not None
