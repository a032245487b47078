"""The drawings of day 7's parts on budgets, speculation and more machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import NullLocator

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = [(palette.QUERY, "-", "o"), ("#117733", "--", "^"), (palette.INK, ":", "s")]
_BARS = [palette.WEIGHT, "#C6DBEF", palette.WRONG]


def gaps(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str]) -> Figure:
    """What is told of the gaps, a line for each name, over the budgets: rows of (budget, seconds for each name)."""
    if not rows or not 1 <= len(names) <= len(_STYLES):
        raise ValueError(f"{len(rows)} budgets and {len(names)} names: give at least one and 1 to {len(_STYLES)}")
    fig = new_figure(560, 330)
    ax = fig.add_subplot()
    lines = {name: [seconds[i] * 1e3 for _, seconds in rows] for i, name in enumerate(names)}
    for (name, values), (colour, dashes, mark) in zip(lines.items(), _STYLES, strict=False):
        ax.plot(range(len(rows)), values, color=colour, linestyle=dashes, marker=mark, label=name)
    ax.set_xticks(range(len(rows)), [budget for budget, _ in rows])
    _milliseconds(ax, [value for values in lines.values() for value in values])
    ax.set_xlabel("budget, tokens of a step")
    ax.set_ylabel("a gap, ms")
    ax.legend(frameon=False)
    fig.tight_layout()
    told = "; ".join(
        f"{name}: " + ", ".join(f"{value:.0f} at {budget}" for value, (budget, _) in zip(values, rows, strict=True))
        for name, values in lines.items()
    )
    return described(fig, f"The gap between two tokens in milliseconds, over the budget. {told}.")


def laws(lines: Mapping[str, Sequence[float]]) -> Figure:
    """Probabilities of a few tokens side by side: a group for each token, a bar for each name, at most three."""
    if not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} laws: give 1 to {len(_STYLES)}")
    fig = new_figure(560, 300)
    ax = fig.add_subplot()
    width = 0.8 / len(lines)
    for i, ((name, law), colour) in enumerate(zip(lines.items(), _BARS, strict=False)):
        places = [token + (i - (len(lines) - 1) / 2) * width for token in range(len(law))]
        ax.bar(places, law, width=width * 0.92, color=colour, edgecolor=palette.INK, linewidth=0.6, label=name)
    ax.set_xticks(range(max(map(len, lines.values()))))
    ax.set_xlabel("token")
    ax.set_ylabel("probability")
    ax.legend(frameon=False)
    fig.tight_layout()
    told = "; ".join(f"{name}: {', '.join(f'{each:.2f}' for each in law)}" for name, law in lines.items())
    return described(fig, f"How probable each token is. {told}.")


def moving(lines: Mapping[str, float], links: Mapping[str, float], step: float) -> Figure:
    """Milliseconds to send bytes: a line for each thing that moves (bytes), over links (bytes a second).

    step: seconds of a decode step, drawn as a level.
    """
    if not links or not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} lines and {len(links)} links: give 1 to {len(_STYLES)} and at least one")
    fig = new_figure(640, 340)
    ax = fig.add_subplot()
    times = {name: [n_bytes / rate * 1e3 for rate in links.values()] for name, n_bytes in lines.items()}
    for (name, values), (colour, dashes, mark) in zip(times.items(), _STYLES, strict=False):
        ax.plot(range(len(links)), values, color=colour, linestyle=dashes, marker=mark, label=name)
    ax.axhline(step * 1e3, color=palette.FAINT)
    ax.annotate("a decode step", (0, step * 1e3), xytext=(0, 4), textcoords="offset points", color=palette.INK)
    ax.set_xticks(range(len(links)), list(links))
    _milliseconds(ax, [value for values in times.values() for value in values])
    ax.set_ylabel("ms to send")
    ax.legend(frameon=False, fontsize=9)
    fig.tight_layout()
    told = "; ".join(
        f"{name}: " + ", ".join(f"{value:.3g} over {link}" for value, link in zip(values, links, strict=True))
        for name, values in times.items()
    )
    return described(fig, f"Milliseconds to send, beside a decode step of {step * 1e3:.0f} ms. {told}.")


def gains(batches: Sequence[int], lines: Mapping[str, Sequence[float]]) -> Figure:
    """How many times as fast speculation is, a line for each name, against the requests of a step."""
    if not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} lines: give 1 to {len(_STYLES)}")
    fig = new_figure(560, 330)
    ax = fig.add_subplot()
    for (name, values), (colour, dashes, mark) in zip(lines.items(), _STYLES, strict=False):
        ax.plot(batches, values, color=colour, linestyle=dashes, marker=mark, label=name)
    ax.axhline(1, color=palette.FAINT)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(batches), [str(batch) for batch in batches])
    ax.set_xlabel("requests in a step")
    ax.set_ylabel("times as fast")
    ax.legend(frameon=False)
    fig.tight_layout()
    told = "; ".join(f"{name}: from {values[0]:.2f} to {values[-1]:.2f}" for name, values in lines.items())
    return described(fig, f"Gain by speculation for {batches[0]} to {batches[-1]} requests in a step. {told}.")


def _milliseconds(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis with ticks that are written out, at 1, 3, 10, 30 … as far as the values go."""
    ax.set_yscale("log")
    ticks = [tick for power in range(-3, 5) for tick in (10.0**power, 3 * 10.0**power)]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(min(values) / 1.5, max(values) * 1.8)
