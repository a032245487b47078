"""The drawings of day 6, and what the records of a GPU say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from course_utils.days.day6.gpu_figure import HOPPER
from course_utils.days.day6.gpu_figure import gpu as gpu
from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines, typeset
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.costs.roofline import Machine

# One colour an implementation, whichever others stand beside it: colour, dashes, mark.
_DOTS = (0, (1, 1.5))
_DASHES = (0, (5, 2))
STYLES: dict[str, tuple[str, Any, str]] = {
    "naive": (palette.INK, _DOTS, "v"),
    "scores and weights": (palette.INK, _DOTS, "v"),
    "Q, K, V and O": (palette.GREEN, "-", "o"),
    "tiled": (palette.GREEN, "-", "o"),
    "ours": (palette.QUERY, "-", "o"),
    "grouped": (palette.QUERY, "-", "o"),
    "one per head": (palette.QUERY, _DASHES, "^"),
    "flash": (palette.TEAL, "-", "s"),
    "cuDNN": (palette.OLIVE, _DASHES, "^"),
    "efficient": (palette.BROWN, _DASHES, "P"),
}
_OTHERS = [
    (palette.INDIGO, "-", "X"), (palette.MOSS, _DASHES, "<"), (palette.ROSE, _DOTS, ">"), (palette.INK, "-", "*"),
]  # fmt: skip
_MAX_LINES = 7  # more cannot be told apart
_LEVELS = [":", "-.", "--"]

# What the record of tricks changes in the kernel -> its name in the drawing, in the order of the drawing: the second
# drops a trick more than the first. The two kinds of kernel, by d_head, load different numbers of tiles ahead.
CHANGES = {
    "one causal loop, masked throughout": "one loop, masked throughout",
    "blocks above the diagonal masked, not skipped": "the same, and nothing skipped",
    "128 × 64, 8 warps, 1 stages": "no tile loaded ahead",
    "exp instead of exp2 with the scale folded in": "powers of e",
    "pointers instead of tensor descriptors": "pointers for descriptors",
    "128 × 64, 8 warps, 4 stages": "one more tile loaded ahead",
    "128 × 64, 8 warps, 3 stages": "one more tile loaded ahead",
}


# --- drawings -------------------------------------------------------------------------------------------------------


def growth(lines: Any, xlabel: str, ylabel: str, points: Any = None, level: Any = None) -> Figure:
    """Bytes on two logarithmic axes, where a power is a straight line and its exponent the slope.

    lines: name -> (x, y), two lists of numbers above 0, at most seven names; points: name of a line -> (x, y), marks in
    its colour, for what was counted; level: (y, what it is), a thin horizontal line. Raises ValueError for more than
    seven lines, or for points that belong to none.
    """
    _check_lines(lines)
    strangers = set(points or {}) - set(lines)
    if strangers:
        raise ValueError(f"points has {', '.join(sorted(strangers))}, but no line of that name")
    fig = new_figure(720, 320)
    ax = fig.subplots()
    for (colour, style, mark), (name, (x, y)) in zip(_styles(lines), lines.items(), strict=True):
        ax.loglog(x, y, color=colour, linestyle=style, linewidth=1.8, label=name)
        if points and name in points:
            ax.loglog(*points[name], color=colour, marker=mark, linestyle="", markersize=6)
    if level:
        ax.axhline(level[0], color=palette.INK, linestyle="-.", linewidth=1.2, label=level[1], zorder=1)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title("marks: counted" if points else "")
    _label_lengths(ax, [x for line, _ in lines.values() for x in line])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _format_bytes(y)))
    fig.subplots_adjust(left=0.12, right=0.76, top=0.92, bottom=0.18)
    name_lines(ax)
    sentences = [f"{_capitalise(ylabel)} against {xlabel}, both axes logarithmic."]
    sentences += [f"{_describe_ends(*line)}." for line in lines.items()]
    sentences += ["The counted marks lie on the lines."] if points and _lie_on(points, lines) else []
    sentences += [
        _describe_crossing(name, x, y, *level) for name, (x, y) in lines.items() if level and y[0] < level[0] < y[-1]
    ]
    doubled = listed(f"{_growth_at_double(x, y):.1f} times as much ({name})" for name, (x, y) in lines.items())
    return described(
        fig,
        " ".join(sentences),
        f"The steeper a line, the higher the power: at the right end, twice the {xlabel} bring {doubled}.",
    )


def curves(panels: Any, ylabel: str, levels: Any = None) -> Figure:
    """Small charts side by side over the same axes, two in a row: lengths doubling to the right, amounts from 0 up.

    panels: title -> {name: (lengths, amounts)}, at most seven names, a name in the same colour in every chart; levels:
    what it is -> an amount, or {title: amount}, at most three, as thin horizontal lines. Raises ValueError for more.
    """
    # every name has one style in all charts
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    levels = levels or {}
    _check_lines(names, levels)
    styles = dict(zip(names, _styles(names), strict=True))
    # room for the charts, two in a row, and for a legend below, if the names do not fit beside the last chart
    rows, columns = -(-len(panels) // 2), min(2, len(panels))
    beside = len(panels) <= 2 and len(names) + len(levels) <= 4
    below = 56 if beside else 74 + 22 * -(-(len(names) + len(levels)) // 3)
    height = 28 + below + 200 * rows + 76 * (rows - 1)
    fig = new_figure(720, height)
    axes = fig.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    every_length = [T for lines in panels.values() for Ts, _ in lines.values() for T in Ts]
    for ax, (title, lines) in zip(axes, panels.items(), strict=False):
        # the lines, and the levels behind them
        for name, (lengths, amounts) in lines.items():
            colour, style, mark = styles[name]
            line = {"color": colour, "linestyle": style, "marker": mark}
            ax.semilogx(lengths, amounts, **line, markersize=4.5, linewidth=1.6, label=name)
        for style, (name, amount) in zip(_LEVELS, levels.items(), strict=False):
            level = amount[title] if isinstance(amount, dict) else amount
            ax.axhline(level, color=palette.INK, linestyle=style, linewidth=1.1, label=name, zorder=1)
        ax.set_title(typeset(title))
        ax.set_xlabel("tokens T")
        _label_lengths(ax, every_length)
    # the vertical axis is shared: it starts at 0 once all is drawn, and is named on the left alone
    axes[0].set_ylim(0, None)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax in axes[::columns]:
        ax.set_ylabel(ylabel)
    # names beside the last chart, or each name once in a legend
    right = 0.82 if beside else 0.98
    fig.subplots_adjust(left=0.09, right=right, top=1 - 28 / height, bottom=below / height, hspace=0.4, wspace=0.08)
    if beside:
        name_lines(axes[len(panels) - 1])
    else:
        key = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        fig.legend(key.values(), key, loc="lower center", ncols=3)
    sentences = [
        f"{title}: {', '.join(_describe_ends(*line) for line in lines.items())}." for title, lines in panels.items()
    ]
    return described(
        fig,
        f"{_capitalise(ylabel)} against tokens, from 0 up. {' '.join(sentences)}",
        "At the longest text that all have run, the highest line stands at "
        + listed(_describe_lead(title, lines) for title, lines in panels.items())
        + ".",
    )


def tile_map(n: int, m: int, visits: Any, cell: float = 17) -> Figure:
    """Draw the n × m square of scores, cut into tiles: which are computed, which are masked besides, which never are.

    visits: (queries, keys, on_diagonal) of each tile that is computed, two slices and whether a mask is put on; cell:
    the side of one score in CSS pixels. What no tile covers is hatched.
    """
    width, height = cell * m + 330, cell * n + 68
    fig = new_figure(width, height)
    ax = fig.add_axes((46 / width, 16 / height, cell * m / width, cell * n / height))
    ax.add_patch(Rectangle((0, 0), m, n, facecolor="none", edgecolor=palette.INK, hatch="///", lw=0))
    visits = list(visits)
    for queries, keys, on_diagonal in visits:
        tall, wide = queries.stop - queries.start, keys.stop - keys.start
        face = palette.colormap()(0.28 if on_diagonal else 0.72)
        ax.add_patch(Rectangle((keys.start, queries.start), wide, tall, facecolor=face, edgecolor=palette.INK))
    ax.set(xlim=(0, m), ylim=(n, 0), xlabel="keys", ylabel="queries")
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    ax.set_xticks(range(0, m + 1, 4))
    ax.set_yticks(range(0, n + 1, 4))
    ax.tick_params(length=0, pad=4)
    ax.spines[:].set_color(palette.INK)
    key = [(0.72, "computed, no mask needed"), (0.28, "computed and masked"), (None, "skipped: never computed")]
    for row, (level, meaning) in enumerate(key):
        left, low = (cell * m + 76) / width, 1 - (78 + 30 * row) / height
        fill, hatch = ("none", "///") if level is None else (palette.colormap()(level), None)
        swatch = Rectangle((left, low), 16 / width, 16 / height, facecolor=fill, edgecolor=palette.INK, hatch=hatch)
        fig.add_artist(swatch)
        fig.text(left + 24 / width, low + 8 / height, meaning, va="center_baseline")
    masked = sum(bool(on_diagonal) for *_, on_diagonal in visits)
    start = f"A square of {n} queries by {m} keys in tiles. {len(visits) - masked} tiles are computed without a mask, "
    share = sum((q.stop - q.start) * (k.stop - k.start) for q, k, _ in visits) / (n * m)
    return described(
        fig,
        f"{start}{masked} are computed and masked, and the hatched rest is skipped.",
        f"{share:.0%} of the square is computed, and of {len(visits)} tiles only the {masked} on the edge need a mask.",
    )


def _styles(names):
    """The colour, dashes and mark of each name; one that STYLES does not know gets the next of the others."""
    others = iter(_OTHERS)
    return [STYLES[name] if name in STYLES else next(others) for name in names]


def _capitalise(text):
    return text[:1].upper() + text[1:]


def _describe_ends(name, line):
    lengths, amounts = line
    first, last = _format_brief(amounts[0]), _format_brief(amounts[-1])
    return f"{name} from {first} at {in_words(lengths[0])} to {last} at {in_words(lengths[-1])}"


def _format_brief(number):
    """4.3G, 12M, 497: three digits at most, with the letter of its thousands."""
    for letter, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _format_bytes(number):
    """10 MB, 1 GB, 100 GB: a tick of a logarithmic axis."""
    size, unit = next((size, unit) for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
                      if number >= size or size == 1)  # fmt: skip
    return f"{number / size:g} {unit}"


def _growth_at_double(xs, ys):
    """By how much the last two points of a line say that its amount grows when x doubles."""
    return (ys[-1] / ys[-2]) ** (math.log(2) / math.log(xs[-1] / xs[-2]))


def _describe_lead(title, lines):
    """Which line is highest at the longest length that all have, and how many times the lowest it is."""
    T = max(set.intersection(*(set(lengths) for lengths, _ in lines.values())))
    at = {name: amounts[list(lengths).index(T)] for name, (lengths, amounts) in lines.items()}
    (high, most), (low, least) = (pick(at.items(), key=lambda each: each[1]) for pick in (max, min))
    return f"{most / least:.1f} times the lowest ({title}: {high} over {low})"


def _lie_on(points, lines):
    """Whether each counted mark is the number of its line."""
    known = {name: dict(zip(x, y, strict=True)) for name, (x, y) in lines.items()}
    return all(known[name].get(x) == y for name, (xs, ys) in points.items() for x, y in zip(xs, ys, strict=True))


def _describe_crossing(name, xs, ys, level, what):
    after = next(place for place, y in enumerate(ys) if y > level)
    return f"{name} pass {what} between {in_words(xs[after - 1])} and {in_words(xs[after])}."


def _check_lines(names, levels=()):
    unknown = [name for name in names if name not in STYLES]
    for what, listed_names, most in (
        ("lines", names, _MAX_LINES),
        ("names without a colour", unknown, len(_OTHERS)),
        ("levels", levels, len(_LEVELS)),
    ):
        if len(listed_names) > most:
            raise ValueError(f"{len(listed_names)} {what} are given: there are {most} kinds of them")


def _label_lengths(ax, values):
    """Label each length that occurs, where there are few enough to be read: 512, 1k, 2k, …"""
    every = sorted(set(values))
    labelled = every[:: -(-len(every) // 6)]
    ax.xaxis.set_major_locator(FixedLocator(labelled))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([in_words(value) for value in labelled])


def in_words(number: int) -> str:
    """512, 1k for 1024, 16k for 16,384, 128k for 128,000: lengths and sizes as people say them."""
    power_of_two = number & (number - 1) == 0
    step = 1024 if power_of_two else 1000
    return f"{number // step}k" if number >= step and number % step == 0 else f"{number:,}"


# --- what the records say -------------------------------------------------------------------------------------------


def provenance(record: Mapping[str, Any]) -> str:
    """In a line: on what a recorded benchmark ran, with which versions, and when."""
    where = record["environment"]
    versions = ", ".join(f"{name} {where[name]}" for name in ("torch", "triton") if where.get(name))
    return f"{where['device']}, {versions}, {where['date'][:10]}"


def panels_of(record: Mapping[str, Any], amount: Any, titles: Mapping[str, dict[str, Any]], **required: Any) -> Any:
    """Panels for `curves` from the rows of a recorded benchmark: title -> {implementation: (lengths, amounts)}.

    amount: the column to draw. titles: title -> the columns that pick its rows, {"d": 64, "causal": True}. required:
    what all rows must have, such as measured="time". Panels without rows are left out.
    """
    panels = {}
    for title, picked in titles.items():
        lines: dict[str, tuple[list[Any], list[Any]]] = {}
        for row in record["rows"]:
            if all(row.get(key) == value for key, value in (picked | required).items()):
                Ts, amounts = lines.setdefault(row["implementation"], ([], []))
                Ts.append(row["T"])
                amounts.append(row[amount])
        if lines:
            panels[title] = lines
    return panels


def errors_of(record: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """The relative errors of the output against float64, of each implementation: bfloat16, d_head 128, no mask."""
    wanted = {"measured": "error", "dtype": "bfloat16", "d": 128, "causal": False}
    errors = {row["implementation"]: row["error_o"] for row in record["rows"] if wanted.items() <= row.items()}
    return [errors[name] for name in names]


def two_memories(card: Machine, chip: Mapping[str, Any] = HOPPER) -> Figure:
    """A chip with its arithmetic and its fast memory, and the slow memory outside, with the bytes a second between."""
    assert card.memory_bytes is not None, card.name
    fast, fast_rate = chip["processors"] * chip["shared"] / 2**20, chip["shared_rate"] / 1e12
    slow, slow_rate = card.memory_bytes >> 30, card.bytes_per_second / 1e12
    fig = new_figure(720, 150)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(150, 0))
    ax.axis("off")
    ax.add_patch(Rectangle((12, 30), 420, 108, facecolor="none", edgecolor=palette.INK, lw=1.1))
    ax.text(12, 17, f"the chip, {card.name}", fontsize=10.5, va="center", fontweight="bold")
    boxes = ((24, 130, "none", "arithmetic"), (262, 158, palette.BLUE, f"fast memory\n{fast:.0f} MiB in all"),
             (540, 168, palette.BLUE, f"slow memory: HBM\n{slow} GiB"))  # fmt: skip
    for left, wide, face, name in boxes:
        ax.add_patch(Rectangle((left, 48), wide, 72, facecolor=face, edgecolor=palette.INK, lw=1.1))
        ink = palette.INK if face == "none" else palette.ink_on(face)
        ax.text(left + wide / 2, 84, name, ha="center", va="center", fontsize=11, color=ink, fontweight="bold")
    for start, stop, rate in ((154, 262, fast_rate), (420, 540, slow_rate)):
        ax.annotate("", (start, 92), (stop, 92), arrowprops={"arrowstyle": "<|-|>", "color": palette.INK})
        ax.text((start + stop) / 2 + 6 * (start == 420), 76, f"{rate:g} TB/s", ha="center", fontsize=10.5)
    return described(
        fig,
        f"A chip, {card.name}, with its arithmetic and {fast:.0f} MiB of fast memory, read at {fast_rate:g} TB/s. "
        f"Outside lies the slow memory, HBM: {slow} GiB at {slow_rate:g} TB/s.",
        f"The fast memory is {fast_rate / slow_rate:.0f} times as fast, and the slow memory holds far more.",
    )


def forward_and_back(record: Mapping[str, Any], T: int, d: int) -> Figure:
    """Bars of the milliseconds of attention without a mask, forward and back: naive and in the course's tiles."""
    wanted = {"measured": "time", "direction": "both", "d": d, "causal": False, "T": T}
    rows = [row for row in record["rows"] if wanted.items() <= row.items()]
    seconds = {row["implementation"]: row["seconds"] for row in rows}
    bars = {"naive, 6 products": ("naive", palette.INK), "in tiles, 9 products": ("ours", palette.QUERY)}
    fig = new_figure(720, 130)
    ax = fig.add_axes((0.25, 0.4, 0.65, 0.56))
    times = {label: 1000 * seconds[name] for label, (name, _) in bars.items()}
    for row, (label, (_, colour)) in enumerate(bars.items()):
        ax.barh(row, times[label], height=0.6, color=colour)
        ax.text(times[label] + 0.4, row, f"{times[label]:.1f}", va="center_baseline", fontsize=10.5)
    texts, heads = record["settings"]["tokens"] // T, record["settings"]["width"] // d
    shape = f"{texts} texts of {T:,} tokens, {heads} heads of {d}"
    ax.set(xlabel=f"milliseconds, forward and back; {shape}", xlim=(0, 1.12 * max(times.values())), ylim=(1.5, -0.5))
    ax.set_yticks(range(len(bars)), list(bars))
    ax.tick_params(axis="y", length=0)
    said = listed(f"{label}: {time:.1f} ms" for label, time in times.items())
    return described(
        fig,
        f"Attention forward and back; {record['environment']['device']}, {shape}, no mask. {said}.",
        "The one with more products takes less time.",
    )


def times_as_long(record: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """What is changed in the causal kernel -> d_head -> how many times as long it takes then."""
    result: dict[str, dict[int, float]] = {name: {} for name in CHANGES.values()}
    for row in record["rows"]:
        if row["causal"] and (name := CHANGES.get(row["variant"])):
            result[name][row["d"]] = row["slower"]
    return result


def tricks(record: Mapping[str, Any]) -> Figure:
    """Bars of how many times as long the causal kernel takes after each of the CHANGES, for each width of a head."""
    changes = times_as_long(record)
    widths = sorted({width for times in changes.values() for width in times})
    tall = 46 * len(changes)
    fig = new_figure(720, tall + 108)
    ax = fig.add_axes((0.29, 92 / (tall + 108), 0.64, tall / (tall + 108)))
    for place, (width, colour) in enumerate(zip(widths, (palette.TEAL, palette.ROSE), strict=True)):
        rows = [row - 0.18 + 0.36 * place for row in range(len(changes))]
        lengths = [times[width] for times in changes.values()]
        ax.barh(rows, lengths, height=0.32, color=colour, label=typeset(f"d_head {width}"))
        for row, length in zip(rows, lengths, strict=True):
            ax.text(max(length, 1) + 0.03, row, f"{length:.2f}", va="center_baseline", fontsize=10)
    ax.axvline(1, color=palette.INK, linestyle=":", linewidth=1.2)
    ax.set(xlabel="times as long as the kernel with all tricks", xlim=(0, 2.5), ylim=(len(changes) - 0.5, -0.5))
    ax.set_yticks(range(len(changes)), list(changes))
    ax.tick_params(axis="y", length=0)
    fig.legend(*ax.get_legend_handles_labels(), loc="lower center", ncols=2)
    where = f"{record['environment']['device']}, causal, 8,192 tokens"
    bars = [
        f"{name} {listed(f'{times[width]:.2f} (d_head {width})' for width in widths)}"
        for name, times in changes.items()
    ]
    most = max(changes, key=lambda name: min(changes[name].values()))
    return described(
        fig,
        f"How many times as long the kernel takes with something changed; {where}. {'; '.join(bars)}.",
        f"Right of the dotted line the change makes the kernel slower, left of it faster. It costs most: {most}.",
    )


def bandwidth(record: Mapping[str, Any]) -> Figure:
    """Reading speed while decoding, in per cent of a copy's, over the length of the cache: for 1 text and for 64."""
    panels: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for row in record["rows"]:
        if row["measured"] != "time" or row["B"] == 8 or row["implementation"] not in ("ours", "unsplit"):
            continue
        title = "1 text" if row["B"] == 1 else f"{row['B']} texts"
        name = "grouped" if row["implementation"] == "ours" else "one per head"
        lengths, shares = panels.setdefault(title, {}).setdefault(name, ([], []))
        lengths.append(row["T"])
        shares.append(100 * row["of_copy"])
    return curves(panels, "% of a copy's bandwidth", {"a copy": 100})
