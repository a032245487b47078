"""A drawing of a GPU, for day 6: its memories and what a processor holds, by the words that one searches for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.patches import FancyArrowPatch, Rectangle

from course_utils.views import palette
from course_utils.views.picture import described, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.costs.roofline import Machine

# What an H100 SXM has, beside what its `Machine` says. Per processor: 4 quarters, each with a tensor core.
HOPPER = {
    "source": "NVIDIA H100 Tensor Core GPU Architecture, 2022; bytes and rates: FlashAttention-3, 2024, table 1",
    "processors": 132,
    "quarters": 4,
    "warps": 64,  # that a processor holds at once, 32 threads each
    "registers": 256 * 2**10,
    "shared": 228 * 2**10,
    "shared_rate": 31e12,  # of all processors together, bytes a second
    "l2": 50 * 2**20,
    "l2_rate": 12e12,
}


def gpu(card: Machine, chip: Mapping[str, Any] = HOPPER) -> Figure:
    """A GPU by the words that one searches for: device memory, L2, its processors, and what one of these holds.

    card: a `Machine` with its memory and its rates; chip: sizes in bytes and rates in bytes a second, as `HOPPER`.
    """
    assert card.memory_bytes is not None, card.name
    fig = new_figure(720, 430)
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(430, 0))
    ax.axis("off")

    def box(left, top, wide, tall, name="", face="none", edge=palette.INK, size=10.5, weight="bold"):
        ax.add_patch(Rectangle((left, top), wide, tall, facecolor=face, edgecolor=edge, lw=1.1))
        if name:
            ink = palette.INK if face == "none" else palette.ink_on(face)
            ax.text(left + wide / 2, top + tall / 2, name, ha="center", va="center", fontsize=size, color=ink,
                    fontweight=weight)  # fmt: skip

    def label(x, y, text, **kinds):
        usual: dict[str, Any] = {"fontsize": 10.5, "va": "center", "linespacing": 1.15}
        ax.text(x, y, text, **(usual | kinds))

    def arrow(start, stop):
        ax.add_patch(FancyArrowPatch(start, stop, arrowstyle="<|-|>", mutation_scale=11, color=palette.INK, lw=1.3))

    memory = palette.BLUE
    label(20, 18, card.name + ", the chip", fontweight="bold")
    box(20, 32, 250, 214)
    label(30, 46, f"{chip['processors']} SMs: streaming multiprocessors")
    per_row = 12
    for number in range(chip["processors"]):
        row, column = divmod(number, per_row)
        box(31 + 19 * column, 60 + 16 * row, 15, 12, edge=palette.INK, face=memory if number == 11 else "none")
    box(20, 270, 250, 42, f"L2 cache: {chip['l2'] >> 20} MiB", memory)
    box(20, 352, 250, 52, f"HBM, device memory: {card.memory_bytes >> 30} GiB\nQ, K, V, O lie here", memory)
    arrow((90, 246), (90, 270))
    label(102, 259, f"{_rate(chip['l2_rate'])}, all SMs together", fontsize=10)
    arrow((90, 312), (90, 352))
    label(102, 333, _rate(card.bytes_per_second), fontsize=10)
    for y in (32, 404):
        ax.plot([255, 330], [66 if y == 32 else 72, y], color=palette.INK, lw=1)

    label(330, 18, "one SM", fontweight="bold")
    box(330, 32, 370, 372)
    quarters = chip["quarters"]
    for number in range(quarters):
        left = 341 + 88 * number
        box(left, 44, 84, 178)
        box(left + 5, 51, 74, 32, "tensor core", size=10)
        box(left + 5, 88, 74, 38, "exp and\nother units", size=10, weight="normal")
        box(left + 5, 131, 74, 44, f"registers\n{chip['registers'] // quarters >> 10} KiB", memory, size=10)
        label(left + 42, 199, f"up to {chip['warps'] // quarters} warps\nof 32 threads", ha="center", fontsize=9.5)
    box(341, 252, 348, 42, f"shared memory: {chip['shared'] >> 10} KiB", memory)
    arrow((400, 222), (400, 252))
    of_one = _rate(chip["shared_rate"] / chip["processors"])
    label(412, 237, f"{of_one} ({_rate(chip['shared_rate'])} in all SMs together)", fontsize=10)
    label(342, 349, "A thread block (CTA) lives on one SM: 1 to 32 warps that\nshare its shared memory. "
          "In Triton it is one program.\nTMA: a unit that copies tiles between device and shared\n"
          "memory by itself, while the warps compute.", fontsize=10)  # fmt: skip
    arrow((270, 291), (341, 280))
    label(274, 309, "TMA", fontsize=10)
    parts = [
        f"A chip, {card.name}. Left: {chip['processors']} SMs; below them the L2 cache, {chip['l2'] >> 20} MiB, at",
        f"{_rate(chip['l2_rate'])} by all SMs together; below it device memory, HBM, {card.memory_bytes >> 30} GiB at",
        f"{_rate(card.bytes_per_second)}. Right: one SM. Each of its {quarters} quarters has a tensor core, units for",
        f"exponentials and the rest, {chip['registers'] // quarters >> 10} KiB of registers and up to",
        f"{chip['warps'] // quarters} warps of 32 threads. All reach {chip['shared'] >> 10} KiB of shared memory",
        f"at {_rate(chip['shared_rate'])} for all SMs together. TMA copies between it and what lies outside.",
    ]
    near = chip["processors"] * chip["shared"]
    return described(
        fig,
        " ".join(parts),
        f"Shared memory is {chip['shared_rate'] / card.bytes_per_second:.0f} times as fast as device memory, but that "
        f"of all SMs together holds only {near / 2**20:.0f} MiB.",
    )


def _rate(bytes_per_second):
    return f"{bytes_per_second / 1e12:.3g} TB/s"
