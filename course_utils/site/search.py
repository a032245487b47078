"""Make the data for the search: sections of pages and terms of the glossary, each with its own title and text.

Sphinx's own index knows only whole pages, and fetches the text that it shows of them over the network. This extension
cuts the pages into sections while Sphinx writes them. `search.js` searches these sections on the search page, and
suggests their titles wherever somebody types a query. A formula stands in a text as a line of signs between two marks,
and as MathML in a table of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from course_utils.site.mathml import mathml, plain_formula

PAGE = "search"
AFTER = 900  # priority of the scripts; page.js, which they need, has 800
MARK = "\N{INVISIBLE SEPARATOR}"  # before and behind a formula
MATH = (nodes.math, nodes.math_block)
UNREAD = (nodes.raw, nodes.comment, nodes.image)
Section = tuple[str, str, str]  # anchor, title, text


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up this Sphinx extension; Sphinx calls this function."""
    sections_of: dict[str, list[Section]] = {}
    formulas: dict[str, str] = {}

    def collect(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
        if tree:
            sections_of[page] = list(sections(tree))
            latex = (node.astext() for node in tree.findall(lambda each: isinstance(each, MATH)))
            formulas.update({plain_formula(each): mathml(each, display=False) for each in latex})
        if page == PAGE:
            for name in ("search.js", "titles.js", "texts.js"):
                app.add_js_file(name, priority=AFTER)

    def write(app: Sphinx, error: Exception | None) -> None:
        if error is None:
            pages = dict(sorted(sections_of.items()))
            titles = {page: [(anchor, title) for anchor, title, _ in each] for page, each in pages.items()}
            texts = {page: [text for *_, text in each] for page, each in pages.items()}
            for name, value in (("titles", titles), ("texts", texts), ("formulas", dict(sorted(formulas.items())))):
                text = f"course.{name}({json.dumps(value, ensure_ascii=False)});\n"
                (Path(app.outdir) / "_static" / f"{name}.js").write_text(text, encoding="utf-8", newline="\n")

    app.connect("html-page-context", collect)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def sections(tree: nodes.document) -> Iterator[Section]:
    """Yield the sections of a page and the glossary entries on it, in order; none holds the text of another."""
    for node in tree.findall(lambda each: isinstance(each, nodes.section | nodes.definition_list_item)):
        assert isinstance(node, nodes.Element)
        named = node.next_node(nodes.title if isinstance(node, nodes.section) else nodes.term)
        if named is not None and (ids := [*named["ids"], *node["ids"]]):
            anchor = "" if isinstance(node.parent, nodes.document) else ids[0]
            yield anchor, read_aloud(named), " ".join(" ".join(map(read_aloud, _own_children(node, named))).split())


def _own_children(node: nodes.Element, named: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the children that belong to this section or entry alone."""
    for child in node.children:
        if child is not named and not isinstance(child, nodes.section | addnodes.glossary):
            yield child


def read_aloud(node: nodes.Node) -> str:
    """Return the text of a node as a reader sees it, with each formula as a line of signs between two `MARK`s."""
    if isinstance(node, MATH):
        return f"{MARK}{plain_formula(node.astext())}{MARK}"
    if isinstance(node, UNREAD):
        return ""
    if isinstance(node, nodes.Text):
        return node.astext()
    return ("" if isinstance(node, nodes.TextElement) else " ").join(map(read_aloud, node.children))
