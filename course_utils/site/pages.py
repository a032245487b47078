"""Turn a built notebook into a page: live widgets, figures as files with alt texts, and links into the site."""

from __future__ import annotations

import base64
import copy
import html
import posixpath
import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

from course_utils.answer_key.strip_answers import is_setup
from course_utils.authoring.widget_states import States
from course_utils.course import EXERCISES, LESSONS, ROOT, is_published
from course_utils.site.exercise_pages import explain_page, place_editors, show_progress
from course_utils.site.widgets import place_widget

COURSE_MAP = f"{LESSONS}/course_map"
_HERE = """<p class="course-here">On this page the widgets move and no cell runs. {checked}To run and change the cells,
<a href="{up}start.html">get the course</a>{rocket}.</p>"""
_CHECKED = """<a href="{up}{exercises}.html">The exercises of this day</a> are answered and checked on a page, with
nothing to install, as far as they need no PyTorch. """
_ROCKET = "; the rocket above opens this notebook on Binder or in Colab"
_LINK = re.compile(r"(?<!!)\]\((?!https?:|mailto:|glossary:|page:|#)([^)\s#]+)(#[^)\s]*)?\)")
_HERE_ON = re.compile(r"\]\(#[^)\s]+\)")
_NOWHERE = re.compile(r"\[([^][]*)\]\(/(?:blob|tree)/main/[^)]*\)")
_HEADING = re.compile(r"^#{1,4} +(.+?)\s*$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Play:
    """A figure or a widget on a page.

    Attributes:
        anchor: its id.
        heading: the heading above it.
        width: the width of its picture, in CSS pixels.
        widget: the class of the widget; empty for a figure.
        day: the day of its page.
        caption: what stands below a figure.
    """

    page: str
    anchor: str
    heading: str
    alt: str
    width: float
    widget: str = ""
    day: int | None = None
    caption: str = ""

    @property
    def file(self) -> str:
        """The path of its picture in the static folder."""
        return f"pictures/{self.anchor}.png"

    def html(self, page: str) -> str:
        """Return the HTML that shows it on the page of this name."""
        picture = (
            f'<img class="course-picture" src="{to_top(page)}_static/{self.file}" alt="{html.escape(self.alt)}" '
            f'width="{self.width:g}" style="--width: {self.width:g}px" loading="lazy">'
        )
        if self.widget:
            return place_widget(self.anchor, self.widget, picture)
        caption = f'<div class="course-caption">{html.escape(self.caption)}</div>' if self.caption else ""
        return (
            f'<div class="course-figure" id="{self.anchor}" role="group" aria-label="Figure">{picture}</div>{caption}'
        )


@dataclass
class Page:
    """A page, and the files that it needs in the static folder.

    Attributes:
        name: without a suffix, such as `notebooks/day1_…`.
        day: the number of the day that it belongs to.
        pictures: the bytes of its pictures, by path.
        states: the state of each widget, by key.
        plays: its figures and widgets, in order.
    """

    name: str
    notebook: NotebookNode
    day: int | None = None
    pictures: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    plays: list[Play] = field(default_factory=list)


def notebook_page(
    name: str,
    notebook: NotebookNode,
    states: States,
    links: Links,
    marked: Container[int] = (),
    day: int | None = None,
    python: str = "",
) -> Page:
    """Return the page of a notebook.

    Args:
        states: the states of its widgets, by cell.
        links: the targets of its links.
        marked: the indices of markdown cells that other pages link to; cell 7 gets the id `cell-7`.
        day: the number of its day.
        python: the folder of the Python that runs on the page; "" if there is none.
    """
    page = Page(name, copy.deepcopy(notebook), day)
    short = f"day{page.day}" if page.day else posixpath.basename(name)
    if name.startswith(f"{EXERCISES}/"):
        short += "-exercises"
    heading = ""
    for place, cell in enumerate(page.notebook.cells):
        if cell.cell_type == "markdown":
            cell.source = links.resolved(name, name, cell.source)
            headings = _HEADING.findall(_FENCE.sub("", cell.source))
            heading = headings[-1] if headings else heading
            if place in marked:
                cell.source = f'<span id="cell-{place}"></span>\n\n{cell.source}'
        elif cell.cell_type == "code":
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                cell.metadata.tags = [*cell.metadata.get("tags", []), "hide-input"]
            alive = {each["output"]: each for each in states.get(cell.id, ())}
            for index, output in enumerate(cell.outputs):
                if "image/png" in output.get("data", {}):
                    cell.outputs[index] = _rendered_output(
                        page, f"{short}-{cell.id}-{index}", output, alive.get(index), heading
                    )
    page.notebook.metadata.pop("jupytext", None)
    page.notebook.cells = [cell for cell in page.notebook.cells if not is_setup(cell)]
    if python and name == COURSE_MAP:
        show_progress(page.notebook, ROOT)
    if page.day:
        up = to_top(name)
        exercises = name.replace(LESSONS, EXERCISES, 1)
        checked = _CHECKED.format(up=up, exercises=exercises) if python else ""
        here = _HERE.format(up=up, rocket=_ROCKET if is_published() else "", checked=checked)
        if python and name.startswith(f"{EXERCISES}/"):
            here = explain_page(page.day, page.notebook, to_top(name))
            place_editors(page.day, page.notebook, python)
        page.notebook.cells.insert(1, nbformat.v4.new_markdown_cell(here))
    return page


def _rendered_output(
    page: Page, key: str, output: NotebookNode, alive: dict[str, Any] | None, heading: str
) -> NotebookNode:
    """Return an output with a picture as HTML: the picture becomes a file, and a widget comes to life in its place."""
    picture = output.metadata.get("image/png", {})
    alt = picture.get("alt", "")
    caption = picture.get("caption", "")
    widget = alive["widget"] if alive else ""
    play = Play(
        page=page.name,
        anchor=key,
        heading=heading,
        alt=alt,
        width=picture["width"],
        widget=widget,
        day=page.day,
        caption=caption,
    )
    page.plays.append(play)
    page.pictures[play.file] = base64.b64decode(output.data["image/png"])
    if alive:
        page.states[key] = alive["state"]
    return nbformat.v4.new_output("display_data", data={"text/html": play.html(page.name)})


@dataclass(frozen=True)
class Links:
    """Targets of relative links: a page of the site, or a file of the repository.

    Attributes:
        pages: the names of all pages.
        repository: its address; where it is empty, a link to a file of the repository becomes its text.
        sources: page names by file, for pages that are not named as their file in the repository.
    """

    pages: frozenset[str]
    repository: str
    sources: dict[str, str] = field(default_factory=dict)

    def resolved(self, page: str, where: str, text: str) -> str:
        """Return Markdown whose relative links lead from `page` to pages, or to the repository where the site has none.

        Args:
            where: the text's own file without a suffix, which the links are relative to.
        """
        linked = _LINK.sub(lambda match: f"]({self._target(page, where, match[1], match[2] or '')})", text)
        linked = _HERE_ON.sub(lambda match: match[0].lower(), linked)
        return linked if self.repository else _NOWHERE.sub(r"\1", linked)

    def _target(self, page: str, where: str, target: str, anchor: str) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(where), target))
        name = self.sources.get(file, file.rpartition(".")[0])
        if name not in self.pages:
            kind = "tree" if target.endswith("/") else "blob"
            return f"{self.repository}/{kind}/main/{file}{anchor}"
        return f"page:{to_top(page)}{name}.html{anchor.lower()}"


def to_top(page: str) -> str:
    """Return the relative path from a page of this name to the top of the site: empty, or `../`."""
    return "../" * page.count("/")


def link_text(heading: str) -> str:
    """Return a heading as the text of a link: with round brackets, because square ones would end it."""
    return heading.replace("[", "(").replace("]", ")")
