"""The guesses of day 3's lesson: what each asks, what it is compared with, and why it comes out so."""

from typing import Any

from course_utils.views import Guess


def which_layers_leak(floor: Any, below: Any) -> Guess:
    return Guess.choice(
        3, "which layers leak",
        f"Whose loss goes far below the floor of {floor:.2f}?",
        choices=[
            "no_mask", "no_mask and mask_after",
            "no_mask and mask_after_renormalised",
            "no_mask, mask_after and mask_after_renormalised",
        ],
        truth=" and ".join(below), why="In all three runs of each, on new texts.",
    )  # fmt: skip


def loss_of_a_layer_without_a_mask(mean_loss: Any, floor: Any) -> Guess:
    return Guess.curve(
        3, "loss of a layer without a mask",
        "Without a mask: how does the loss fall while the model trains?",
        [1, 25, 50, 100, 150, 200, 290], truth=mean_loss, low=0, high=3,
        x_label="step", y_label="loss, nats",
        why=f"Means of ten steps. The floor is log 8, which is {floor:.2f}.",
    )  # fmt: skip


def loss_of_a_model_that_cheats(found: Any) -> Guess:
    return Guess.number(
        3, "loss of a model that cheats",
        "With a window at once the model without a mask has a loss of "
        f"{found['leaking'][0]:.1f}. What is it when it may read only the past?",
        truth=found["leaking"][1], low=0, high=20, unit="nats",
        why="It learned to copy, and here is nothing to copy.",
    )  # fmt: skip


def rows_that_sum_to_1(off: Any) -> Guess:
    return Guess.number(
        3, "rows that sum to 1",
        "How many of the 64,000 rows sum to exactly 1, in percent?",
        truth=100 * (off == 0).double().mean(), low=0, high=100, unit="%",
        why="With 32 bits a number, added up by this machine.",
    )  # fmt: skip


def a_low_number_in_place_of(outcomes: Any, outcome: Any) -> Guess:
    return Guess.choice(
        3, "a low number in place of −∞",
        "Scores 1 and 3, and −1e4 added to both: "
        "which weights come out of a softmax in float32?",
        choices=outcomes, truth=outcome,
        why="The next table has −1e9 and −∞ as well, and fewer bits.",
    )  # fmt: skip
