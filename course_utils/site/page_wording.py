"""Replace sentences of a lesson that hold only in JupyterLab by those of `wording.yaml`, which hold on its page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from course_utils import loader
from course_utils.errors import CourseError


def page_texts(name: str, day: int | None, texts: Sequence[str]) -> list[str]:
    """Return the markdown cells of a lesson with the wording of its page.

    A sentence to replace is recognised wherever its lines break.

    Args:
        name: the name of the notebook, without its ending.
        day: its number.

    Raises:
        CourseError: the lesson does not contain a sentence to replace exactly once.
    """
    shared = loader.wording("shared")
    changes = [*loader.wording(f"day{day}"), *shared["each_day"]] if day else shared.get(name, [])
    worded = list(texts)
    for change in changes:
        words = re.compile(r"\s+".join(map(re.escape, change["lesson"].split())))
        if sum(len(words.findall(text)) for text in worded) != 1:
            where = f"course_utils/days/{f'day{day}' if day else 'shared'}/wording.yaml"
            raise CourseError(f"{name}: does not say {change['lesson']!r} once; change {where} with the lesson")
        worded = [change["page"].join(words.split(text)) for text in worded]
    return worded
