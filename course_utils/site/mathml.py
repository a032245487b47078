"""Set formulas as MathML, which browsers display by themselves and screen readers read."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

import math_core
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.transforms import SphinxTransform

_RAISED = dict(zip("0123456789+−=()nix", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", strict=True)) | {"⊤": "ᵀ"}
_LOWERED = dict(zip("0123456789+−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_SPACED = frozenset("+−=<>≤≥≈≠→←∈∼∝⇒×") | {"±", "≪", "≫", "↦", "≡"}
_REPLACED = {"\N{FUNCTION APPLICATION}(": "(", "\N{FUNCTION APPLICATION}": " ", "⋅": "·", "...": "…", "···": "…"}
_BEFORE = re.compile(r"[(\[“‘]+$")
_BEHIND = re.compile(r"^(?:[.,;:!?)\]”’]+|-\w+)")
_CONVERTER = math_core.LatexToMathML(fancy_error=False)


def mathml(latex: str, display: bool) -> str:
    """Return the MathML Core of a formula in LaTeX.

    Args:
        display: whether the formula stands on lines of its own.

    Raises:
        SphinxError: the formula cannot be set. The message contains it.
    """
    try:
        return _CONVERTER.convert_with_local_state(latex, displaystyle=display)
    except math_core.LatexError as error:
        raise SphinxError(f"the formula {latex!r} cannot be set: {error}") from None


def plain_formula(latex: str) -> str:
    """Return a formula as a line of text, with the signs that a reader sees: `e^(s−m)`, `q₁k₁ + q₂k₂`, `1/√dₖ`.

    Raises:
        SphinxError: as in `mathml`.
    """
    xml = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda entity: html.unescape(entity[0]), mathml(latex, display=False))
    line = _line(ElementTree.fromstring(xml))
    for wrong, right in _REPLACED.items():
        line = line.replace(wrong, right)
    return " ".join(line.split())


def _line(node: ElementTree.Element) -> str:
    parts = [_line(child) for child in node]
    match node.tag:
        case "mspace":
            return " " if node.get("width") else ""
        case "mo" if node.text == ",":
            return ", "
        case "mo" if node.text in _SPACED and node.get("lspace") != "0":
            return f" {node.text} "
        case "msqrt":
            return f"√{_group(''.join(parts))}"
        case "mfrac":
            return "/".join(map(_group, parts))
        case "msub" | "munder":
            return parts[0] + _script(parts[1], "_", _LOWERED)
        case "msup":
            return parts[0] + _script(parts[1], "^", _RAISED)
        case "msubsup" | "munderover":
            return parts[0] + _script(parts[1], "_", _LOWERED) + _script(parts[2], "^", _RAISED)
        case "mtr":
            return " ".join(parts)
        case "mtable":
            return "; ".join(parts)
    return "".join(parts) or node.text or ""


def _script(text: str, mark: str, signs: dict[str, str]) -> str:
    """Return a script in signs that are raised or lowered; behind its mark if it is a word, or has no such signs."""
    close = text.replace(" ", "")
    word = re.search(r"[a-z]{3}", text)
    return mark + _group(close) if word or set(close) - signs.keys() else "".join(signs[sign] for sign in close)


def _group(text: str) -> str:
    """Return a text in brackets, unless it is a word or a number."""
    return text if re.fullmatch(r"[\w.√∞⊤′]*|\(.*\)", text) else f"({text})"


class KeepPunctuation(SphinxTransform):
    """Put a formula and the punctuation that touches it into one span, so that no line begins with a full stop."""

    default_priority = 800  # after quotation marks have got their forms

    def apply(self, **_: Any) -> None:
        for formula in list(self.document.findall(nodes.math)):
            at = formula.parent.index(formula)
            before, behind = formula.parent[max(0, at - 1) : at], formula.parent[at + 1 : at + 2]
            pieces = [*_take_touching(_BEFORE, before), formula.deepcopy(), *_take_touching(_BEHIND, behind)]
            if len(pieces) > 1:
                formula.replace_self(nodes.inline("", "", *pieces, classes=["course-kept"]))


def _take_touching(touching: re.Pattern[str], beside: list[nodes.Node]) -> list[nodes.Text]:
    """Remove from the text beside a formula the part that touches it, and return that part."""
    match = touching.search(beside[0]) if beside and isinstance(beside[0], nodes.Text) else None
    if not match:
        return []
    parent = beside[0].parent
    at = next(at for at, child in enumerate(parent) if child is beside[0])  # another text may say the same
    parent[at] = nodes.Text(match.string[: match.start()] + match.string[match.end() :])
    return [nodes.Text(match[0])]


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up this Sphinx extension; Sphinx calls this function."""
    app.add_transform(KeepPunctuation)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def formula(latex: str, display: bool) -> str:
    """Return the HTML of a formula, in an element that can scroll by itself. Raises SphinxError as `mathml` does."""
    tag = "div" if display else "span"
    return f'<{tag} class="formula">{mathml(latex, display)}</{tag}>'


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(formula(node.astext(), display=False))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    ids = f' id="{html.escape(node["ids"][0])}"' if node["ids"] else ""
    self.body.append(f'<div class="formula"{ids}>{mathml(node.astext(), display=True)}</div>\n')
    raise nodes.SkipNode
