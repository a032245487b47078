"""Read the titles and hints of the exercises from the official notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from course_utils.answer_key.key import AnswerKey
from course_utils.progress import plain_title


@dataclass(frozen=True)
class Task:
    """The title and the hints of an exercise, for people.

    Attributes:
        title: title with the exercise's number.
        hints: hints as HTML, the vaguest first.
    """

    title: str
    hints: tuple[str, ...]


def day_title(answer_key: AnswerKey, day: int) -> str:
    """Return the title of a day, such as `Day 1: Attention by hand`.

    Raises:
        CourseError: if there is no such day.
    """
    first = answer_key.notebook(day).cells[0].source
    match = re.match(r"# Day \d+ exercises: (.)(.*)", first)
    return f"Day {day}: {match[1].upper()}{match[2]}" if match else f"Day {day}"


@cache
def tasks(answer_key: AnswerKey, day: int) -> Mapping[str, Task]:
    """Return the exercises of a day, by grade_id.

    Raises:
        CourseError: if there is no such day.
    """
    by_id = {}
    title = ""
    text = ""
    for cell in answer_key.notebook(day).cells:
        if cell.cell_type == "markdown":
            heading = re.match(r"## (.+)", cell.source)
            title, text = (plain_title(heading[1]), cell.source) if heading else (title, text + cell.source)
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            grade_id = cell.metadata.nbgrader.grade_id
            by_id[grade_id] = Task(title or grade_id, tuple(map(markdown_html, _HINT.findall(text))))
    return by_id


def markdown_html(text: str) -> str:
    """Return Markdown as HTML, with formulas as readable text. HTML in it is escaped, and pictures are not fetched."""
    return _markdown().render(text)


def formula_html(tex: str) -> str:
    r"""Return LaTeX as the notebooks use it as HTML text: `\sqrt{d_k}` becomes √d with k as an index.

    An unknown command is shown by its name.
    """
    return f'<span class="formula">{_parse(iter(_TOKEN.findall(tex)))}</span>'


_HINT = re.compile(r"<summary>Hint \d+</summary>\s*(.*?)\s*(?=</?details>|\Z)", re.DOTALL)
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[^\\]", re.DOTALL)
_SYMBOLS = {
    "bmod": " mod ",
    "cdot": "·",
    "circ": "∘",
    "dots": "…",
    "ge": "≥",
    "infty": "∞",
    "ldots": "…",
    "left": "",
    "le": "≤",
    "lfloor": "⌊",
    "log": "log ",
    "partial": "∂",
    "qquad": " ",
    "rfloor": "⌋",
    "rho": "ρ",
    "right": "",
    "sum": "∑",
    "times": "×",
    "top": "T",
    "!": "",
    ",": " ",
    ";": " ",
}


@cache
def _markdown() -> MarkdownIt:
    formula = {"renderer": lambda tex, options: formula_html(tex)}
    return MarkdownIt("commonmark", {"html": False}).disable("image").use(dollarmath_plugin, **formula)


def _parse(tokens: Iterator[str]) -> str:
    """Return the HTML of the tokens up to the brace that closes their group."""
    text = ""
    for token in tokens:
        if token == "}":
            break
        text += _atom(token, tokens)
    return text


def _atom(token: str, tokens: Iterator[str]) -> str:
    name = token.removeprefix("\\")
    if token == "{":
        return _parse(tokens)
    if token in ("^", "_"):
        tag = "sup" if token == "^" else "sub"
        return f"<{tag}>{_atom(next(tokens, ''), tokens)}</{tag}>"
    if token == r"\sqrt":
        return "√" + _bracket(_argument(tokens))
    if token == r"\frac":
        return f"{_bracket(_argument(tokens))}/{_bracket(_argument(tokens))}"
    if token in (r"\text", r"\mathrm"):
        return _argument(tokens).replace("<i>", "").replace("</i>", "")
    if token.startswith("\\"):
        return _SYMBOLS.get(name, html.escape(name))
    return f"<i>{token}</i>" if token.isalpha() else html.escape(token.replace("-", "−"))


def _argument(tokens: Iterator[str]) -> str:
    token = next((each for each in tokens if each != " "), "")
    return _atom(token, tokens) if token else ""


def _bracket(part: str) -> str:
    return f"({part})" if re.search(r"[-+−=·× ]", re.sub(r"<[^>]*>", "", part)) else part
