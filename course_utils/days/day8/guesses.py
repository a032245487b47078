"""The guesses of day 8's lesson: what each asks, what is computed, and why it comes out so."""

import math

import numpy as np

from course_utils.attention import positions
from course_utils.costs.zoo import ZOO
from course_utils.models import position_experiment, positions_record
from course_utils.views import Guess

# First sitting: where does order come from? ------------------------------------------------------------------------


def order_without_positions(once: np.ndarray) -> Guess:
    """Take the last outputs (2, d_model) of one layer, before and after two earlier tokens change places."""
    return Guess.choice(
        8, "order without positions",
        "One such layer reads both orders. Is the output of *arrived* the same?",
        choices=["it stays the same", "it changes"],
        truth="it stays the same" if np.allclose(once[0], once[1]) else "it changes",
        why="*arrived* sees the same three words in both orders, and a sum has no order.",
    )  # fmt: skip


def all_positions_later() -> Guess:
    moved = positions_record.fact("moved")
    stays = moved["largest_difference"][-1] < 1e-3 * moved["standard_deviation"]
    return Guess.choice(
        8, "all positions later",
        "In SmolLM2, every token of a text gets a position that is 1,000 larger. What do the logits do?",
        choices=["they stay the same, up to rounding", "they change a little", "they become useless"],
        truth="they stay the same, up to rounding" if stays else "they change a little",
        why="Every layer sees positions only through differences, and these are the same.",
    )  # fmt: skip


def first_logits_that_differ() -> Guess:
    differ = positions_record.fact("pairs")["largest_difference"]
    first = next(place for place, each in enumerate(differ) if each > 0)
    return Guess.choice(
        8, "first logits that differ",
        "Which are the first logits that differ from the right ones?",
        choices=["those after the first token", "those after the second token", "none: no number is lost"],
        truth=["those after the first token", "those after the second token"][first],
        why="The first token is at position 0, where nothing is rotated.",
    )  # fmt: skip


def keys_within_reach() -> Guess:
    slope = positions.alibi_slopes(4)[0].item()
    return Guess.number(
        8, "keys within reach",
        "In the head with slope 1/4, how far back does a key lose 99% of its weight?",
        truth=math.log(100) / slope, low=1, high=1000, scale="log", unit="positions",
        why="The factor is 0.01 where distance times slope is ln 100 = 4.6.",
    )  # fmt: skip


def loss_beyond() -> Guess:
    at, losses = position_experiment.curves()
    mean = losses["RoPE"].mean(0)
    return Guess.curve(
        8, "loss beyond",
        "A model with RoPE was trained on 64 characters. What is its loss at each of these positions?",
        [24, 56, 88, 184, 504], truth=lambda place: mean[np.abs(at - place).argmin()], low=1.5, high=4.5, unit="nats",
        x_label="position in the text", y_label="loss per character",
        why="Distances up to 63 were seen in training. From there on they are new.",
    )  # fmt: skip


def stretched_best() -> Guess:
    far = {row["way"]: row["far"] for row in position_experiment.summary()}
    return Guess.choice(
        8, "stretched best",
        "None of the three is trained any further. Which has the lowest loss at positions 448 to 511?",
        choices=[*position_experiment.STRETCHED],
        truth=min(position_experiment.STRETCHED, key=far.__getitem__),
        why="Compare their curves in the next figure, near the beginning too.",
    )  # fmt: skip


# Second sitting: what can you leave out? ----------------------------------------------------------------------------


def loss_in_a_window(all_tokens: float, in_a_window: float) -> Guess:
    return Guess.number(
        8, "loss in a window",
        f"With all tokens, SmolLM2 has a loss of {all_tokens:.2f} nats per token on these texts. What is its loss when "
        "each layer keeps only the last 128 keys?",
        truth=in_a_window, low=3, high=8, unit=" nats",
        why="Far words matter little for the next one, but one of the keys that are dropped is the first.",
    )  # fmt: skip


def multiplications_saved() -> Guess:
    T, d = 8192, 64
    return Guess.number(
        8, "multiplications saved",
        "A text of 8,192 tokens, queries, keys and values of 64 numbers. How many times fewer multiplications does "
        "Q (KᵀV) take than (QKᵀ) V?",
        truth=(2 * T * T * d) / (2 * T * d * d), low=1, high=1000, scale="log",
        why="The first has T · T scores, each of d products, twice; the second d · d sums of T products, twice.",
    )  # fmt: skip


def error_of_a_full_state() -> Guess:
    return Guess.curve(
        8, "error of a full state",
        "Keys are random, of length 1, and have 16 numbers; values are random too. Pairs are added to the state, "
        "as many as the axis says. How large is the error of a read, relative to the value that was written?",
        [1, 4, 16, 32, 64], truth=lambda n: float(np.sqrt((n - 1) / 16)), low=0, high=3, x_label="pairs written",
        y_label="error / value",
        why="Each other pair adds its value times k · k', which has a spread of 1/√16 around 0.",
    )  # fmt: skip


def who_recalls_best(accuracy: dict[str, float]) -> Guess:
    """Take the median accuracy by variant, with new values and most pairs."""
    return Guess.choice(
        8, "who recalls best",
        "Ten keys were written twice, the second time with new values. Which of these three gets most of the new "
        "values right?",
        choices=list(accuracy), truth=max(accuracy, key=accuracy.__getitem__),
        why="A window has lost whatever lies more than 16 tokens back. A sum reads old and new values together.",
    )  # fmt: skip


def kept_by_a_hybrid() -> Guess:
    T, model = 131_072, ZOO["Kimi Linear 48B"]
    states = sum(layers.count * layers.state for layers in model.layers)
    return Guess.number(
        8, "kept by a hybrid",
        "Kimi Linear has latents in 7 of its 27 layers and a state in the other 20. Of all that it keeps of a text of "
        "131,072 tokens, what share is in the states?",
        truth=100 * 2 * states / model.kept_bytes(T), low=0, high=100, unit=" %",
        why="A latent per token and layer adds up; a state has the same size at any length.",
    )  # fmt: skip
