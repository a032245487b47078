"""The calls on which an answer with state breaks a promise, one at a time, with what its watch saw."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import starmap
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = 20  # the height of a line of code, in pixels
_SIDE = 330  # the width of the picture beside the code
_WIDE = 760  # the width of all
_MAX_LETTERS = 58  # of a line of code in the picture


class TracePlayer(CourseWidget):
    """Calls on an object, of which the last one breaks a promise: the code, and a picture of what there was.

    trace: {"name": of the class, "made": the line that makes the object, "calls": [{"code": str, "gave": str}, …],
    "pictures": [one before each call], "promise": its name, "said": what went wrong, as the end of a sentence}, as
    `checks.examples.adversary.as_data` makes it. A picture of blocks has "n_blocks", "block_size" and "tables" (blocks
    by sequence), and perhaps "texts" (tokens up to the end of a block, by block), "prompts" and "lengths" (by
    sequence). One of a scheduler has "n_blocks", "block_size", "budget" or "n_slots", and "requests", each with
    "prompt", "new", "computed" and "generated". Of any other nothing is drawn.
    `.step` counts the calls made, from 0, and can be read and set; `.last` is the step of the broken promise.
    Raises ValueError where one of these is missing or is something else.
    """

    in_gallery = InGallery(
        2, "Play what breaks a promise", summary="Step through the calls after which an object breaks a promise."
    )

    _esm = script("trace_player.js")
    _css = style("player.css", "trace_player.css")

    step = traitlets.Int(0, help="how many calls are made").tag(sync=True)
    _trace = traitlets.Dict().tag(sync=True)

    def __init__(self, trace: Mapping[str, Any]):
        super().__init__(_trace=_verify_trace(trace))

    @property
    def last(self) -> int:
        """The step at which the promise is broken, the number of calls."""
        return len(self._trace["calls"])

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value <= self.last:
            raise ValueError(f"step is {proposal.value}: give 0 to {self.last}")
        return proposal.value

    def as_text(self) -> str:
        trace = self._trace
        lines = [self._head(), f"    {self._trace['made']}"]
        for place, call in enumerate(trace["calls"], 1):
            gave = f"  # {call['gave']}" if call["gave"] else ""
            lines.append(f"{'  ✗ ' if place == self.last else '    '}{call['code']}{gave}")
        if before := in_words(trace["pictures"][-1]):
            lines += ["Before the last call:", *(f"    {line}" for line in before)]
        return "\n".join([*lines, self._describe_breach()])

    def alt(self) -> str:
        calls = ", ".join(call["code"] for call in self._trace["calls"])
        before = "; ".join(in_words(self._trace["pictures"][-1]))
        return f"{self._head()}: {calls}. {f'Before the last: {before}. ' if before else ''}{self._describe_breach()}"

    def figure(self) -> Figure:
        trace = self._trace
        code = [trace["made"], *(call["code"] for call in trace["calls"])]
        picture = trace["pictures"][-1]
        verdict_lines = textwrap.wrap(f"✗ {self._describe_breach()}", 104)
        middle = max(_LINE * len(code), _height(picture))
        height = 44 + middle + 16 + 18 * len(verdict_lines) + 10
        fig = new_figure(_WIDE, height)
        ax = fig.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, _WIDE), ylim=(height, 0))
        ax.axis("off")
        text: dict[str, Any] = {"va": "center", "parse_math": False}
        ax.text(12, 18, self._head(), **(text | {"fontsize": 10.5, "fontweight": "bold"}))
        for place, line in enumerate(code):
            y = 48 + _LINE * place
            wrong = place == len(code) - 1
            line = line if len(line) <= _MAX_LETTERS else f"{line[: _MAX_LETTERS - 1]}…"
            look = {"fontweight": "bold"} if wrong else {}
            ax.text(
                12, y, "✗" if wrong else f"{place or ''}", **(text | ({"color": palette.WRONG} | look if wrong else {}))
            )
            ax.text(32, y, line, **(text | look | {"family": "monospace", "fontsize": 10}))
        if _height(picture):
            ax.text(_WIDE - _SIDE, 44, "before the last call", **text)
            _draw(ax, picture, _WIDE - _SIDE, 60)
        for place, line in enumerate(verdict_lines):
            ax.text(12, 44 + middle + 22 + 18 * place, line, **(text | {"fontweight": "bold"}))
        return fig

    def _head(self):
        return f"{self._trace['name']}: {_count_of(self.last, 'call')} to a broken promise"

    def _describe_breach(self):
        return f"Broken promise: “{self._trace['promise']}”. At the last call: {self._trace['said']}."


def in_words(picture: Mapping[str, Any]) -> list[str]:
    """Return what a picture shows, a line for each block, sequence or request; none where there is nothing to draw."""
    if "requests" in picture:
        return [
            f"{_count_of(_blocks_used(picture), 'block')} of {picture['n_blocks']} in use",
            *starmap(_describe_request, picture["requests"].items()),
        ]
    if "tables" not in picture:
        return []
    lines = []
    for block in range(picture["n_blocks"]):
        owners = [name for name, table in picture["tables"].items() if block in table]
        text = picture.get("texts", {}).get(str(block))
        holds = f", holds {_join_tokens(text)}" if text is not None else ""
        lines.append(f"block {block}: {' and '.join(owners) or 'free'}{holds}")
    for name, table in picture["tables"].items():
        lines.append(f"table of {name}: {', '.join(map(str, table)) or 'no block'}{_describe_length(picture, name)}")
    return lines


def _describe_request(name, request):
    total = request["prompt"] + request["generated"]
    computed = f"{request['computed']} of {_count_of(total, 'token')} computed"
    return f"{name}: {computed}, {request['generated']} of {request['new']} generated"


def _describe_length(picture, name):
    if name in picture.get("prompts", {}):
        return f" (for {_join_tokens(picture['prompts'][name])})"
    return f" ({_count_of(picture['lengths'][name], 'token')})" if name in picture.get("lengths", {}) else ""


def _blocks_used(picture):
    return sum(-(-request["computed"] // picture["block_size"]) for request in picture["requests"].values())


def _join_tokens(text):
    return " ".join(map(str, text)) or "nothing"


def _count_of(number, name):
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


# --- the input ------------------------------------------------------------------------------------------------------


def _verify_trace(trace: Any) -> dict[str, Any]:
    if not isinstance(trace, Mapping):
        raise ValueError(f"trace is {type(trace).__name__}: give the dict that checks.examples.adversary.as_data makes")
    for key in ("name", "made", "promise", "said"):
        if not isinstance(trace.get(key), str):
            raise ValueError(f'trace["{key}"] has to be text')
    calls = trace.get("calls")
    pictures = trace.get("pictures")
    if not isinstance(calls, (list, tuple)) or not calls:
        raise ValueError('trace["calls"] has to be a list of at least one call')
    for place, call in enumerate(calls):
        if not (isinstance(call, Mapping) and all(isinstance(call.get(key), str) for key in ("code", "gave"))):
            raise ValueError(f'trace["calls"][{place}] has to be {{"code": …, "gave": …}}, both text')
    if not isinstance(pictures, (list, tuple)) or len(pictures) != len(calls):
        raise ValueError(f'trace["pictures"] has to be a list with one before each of the {len(calls)} calls')
    for place, picture in enumerate(pictures):
        if not isinstance(picture, Mapping):
            raise ValueError(f'trace["pictures"][{place}] has to be a dict')
        limit = "n_slots" if "n_slots" in picture else "budget"
        needs = {"requests": ("n_blocks", "block_size", limit), "tables": ("n_blocks", "block_size")}
        missing = [key for kind, keys in needs.items() if kind in picture for key in keys if key not in picture]
        if missing:
            raise ValueError(f'trace["pictures"][{place}] lacks "{missing[0]}"')
    names = ("name", "made", "promise", "said", "calls", "pictures")
    return {key: _to_lists(trace[key]) for key in names}


def _to_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_lists(inner) for key, inner in value.items()}
    return [_to_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value


# --- the picture ----------------------------------------------------------------------------------------------------


def _height(picture: Mapping[str, Any]) -> float:
    """Pixels that a picture takes."""
    if "requests" in picture:
        return 34 + 26 * len(picture["requests"])
    if "tables" in picture:
        return 100 * -(-picture["n_blocks"] // 4) + 24 + 18 * len(picture["tables"])
    return 0


def _draw(ax: Axes, picture: Mapping[str, Any], x: float, y: float) -> None:
    if "requests" in picture:
        _draw_requests(ax, picture, x, y)
    elif "tables" in picture:
        _draw_blocks(ax, picture, x, y)


def _draw_blocks(ax, picture, left, top):
    from matplotlib.patches import Rectangle

    small = {"va": "center", "parse_math": False, "fontsize": 10}
    for block in range(picture["n_blocks"]):
        x, y = left + block % 4 * 80, top + block // 4 * 100
        owners = [name for name, table in picture["tables"].items() if block in table]
        look: dict[str, Any] = {"edgecolor": palette.QUERY, "facecolor": "none"} if owners else {
            "edgecolor": palette.INK, "facecolor": "none", "linestyle": "dashed"}  # fmt: skip
        ax.add_patch(Rectangle((x, y), 72, 84, linewidth=1.4, **look))
        ax.text(x + 6, y + 13, f"block {block}", **(small | {"fontweight": "bold"}))
        ax.text(x + 6, y + 38, ", ".join(owners) or "free", **small)
        if (text := picture.get("texts", {}).get(str(block))) is not None:
            ax.text(x + 6, y + 64, _shorten(_join_tokens(text), 10), **(small | {"family": "monospace"}))
    y = top + 100 * -(-picture["n_blocks"] // 4) + 4
    for place, (name, table) in enumerate(picture["tables"].items()):
        line = f"{name} → {', '.join(map(str, table))}{_describe_length(picture, name)}"
        ax.text(left, y + 18 * place, _shorten(line, 52), **small)


def _draw_requests(ax, picture, left, top):
    from matplotlib.patches import Rectangle

    small = {"va": "center", "parse_math": False, "fontsize": 10}
    limit = f"{picture['n_slots']} slots" if "n_slots" in picture else f"a budget of {picture['budget']}"
    head = f"{_blocks_used(picture)} of {_count_of(picture['n_blocks'], 'block')} in use, {limit}"
    ax.text(left, top + 6, head, **small)
    for place, (name, request) in enumerate(picture["requests"].items()):
        y = top + 24 + 26 * place
        total = request["prompt"] + request["new"] - 1
        ready = request["prompt"] + request["generated"]
        wide = min(18, 150 / max(1, total))
        ax.text(left, y + 7, name, **(small | {"fontweight": "bold"}))
        for cell in range(total):
            face = palette.QUERY if cell < request["computed"] else "none"
            line = "solid" if cell < ready else "dotted"
            ax.add_patch(
                Rectangle(
                    (left + 16 + cell * wide, y), wide - 2, 14, facecolor=face, edgecolor=palette.QUERY, linestyle=line
                )
            )
        ax.text(left + 24 + total * wide, y + 7, f"{request['generated']} of {request['new']} generated", **small)


def _shorten(text, most):
    return text if len(text) <= most else f"…{text[1 - most :]}"
