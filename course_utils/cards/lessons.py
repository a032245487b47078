"""Read a lesson's claims, which readers should be able to defend, and its tables of symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from markdown_it.token import Token

from .text import parse

DEFEND = "What you should be able to defend"
SYMBOL = "symbol"  # heading of the first column in a table of symbols


def markdown_of(path: Path) -> str:
    """Return all text of a notebook, without its code."""
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def claims(text: str) -> list[str]:
    """Return the entries of the list under the heading `DEFEND`, as Markdown."""
    entries: list[str] = []
    under = False
    for token, after in _pairs(parse(text)):
        if token.type == "heading_open":
            under = after.content == DEFEND
        elif token.type == "table_open":  # of mistakes, which are no claims
            under = False
        elif under and token.type == "inline" and token.level > 1:  # within a list
            entries.append(" ".join(token.content.split()))
    return entries


def of_day(page: str, day: int) -> str:
    """Return the section of a page of the whole course that is headed `Day N`; empty if there is none."""
    section = re.search(rf"^## Day {day}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return section[1] if section else ""


def symbols(text: str) -> list[tuple[str, str, str]]:
    """Return the rows of the tables of symbols: the symbol, how to read it, and its Python, perhaps empty."""
    rows: list[list[str]] = []
    of_symbols = False
    for token, after in _pairs(parse(text)):
        if token.type == "thead_open":
            of_symbols = False
        elif token.type == "th_open" and after.content == SYMBOL:
            of_symbols = True
        elif of_symbols and token.type == "tr_open":
            rows.append([])
        elif of_symbols and token.type == "td_open":
            rows[-1].append(after.content)
    return [(symbol, spoken, python) for symbol, spoken, python in (row for row in rows if row)]


def _pairs(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    return zip(tokens, [*tokens[1:], *tokens[-1:]], strict=True)
