"""Errors that a person is expected to meet and can mend: one line, no traceback."""

from pathlib import Path


class CourseError(Exception):
    """Something that was given is not right; the message says what, what was expected and what to do."""


class SourceError(CourseError):
    """A source of a notebook is not right: `file:line: what; what to do`."""

    def __init__(self, path: Path | str, line: int, what: str, todo: str):
        super().__init__(f"{path}:{line}: {what}; {todo}")
