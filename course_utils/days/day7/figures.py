"""The drawings of day 7: a shared step, slots, a store of blocks, hits; then limits, budgets, laws and gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator, NullLocator

from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from course_utils.costs.fragmentation import Trace
    from course_utils.serving.costs import Published, SlowerOfTwo
    from course_utils.serving.simulate import Log

_SIZE = (680, 290)
_STYLES = [(palette.QUERY, "-", "o"), (palette.GREEN, "--", "^"), (palette.INK, ":", "s")]
_BARS = [palette.WEIGHT, palette.VALUE, palette.WRONG]


def shared_step(counts: Sequence[int], seconds: Sequence[float], rates: Sequence[float]) -> Figure:
    """Draw what a step takes that serves so many requests, left, and the tokens that come out in a second, right."""
    _as_many(counts, seconds)
    _as_many(counts, rates)
    fig = new_figure(680, 250)
    left, right = fig.subplots(1, 2)
    names = [str(count) for count in counts]
    for ax, values, colour, title, form in (
        (left, [1e3 * each for each in seconds], palette.QUERY, "milliseconds for a step, median", "%.0f"),
        (right, rates, palette.VALUE, "tokens per second, over whole runs", "{:,.0f}"),
    ):
        ax.bar_label(ax.bar(names, values, color=colour), fmt=form)
        ax.set_title(title)
        ax.set_xlabel("texts that grow side by side")
        ax.set_ylim(0, 1.15 * max(values))
        ax.set_yticks([])
    fig.tight_layout()
    points = ", ".join(
        f"{count}: {1e3 * each:.0f} ms and {rate:,.0f}"
        for count, each, rate in zip(counts, seconds, rates, strict=True)
    )
    return described(
        fig,
        f"A step in which so many texts each grow by a token, and the tokens per second: {points}.",
        f"{counts[-1]} texts together wait {seconds[-1] / seconds[0]:.1f} times as long for a token as one alone, "
        f"and get {rates[-1] / rates[0]:.0f} times as many tokens per second, over whole runs, prompts included.",
    )


def slots_in_use(logs: Mapping[str, Log]) -> Figure:
    """Draw how many slots have work in each step, a panel for each log, by its title."""
    fig = new_figure(*_SIZE)
    axes = np.atleast_1d(fig.subplots(1, len(logs), sharey=True))
    last = max(len(log.steps) for log in logs.values())
    for ax, (title, log) in zip(axes, logs.items(), strict=True):
        counts = [len(step.parts) for step in log.steps]
        ax.fill_between(range(len(counts)), 0, log.n_slots, color=palette.INK, alpha=0.25, linewidth=0)
        ax.fill_between(range(len(counts)), 0, counts, step="post", color=palette.QUERY, linewidth=0)
        ax.set(xlim=(0, last), ylim=(0, log.n_slots))
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.set_xlabel("step")
        ax.set_title(f"{title}: {len(counts):,} steps")
    axes[0].set_ylabel("slots with work")
    fig.tight_layout()
    points = "; ".join(
        f"{title}: {log.use:.0%} of the slots over {len(log.steps):,} steps" for title, log in logs.items()
    )
    return described(
        fig,
        f"{len(logs)} panels, how many of the slots have work in each step. {points}.",
        "Grey is a slot that waits for its neighbours. Work is in "
        + listed(f"{log.use:.0%} of the slots ({title})" for title, log in logs.items())
        + ".",
    )


def occupancy(traces: Mapping[str, Trace]) -> Figure:
    """Draw what the places of a store do, step by step: hold a token, are reserved and empty, are free.

    traces: title -> costs.fragmentation.Trace.
    """
    fig = new_figure(720, 280)
    axes = np.atleast_1d(fig.subplots(1, len(traces), sharey=True))
    last = max(len(trace.steps) for trace in traces.values())
    for ax, (title, trace) in zip(axes, traces.items(), strict=True):
        filled = np.array([step.filled for step in trace.steps]) / trace.n_slots
        reserved = np.array([step.reserved for step in trace.steps]) / trace.n_slots
        steps = np.arange(len(trace.steps))
        ax.fill_between(steps, 0, filled, color=palette.QUERY, linewidth=0, label="hold a token")
        ax.fill_between(steps, filled, reserved, color=palette.INK, alpha=0.5, linewidth=0, label="reserved, empty")
        ax.set(xlim=(0, last), ylim=(0, 1.04))
        ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        ax.set_xlabel("step")
        ax.set_title(title)
    axes[0].set_ylabel("share of the places")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="lower center", ncol=2)
    fig.subplots_adjust(left=0.085, right=0.985, top=0.9, bottom=0.34, wspace=0.12)
    sentences = [
        f"{title}: {trace.mean_reserved:.0%} reserved and {trace.mean_filled:.0%} filled while requests wait, done "
        f"after {len(trace.steps)} steps"
        for title, trace in traces.items()
    ]
    return described(
        fig,
        f"{len(traces)} panels, the share of the places over the steps. {'; '.join(sentences)}.",
        "Grey is memory that no other text can use. The more of it there is, the more steps the same requests take: "
        + listed(f"{len(trace.steps):,} with {title}" for title, trace in traces.items())
        + ".",
    )


def hit_rates(kinds: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
    """Hit rates, 0 to 1: a group of bars for each kind of traffic, with one for each of two names."""
    if not kinds:
        raise ValueError("kinds is empty: give at least one kind of traffic")
    fig = new_figure(620, 290)
    ax = fig.add_subplot()
    for side, (name, colour, hatch) in enumerate(zip(names, (palette.QUERY, palette.WRONG), ("", "//"), strict=True)):
        places = [place + 0.38 * (side - 0.5) for place in range(len(kinds))]
        bars = ax.bar(places, [100 * rates[side] for rates in kinds.values()], 0.36, color=colour, hatch=hatch,
            edgecolor=palette.ink_on(colour), linewidth=0, label=name)  # fmt: skip
        ax.bar_label(bars, fmt="%.0f")
    ax.set_xticks(range(len(kinds)), list(kinds))
    ax.set_ylabel("% of prompt tokens found")
    ax.set_ylim(0, 100)
    ax.legend()
    fig.tight_layout()
    points = ", ".join(f"{kind} {first:.1%} and {second:.1%}" for kind, (first, second) in kinds.items())
    best = max(kinds, key=lambda kind: kinds[kind][0])
    return described(
        fig,
        f"Hit rates, {names[0]} and {names[1]}: {points}.",
        f"The highest hit rate is that of “{best}”: {kinds[best][0]:.0%} ({names[0]}) and {kinds[best][1]:.0%} "
        f"({names[1]}).",
    )


def limits(cost: SlowerOfTwo, published: Sequence[Published], contexts: Sequence[int] = (0, 500)) -> Figure:
    """Draw the two times that a step waits for, over its tokens, and the measurements that they are fitted to.

    contexts: cached tokens that each of the tokens reads, with a line of memory for each.
    """
    if not 1 <= len(contexts) <= len(_STYLES) - 1:
        raise ValueError(f"{len(contexts)} contexts: give 1 to {len(_STYLES) - 1}")
    fig = new_figure(720, 400)
    ax = fig.add_subplot()
    tokens = np.geomspace(1, 2048, 100)
    for T, (colour, dashes, _) in zip(contexts, _STYLES, strict=False):
        memory = [1e3 * cost.memory(n, n * T) for n in tokens]
        ax.plot(tokens, memory, color=colour, linestyle=dashes, label=f"memory, {T} cached each")
    ax.plot(tokens, [1e3 * cost.per_token * n for n in tokens], color=palette.WRONG, linewidth=2.5, label="arithmetic")
    decodes = [row for row in published if "decode" in row.what]
    prompts = [row for row in published if "decode" not in row.what]
    caches = sorted({row.context // row.tokens for row in decodes})
    marks = {
        f"measured, {cached:,} cached each": ("o", palette.colormap()((i + 1) / len(caches)), rows)
        for i, cached in enumerate(caches)
        if (rows := [row for row in decodes if row.context // row.tokens == cached])
    }
    for name, (mark, face, rows) in (marks | {"measured prompt": ("s", "none", prompts)}).items():
        ax.scatter([row.tokens for row in rows], [1e3 * row.seconds for row in rows], marker=mark, s=30,
            color=face, edgecolors=palette.INK, label=name, zorder=3)  # fmt: skip
    hidden = cost.hidden()
    ax.axvline(hidden, color=palette.INK, linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", xlim=(0.85, 2500), ylim=(4, 400))
    ticks = [1, 4, 16, 64, 256, 1024]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_yticks([5, 10, 30, 100, 300], ["5", "10", "30", "100", "300"])
    ax.minorticks_off()
    ax.set_xlabel("tokens that a step computes")
    ax.set_ylabel("ms for a step")
    fig.subplots_adjust(left=0.09, right=0.66, top=0.96, bottom=0.14)
    fig.legend(*ax.get_legend_handles_labels(), loc="center left", bbox_to_anchor=(0.67, 0.5), fontsize=9.5)
    return described(
        fig,
        f"Milliseconds of a step over its tokens, both axes logarithmic. With empty caches memory takes from "
        f"{1e3 * cost.memory(1):.1f} ms at 1 token to {1e3 * cost.memory(2048):.0f} at 2,048, and arithmetic from "
        f"{1e3 * cost.per_token:.2f} to {2048e3 * cost.per_token:.0f}; they cross at {hidden:.0f} tokens. "
        f"{len(decodes)} measured decode steps lie near the lines of memory, higher where caches are longer, from "
        f"{caches[0]:,} to {caches[-1]:,} cached tokens each; the longest of {len(prompts)} prompts lies at that of "
        "arithmetic.",
        f"A step waits for memory or arithmetic, whichever line is higher. With empty caches that is memory up to "
        f"{hidden:.0f} tokens (dotted); longer caches move the crossing to the right or do away with it.",
    )


def budgets(
    names: Sequence[str],
    gaps: Mapping[str, Sequence[float]],
    kept: Mapping[str, Sequence[float]],
    most: float,
) -> Figure:
    """Draw gaps in seconds, marks for each name, left, and shares that kept a promise, right, over the budgets.

    most: seconds of the longest gap that the promise allows, a line on the left.
    """
    if not 1 <= len(kept) <= 2:
        raise ValueError(f"{len(kept)} ways to reckon: give 1 or 2")
    for shares in kept.values():
        _as_many(names, shares)
    fig = new_figure(760, 330)
    left, right = fig.subplots(1, 2, width_ratios=(2, 3))
    for (name, values), (colour, _, mark), hollow in zip(gaps.items(), _STYLES, (True, False, False), strict=False):
        look = {"markersize": 11, "markerfacecolor": "none", "markeredgewidth": 1.6} if hollow else {"markersize": 5}
        left.plot(names, [1e3 * value for value in values], color=colour, linestyle="", marker=mark, label=name, **look)
    left.axhline(1e3 * most, color=palette.INK, linestyle=":", linewidth=1.2, label="promised")
    _milliseconds(left, [1e3 * value for values in gaps.values() for value in values])
    left.set_ylabel("a gap, ms")
    left.legend()
    width = 0.86 / len(kept)
    for i, ((way, shares), colour, hatch) in enumerate(zip(kept.items(), _BARS[1:], ("", "//"), strict=False)):
        places = [place + (i - (len(kept) - 1) / 2) * width for place in range(len(names))]
        bars = right.bar(places, [100 * share for share in shares], width=0.95 * width, color=colour, hatch=hatch,
            edgecolor=palette.ink_on(colour), linewidth=0, label=way)  # fmt: skip
        right.bar_label(bars, fmt="%.1f", fontsize=8)
    right.set_xticks(range(len(names)), names)
    right.set_ylim(0, 128)
    right.set_yticks([0, 50, 100])
    right.legend(fontsize=9, loc="upper left", ncol=2)
    right.set_ylabel("% that kept the promise")
    for ax in (left, right):
        ax.set_xlabel("budget, tokens per step")
    fig.tight_layout()
    points = "; ".join(
        f"{name}: " + ", ".join(f"{1e3 * value:.0f} at {budget}" for value, budget in zip(values, names, strict=True))
        for name, values in gaps.items()
    )
    return described(
        fig,
        f"Gaps in milliseconds by budget; {1e3 * most:.0f} are promised. {points}. Kept the promise, "
        + "; ".join(
            f"{way}: " + ", ".join(f"{share:.1%} at {budget}" for share, budget in zip(shares, names, strict=True))
            for way, shares in kept.items()
        )
        + ".",
        "The promise is kept for at most "
        + listed(f"{max(shares):.1%} ({way})" for way, shares in kept.items())
        + ". With small budgets first tokens are late; without a budget, later ones are.",
    )


def _as_many(places: Sequence[object], values: Sequence[object]) -> None:
    if not places or len(places) != len(values):
        raise ValueError(f"{len(places)} places and {len(values)} values: give one of each, at least one")


def laws(lines: Mapping[str, Sequence[float]], words: Sequence[str]) -> Figure:
    """Probabilities of a few words side by side: a group for each word, a bar for each name, at most three."""
    if not 1 <= len(lines) <= len(_STYLES):
        raise ValueError(f"{len(lines)} laws: give 1 to {len(_STYLES)}")
    fig = new_figure(560, 300)
    ax = fig.add_subplot()
    width = 0.8 / len(lines)
    for i, ((name, law), colour) in enumerate(zip(lines.items(), _BARS, strict=False)):
        places = [token + (i - (len(lines) - 1) / 2) * width for token in range(len(law))]
        ax.bar(places, law, width=width * 0.92, color=colour, edgecolor=palette.INK, linewidth=0.6, label=name)
    ax.set_xticks(range(len(words)), words)
    ax.set_ylabel("probability")
    ax.legend()
    fig.tight_layout()
    points = "; ".join(f"{name}: {', '.join(f'{each:.2f}' for each in law)}" for name, law in lines.items())
    (target, p), *others = lines.items()
    off = [f"{max(abs(a - b) for a, b in zip(law, p, strict=True)):.3f} ({name})" for name, law in others]
    caption = f"Counting tells the rules apart: bars differ from {target} by up to {listed(off)}." if off else ""
    return described(fig, f"How probable each word is. {points}.", caption)


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
        "Below the line at 1, drafts cost more than they gain. The largest batch above the line is "
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
