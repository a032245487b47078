"""A timeline of a scheduler: steps as columns, requests as rows, and above them how full each step was."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.attention.shapes import whole
from course_utils.serving.traffic import Request
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import InGallery, script, style
from course_utils.views.shared.walk import WalkWidget
from course_utils.views.widgets.timeline_run import (
    SETS,
    Arrivals,
    LibraryScheduler,
    describe_cell,
    measures,
    run_scheduler,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 64  # tokens of a budget or a request, and blocks
_MAX_REQUESTS = 8
_LATEST = 50
_MAX_NAME = 10
_LIBRARY = {"continuous": "continuous", "static": "static batches"}
_OWN_ARRIVALS = "as given"


class ServingTimeline(WalkWidget):
    """Steps of a scheduler, one column each: who is prefilled, who decodes, who waits or is preempted, and why.

    scheduler: a class with the interface of the day's exercise, Scheduler(n_blocks, block_size, budget), add(name,
    prompt, new) and step() -> (plan, preempted), made anew for each run; what it does wrong is said below the steps.
    Without one the course's own schedules. requests: up to 8 rows (name, arrival, prompt, new), as `traffic.Request`,
    with arrivals in steps; they come first among the `arrivals` to choose from. block_size: tokens of a block. budget
    (tokens a step) and blocks: 1 to 64; left out, those that go with the arrivals.
    `.step` (steps shown, from 0), `.rule` ("yours", where a scheduler was given, "continuous" or "static"), `.budget`,
    `.blocks` and `.arrivals` can be read and set; a change of the last four begins anew. `.last` is the number of
    steps, `.measures` what those that are shown come to, `.problem` what the scheduler did that ended its run, or "".
    A page without a kernel schedules by itself, but not as somebody's own class does.
    Raises ValueError or TypeError for what cannot be shown.
    """

    in_gallery = InGallery(
        71, "Serve many requests", question="In which steps does the server have room while somebody waits?"
    )

    _SETTINGS = ("rule", "budget", "blocks", "arrivals")

    _esm = script("timeline.js")
    _css = style("player.css", "timeline.css")

    rule = traitlets.Any("continuous", help="who schedules").tag(sync=True)
    budget = traitlets.Any(4, help="tokens that a step may compute").tag(sync=True)
    blocks = traitlets.Any(5, help="blocks of the pool").tag(sync=True)
    arrivals = traitlets.Any("", help="which requests come").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        scheduler: Callable[..., Any] | None = None,
        requests: Iterable[Any] | None = None,
        block_size: int = 2,
        budget: int | None = None,
        blocks: int | None = None,
        title: str = "steps of a scheduler",
    ) -> None:
        if scheduler is not None and not callable(scheduler):
            raise TypeError(f"scheduler is {scheduler!r}: give the class, an object of it is made for each run")
        self._scheduler = scheduler
        self._block_size = _size("block_size", block_size)
        self._sets = dict(SETS)
        if requests is not None:
            self._sets = {_OWN_ARRIVALS: Arrivals(_verify_requests(requests), budget=8, blocks=32), **SETS}
        name, chosen = next(iter(self._sets.items()))
        settings: dict[str, Any] = {
            "rule": "continuous" if scheduler is None else "yours",
            "budget": chosen.budget if budget is None else _size("budget", budget),
            "blocks": chosen.blocks if blocks is None else _size("blocks", blocks),
            "arrivals": name,
        }
        own = {} if scheduler is None else {"yours": str(getattr(scheduler, "__name__", "yours"))[:24]}
        self._rules = {**own, **_LIBRARY}
        sizes = {name: {"budget": each.budget, "blocks": each.blocks} for name, each in self._sets.items()}
        sizes[name] = {"budget": settings["budget"], "blocks": settings["blocks"]}
        layout = {
            "block_size": self._block_size,
            "rules": [list(pair) for pair in self._rules.items()],
            "sets": sizes,
            "budgets": [1, 2, 3, 4, 6, 8, 12, 16],
            "blocks": [2, 3, 4, 5, 6, 8, 12, 16],
        }
        super().__init__(**settings, title=str(title), _layout=layout, _walk=self._walked(**settings))

    @property
    def last(self) -> int:
        """How many steps there are."""
        return len(self._walk["steps"])

    @property
    def problem(self) -> str:
        """What the scheduler did that ended its run, as a sentence, or ""."""
        return str(self._walk["problem"])

    @property
    def measures(self) -> dict[str, Any]:
        """Of the steps shown: "steps", shares of the "budget" and the "blocks" that were used, 0 to 1, and of each
        request the steps from its arrival to its "first" token, with their "mean"; None where nothing is known yet.
        """
        totals = measures(self._walk, self.step, self.budget, self.blocks)
        return {**totals, "first": dict(zip(self._names(), totals["first"], strict=True))}

    def describe(self, step: int, row: int) -> str:
        """Say what the request in a row did in a step, both counted from 0, and why."""
        return describe_cell(self._walk, range(self.last)[step], row)

    @traitlets.validate("rule", "arrivals")
    def _is_known(self, proposal):
        known = self._rules if proposal.trait.name == "rule" else self._sets
        if proposal.value not in known:
            raise ValueError(f"{proposal.trait.name} is {proposal.value!r}: give one of {', '.join(map(repr, known))}")
        return proposal.value

    @traitlets.validate("budget", "blocks")
    def _size_fits(self, proposal):
        return _size(proposal.trait.name, proposal.value)

    def _walked(self, rule, budget, blocks, arrivals):
        static = functools.partial(LibraryScheduler, static=True)
        make = {"yours": self._scheduler, "continuous": LibraryScheduler, "static": static}[rule]
        assert make is not None  # "yours" is a rule only where a scheduler was given
        settings = {"rule": rule, "budget": budget, "blocks": blocks, "arrivals": arrivals}
        return {
            "settings": settings,
            **run_scheduler(make, self._sets[arrivals].requests, blocks, self._block_size, budget),
        }

    def alone_state(self) -> dict[str, Any]:
        return {
            "_alone": {"sets": {name: [each._asdict() for each in one.requests] for name, one in self._sets.items()}}
        }

    # ---- text and picture

    def as_text(self) -> str:
        step = self._pictured()
        steps = self._walk["steps"][:step]
        names = self._names()
        wide = max(3, *(len(_sign(cell)) + 1 for each in steps for cell in each["cells"])) if steps else 3
        room = max(6, *map(len, names))
        rows = [("step", range(1, step + 1)), ("tokens", [each["used"] for each in steps])]
        rows += [("blocks", [each["held"] for each in steps])]
        rows += [(name, [_sign(each["cells"][row]) for each in steps]) for row, name in enumerate(names)]
        lines = [f"{name:<{room}}{''.join(f'{part:>{wide}}' for part in parts)}".rstrip() for name, parts in rows]
        signs = "P prefill and its tokens, D decode, . waits, ! preempted, x refused"
        problem = [self.problem] if self.problem else []
        return "\n".join([self._head(), *lines, signs, self._summary(step), *problem])

    def alt(self) -> str:
        rows = []
        for row, name in enumerate(self._names()):
            did = [each["cells"][row][0] for each in self._walk["steps"][: self._pictured()]]
            rows.append(f"{name}: {', '.join(_runs(did)) or 'not there yet'}.")
        problem = f" {self.problem}" if self.problem else ""
        return f"Timeline, {self._head()}. {' '.join(rows)} {self._summary(self._pictured())}{problem}"

    def figure(self) -> Figure:
        return _draw(self, self._pictured())

    def _pictured(self):
        return self.step or self.last

    def _names(self):
        return [request["name"] for request in self._walk["requests"]]

    def _head(self):
        sizes = f"budget {self.budget} tokens a step, {self.blocks} blocks of {self._block_size} tokens"
        return f"{self._rules[self.rule]}, {self.arrivals}: {sizes}"

    def _summary(self, step):
        totals = measures(self._walk, step, self.budget, self.blocks)
        if not step:
            return "No step."
        waits = [f"{name} {first or '–'}" for name, first in zip(self._names(), totals["first"], strict=True)]
        mean = "" if totals["mean"] is None else f", mean {totals['mean']:.2f}"
        return (
            f"{step} step{'' if step == 1 else 's'}, {totals['budget']:.0%} of the budget and {totals['blocks']:.0%} "
            f"of the blocks used. Steps to the first token: {', '.join(waits)}{mean}."
        )


def _sign(cell):
    did, count = cell[:2]
    return {"prefill": f"P{count}", "decode": "D", "wait": ".", "preempted": "!", "refused": "x"}.get(did, "")


def _runs(did):
    """What was done, each with its steps: "prefill 1", "decode 2–4"."""
    runs: list[list[Any]] = []
    for step, each in enumerate(did, 1):
        if runs and runs[-1][0] == each:
            runs[-1][2] = step
        else:
            runs.append([each, step, step])
    named = {"wait": "waits", "": "not there yet", "finished": "finished"}
    return [
        f"{named.get(each, each)} {first if first == last else f'{first}–{last}'}" for each, first, last in runs
    ]  # fmt: skip


# --- the inputs -----------------------------------------------------------------------------------------------------


def _size(name: str, value: Any) -> int:
    size = whole(name, value)
    if size > _MOST:
        raise ValueError(f"{name} is {size}: give 1 to {_MOST}")
    return size


def _verify_requests(requests: Iterable[Any]) -> list[Request]:
    rows = []
    for row in requests:
        try:
            name, arrival, prompt, new = row
        except (TypeError, ValueError):
            raise ValueError(f"a request is {row!r}: give (name, arrival, prompt, new)") from None
        if not isinstance(name, str) or not 1 <= len(name) <= _MAX_NAME:
            raise ValueError(f"a request is named {name!r}: give a text of 1 to {_MAX_NAME} letters")
        if not isinstance(arrival, (int, float)) or not 0 <= arrival <= _LATEST:
            raise ValueError(f"{name} arrives at {arrival!r}: give a number of steps, 0 to {_LATEST}")
        rows.append(Request(name, float(arrival), _size("prompt", prompt), _size("new", new)))
    if not 1 <= len(rows) <= _MAX_REQUESTS:
        raise ValueError(f"there are {len(rows)} requests: give 1 to {_MAX_REQUESTS}")
    if len({row.name for row in rows}) < len(rows):
        raise ValueError("two requests have one name: give each a name of its own")
    return sorted(rows, key=lambda row: row.arrival)


# --- the picture ----------------------------------------------------------------------------------------------------

_LEFT = 96
_ROW = 30
_TOP = 40
_SHOWN = 40
_LOOKS: dict[str, dict[str, Any]] = {
    "prefill": {"facecolor": palette.QUERY, "edgecolor": palette.QUERY},
    "decode": {"facecolor": palette.VALUE, "edgecolor": palette.VALUE},
    "wait": {"facecolor": "none", "edgecolor": palette.INK, "linestyle": "dashed"},
    "preempted": {"facecolor": "none", "edgecolor": palette.WRONG, "linewidth": 2},
    "refused": {"facecolor": "none", "edgecolor": palette.WRONG, "hatch": "////"},
}


def _draw(timeline: ServingTimeline, step: int) -> Figure:
    # Only the last steps fit: the columns, their number of the first, and their width.
    columns = timeline._walk["steps"][:step][-_SHOWN:]
    first = max(0, step - _SHOWN)
    width = min(34, 640 / max(1, len(columns)))
    # The text below decides how high the picture is.
    names = timeline._names()
    lines = [line for text in (timeline._summary(step), timeline.problem) for line in textwrap.wrap(text, 104)]
    height = _TOP + _ROW * (len(names) + 3) + 40 + 18 * len(lines)
    fig = new_figure(760, height)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 760), ylim=(height, 0))
    ax.axis("off")
    # The title, and a name to the left of each row: three rows for the server, then one a request.
    text: dict[str, Any] = {"va": "center", "parse_math": False}
    ax.text(12, 18, f"{timeline.title}: {timeline._head()}", **(text | {"fontweight": "bold"}))
    for row, name in enumerate(("step", "tokens", "blocks", *names)):
        ax.text(12, _TOP + _ROW * row + 14, name, **(text | {"fontweight": "bold" if row > 2 else "normal"}))
    # A column for each step: its number, how full it was, and what each request did.
    centred = text | {"ha": "center", "fontsize": 11 if width > 20 else 7}
    for place, column in enumerate(columns):
        x = _LEFT + width * place
        ax.text(x + width / 2, _TOP + 14, str(first + place + 1), **centred)
        _draw_gauge(ax, x, _TOP + _ROW, width, column["used"], timeline.budget, centred)
        _draw_gauge(ax, x, _TOP + 2 * _ROW, width, column["held"], timeline.blocks, centred)
        for row, cell in enumerate(column["cells"], 3):
            _draw_cell(ax, x, _TOP + _ROW * row, width, cell, centred)
    # Below them the key and the text.
    y = _TOP + _ROW * (len(names) + 3) + 14
    key = "P: prefill, with its tokens · D: decode · dashed: waits · ↺: preempted · white line: got a token"
    ax.text(12, y, key, **text)
    for place, line in enumerate(lines):
        ax.text(12, y + 22 + 18 * place, line, **text)
    return fig


def _draw_gauge(ax, x, y, width, used, most, centred):
    """A bar as high as the share that was used, with its number: on the bar if that is high enough, else above it."""
    from matplotlib.patches import Rectangle

    high = (_ROW - 6) * min(1, used / most)
    ax.add_patch(Rectangle((x + 1, y + 2), width - 2, _ROW - 6, facecolor=(palette.INK, 0.15), edgecolor="none"))
    ax.add_patch(Rectangle((x + 1, y + _ROW - 4 - high), width - 2, high, facecolor=palette.INK))
    on_the_bar = high > _ROW / 2
    ink = palette.ink_on(palette.INK) if on_the_bar else palette.INK
    middle = y + 14 if on_the_bar else y + (_ROW - 3 - high) / 2
    ax.text(x + width / 2, middle, str(used), **(centred | {"color": ink}))


def _draw_cell(ax, x, y, width, cell, centred):
    """What one request did in one step, with a white line if it got a token."""
    from matplotlib.patches import Rectangle

    did, count, got, _ = cell
    if did not in _LOOKS:
        return
    ax.add_patch(Rectangle((x + 1.5, y + 3), width - 3, _ROW - 8, **_LOOKS[did]))
    if got:
        white = palette.ink_on(palette.QUERY)
        ax.add_patch(Rectangle((x + 3, y + _ROW - 9), width - 6, 3, facecolor=white, edgecolor="none"))
    sign = {"preempted": "↺", "refused": "×", "wait": "·", "decode": "D"}.get(did, f"P{count}")
    ink = palette.ink_on(_LOOKS[did]["facecolor"]) if did in ("prefill", "decode") else palette.INK
    ax.text(x + width / 2, y + 13, sign, **(centred | {"color": ink}))
