"""Turn the Markdown of a card into HTML with formulas for MathJax, or into plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

FORMULAS = {"math_inline": r"\({}\)", "math_inline_double": r"\[{}\]", "math_block": r"\[{}\]"}  # MathJax's delimiters


def parse(text: str) -> list[Token]:
    """Return the Markdown tokens of a text, including tables and formulas."""
    return _markdown(for_mathjax).parse(text)


def for_mathjax(latex: str, display: bool) -> str:
    r"""Return the HTML of a formula for Anki, whose MathJax sets what stands in `\( \)` and `\[ \]`."""
    return (r"\[{}\]" if display else r"\({}\)").format(escape(latex, quote=False))


def as_html(text: str, formula: Callable[[str, bool], str] = for_mathjax) -> str:
    """Return a text as HTML.

    HTML tags are shown as text, and of a link only the text stays, because links lead out of the notebook.

    Args:
        formula: returns the HTML of a formula, which it gets in LaTeX, with whether it stands on lines of its own.
    """
    return _markdown(formula).render(text).strip()


def as_plain(text: str) -> str:
    """Return text for a spreadsheet.

    It has paragraphs, lists with letters or dashes, code between backticks, and formulas as in HTML.
    """
    lines: list[str] = []
    items: list[int] = []  # for each open list, the number of items begun
    mark = ""
    for token in parse(text):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            items.append(0)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            items.pop()
        elif token.type == "list_item_open":
            mark = "- " if token.markup in "-*+" else f"{chr(ord('a') + items[-1])}) "
            items[-1] += 1
        elif token.type in ("inline", "math_block"):
            begins_anew = not mark or items[-1] == 1
            lines += [*([""] if lines and begins_anew else []), mark + _plain_text(token.children or [token])]
            mark = ""
    return "\n".join(lines)


def _plain_text(tokens: Sequence[Token]) -> str:
    return "".join(_piece(token) for token in tokens)


def _piece(token: Token) -> str:
    if token.type in FORMULAS:
        return FORMULAS[token.type].format(token.content.strip())
    if token.type in ("softbreak", "hardbreak"):
        return "\n  " if token.type == "hardbreak" else " "
    return f"`{token.content}`" if token.type == "code_inline" else token.content


@cache
def _markdown(formula: Callable[[str, bool], str]) -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    markdown.use(dollarmath_plugin, double_inline=True)
    for kind in FORMULAS:
        markdown.add_render_rule(kind, _rule(formula, kind != "math_inline"))
    for kind in ("link_open", "link_close"):
        markdown.add_render_rule(kind, _rule(lambda _: ""))
    return markdown


def _rule(render: Callable[..., str], *more: bool) -> Callable[..., str]:
    """Return a rule for markdown-it's renderer: what `render` makes of the content of a token, and of `more`."""

    def rule(renderer: object, tokens: Sequence[Token], place: int, *_: object) -> str:
        return render(tokens[place].content.strip(), *more)

    return rule
