"""Errors that a person is expected to meet and can mend: one line, no traceback."""

from pathlib import Path


def one_line(text: str, longest: int = 600) -> str:
    """Text from a submission as one line, without control and formatting characters and unpaired surrogates."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * longest]).split())
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


class CourseError(Exception):
    """Something that was given is not right; the message says what, what was expected and what to do."""


class SourceError(CourseError):
    """A source of a notebook is not right: `file:line: what; what to do`."""

    def __init__(self, path: Path | str, line: int, what: str, todo: str):
        super().__init__(f"{path}:{line}: {what}; {todo}")
