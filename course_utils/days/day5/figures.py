"""The drawings of day 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from course_utils.days.shared.roofline_figure import roofline as roofline
from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITHOUT, _WITH = palette.INK, palette.BLUE  # a step that reads everything again, and one with a cache
_SERIES = [palette.QUERY, palette.OUTPUT, palette.VALUE, palette.INK]


def first_second(prefill: float, without: float, cached: float) -> Figure:
    """Draw when the words of a reply come in its first second, without a cache above and with one below.

    prefill: seconds until the first word, in both. without, cached: seconds of every later word.
    """
    ways = {"everything again": (without, _WITHOUT), "with a cache": (cached, _WITH)}
    times = {name: np.arange(prefill, 1.0, step) for name, (step, _) in ways.items()}
    fig = new_figure(720, 200)
    ax = fig.add_axes((0.19, 0.3, 0.66, 0.68))
    for row, (name, (_, colour)) in enumerate(ways.items()):
        ax.hlines(row, 0, 1, color=palette.INK, linewidth=0.8)
        ax.eventplot(times[name], lineoffsets=row, linelengths=0.62, linewidths=2.2, colors=colour)
        ax.text(1.015, row, f"{len(times[name])} words", va="center")
    ax.set(xlim=(0, 1), ylim=(1.55, -0.55), xlabel="seconds after the prompt")
    ax.set_yticks(range(len(ways)), list(ways))
    ax.tick_params(axis="y", length=0)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    counted = " and ".join(f"{len(each)} {name}" for name, each in times.items())
    return described(
        fig,
        f"Two lines of marks over one second, a mark for each word. The first word comes after {prefill:.2f} s in "
        f"both; later ones take {without:.2f} s when everything is read again and {cached:.3f} s with a cache. Words: "
        f"{counted}.",
        f"The first word takes {prefill:.2f} seconds in both cases. Each later one takes as long again without a "
        f"cache, and {1000 * cached:.0f} ms with one.",
    )


def bytes_and_times(rows: Any) -> Figure:
    """Draw what a decode step reads, left, and how long it takes, right, for several ways to share keys and values.

    rows: of the record, each with kind, n_kv_heads, cache_bytes, weight_bytes and seconds.
    """
    fig = new_figure(720, 46 * len(rows) + 96)
    left, right = fig.subplots(1, 2, sharey=True)
    places = range(len(rows))
    cache, weights = ([row[f"{part}_bytes"] / 1e6 for row in rows] for part in ("cache", "weight"))
    ms = [1e3 * row["seconds"] for row in rows]
    left.barh(places, cache, height=0.56, color=_WITH, label="cache")
    left.barh(places, weights, left=cache, height=0.56, color=palette.INK, label="weights")
    right.barh(places, ms, height=0.56, color=palette.INDIGO)
    for ax, lengths, digits in ((left, np.add(cache, weights), 0), (right, ms, 1)):
        for place, length in zip(places, lengths, strict=True):
            ax.text(length + 0.015 * max(lengths), place, f"{length:.{digits}f}", va="center")
        ax.set(xlim=(0, 1.17 * max(lengths)), ylim=(len(rows) - 0.5, -0.5))
    left.set_yticks(places, [f"{row['kind']}, h_kv = {row['n_kv_heads']}" for row in rows])
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0)
    left.set_xlabel("MB that a step reads")
    right.set_xlabel("ms that it takes")
    left.legend(loc="lower right")
    fig.subplots_adjust(left=0.16, right=0.98, top=0.97, bottom=64 / (46 * len(rows) + 96), wspace=0.12)
    bars = [
        f"{row['kind']} reads {a:.0f} MB of cache and {b:.0f} MB of weights in {c:.1f} ms"
        for row, a, b, c in zip(rows, cache, weights, ms, strict=True)
    ]
    fewer, faster = (cache[0] + weights[0]) / (cache[-1] + weights[-1]), ms[0] / ms[-1]
    return described(
        fig,
        f"Bars of what a decode step reads and of its time. {'; '.join(bars)}.",
        f"From the first row to the last a step reads {fewer:.1f} times fewer bytes and is {faster:.1f} times faster.",
    )


def rises(caches: Any) -> Figure:
    """Bars of how far the loss rises with each cache, with the standard error of each.

    caches: name -> (rise in nats, standard error).
    """
    fig = new_figure(720, 32 * len(caches) + 70)
    ax = fig.add_axes((0.27, 54 / (32 * len(caches) + 70), 0.7, 1 - 62 / (32 * len(caches) + 70)))
    places = range(len(caches))
    sizes, errors = zip(*caches.values(), strict=True)
    ax.barh(places, sizes, xerr=errors, height=0.6, color=palette.WRONG, ecolor=palette.INK)
    for place, (size, error) in enumerate(caches.values()):
        label = f"{size:.3f} ± {error:.3f}".replace("-", "−")
        ax.text(max(size, 0) + error + 0.012 * max(sizes), place, label, va="center")
    ax.set(xlabel="rise in the loss, nats per token", xlim=(min(0, *sizes) - 0.01, 1.45 * max(sizes)))
    ax.set_ylim(len(caches) - 0.5, -0.5)
    ax.set_yticks(places, list(caches))
    ax.tick_params(axis="y", length=0)
    bars = [f"{name} {size:.3f} ± {error:.3f}" for name, (size, error) in caches.items()]
    worst = max(caches, key=lambda name: caches[name][0])
    return described(
        fig,
        f"How far the loss rises above that with exact keys and values, in nats per token: {'; '.join(bars)}.",
        f"Each bar shows what rounding costs, and the line on it the standard error. The largest: {worst}.",
    )


def token_times(curves: Any) -> Figure:
    """Milliseconds to write one token after a prefix of T, left; how many times faster the cache is, right.

    curves: name -> (prefixes, milliseconds without a cache, milliseconds with one) and, where it was measured, how many
    times faster; at most two names. The dashed line on the right is T times faster, by how much the rows become fewer.
    """
    fig = new_figure(720, 320)
    left, right = fig.subplots(1, 2)
    looks: tuple[dict[str, Any], ...] = ({"linewidth": 2}, {"linewidth": 1.2, "alpha": 0.75})
    gains = {name: each[3] if each[3:] else np.divide(each[1], each[2]) for name, each in curves.items()}
    curves = {name: each[:3] for name, each in curves.items()}
    for (name, (T, without, cached)), look, mark in zip(curves.items(), looks, "os", strict=False):
        for ax, ms, colour, way in ((left, without, _WITHOUT, "no"), (left, cached, _WITH, "with")):
            ax.plot(T, ms, color=colour, marker=mark, markersize=5, label=f"{way} cache, {name}", **look)
        right.plot(T, gains[name], color=palette.TEAL, marker=mark, markersize=5, label=name, **look)
    every = sorted({T for prefixes, _, _ in curves.values() for T in prefixes})
    right.plot(every, every, color=palette.INK, linestyle="--", linewidth=1, label="T times")
    for ax, caption in ((left, "ms to write one token"), (right, "times faster with the cache")):
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_xticks(every, [f"{T}" for T in every])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("tokens so far, T")
        ax.set_title(caption)
    fig.subplots_adjust(left=0.06, right=0.84, top=0.91, bottom=0.17, wspace=0.98)
    for ax in (left, right):
        name_lines(ax)
    sentences = [
        f"{name}: without a cache {without[0]:.0f} ms at T = {T[0]} and {without[-1]:.0f} ms at T = {T[-1]}, "
        f"with one {cached[0]:.0f} and {cached[-1]:.0f} ms, {gains[name][-1]:.0f} times faster"
        for name, (T, without, cached) in curves.items()
    ]
    alt = (
        "Left: milliseconds to write one token over the tokens so far, T, both axes logarithmic. Right: how many times "
        f"faster the cache is, next to a dashed line that marks T times. {'; '.join(sentences)}."
    )
    grown = [
        f"{without[-1] / without[0]:.0f} times as long without a cache and {cached[-1] / cached[0]:.1f} times with one "
        f"({name})"
        for name, (_, without, cached) in curves.items()
    ]
    return described(
        fig, alt, f"From the shortest prefix to the longest, the time for a token grows: it takes {listed(grown)}."
    )


def block_pool(tables: Any, lengths: Any, block_size: int, n_blocks: int) -> Figure:
    """A paged store, block by block; each slot carries the position of its token, coloured by the text that holds it.

    tables: the blocks of each text, in order; lengths: tokens of each text; at most four texts. A block that several
    texts hold is grey, an empty slot is empty.
    """
    # which texts hold each block, and as which of their blocks
    holders: dict[int, list[tuple[int, int]]] = {}
    for text, table in enumerate(tables):
        for place, block in enumerate(table):
            holders.setdefault(block, []).append((text, place))
    # a small chart for each block, side by side
    wide = min(104, 692 / n_blocks - 12)
    cell = wide / block_size
    width, height = n_blocks * (wide + 12) + 28, cell + 108
    fig = new_figure(width, height)
    for block in range(n_blocks):
        box = ((20 + block * (wide + 12)) / width, 1 - (34 + cell) / height, wide / width, cell / height)
        ax = fig.add_axes(box)
        _draw_block(ax, block, holders.get(block, []), lengths, block_size)
    key = [(_SERIES[text], f"text {text}") for text in range(len(tables))]
    _draw_key(fig, key + [(palette.INK, "shared")] * any(len(held) > 1 for held in holders.values()), 20, 14)
    sentences = [
        f"{_name_numbered('text', i)} of {lengths[i]} tokens in {_name_numbered('block', *table)}"
        for i, table in enumerate(tables)
    ]
    free = [block for block in range(n_blocks) if block not in holders]
    rest = f" Free: {_name_numbered('block', *free)}." if free else ""
    # slots of the held blocks, those of them with a token, and the blocks that sharing saves
    slots = block_size * len(holders)
    full = sum(min(block_size, max(lengths[text] - place * block_size for text, place in held))
               for held in holders.values())  # fmt: skip
    saved = sum(map(len, tables)) - len(holders)
    return described(
        fig,
        f"{n_blocks} blocks of {block_size} slots: {'; '.join(sentences)}.{rest}",
        f"Of the {slots} slots in blocks that a text holds {slots - full} are empty, all in its last one"
        + (f"; sharing saves {saved * block_size} more." if saved else "."),
    )


def _draw_block(ax, block, held, lengths, block_size):
    """Draw the slots of a block with its number above and the texts that hold it below; held: (text, place) each."""
    for slot in range(block_size):
        text, place = held[0] if held else (0, 0)
        position = place * block_size + slot
        full = held and position < max(lengths[text] for text, _ in held)
        face = "none"
        if full:
            face = palette.INK if len(held) > 1 else _SERIES[text]
        ax.add_patch(Rectangle((slot, 0), 1, 1, facecolor=face, edgecolor=palette.INK, linewidth=0.8))
        if full:
            ink = palette.ink_on(face)
            ax.text(slot + 0.5, 0.5, str(position), ha="center", va="center_baseline", color=ink)
    ax.set(xlim=(0, block_size), ylim=(1, 0))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color(palette.INK)
    ax.set_title(f"block {block}", fontsize=10, pad=4)
    texts = [str(text) for text, _ in held]
    readers = f"text{'s' * (len(texts) > 1)} {', '.join(texts)}" if held else "free"
    ax.set_xlabel(readers, fontsize=10, labelpad=4)


# --- below: what the drawings share ---------------------------------------------------------------------------------


def _draw_key(fig, entries, left, bottom):
    """Small filled squares with a word each, in one line at the bottom; left and bottom in CSS pixels."""
    width, height = fig.get_size_inches() * 96
    for colour, text in entries:
        fig.add_artist(Rectangle((left / width, bottom / height), 12 / width, 12 / height, facecolor=colour))
        fig.text((left + 18) / width, (bottom + 6) / height, text, va="center_baseline")
        left += 36 + 6.3 * len(text)


def _name_numbered(thing, *numbers):
    """The thing with its numbers: "block 2", "blocks 0, 1 and 3"."""
    return f"{thing}{'s' * (len(numbers) > 1)} {listed(numbers)}"
