"""Where lessons of editions up to 0.2.1 import their drawings, which have moved to `course_utils.days`."""

import re
from types import ModuleType

from course_utils import loader


def __getattr__(name: str) -> ModuleType:
    found = re.fullmatch(r"day(\d+)(?:_\w+)?", name)
    if not found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return loader.figures(int(found[1]))
