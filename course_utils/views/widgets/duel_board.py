"""What a learner's test caught, what got away, and what it wrongly condemned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 12  # tiles a row
TILE = 44  # the size of a tile in the picture, in pixels
STEP = 54  # from one tile to the next


class DuelBoard(CourseWidget):
    """A tile for each implementation that a test was tried on; a tile that is chosen tells what there is to know.

    tiles: list of {"right": bool, "held": bool, "name": str, "message": str, "hints": [str, …]}; `held` says whether
    the test is right about it; `message` is shown if it was caught or condemned, the hints, one at a time, if it got
    away. Raises ValueError when a tile lacks one of these or there is none.
    """

    plays, minutes = False, 0  # a check shows it, and no lesson

    _esm = script("duel_board.js")
    _css = style("duel_board.css")

    _tiles: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _said = traitlets.Unicode().tag(sync=True)

    def __init__(self, tiles: Sequence[dict]):
        tiles = [_verify_tile(number, tile) for number, tile in enumerate(tiles, 1)]
        if not tiles:
            raise ValueError("tiles is empty: give one for each implementation")
        for right in (True, False):
            for number, tile in enumerate((tile for tile in tiles if tile["right"] == right), 1):
                tile["number"] = number
        super().__init__(_tiles=tiles, _said=_summarise(tiles))

    def as_text(self) -> str:
        return self._said

    def alt(self) -> str:
        return f"Board of a test. {self._said}"

    def figure(self) -> Figure:
        groups = [[tile for tile in self._tiles if tile["right"] == right] for right in (True, False)]
        rows = [-(-len(group) // COLUMNS) for group in groups]
        width, height = 16 + COLUMNS * STEP, 40 + 34 * 2 + STEP * sum(rows)
        fig = new_figure(width, height)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        y = 10
        for group, title in zip(groups, ("Right implementations", "Wrong implementations"), strict=True):
            ax.text(12, y + 10, title, fontweight="bold", va="center")
            for i, tile in enumerate(group):
                self._draw(ax, tile, 12 + i % COLUMNS * STEP, y + 26 + i // COLUMNS * STEP)
            y += 34 + STEP * -(-len(group) // COLUMNS)
        ax.text(12, y + 14, self._said, va="center")
        return fig

    def _draw(self, ax, tile, x, y):
        from matplotlib.patches import Rectangle

        colour = {
            (True, True): palette.VALUE,
            (True, False): palette.KEY,
            (False, True): palette.QUERY,
            (False, False): palette.INK,
        }[tile["right"], tile["held"]]
        filled = tile["held"] or tile["right"]
        style = "solid" if tile["held"] else "dashed"
        ax.add_patch(
            Rectangle((x, y), TILE, TILE, facecolor=colour if filled else "none", edgecolor=colour,
                linestyle=style, linewidth=1.5)
        )  # fmt: skip
        ink = palette.ink_on(colour) if filled else palette.INK
        mark = {(True, True): "kept", (True, False): "lost", (False, True): "caught", (False, False): "?"}
        ax.text(x + TILE / 2, y + 15, str(tile["number"]), color=ink, ha="center", va="center")
        label = mark[tile["right"], tile["held"]]
        ax.text(x + TILE / 2, y + 31, label, fontsize=10, color=ink, ha="center", va="center")


def _verify_tile(number: int, tile: Any) -> dict[str, Any]:
    where = f"tile {number}"
    if not isinstance(tile, dict):
        raise ValueError(f'{where} is no dict: give {{"right": …, "held": …, "name": …, "message": …, "hints": […]}}')
    for key, kind in (("right", bool), ("held", bool), ("name", str), ("message", str), ("hints", list)):
        if not isinstance(tile.get(key), kind):
            raise ValueError(f'{where}: "{key}" has to be a {kind.__name__}')
    away = not tile["right"] and not tile["held"]  # nothing is shown of it but hints
    texts = {"name": "", "message": ""} if away else {"name": tile["name"], "message": tile["message"]}
    return {"right": tile["right"], "held": tile["held"], **texts, "hints": list(tile["hints"]) if away else []}


def _summarise(tiles: Sequence[dict]) -> str:
    right = [tile["held"] for tile in tiles if tile["right"]]
    wrong = [tile["held"] for tile in tiles if not tile["right"]]
    summary = f"{sum(wrong)} of {len(wrong)} wrong ones caught, {sum(right)} of {len(right)} right ones kept."
    return summary + ("" if all(right) else " As long as a right one is rejected, nothing counts.")
