"""The guesses of day 8's lesson: what each asks, what is computed, and why it comes out so."""

import numpy as np

from course_utils.costs.zoo import ZOO
from course_utils.views import Guess

# First sitting: where does order come from? ------------------------------------------------------------------------


def order_without_positions(changed: float) -> Guess:
    """Take how far the last output moves when two earlier tokens change places."""
    return Guess.choice(
        8, "order without positions",
        "A layer has a causal mask and no positions. The first two of four tokens change places. What does the last "
        "output do?",
        choices=["it stays the same", "it changes"], truth="it stays the same" if changed < 1e-12 else "it changes",
        why="The last query sees all four tokens, and a sum has no order.",
    )  # fmt: skip


# Second sitting: what may one leave out? ---------------------------------------------------------------------------


def loss_in_a_window(all_tokens: float, in_a_window: float) -> Guess:
    return Guess.number(
        8, "loss in a window",
        f"With all tokens, SmolLM2 loses {all_tokens:.2f} nats per token on these texts. What does it lose when every "
        "layer keeps the last 128 keys only?",
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
        "Keys are random, of length 1, and have 16 numbers; values are random too. So many pairs are added to the "
        "state. How large is the error of a read, beside the value that was written?",
        [1, 4, 16, 32, 64], truth=lambda n: float(np.sqrt((n - 1) / 16)), low=0, high=3, x_label="pairs written",
        y_label="error / value",
        why="Each other pair adds its value times k · k', which has a spread of 1/√16 around 0.",
    )  # fmt: skip


def who_recalls_best(accuracy: dict[str, float]) -> Guess:
    """Take the median accuracy by variant, with new values and most pairs."""
    return Guess.choice(
        8, "who recalls best",
        "Keys get new values, and eight pairs are in the text. Which of these tells most of the new values right?",
        choices=list(accuracy), truth=max(accuracy, key=accuracy.__getitem__),
        why="It keeps every key of the text, so nothing had to be written over.",
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
