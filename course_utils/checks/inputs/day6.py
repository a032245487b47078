"""Import path that exercises of editions up to 0.2.1 use for what now lies in `course_utils.days.day6`."""

from typing import Any

from course_utils import loader


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return loader.of_a_day(f"day6.{name}")
