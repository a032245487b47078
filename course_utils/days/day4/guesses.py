"""The guesses of day 4's lesson: what each asks, what is computed, and why it comes out so."""

import torch
from torch import Tensor

from course_utils.costs import counts
from course_utils.models import facts_record
from course_utils.views import Guess


def rows_of_head_0() -> Guess:
    token_of = torch.arange(3).repeat_interleave(4)  # three tokens of four numbers: whose each number is
    rows = token_of.view(1, 2, 3, 2)[0, 0, :, 0].tolist()
    return Guess.choice(
        4, "rows of head 0",
        "After `view` alone, which tokens do the three rows of head 0 come from?",
        choices=["0, 1, 2", "0, 0, 1", "0, 1, 1", "0, 2, 1"], truth=", ".join(map(str, rows)),
        why="Each row takes the next two numbers in memory, and a token has four.",
    )  # fmt: skip


def share_of_the_core() -> Guess:
    def share(tokens: float) -> float:
        flops = counts.layer_flops(int(tokens), 4096)
        return flops.core / flops.total

    return Guess.curve(
        4, "share of the core",
        "What share of a block's FLOPs is the core of attention, with d_model = 4096?",
        [1024, 4096, 16384, 65536, 131072], truth=share, low=0, high=1,
        x_label="tokens T", y_label="share of the FLOPs", x_scale="log",
        why="These shares come from the formulas in the next table, which also say where the share passes one half.",
    )  # fmt: skip


def loss_by_head(rises: Tensor) -> Guess:
    return Guess.curve(
        4, "loss by head",
        "By how much does the loss of the second copy rise when only this head is off?",
        [f"{place // 4}, {place % 4}" for place in range(8)], truth=rises.flatten(), low=-0.5, high=5, unit="nats",
        x_label="layer, head", y_label="rise in loss",
        why="Layer 0 has the previous-token head, layer 1 the induction heads.",
    )  # fmt: skip


def four_heads_off(one_by_one: float, together: float) -> Guess:
    return Guess.number(
        4, "four heads off",
        f"Switched off one by one, the four induction heads cost {one_by_one:.1f} nats in total. "
        "By how much does the loss rise when all four are off at once?",
        truth=together, low=0, high=6, unit="nats",
        why="Measured on the same 64 texts.",
    )  # fmt: skip


def loss_without_the_induction_heads() -> Guess:
    copying = facts_record.fact("induction")
    whole, without = (sum(copying[name][1:]) / 2 for name in ("by_copy", "by_copy_without_best"))
    return Guess.number(
        4, "loss without the induction heads",
        f"On the second and third copy the whole model has a loss of {whole:.2f}. "
        "What is it without the eight best induction heads, of 270?",
        truth=without, low=0, high=16, unit="nats",
        why="This is the mean over both copies. The table below shows each copy separately.",
    )  # fmt: skip


def margin_without_the_head_of_the_parcel() -> Guess:
    agreement = facts_record.fact("agreement")
    whole, without = (sum(agreement[name]) / len(agreement[name]) for name in ("margins", "without_head"))
    return Guess.number(
        4, "margin without the head of the parcel",
        f"The whole model prefers the right verb by {whole:.2f} on average. By how much does it do so without "
        "head 8 of layer 13, the head that gave 0.96 to parcel at arrived?",
        truth=without, low=0, high=3,
        why="Where does the model choose the verb, and where does this head look there?",
    )  # fmt: skip
