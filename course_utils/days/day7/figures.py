"""The drawings of day 7's first half: what a batch costs, the knee, empty slots, and hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.serving.latency import Mean

_SIZE = (680, 290)


def batches(counts: Sequence[int], seconds: Sequence[float]) -> Figure:
    """Seconds of a step, left, and tokens a second, right, for so many requests in it."""
    _as_many(counts, seconds)
    fig = new_figure(*_SIZE)
    left, right = fig.subplots(1, 2)
    rates = [count / each for count, each in zip(counts, seconds, strict=True)]
    left.plot(counts, [1e3 * each for each in seconds], color=palette.QUERY, marker="o")
    left.set_ylabel("ms a step")
    right.plot(counts, rates, color=palette.VALUE, marker="s")
    right.set_ylabel("tokens a second")
    for ax in (left, right):
        ax.set_ylim(0)
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(counts), [str(count) for count in counts], fontsize=8)
        ax.set_xlabel("requests in a step")
    fig.tight_layout()
    return described(
        fig,
        f"From {counts[0]} to {counts[-1]} requests a step grows from {1e3 * seconds[0]:.1f} to "
        f"{1e3 * seconds[-1]:.1f} ms, and the tokens a second from {rates[0]:.0f} to {rates[-1]:.0f}.",
    )


def knee(rates: Sequence[float], waits: Sequence[Mean], goodputs: Sequence[Mean], bears: float) -> Figure:
    """The p95 of TTFT in seconds, left, and goodput, right, at rates of requests a second; bears: what is the most."""
    _as_many(rates, waits)
    _as_many(rates, goodputs)
    fig = new_figure(*_SIZE)
    left, right = fig.subplots(1, 2)
    for ax, means, colour in ((left, waits, palette.QUERY), (right, goodputs, palette.VALUE)):
        ax.errorbar(rates, [each.mean for each in means], [each.error for each in means], color=colour, marker="o",
            capsize=3)  # fmt: skip
        ax.axvline(bears, color=palette.FAINT, linestyle="--")
        ax.set_xlabel("requests a second")
        ax.set_ylim(0)
    left.set_ylabel("p95 of TTFT, s")
    right.set_ylabel("goodput, requests a second")
    left.text(bears, 0.95, "at most ", ha="right", va="top", transform=left.get_xaxis_transform(),
        color=palette.FAINT, fontsize=8)  # fmt: skip
    fig.tight_layout()
    told = ", ".join(
        f"{rate:g}: {wait.mean:.2f} s and {good.mean:.1f}"
        for rate, wait, good in zip(rates, waits, goodputs, strict=True)
    )
    return described(
        fig,
        f"The p95 of the time to the first token, and goodput, at so many requests a second: {told}. "
        f"A dashed line at {bears:.1f}, the most that is borne.",
    )


def waste(sizes: Sequence[int], shares: Sequence[float], reserved: float) -> Figure:
    """The share of slots that stay empty in blocks of so many slots, beside that of a reservation, 0 to 1."""
    _as_many(sizes, shares)
    fig = new_figure(560, 290)
    ax = fig.add_subplot()
    names = [*map(str, sizes), "reserved"]
    colours = [palette.VALUE] * len(sizes) + [palette.WRONG]
    bars = ax.bar(names, [100 * each for each in (*shares, reserved)], color=colours)
    ax.bar_label(bars, fmt="%.1f", fontsize=8, color=palette.INK)
    ax.set_ylim(0, 100)
    ax.set_xlabel("slots of a block")
    ax.set_ylabel("% of the slots empty")
    fig.tight_layout()
    told = ", ".join(f"{size}: {share:.1%}" for size, share in zip(sizes, shares, strict=True))
    return described(fig, f"Empty slots in blocks of so many slots: {told}. Reserved for the longest: {reserved:.1%}.")


def hit_rates(kinds: Mapping[str, Sequence[float]]) -> Figure:
    """Hit rates, 0 to 1, of a cache of blocks and of a radix tree, for each kind of traffic."""
    if not kinds:
        raise ValueError("kinds is empty: give at least one kind of traffic")
    fig = new_figure(620, 290)
    ax = fig.add_subplot()
    for side, (name, colour, hatch) in enumerate((("blocks", palette.QUERY, ""), ("tree", palette.VALUE, "//"))):
        places = [place + 0.38 * (side - 0.5) for place in range(len(kinds))]
        bars = ax.bar(places, [100 * rates[side] for rates in kinds.values()], 0.36, color=colour, hatch=hatch,
            edgecolor="white", label=name)  # fmt: skip
        ax.bar_label(bars, fmt="%.0f", fontsize=8, color=palette.INK)
    ax.set_xticks(range(len(kinds)), list(kinds))
    ax.set_ylabel("% of prompt tokens found")
    ax.set_ylim(0, 100)
    ax.legend(frameon=False)
    fig.tight_layout()
    told = ", ".join(f"{kind} {blocks:.1%} and {tree:.1%}" for kind, (blocks, tree) in kinds.items())
    return described(fig, f"Hit rates of blocks and of a radix tree: {told}.")


def _as_many(places: Sequence[float], values: Sequence[object]) -> None:
    if not places or len(places) != len(values):
        raise ValueError(f"{len(places)} places and {len(values)} values: give one of each, at least one")
