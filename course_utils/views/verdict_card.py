"""What a check says, as HTML: the verdict, the mistake, the smallest input to copy, and the steps folded."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

# Both stand out from a light page and from a dark one.
GOOD, BAD = "#388e3c", "#d32f2f"
_TINTS = {GOOD: "rgba(56, 142, 60, .1)", BAD: "rgba(211, 47, 47, .09)"}
_QUIET = "color: var(--jp-content-font-color2, #5b6475)"
_CODE = "margin: 4px 0; padding: 6px 10px; background: rgba(127, 127, 127, .12); border-radius: 4px; overflow-x: auto"
_SENTENCE = re.compile(r"(?<=[.?])\s+")


def verdict_card(
    *,
    good: bool,
    head: str,
    message: str,
    names_mistake: bool,
    example: str,
    steps: Sequence[tuple[str, bool]],
    note: str,
) -> str:
    """Return the card of a verdict.

    Args:
        good: whether the answer passes.
        names_mistake: whether the first sentence of the message names the mistake.
        example: the smallest input as text, code indented by four.
        steps: the name of each step, and whether it holds.
        note: what else there is to say.
    """
    parts = [f"<strong>{_mark(good)} {html.escape(head)}</strong>", _message(message, names_mistake), _example(example)]
    parts += [_steps(steps), _paragraph(f'<span style="{_QUIET}">{_lines(note)}</span>') if note else ""]
    return frame("".join(parts), GOOD if good else BAD)


def frame(inside: str, colour: str = GOOD) -> str:
    """Return HTML in a box with an edge of that colour."""
    style = f"border-left: 4px solid {colour}; background: {_TINTS[colour]}; border-radius: 4px"
    return f'<div style="{style}; margin: 6px 0; padding: 8px 14px; max-width: 720px">{inside}</div>'


def _mark(good: bool) -> str:
    return f'<span style="color: {GOOD if good else BAD}">{"✓" if good else "✗"}</span>'


def _message(message: str, names_mistake: bool) -> str:
    first, *rest = _SENTENCE.split(message.strip(), 1)
    head = f"<strong>{html.escape(first)}</strong>" if rest and names_mistake else html.escape(first)
    return _paragraph(" ".join([head, *map(html.escape, rest)])) if first else ""


def _example(text: str) -> str:
    """The smallest input: its code, which one click selects as a whole, between what is said about it."""
    parts = []
    for block in text.split("\n\n"):
        if not block:
            continue
        if block.startswith("    "):
            code = "\n".join(line[4:] for line in block.splitlines())
            parts.append(f'<pre style="{_CODE}; user-select: all">{html.escape(code)}</pre>')
        else:
            parts.append(_paragraph(_lines(block)))
    return "".join(parts)


def _steps(steps: Sequence[tuple[str, bool]]) -> str:
    held = sum(ok for _, ok in steps)
    if not held:
        return ""
    lines = "".join(f"<li>{_mark(ok)} {html.escape(name)}</li>" for name, ok in steps)
    style = "list-style: none; margin: 4px 0 0; padding: 0; columns: 16em"
    summary = f'<summary style="cursor: pointer">{held} of {len(steps)} steps passed</summary>'
    return f'<details style="margin: 6px 0 0">{summary}<ul style="{style}">{lines}</ul></details>'


def _lines(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def _paragraph(inside: str) -> str:
    return f'<p style="margin: 6px 0 0">{inside}</p>'
