"""The drawings of day 7's parts on budgets and speculation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = [(palette.QUERY, "-", "o"), ("#117733", "--", "^"), (palette.INK, ":", "s")]


def trade(rows: Sequence[tuple[str, float, float]]) -> Figure:
    """Throughput against the p95 of the gap, a point for each (budget, tokens a second, seconds)."""
    if not rows:
        raise ValueError("rows is empty: give at least one budget")
    fig = new_figure(560, 330)
    ax = fig.add_subplot()
    ax.plot([gap * 1e3 for _, _, gap in rows], [rate for _, rate, _ in rows], color=palette.QUERY, marker="o")
    for budget, rate, gap in rows:
        ax.annotate(budget, (gap * 1e3, rate), xytext=(5, -12), textcoords="offset points", color=palette.INK)
    ax.set_xlabel("p95 of the gap, ms")
    ax.set_ylabel("tokens a second")
    ax.margins(0.12)
    fig.tight_layout()
    told = "; ".join(f"budget {budget}: {rate:.0f} tokens a second, {gap * 1e3:.0f} ms" for budget, rate, gap in rows)
    return described(fig, f"Tokens a second against the p95 of the gap. {told}.")


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
