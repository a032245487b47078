"""The drawings of day 2."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.views import palette
from course_utils.views.drawing import listed, name_lines, typeset
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

RAW = palette.WRONG  # scores without a scale
SCALED = palette.WEIGHT  # scores divided by √d_k
BY_WIDTH = palette.OLIVE  # scores divided by d_k
COLOURS = {"raw": RAW, "scaled": SCALED}
MAP_COLOURS = {"divided by √d_k": SCALED, "divided by d_k": BY_WIDTH}  # of other maps: RAW


def layers(weights: Mapping[str, Any]) -> Figure:
    """Draw the weights of some layers beside each other, as maps without numbers, in the colour of their scale.

    weights: {title: (n, m)}, the same sizes in each.
    """
    left, gap = 60, 36  # in pixels, as all that follows
    width = 720
    side = min(230, (width - left - 8 + gap) // len(weights) - gap)  # of a map
    height = side + 60
    fig = new_figure(width, height)
    sentences = []
    for place, (title, each) in enumerate(weights.items()):
        each = np.asarray(each, float)
        ax = fig.add_axes((
            (left + place * (side + gap)) / width, 30 / height, side / width, side / height))  # fmt: skip
        ax.imshow(each, cmap=_shades(MAP_COLOURS.get(title, RAW)), vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], xlabel="keys", ylabel="queries" if place == 0 else "")
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color(palette.INK)
        ax.set_title(typeset(title), weight="bold", pad=6)
        largest = each.max(axis=1)
        sentences.append(
            f"{title}: the largest weight of a row is {largest.mean():.2f} on average, from {largest.min():.2f} to "
            f"{largest.max():.2f}"
        )
    shape = np.shape(next(iter(weights.values())))
    return described(
        fig,
        f"Weights of {shape[0]} queries, one a row, over {shape[1]} keys. {'; '.join(sentences)}.",
        "Rows are queries and columns are keys. The darker a square, the more weight the query gives to that key.",
    )


def coins(d_ks: Sequence[int]) -> Figure:
    """Draw how often the dot product of two vectors of coins, ±1 each, takes each of its values, for some d_k.

    A band marks what lies within √d_k of 0.
    """
    fig = new_figure(720, 230)
    sentences = []
    for ax, d_k in zip(fig.subplots(1, len(d_ks), sharey=True), d_ks, strict=True):
        plus = np.arange(d_k + 1)  # how many of the products are +1
        products = 2 * plus - d_k
        shares = np.array([math.comb(d_k, int(count)) for count in plus]) / 2.0**d_k
        root = math.sqrt(d_k)
        ax.axvspan(-root, root, color=palette.INK, alpha=0.16, linewidth=0)
        ax.bar(products, shares, width=min(1.2, 0.05 * COIN_REACH), color=RAW)
        ax.set(xlim=(-COIN_REACH, COIN_REACH), xticks=[-16, -8, 0, 8, 16])
        ax.set_title(f"$d_k = {d_k}$")
        ax.set_xlabel("$q \\cdot k$")
        within = shares[np.abs(products) <= root].sum()
        sentences.append(f"at d_k = {d_k} {within:.0%} of the cases lie within {root:.2g} of 0")
    fig.axes[0].set_ylabel("share of all cases")
    fig.subplots_adjust(left=0.08, right=0.99, top=0.88, bottom=0.22, wspace=0.12)
    return described(
        fig,
        f"How often the dot product of two vectors of coins takes each value, a panel for each d_k; the dot products "
        f"spread as d_k grows. With a band from −√d_k to √d_k: {listed(sentences)}.",
        "Four times the length, twice the spread. The grey band reaches from −√d_k to √d_k.",
    )


COIN_REACH = 21


def broken(products: Mapping[str, Any]) -> Figure:
    """Draw dot products under some conditions as histograms, each over the outline of the first of them.

    products: {condition: many numbers}.
    """
    numbers = {name: np.asarray(each, float) for name, each in products.items()}
    fig = new_figure(720, 330)
    axes = np.ravel(fig.subplots(math.ceil(len(numbers) / 3), 3))
    reach = max(abs(each.mean()) + 3.2 * each.std() for each in numbers.values())
    edges = np.arange(-4 * math.ceil(reach / 4) - 1, reach + 4, 4)  # two even numbers a bin, since coins give no others
    sentences = []
    for ax, (name, each) in zip(axes, numbers.items(), strict=False):
        mean = round(each.mean()) + 0  # no −0
        ax.hist(each, edges, density=True, color=RAW)
        ax.hist(next(iter(numbers.values())), edges, density=True, histtype="step", color=palette.INK, linewidth=1.2)
        ax.set_title(typeset(name))
        ax.text(0.01, 0.97, f"mean {mean}\nstd {each.std():.1f}", va="top", transform=ax.transAxes)
        ax.set(yticks=[], xlim=(-reach, reach))
        ax.spines["left"].set_visible(False)
        sentences.append(f"{name}: mean {mean}, standard deviation {each.std():.1f}")
    for ax in axes[len(numbers) :]:
        ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.08, wspace=0.06, hspace=0.55)
    return described(
        fig,
        f"Histograms of the dot products, a panel for each condition. {'; '.join(sentences)}.",
        "The outline in each panel is the first one, with nothing broken. Which changes move the histogram, and which "
        "make it wider?",
    )


def repeated_estimates(estimates: Any, spread: Any, truth: float) -> Figure:
    """Many estimates for each number of samples, and the band truth ± 1.96 · spread/√N that holds 95% of them.

    estimates: {N: numbers}; spread: the standard deviation of one sample; truth: what is estimated.
    """
    fig = new_figure(640, 300)
    ax = fig.subplots()
    sizes = sorted(estimates)
    places = np.arange(len(sizes), dtype=float)
    rng = np.random.default_rng(0)
    for place, size in zip(places, sizes, strict=True):
        shaken = place + rng.uniform(-0.22, 0.22, len(estimates[size]))
        ax.scatter(shaken, estimates[size], s=7, color=RAW, linewidth=0)
        half = 1.96 * spread / math.sqrt(size)
        ax.hlines([truth - half, truth + half], place - 0.32, place + 0.32, color=palette.INK, linewidth=1.3)
    ax.axhline(truth, color=palette.INK, linewidth=1, linestyle=":")
    ax.set_xticks(places, [f"N = {size}" for size in sizes])
    ax.set_ylabel("estimate of the mean")
    ax.set_title(f"a dot is one measurement, a bar {truth} ± 1.96 · {spread}/√N")
    fig.subplots_adjust(left=0.1, right=0.99, top=0.9, bottom=0.1)
    scatter = ", ".join(f"{np.std(estimates[size]):.2f} for {size}" for size in sizes)
    alt = (
        f"Estimates of a mean, {len(estimates[sizes[0]])} for each number of samples. They lie around {truth} and "
        f"scatter less the more samples there are, with a standard deviation of {scatter} samples. Bars at "
        f"±1.96 times {spread} over root N hold nearly all of them."
    )
    held = np.concatenate([np.abs(np.subtract(estimates[size], truth)) * math.sqrt(size) for size in sizes])
    more = sizes[-1] / sizes[0]
    return described(
        fig,
        alt,
        f"With {more:g} times as many samples the bars are {math.sqrt(more):g} times closer together, and "
        f"{np.mean(held <= 1.96 * spread):.0%} of the dots lie between the bars of their group.",
    )


def spread_against_width(widths: Any, raw: Any, scaled: Any) -> Figure:
    """Standard deviations with 95% intervals: raw beside √d_k on the left, scaled beside 1 on the right.

    raw, scaled: one Estimate (value, error) for each of widths.
    """
    fig = new_figure(720, 300)
    left, right = fig.subplots(1, 2)
    left.plot(widths, np.sqrt(widths), color=palette.INK, linewidth=1.2, linestyle="--", label="$\\sqrt{d_k}$")
    left.annotate("$\\sqrt{d_k}$", (widths[-2], math.sqrt(widths[-2])), (8, -14), textcoords="offset points")
    _intervals(left, widths, raw, RAW)
    left.set_yscale("log", base=2)
    left.set_yticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
    left.set_title("std of $q \\cdot k$, measured")
    right.axhline(1, color=palette.INK, linewidth=1.2, linestyle="--")
    _intervals(right, widths, scaled, SCALED)
    reach = 1.25 * max(abs(one.value - 1) + 1.96 * one.error for one in scaled)
    right.set_ylim(1 - reach, 1 + reach)
    right.set_title("std of $q \\cdot k / \\sqrt{d_k}$, 95% bars")
    for ax in (left, right):
        _width_axis(ax, widths)
    fig.subplots_adjust(left=0.06, right=0.99, top=0.9, bottom=0.19, wspace=0.2)
    alt = (
        f"Left: the standard deviation of raw dot products against d_k, both axes logarithmic. It climbs from "
        f"{raw[0].value:.2f} at {widths[0]} to {raw[-1].value:.1f} at {widths[-1]}, along the line √d_k. Right: "
        f"divided by √d_k it lies from {min(one.value for one in scaled):.2f} to "
        f"{max(one.value for one in scaled):.2f}, whatever d_k is."
    )
    hold = sum(abs(one.value - 1) <= 1.96 * one.error for one in scaled)
    return described(
        fig,
        alt,
        f"Raw products grow along √d_k, so dividing by it gives the same spread at every width: {hold} of "
        f"{len(scaled)} intervals on the right contain 1.",
    )


def number_formats(formats: Mapping[str, tuple[float, float, float]], std: float) -> Figure:
    """Draw what types of number can hold: the x with e^x in range, and how far apart numbers are, against their size.

    formats: {name: (largest, smallest normal number, eps)}, as `torch.finfo` has them; std: the spread of some scores,
    drawn over the ranges.
    """
    fig = new_figure(720, 300)
    left, right = fig.subplots(1, 2)
    ranges = {name: (math.log(tiny), math.log(largest)) for name, (largest, tiny, _) in formats.items()}
    rows = range(len(formats))
    x = np.linspace(-4 * std, 4 * std, 201)
    left.fill_between(x, -0.6, -0.6 - 0.9 * np.exp(-0.5 * (x / std) ** 2), color=RAW, linewidth=0)
    for row, (low, high) in zip(rows, ranges.values(), strict=True):
        left.barh(row, high - low, left=low, height=0.5, color="none", edgecolor=palette.INK, hatch=_HATCHES[row])
        left.text(high + 3, row, f"{high:.1f}", va="center")
    left.text(3.1 * std, -1.0, f"scores, std {std:g}", va="center")
    left.axvline(0, color=palette.INK, linewidth=0.8)
    widest = max(high for _, high in ranges.values())
    left.set(xlim=(-1.25 * widest, 1.55 * widest), ylim=(len(formats) - 0.4, -1.6), xlabel="score $x$")
    left.set_yticks(rows, list(formats))
    left.tick_params(axis="y", length=0)
    left.set_title("scores $x$ whose $e^x$ is held in full")
    powers = np.arange(0, 20)
    for row, (name, (largest, _, eps)) in zip(rows, formats.items(), strict=True):
        sizes = 2.0 ** powers[2.0**powers < largest]
        right.step([*sizes, 2 * sizes[-1]], [*(eps * sizes), eps * sizes[-1]], where="post", color=palette.INK,
                   linestyle=_LINES[row], linewidth=1.7)  # fmt: skip
        aside, ha = ((-10, 9), "right") if row == 1 else ((10, -18), "left")
        right.annotate(name, (2.0**11, eps * 2.0**11), aside, textcoords="offset points", ha=ha)
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=10)
    right.set_xticks([1, 16, 256, 2048, 65536], ["1", "16", "256", "2,048", "65,536"])
    right.set_yticks([1e-6, 1e-4, 1e-2, 1, 100], ["0.000001", "0.0001", "0.01", "1", "100"])
    right.minorticks_off()
    right.axhline(1, color=palette.INK, linewidth=0.8, linestyle=":")
    right.set(xlabel="size of a number", xlim=(1, 2**20), ylim=(None, 3000))
    right.set_title("distance to the next number")
    fig.subplots_adjust(left=0.1, right=0.985, top=0.9, bottom=0.18, wspace=0.3)
    held = "; ".join(f"{name} from {low:.1f} to {high:.1f}" for name, (low, high) in ranges.items())
    gaps = "; ".join(f"{name} {eps * 2048:.2g}" for name, (*_, eps) in formats.items())
    narrow = min(ranges, key=lambda name: ranges[name][1])
    coarse = max(formats, key=lambda name: formats[name][2])
    return described(
        fig,
        f"Left: the scores x whose e^x a type of number holds in full: {held}; above them a bell curve of scores with "
        f"standard deviation {std:g}. Right: how far apart neighbouring numbers are, against their size, on "
        f"logarithmic axes. At 2048: {gaps}. The line of {narrow} ends first.",
        f"{narrow} reaches least far, and {coarse} has the widest gaps. Where a line passes 1, adding 1 is rounded: to "
        f"nothing, or to a whole gap.",
    )


def runner_up(gaps: Any, slopes: Any, marked: Any) -> Figure:
    """The slope p(1 - p) of the second of two keys against its gap, beside e^-gap; one gap is marked with its value."""
    gaps = np.asarray(gaps, float)
    slopes = np.asarray(slopes, float)
    fig = new_figure(560, 300)
    ax = fig.subplots()
    ax.semilogy(gaps, np.exp(-gaps), color=palette.INK, linestyle="--", linewidth=1.3, label="$e^{-Δ}$")
    ax.annotate("$e^{-Δ}$", (gaps[0], 1), (16, -4), textcoords="offset points")
    ax.semilogy(gaps, slopes, color=palette.TEAL, linewidth=2)
    ax.annotate("slope $p(1-p)$", (gaps[0], slopes[0]), (0, -34), textcoords="offset points")
    value = float(np.interp(marked, gaps, slopes))
    ax.scatter([marked], [value], s=45, color=palette.INK, zorder=3)
    ax.annotate(
        f"Δ = {marked}: {value:.1e}", (marked, value), xytext=(8, 8), textcoords="offset points",
        color=palette.INK,
    )  # fmt: skip
    ax.set_xlabel("gap Δ to the leader")
    ax.set_title("slope of the runner-up's weight")
    fig.subplots_adjust(left=0.1, right=0.98, top=0.9, bottom=0.2)
    alt = (
        f"The slope of the runner-up's weight against its gap to the leader, on a logarithmic axis. From "
        f"{slopes[0]:.2f} at a gap of {gaps[0]:.0f} it falls and soon follows the dashed line e to the minus gap: "
        f"{value:.1e} at {marked}."
    )
    near = gaps[np.argmax(slopes > 0.95 * np.exp(-gaps))]
    return described(
        fig,
        alt,
        f"From a gap of about {near:.0f} on the two lines are one, so each further unit of gap divides the slope by e.",
    )


def gradient_paths() -> Figure:
    """Attention as boxes and arrows, forward in grey and back in colour: to V, to the weights, on to Q and K, to W."""
    fig = new_figure(720, 300)
    ax = fig.subplots()
    places = {
        "X": (-3.9, 0.5), "$W_Q$": (-2.3, 1.5), "$W_K$": (-2.3, 0.5), "$W_V$": (-2.3, -0.5),
        "Q": (0, 1.5), "K": (0, 0.5), "V": (0, -0.5), "S": (2.1, 1), "A": (4.4, 1), "O": (6.6, 0.35),
    }  # fmt: skip
    for name, place in places.items():
        box = {"boxstyle": "round,pad=0.42", "facecolor": "none", "edgecolor": palette.INK}
        ax.text(*place, name, ha="center", va="center", fontsize=13, bbox=box, zorder=3)
    paths = (
        ("O", "V", palette.VALUE),
        ("O", "A", palette.OUTPUT),
        ("A", "S", palette.OUTPUT),
        ("S", "Q", palette.QUERY),
        ("S", "K", palette.KEY),
        ("Q", "$W_Q$", palette.QUERY),
        ("K", "$W_K$", palette.KEY),
        ("V", "$W_V$", palette.VALUE),
    )
    for matrix in ("$W_Q$", "$W_K$", "$W_V$"):
        arrow = {"arrowstyle": "-|>", "color": palette.INK, "linewidth": 1, "shrinkA": 15, "shrinkB": 19}
        ax.annotate("", places[matrix], places["X"], arrowprops=arrow)
    for start, end, colour in paths:
        _both_ways(ax, places[end], places[start], colour)
    notes = (
        (5.45, 1.02, "2. $dA = dO\\,V^{\\!\\top}$", "bottom", "left"),
        (3.4, -0.28, "1. $dV = A^{\\!\\top} dO$", "top", "left"),
        (3.25, 1.22, "3. softmax and scale", "bottom", "center"),
        (3.25, 0.78, "$p \\circ (g - p \\cdot g) / \\sqrt{d_k}$", "top", "center"),
        (1.2, 1.6, "$dQ = dS\\,K$", "bottom", "center"),
        (1.2, 0.42, "$dK = dS^{\\!\\top} Q$", "top", "center"),
        (-1.15, 1.66, "$dW_Q = X^{\\!\\top} dQ$", "bottom", "center"),
        (-1.15, 0.66, "$dW_K = X^{\\!\\top} dK$", "bottom", "center"),
        (-1.15, -0.66, "$dW_V = X^{\\!\\top} dV$", "top", "center"),
    )
    for x, y, text, va, ha in notes:
        ax.text(x, y, text, ha=ha, va=va)
    ax.set(xlim=(-4.3, 7.2), ylim=(-0.95, 2.05))
    ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    alt = (
        "X leads by W_Q, W_K and W_V to Q, K and V; Q and K lead to the scores S, these through scale and softmax to "
        "the weights A, and A and V to the output O. Arrows back: step 1 from O to V, step 2 from O to A, step 3 from "
        "A through softmax and scale to S and on to Q and K. From Q, K and V a last step leads back to the three "
        "matrices, by X transposed."
    )
    return described(
        fig,
        alt,
        "Thin arrows compute, thick ones bring the gradient back: to V (1), to the weights (2), and through the "
        "softmax to Q and K (3).",
    )


def look_up_model(d_model: int, d_k: int, pairs: int, meanings: int) -> Figure:
    """Draw the small model that is trained, with the shapes of one dictionary: embeddings, a head, an answer."""
    fig = new_figure(720, 300)
    ax = fig.subplots()
    ax.set(xlim=(-0.6, 8.9), ylim=(-0.9, 2.0))
    ax.axis("off")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.99, bottom=0.01)
    boxes = {  # its middle
        f"$x$: the word asked for,\nembedded (1, {d_model})": (0.4, 1.6, palette.INK),
        f"$x$: {pairs} pairs, embedded\nword + meaning ({pairs}, {d_model})": (0.4, 0.05, palette.INK),
        f"$q = x W_Q$\n(1, {d_k})": (2.6, 1.6, palette.QUERY),
        f"$k = x W_K$\n({pairs}, {d_k})": (2.6, 0.6, palette.KEY),
        f"$v = x W_V$\n({pairs}, {d_model})": (2.6, -0.5, palette.VALUE),
        f"scores times the scale,\nsoftmax (1, {pairs})": (4.7, 1.1, palette.INK),
        f"output\n(1, {d_model})": (6.45, 0.3, palette.OUTPUT),
        f"a score for each\nmeaning (1, {meanings})": (8.05, 0.3, palette.INK),
    }
    placed: list[Any] = []
    for name, (x, y, colour) in boxes.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "none", "edgecolor": colour, "linewidth": 1.6}
        placed.append(ax.text(x, y, name, ha="center", va="center", bbox=box, zorder=3))
    fig.draw_without_rendering()  # so that each box has its size
    edges = [ax.transData.inverted().transform(each.get_bbox_patch().get_window_extent()) for each in placed]
    for start, end in ((0, 2), (1, 3), (1, 4), (2, 5), (3, 5), (5, 6), (4, 6), (6, 7)):
        (_, (right, _)) = edges[start]
        ((left, _), _) = edges[end]
        arrow = {"arrowstyle": "-|>", "color": palette.INK, "linewidth": 1.2, "mutation_scale": 12}
        ends = (left, placed[end].get_position()[1]), (right, placed[start].get_position()[1])
        ax.annotate("", *ends, arrowprops=arrow | {"shrinkA": 1, "shrinkB": 1})
    alt = (
        f"The word asked for is embedded in {d_model} numbers and makes a query of {d_k}. Each of {pairs} pairs is the "
        f"sum of its word's and its meaning's embedding, {d_model} numbers, and makes a key of {d_k} and a value of "
        f"{d_model}. "
        f"Scores times the scale go through the softmax to {pairs} weights, these mix the values into an output of "
        f"{d_model} numbers, and that gives a score for each of {meanings} meanings."
    )
    return described(
        fig,
        alt,
        f"A score is a sum of {d_k} products, so without a scale its standard deviation would be about "
        f"{math.sqrt(d_k):.0f} where q and k have entries of variance 1.",
    )


def gradient_spread(lengths: Any) -> Figure:
    """Draw how long gradients are against d_k: the mean, the median, and the band of the middle 80%, for each kind.

    lengths: {"raw": {d_k: many lengths}, "scaled": the same}.
    """
    fig = new_figure(720, 330)
    axes = fig.subplots(1, len(lengths), sharey=True)
    for ax, (kind, by_width) in zip(np.atleast_1d(axes), lengths.items(), strict=True):
        widths, rows = zip(*by_width.items(), strict=True)
        colour = COLOURS[kind]
        low, middle, high = np.array([np.quantile(row, (0.1, 0.5, 0.9)) for row in rows]).T
        ax.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(widths, middle, color=colour, marker=_MARKERS[kind], markersize=5, label="median")
        means = [np.mean(row) for row in rows]
        ax.plot(widths, means, color=palette.INK, linestyle="--", marker="D", markersize=4, label="mean")
        ax.set_yscale("log")
        _width_axis(ax, widths)
        ax.set_title(f"length of $dQ$, {kind}; middle 80%")
    bottom = min(np.median(row) for by_width in lengths.values() for row in by_width.values())
    np.atleast_1d(axes)[0].set_ylim(max(bottom / 30, 1e-7), 30)
    fig.subplots_adjust(left=0.08, right=0.85, top=0.91, bottom=0.18, wspace=0.44)
    for ax in np.atleast_1d(axes):
        name_lines(ax)
    ends = "; ".join(
        f"{kind}: from d_k = {min(rows)} to {max(rows)} the median goes from {np.median(rows[min(rows)]):.2g} to "
        f"{np.median(rows[max(rows)]):.2g} and the mean from {np.mean(rows[min(rows)]):.2g} to "
        f"{np.mean(rows[max(rows)]):.2g}"
        for kind, rows in lengths.items()
    )
    alt = f"The length of a query's gradient against d_k, on logarithmic axes; the band holds the middle 80%. {ends}."
    widest = max(next(iter(lengths.values())))
    ratios = {kind: np.mean(rows[widest]) / np.median(rows[widest]) for kind, rows in lengths.items()}
    apart = listed(f"{float(f'{ratio:.2g}'):,g} times the median ({kind})" for kind, ratio in ratios.items())
    return described(fig, alt, f"A mean can hide that most gradients are tiny: at d_k = {widest} it is {apart}.")


def loss_curves(curves: Any, chance: float) -> Figure:
    """Loss against steps, one panel for each learning rate: the median of the seeds and the band from least to largest.

    curves: {rate: (steps, {name of scale: losses (seeds, points)})}, nats; chance: the loss of guessing.
    """
    fig = new_figure(720, 310)
    axes = np.atleast_1d(fig.subplots(1, len(curves), sharey=True))
    styles = zip((RAW, SCALED, BY_WIDTH), ("-", "--", "-."), strict=True)
    looks = [{"color": colour, "linestyle": line, "linewidth": 1.8} for colour, line in styles]
    for ax, (rate, (steps, losses)) in zip(axes, curves.items(), strict=True):
        ax.axhline(chance, color=palette.INK, linewidth=1, linestyle=":", label="guessing")
        for (name, runs), look in zip(losses.items(), looks, strict=True):
            ax.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=look["color"], alpha=0.15, linewidth=0)
            ax.plot(steps, np.median(runs, axis=0), label=typeset(f"scale {name}"), **look)
        ax.set(ylim=(0, 1.12 * chance), xlim=(0, steps[-1]))
        ax.set_xlabel("step")
        ax.set_title(f"rate {rate:g}")
    axes[0].set_ylabel("loss, nats")
    handles, labels = axes[0].get_legend_handles_labels()
    seeds = len(next(iter(losses.values())))
    legend = f"line: median of {seeds} seeds; band: lowest to highest"
    fig.legend(handles, labels, title=legend, loc="lower center", ncol=4)
    fig.subplots_adjust(left=0.065, right=0.985, top=0.92, bottom=0.36, wspace=0.1)
    alt = f"Loss against steps, a panel for each learning rate; line: median of {seeds} seeds, band: lowest to highest."
    firsts: dict[str, list[str]] = {}
    for rate, (steps, losses) in curves.items():
        halved = {name: np.flatnonzero(np.median(runs, axis=0) < chance / 2) for name, runs in losses.items()}
        halvings = [
            f"{name} after {steps[at[0]]:.0f} steps" if len(at) else f"{name} never" for name, at in halved.items()
        ]
        alt += f" Rate {rate:g}, half of the loss of guessing: {', '.join(halvings)}."
        first = min(halved, key=lambda name: halved[name][0] if len(halved[name]) else len(steps))
        firsts.setdefault(first, []).append(f"{rate:g}")
    won = [f"with {name} at {'every rate' if len(firsts) == 1 else listed(at)}" for name, at in firsts.items()]
    return described(fig, alt, f"The first median below half of the loss of guessing is that {listed(won)}.")


def loss_by_divisor(models: Sequence[Mapping[str, Any]], own: float) -> Figure:
    """Draw the loss of a model against the number by which its scores are divided; `own` is the model's number.

    models: {"divisor", "loss"} of each.
    """
    fig = new_figure(560, 290)
    ax = fig.subplots()
    divisors = [each["divisor"] for each in models]
    losses = [each["loss"] for each in models]
    ax.plot(divisors, losses, color=palette.INK, linewidth=1.2)
    for divisor, loss in zip(divisors, losses, strict=True):
        colour = SCALED if divisor == own else RAW if divisor < own else BY_WIDTH
        marker = "o" if divisor == own else "v" if divisor < own else "^"
        ax.plot(divisor, loss, color=colour, marker=marker, markersize=8)
        aside = 0 if divisor == own else 8 if divisor < own else -12
        ax.annotate(f"{loss:.2f}", (divisor, loss), (aside, 9), textcoords="offset points", ha="center")
    ax.set_xscale("log", base=2)
    ax.set_xticks(divisors, [f"{divisor}" for divisor in divisors])
    ax.minorticks_off()
    ax.set(xlabel="what the scores are divided by", ylabel="loss, nats per token", ylim=(0, 1.18 * max(losses)))
    fig.subplots_adjust(left=0.11, right=0.97, top=0.96, bottom=0.2)
    points = listed(f"{loss:.2f} at {divisor}" for divisor, loss in zip(divisors, losses, strict=True))
    best = divisors[losses.index(min(losses))]
    return described(
        fig,
        f"Loss against what the scores are divided by, on a logarithmic axis: {points}.",
        f"The loss is lowest at {best} and rises on both sides: divided by too little, each row picks one key; by too "
        f"much, it averages them all.",
    )


# --- below: what the drawings share ---------------------------------------------------------------------------------

_MARKERS = {"raw": "s", "scaled": "o"}
_HATCHES = ["///", "...", ""]
_LINES = ["-", "--", ":"]


def _shades(colour):
    """Weights 0 to 1 in the shades of a colour, from almost white to nearly black; of SCALED those of the course."""
    if colour == SCALED:
        return palette.colormap()
    from matplotlib.colors import LinearSegmentedColormap

    light = [part / 255 for part in palette.ramp()[0]]
    dark = [0.35 * part / 255 for part in palette.rgb(colour)]
    return LinearSegmentedColormap.from_list("weights", [(0, light), (0.75, colour), (1, dark)])


def _intervals(ax, widths, estimates, colour):
    values, errors = np.array(estimates).T
    ax.errorbar(widths, values, yerr=1.96 * errors, color=colour, fmt="o", markersize=5, capsize=4)


def _width_axis(ax, widths):
    ax.set_xscale("log", base=2)
    ax.set_xticks(widths, [f"{width}" for width in widths])
    ax.minorticks_off()
    ax.set_xlabel("$d_k$")


def _both_ways(ax, start, end, colour):
    """A thin grey arrow from start to end, and beside it a thick coloured one back."""
    (x0, y0) = start
    (x1, y1) = end
    length = math.hypot(x1 - x0, y1 - y0)
    aside = np.array([-(y1 - y0), x1 - x0]) / length * 0.07
    a, b = np.array(start) + aside, np.array(end) + aside
    shrink = {"shrinkA": 19, "shrinkB": 19}
    ax.annotate("", b, a, arrowprops={"arrowstyle": "-|>", "color": palette.INK, "linewidth": 1, **shrink})
    a, b = np.array(start) - aside, np.array(end) - aside
    ax.annotate("", a, b, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2.2, **shrink})
