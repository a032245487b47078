"""The glossary: its entries, the first use of each in the course, and links from the lessons to them.

`sources/site/glossary.md` holds two of Sphinx's glossary directives, one for terms and one for symbols. An entry is a
line with the term and an indented definition. Only this module reads the comments before an entry, whose parts are
separated by commas, and days by spaces:

    .. also: caches           other spellings; plurals in -s need none
    .. days: 5 6              the days on which the word means this; without this comment, all days
    .. not: L2 cache          phrases in which it means something else
    KV cache
      The keys and values of all tokens …

The module searches formulas for a spelling in dollars, code for one in backticks, and text for any other, as whole
words. Brackets in a term only distinguish it from other terms, and are no part of the word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from course_utils.cards.text import as_html
from course_utils.course import LESSONS, ROOT, notebook_paths
from course_utils.errors import CourseError
from course_utils.site.mathml import formula, plain_formula

SOURCE = ROOT / "sources" / "site" / "glossary.md"


class Cell(NamedTuple):
    """A markdown cell: its index in the notebook, from 0, and its text."""

    place: int
    text: str


@dataclass(frozen=True)
class Lesson:
    """The text of a lesson: its day, its notebook's name without the ending, and its markdown cells."""

    day: int
    notebook: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Place:
    """The place where a lesson uses an entry.

    Attributes:
        cell: index of the markdown cell.
        part: the heading of the part (##), as written.
        heading: the nearest heading above the place, as written.
    """

    day: int
    notebook: str
    cell: int
    part: str
    heading: str


@dataclass(frozen=True)
class Entry:
    """A term or a symbol.

    Attributes:
        also: other spellings.
        days: the days on which the term means this; () for all.
        excluded: phrases in which it means something else.
        first: its first use, once `entries` has found it.
    """

    term: str
    definition: str
    also: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    excluded: tuple[str, ...] = ()
    first: Place | None = None

    @property
    def anchor(self) -> str:
        """The id of the entry on the page that Sphinx makes: `term-KV-cache`."""
        plain = unicodedata.normalize("NFKD", f"term-{self.term.replace('$', '')}").encode("ascii", "ignore").decode()
        return re.sub(r"[^a-zA-Z0-9._]+", "-", plain).rstrip("-")

    @property
    def symbol(self) -> bool:
        """Whether it is a symbol, written in dollars."""
        return self.term.startswith("$")

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings: the term itself, or each of its formulas, then the other spellings."""
        own = re.findall(r"\$[^$]+\$", self.term) if self.symbol else [re.sub(r" \(.*\)$", "", self.term)]
        return (*own, *self.also)

    @cached_property
    def meaning(self) -> str:
        """The definition as one line of plain text."""
        pieces = (piece for token in _parser().parse(self.definition) for piece in _pieces(token))
        plain = (plain_formula(content) if kind == "formula" else content for kind, content in pieces)
        return " ".join("".join(plain).split())

    @property
    def typeset(self) -> str:
        """The definition as HTML that can stand in a line."""
        return as_html(self.definition, formula).removeprefix("<p>").removesuffix("</p>")

    def means_this_on(self, day: int | None) -> bool:
        """Return whether the term has this meaning on a day; day=None: a page that belongs to no day."""
        return not self.days or day in self.days


def entries(text: str, lessons: Iterable[Lesson]) -> list[Entry]:
    """Return the entries of a glossary in its order, each with its first use in the lessons.

    Raises:
        CourseError: the glossary is badly formed, or no lesson uses an entry.
    """
    by_term = {entry.term: entry for entry in read_entries(text)}
    for lesson in sorted(lessons, key=lambda each: each.day):
        unused = {term for term, entry in by_term.items() if not entry.first and entry.means_this_on(lesson.day)}
        for term, place in _uses(lesson, tuple(by_term.values()), unused):
            by_term[term] = replace(by_term[term], first=place)
    for entry in by_term.values():
        if not entry.first:
            raise CourseError(
                f"glossary: no lesson uses {entry.term!r}; take it out, or say how it is spelt (.. also:)"
            )
    return list(by_term.values())


def first_uses(lesson: Lesson, glossary: Sequence[Entry]) -> dict[str, Place]:
    """Return where a lesson first uses each term of a glossary that it uses, whatever other lessons do."""
    meant = {entry.term for entry in glossary if entry.means_this_on(lesson.day)}
    return dict(_uses(lesson, tuple(glossary), meant))


def read_entries(text: str) -> list[Entry]:
    """Return the entries of a glossary in its order, without their first use.

    Raises:
        CourseError: the glossary is badly formed, or has a term twice.
    """
    by_term: dict[str, Entry] = {}
    for number, block in _blocks(text):
        notes = {note[1]: note[2] for line in block if (note := _NOTE.fullmatch(line))}
        lines = [line for line in block if not line.startswith(".. ")]
        if len(lines) < 2 or lines[0].startswith(" ") or any(not line.startswith("  ") for line in lines[1:]):
            raise CourseError(f"glossary:{number}: not an entry; write a term, and below it its definition, indented")
        if len(notes) != len(block) - len(lines):
            raise CourseError(f"glossary:{number}: a comment is none of .. also: .. days: .. not:")
        term = lines[0]
        if term in by_term:
            raise CourseError(f"glossary:{number}: {term!r} is there twice; tell them apart in brackets")
        definition = "\n".join(line[2:] for line in lines[1:])
        days = tuple(map(int, notes.get("days", "").split()))
        by_term[term] = Entry(term, definition, _split_list(notes.get("also")), days, _split_list(notes.get("not")))
    return list(by_term.values())


def link_terms(texts: Sequence[str], glossary: Sequence[Entry], prefix: str, day: int | None = None) -> list[str]:
    """Return a page's markdown cells with the first use of each term as a link, `[head](PREFIX#term-head)`.

    Only plain text gets links: no code, formula, heading or link, and nothing between HTML tags. Apart from the links,
    the page stays as it was.

    Args:
        glossary: the result of `entries` or `read_entries`.
        prefix: the address of the glossary's page. MyST resolves no address of built HTML, so give it a scheme of its
            own there (`glossary:`, in myst_url_schemes).
        day: the day of the page; None for a page that belongs to no day.
    """
    words = _words(tuple(glossary), day)
    done = set[str]()  # anchors of the terms that have a link
    closed = False  # whether the references have begun
    pages: list[str] = []
    for text in texts:
        shape = None  # of the text so far, once a term is found in it
        shift = 0  # characters that links have added before a match
        closed = closed or bool(_REFERENCES.search(text))
        for match in words.finditer(text) if not closed else ():
            entry = _entry_of(match, glossary)
            if entry is None or entry.anchor in done:
                continue
            shape = shape or _shape(_parser().parse(text), "")
            start = match.start() + shift
            end = match.end() + shift
            target = f"{prefix}#{entry.anchor}"
            with_link = f"{text[:start]}[{text[start:end]}]({target}){text[end:]}"
            # the link stays if the text is the same but for it
            if _shape(_parser().parse(with_link), target) == shape:
                shift += len(with_link) - len(text)
                text = with_link
                shape = _shape(_parser().parse(text), "")
                done.add(entry.anchor)
        pages.append(text)
    return pages


def add_meanings(text: str, glossary: Iterable[Entry], prefix: str) -> str:
    """Return a text from `link_terms` with the meaning of each term as its link's title, which browsers show."""
    meanings = {f"{prefix}#{entry.anchor}": entry.meaning for entry in glossary}

    def with_title(link: re.Match[str]) -> str:
        title = meanings[link[1]].replace("\\", "\\\\").replace('"', '\\"')
        return f']({link[1]} "{title}")'

    return re.sub(rf"\]\(({re.escape(prefix)}#[^)\s]+)\)", with_title, text)


def glossary_page(text: str, glossary: Iterable[Entry], where: Callable[[Place], str]) -> str:
    """Return the glossary for Sphinx: the source without its comments, with the first use below each definition.

    Args:
        where: turns a place into Markdown, such as a link to it.
    """
    places = {entry.term: where(entry.first) for entry in glossary if entry.first}
    lines: list[str] = []
    for block in re.split(r"\n{2,}", text):
        entry = [line for line in block.split("\n") if not line.startswith(".. ")]
        at = next((place for place, line in enumerate(entry) if line in places), None)
        if at is not None and entry[at + 1 :] and entry[at + 1].startswith("  "):
            end = next((n for n in range(at + 1, len(entry)) if not entry[n].startswith("  ")), len(entry))
            entry[end:end] = ["", f"  {places[entry[at]]}"]
        lines += [*entry, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def lessons_of(root: Path = ROOT) -> list[Lesson]:
    """Return the lessons in a course's folder of built notebooks."""
    lessons = []
    for day, path in notebook_paths(root / LESSONS):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = (
            Cell(place, "".join(cell["source"])) for place, cell in enumerate(cells) if cell["cell_type"] == "markdown"
        )
        lessons.append(Lesson(day, path.stem, tuple(texts)))
    return lessons


_NOTE = re.compile(r"\.\. (also|days|not): (.+)")
_REFERENCES = re.compile(r"^## References$", re.MULTILINE)  # titles of papers use terms, but explain none
_DIRECTIVE = re.compile(r"^```\{glossary\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _split_list(note: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (note or "").split(", ") if part.strip())


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each entry in all directives, after the number of its first line."""
    for directive in _DIRECTIVE.finditer(text):
        for block in re.finditer(r"(?:^.+\n)+", directive[1], re.MULTILINE):
            yield text.count("\n", 0, directive.start(1) + block.start()) + 1, block[0].splitlines()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)


# Finding terms in lessons


@cache
def _words(glossary: tuple[Entry, ...], day: int | None) -> re.Pattern[str]:
    """Return a pattern of all spellings in text, the longest first.

    A match's group names the entry; a phrase in which the word means something else has no group.
    """
    spellings = []
    for place, entry in enumerate(glossary):
        if entry.means_this_on(day):
            spellings += [(spelling, f"e{place}") for spelling in entry.spellings if spelling[0] not in "$`"]
            spellings += [(spelling, "") for spelling in entry.excluded if spelling[0] not in "$`"]
    spellings.sort(key=lambda each: (-len(each[0]), not each[1], each))
    uses: dict[str, int] = {}
    choices = []
    for spelling, group in spellings:
        first = spelling[0]
        either = f"[{first}{first.upper()}]" if first.islower() else re.escape(first)
        rest = r"[\s-]+".join(map(re.escape, re.split(r"[ -]", spelling[1:])))
        uses[group] = uses.get(group, 0) + 1
        named = f"?P<{group}_{uses[group]}>" if group else "?:"
        choices.append(f"({named}{either}{rest}s?)")
    return re.compile(rf"(?<![\w-])(?:{'|'.join(choices)})(?![\w-])")


def _entry_of(match: re.Match[str], glossary: Sequence[Entry]) -> Entry | None:
    return glossary[int(match.lastgroup[1:].partition("_")[0])] if match.lastgroup else None


def _uses(lesson: Lesson, glossary: tuple[Entry, ...], unused: set[str]) -> Iterator[tuple[str, Place]]:
    """Yield the first use in a lesson of each term in `unused`, and remove these terms from the set."""
    words = _words(glossary, lesson.day)
    part = heading = ""
    for cell in lesson.cells:
        if _REFERENCES.search(cell.text):
            return
        tokens = _parser().parse(cell.text)
        for before, token in zip([None, *tokens], tokens, strict=False):
            if before and before.type == "heading_open":
                heading = token.content
                part = heading if before.tag in ("h1", "h2") else part
            place = Place(lesson.day, lesson.notebook, cell.place, part, heading)
            for kind, content in _pieces(token):
                if kind == "text":
                    terms = {entry.term for match in words.finditer(content) if (entry := _entry_of(match, glossary))}
                else:
                    terms = {entry.term for entry in glossary if entry.term in unused and _holds(kind, content, entry)}
                yield from ((term, place) for term in sorted(terms & unused))
                unused -= terms


def _pieces(token: Token) -> Iterator[tuple[str, str]]:
    """Yield the content of a block in order: its text without markup, its formulas and its code."""
    if token.type.startswith("math_block"):
        yield "formula", token.content
    text = ""
    for child in token.children or ():
        if child.type in ("text", "text_special", "softbreak"):
            text += "\n" if child.type == "softbreak" else child.content
        elif child.type in ("math_inline", "math_inline_double", "code_inline"):
            yield from ([("text", text)] if text else ())
            yield ("code" if child.type == "code_inline" else "formula"), child.content
            text = ""
        elif child.type in ("html_inline", "hardbreak"):
            text += "\n"
    if text:
        yield "text", text


def _holds(kind: str, content: str, entry: Entry) -> bool:
    if kind == "code":
        codes = (spelling.strip("`") for spelling in entry.spellings if spelling[0] == "`")
        return any(re.search(rf"(?<!\w){re.escape(code)}(?!\w)", content) for code in codes)
    for phrase in (each.strip("$") for each in entry.excluded if each[0] == "$"):
        content = content.replace(phrase, "")
    formulas = (spelling.strip("$") for spelling in entry.spellings if spelling[0] == "$")
    atoms = symbols_of(content)
    return any(_within(symbols_of(formula), atoms) for formula in formulas)


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


_SYMBOL = re.compile(
    r"""(?P<base> \\(?:text|operatorname)\{[^{}]*\} | \\[A-Za-z]+ | \\. | d(?!_)[A-Za-z] | [A-Za-z] | \d+ | \S )
    (?: _ (?P<below> \\text\{[^{}]*\} | \{[^{}]*\} | \\[A-Za-z]+ | \S ) )?""",
    re.VERBOSE,
)


@cache
def symbols_of(formula: str) -> tuple[str, ...]:
    r"""Return the symbols of a formula in LaTeX, each with its subscript: `W_Q x` is W_Q and x; `dX` is one.

    `d_\text{head}` and `d_{head}` are the same.
    """
    return tuple(
        each["base"] + ("_" + re.sub(r"\\text|[{}\s]", "", each["below"]) if each["below"] else "")
        for each in _SYMBOL.finditer(formula)
    )


# Deciding what may be linked


def _shape(tokens: Sequence[Token], target: str) -> list[tuple[object, ...]] | None:
    """Return the blocks of a text and their content, leaving out links to `target`.

    The result is None where such a link is not allowed.
    """
    shape: list[tuple[object, ...]] = []
    heading = False
    for token in tokens:
        heading = token.type == "heading_open" or (heading and token.type == "inline")
        if token.type != "inline":
            shape.append((token.type, token.tag, token.content, token.info))
            continue
        inside = False
        text = ""
        tags = 0
        for child in token.children or ():
            if target and child.attrs.get("href") == target:
                inside = True
                if heading or tags:
                    return None
            elif inside and child.type == "link_close":
                inside = False
            elif child.type in ("text", "text_special"):
                text += child.content
            else:
                tags += _opens(child.content) if child.type == "html_inline" else 0
                shape += [("text", text), (child.type, child.content, str(child.attrs), child.info)]
                text = ""
        shape.append(("text", text))
    return shape


def _opens(tag: str) -> int:
    """Return by how much an HTML tag changes the number of open elements."""
    if tag.startswith("</"):
        return -1
    return 0 if tag.endswith("/>") or re.match(r"<(br|hr|img|wbr)\b|<!", tag) else 1
