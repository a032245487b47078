"""Tables with one line per layer and one column per head."""

from __future__ import annotations

from collections.abc import Iterable

from course_utils.views.shared.number_text import short


def head_name(layer: int, head: int) -> str:
    """Return the name of a head, as `headName` of heads.js gives it."""
    return f"layer {layer}, head {head}"


def table_of_heads(values: Iterable[Iterable[float | str]]) -> list[str]:
    """Return the lines of a table of numbers or words, with one line per layer and one column per head."""
    texts = [[value if isinstance(value, str) else short(value) for value in row] for row in values]
    width = max(len(f"head {len(texts[0]) - 1}"), *(len(text) for row in texts for text in row))
    side = len(f"layer {len(texts) - 1}")
    lines = [" " * side + "".join(f"  {f'head {head}':>{width}}" for head in range(len(texts[0])))]
    for layer, row in enumerate(texts):
        lines.append(f"{f'layer {layer}':<{side}}" + "".join(f"  {text:>{width}}" for text in row))
    return lines
