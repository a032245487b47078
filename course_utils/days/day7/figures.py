"""The drawings of day 7: what a batch costs, the knee, empty slots, hits; then budgets, speculation, more machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import NullLocator

from course_utils.days.shared.roofline_figure import roofline as roofline
from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from course_utils.serving.latency import Mean

_SIZE = (680, 290)
_STYLES = [(palette.QUERY, "-", "o"), (palette.GREEN, "--", "^"), (palette.INK, ":", "s")]
_BARS = [palette.WEIGHT, palette.INK, palette.WRONG]


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
        ax.set_xticks(list(counts), [str(count) for count in counts])
        ax.set_xlabel("requests in a step")
    fig.tight_layout()
    return described(
        fig,
        f"From {counts[0]} to {counts[-1]} requests a step grows from {1e3 * seconds[0]:.1f} to "
        f"{1e3 * seconds[-1]:.1f} ms, and the tokens a second from {rates[0]:.0f} to {rates[-1]:.0f}.",
        f"{counts[-1] / counts[0]:.0f} times as many requests make a step only {seconds[-1] / seconds[0]:.1f} times as "
        f"long, so the tokens a second become {rates[-1] / rates[0]:.0f} times as many.",
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
        ax.axvline(bears, color=palette.INK, linestyle="--")
        ax.set_xlabel("requests a second")
        ax.set_ylim(0)
    left.set_ylabel("p95 of TTFT, s")
    right.set_ylabel("goodput, requests a second")
    left.text(bears, 0.95, "at most ", ha="right", va="top", transform=left.get_xaxis_transform(),
        color=palette.INK)  # fmt: skip
    fig.tight_layout()
    best = max(zip(rates, waits, goodputs, strict=True), key=lambda each: each[2].mean)
    points = ", ".join(
        f"{rate:g}: {wait.mean:.2f} s and {good.mean:.1f}"
        for rate, wait, good in zip(rates, waits, goodputs, strict=True)
    )
    return described(
        fig,
        f"The p95 of the time to the first token, and goodput, at so many requests a second: {points}. "
        f"A dashed line at {bears:.1f}, the most that is borne.",
        f"Goodput is highest at {best[0]:g} requests a second, where the p95 has grown from {waits[0].mean:.2f} to "
        f"{best[1].mean:.2f} s; what comes on top of that only waits.",
    )


def waste(sizes: Sequence[int], shares: Sequence[float], reserved: float) -> Figure:
    """Draw the share of slots that stay empty in blocks of so many slots, beside that of a reservation, 0 to 1."""
    _as_many(sizes, shares)
    fig = new_figure(560, 290)
    ax = fig.add_subplot()
    names = [*map(str, sizes), "reserved"]
    colours = [palette.VALUE] * len(sizes) + [palette.WRONG]
    bars = ax.bar(names, [100 * each for each in (*shares, reserved)], color=colours)
    ax.bar_label(bars, fmt="%.1f")
    ax.set_ylim(0, 100)
    ax.set_xlabel("slots of a block")
    ax.set_ylabel("% of the slots empty")
    fig.tight_layout()
    points = ", ".join(f"{size}: {share:.1%}" for size, share in zip(sizes, shares, strict=True))
    return described(
        fig,
        f"Empty slots in blocks of so many slots: {points}. Reserved for the longest: {reserved:.1%}.",
        "Only the last block of a text has empty slots, so the share grows with the size of a block, to "
        f"{shares[-1]:.0%} at {sizes[-1]:,}; a reservation leaves {reserved:.0%} empty.",
    )


def hit_rates(kinds: Mapping[str, Sequence[float]]) -> Figure:
    """Hit rates, 0 to 1, of a cache of blocks and of a radix tree, for each kind of traffic."""
    if not kinds:
        raise ValueError("kinds is empty: give at least one kind of traffic")
    fig = new_figure(620, 290)
    ax = fig.add_subplot()
    for side, (name, colour, hatch) in enumerate((("blocks", palette.QUERY, ""), ("tree", palette.VALUE, "//"))):
        places = [place + 0.38 * (side - 0.5) for place in range(len(kinds))]
        bars = ax.bar(places, [100 * rates[side] for rates in kinds.values()], 0.36, color=colour, hatch=hatch,
            edgecolor=palette.ink_on(colour), linewidth=0, label=name)  # fmt: skip
        ax.bar_label(bars, fmt="%.0f")
    ax.set_xticks(range(len(kinds)), list(kinds))
    ax.set_ylabel("% of prompt tokens found")
    ax.set_ylim(0, 100)
    ax.legend()
    fig.tight_layout()
    points = ", ".join(f"{kind} {blocks:.1%} and {tree:.1%}" for kind, (blocks, tree) in kinds.items())
    most = max(tree - blocks for blocks, tree in kinds.values())
    return described(
        fig,
        f"Hit rates of blocks and of a radix tree: {points}.",
        f"The tree finds at most {100 * most:.1f} points more, because blocks miss only what fills no whole block.",
    )


def _as_many(places: Sequence[float], values: Sequence[object]) -> None:
    if not places or len(places) != len(values):
        raise ValueError(f"{len(places)} places and {len(values)} values: give one of each, at least one")


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
    fig.subplots_adjust(left=0.11, right=0.85, top=0.96, bottom=0.17)
    name_lines(ax)
    points = "; ".join(
        f"{name}: " + ", ".join(f"{value:.0f} at {budget}" for value, (budget, _) in zip(values, rows, strict=True))
        for name, values in lines.items()
    )
    grown = listed(f"{values[-1] / values[0]:.1f} times as long ({name})" for name, values in lines.items())
    return described(
        fig,
        f"The gap between two tokens in milliseconds, over the budget. {points}.",
        f"From the left end to the right gaps become {grown}: a budget shortens the rare ones most.",
    )


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
    ax.legend()
    fig.tight_layout()
    points = "; ".join(f"{name}: {', '.join(f'{each:.2f}' for each in law)}" for name, law in lines.items())
    (target, p), *others = lines.items()
    off = [f"{max(abs(a - b) for a, b in zip(law, p, strict=True)):.3f} ({name})" for name, law in others]
    caption = f"Counting tells the rules apart: a bar is off that of {target} by up to {listed(off)}." if off else ""
    return described(fig, f"How probable each token is. {points}.", caption)


def moving(lines: Mapping[str, float], links: Mapping[str, float], step: float) -> Figure:
    """Milliseconds to send bytes: a line for each thing that moves (bytes), over links (bytes a second).

    step: seconds of a decode step, drawn as a level.
    """
    if not links or not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} lines and {len(links)} links: give 1 to {len(_STYLES)} and at least one")
    fig = new_figure(720, 340)
    ax = fig.add_subplot()
    times = {name: [n_bytes / rate * 1e3 for rate in links.values()] for name, n_bytes in lines.items()}
    for (name, values), (colour, dashes, mark) in zip(times.items(), _STYLES, strict=False):
        ax.plot(range(len(links)), values, color=colour, linestyle=dashes, marker=mark, label=name)
    ax.axhline(step * 1e3, color=palette.INK)
    ax.annotate("a decode step", (len(links) - 1, step * 1e3), (0, 4), textcoords="offset points", ha="right")
    ax.set_xticks(range(len(links)), list(links))
    _milliseconds(ax, [value for values in times.values() for value in values])
    ax.set_ylabel("ms to send")
    fig.subplots_adjust(left=0.11, right=0.65, top=0.96, bottom=0.17)
    name_lines(ax)
    points = "; ".join(
        f"{name}: " + ", ".join(f"{value:.3g} over {link}" for value, link in zip(values, links, strict=True))
        for name, values in times.items()
    )
    over = {name: [link for link, ms in zip(links, values, strict=True) if ms > step * 1e3]
            for name, values in times.items()}  # fmt: skip
    slow = [f"“{name}” over {listed(links_over)}" for name, links_over in over.items() if links_over]
    return described(
        fig,
        f"Milliseconds to send, beside a decode step of {step * 1e3:.0f} ms. {points}.",
        f"What lies above the line takes longer than a step: {'; '.join(slow) or 'nothing here'}.",
    )


def gains(batches: Sequence[int], lines: Mapping[str, Sequence[float]]) -> Figure:
    """Draw how many times as fast speculation is, a line for each name, against the requests of a step."""
    if not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} lines: give 1 to {len(_STYLES)}")
    fig = new_figure(640, 330)
    ax = fig.add_subplot()
    for (name, values), (colour, dashes, mark) in zip(lines.items(), _STYLES, strict=False):
        ax.plot(batches, values, color=colour, linestyle=dashes, marker=mark, label=name)
    ax.axhline(1, color=palette.INK)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(batches), [str(batch) for batch in batches])
    ax.set_xlabel("requests in a step")
    ax.set_ylabel("times as fast")
    fig.subplots_adjust(left=0.11, right=0.72, top=0.96, bottom=0.17)
    name_lines(ax)
    points = "; ".join(f"{name}: from {values[0]:.2f} to {values[-1]:.2f}" for name, values in lines.items())
    pays = {name: max((n for n, times in zip(batches, values, strict=True) if times > 1), default=0)
            for name, values in lines.items()}  # fmt: skip
    return described(
        fig,
        f"Gain by speculation for {batches[0]} to {batches[-1]} requests in a step. {points}.",
        "Below the line at 1 drafts cost more than they bring; the largest batch above it is "
        + listed(f"{most} ({name})" for name, most in pays.items())
        + ".",
    )


def _milliseconds(ax: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis with ticks that are written out, at 1, 3, 10, 30 … as far as the values go."""
    ax.set_yscale("log")
    ticks = [tick for power in range(-3, 5) for tick in (10.0**power, 3 * 10.0**power)]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(min(values) / 1.5, max(values) * 1.8)
