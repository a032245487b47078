"""The guesses of day 1's lesson: what each asks, what is computed, and why it comes out so."""

import numpy as np

from course_utils.attention import arrays, lists
from course_utils.models import real_sentences
from course_utils.views import Guess


def weight_against_temperature() -> Guess:
    scores = [2.0, 0.4, 1.2]  # of honey, lemon and orange

    return Guess.curve(
        1, "weight against temperature",
        "How does the weight of honey, whose score is the largest, depend on the temperature?",
        [0.1, 0.3, 1, 4, 20], truth=lambda t: lists.softmax([s / t for s in scores])[0], low=0, high=1,
        x_label="temperature", y_label="weight of honey", x_scale="log",
        why="Each point is the softmax of the three scores divided by that temperature.",
    )  # fmt: skip


def a_hundred_times_as_long() -> Guess:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    names = ("the", "parcel", "arrived")
    _, (weights,) = arrays.attention(100 * keys[:1], keys, keys)
    attended = [name for name, weight in zip(names, weights, strict=True) if weight > 0.01]
    return Guess.choice(
        1, "two keys tie",
        "A query scores 100 with the, 0 with parcel and 100 with arrived. Which of them get more than 1% of the "
        "weight?",
        choices=["the", "arrived", "the, arrived", "the, parcel, arrived"],
        truth=", ".join(attended),
        why="A softmax gives equal weights to equal scores. The next table has the weights.",
    )  # fmt: skip


def shape_of_the_output() -> Guess:
    output, _ = arrays.attention(np.zeros((2, 3)), np.zeros((5, 3)), np.zeros((5, 4)))
    return Guess.choice(
        1, "shape of the output",
        "Two queries, five keys, d_k = 3 and d_v = 4: what shape is the output?",
        choices=["(2, 3)", "(2, 4)", "(2, 5)", "(5, 4)"], truth=str(output.shape),
        why="One row per query, and as many columns as a value has numbers.",
    )  # fmt: skip


def memory_of_the_weights() -> Guess:
    tokens = 100_000
    return Guess.number(
        1, "memory of the weights",
        "How many GB do the weights of one head take at 100,000 tokens?",
        truth=4 * tokens**2 / 1e9, low=0.001, high=10_000, scale="log", unit="GB",
        why="There are 10 billion pairs of tokens, and each takes four bytes.",
    )  # fmt: skip


def heads_that_find_the_parcel() -> Guess:
    levels = real_sentences.recorded()[0].levels  # (layers, heads, T, T): The parcel that we sent arrived
    n_heads = int((levels[:, :, -1, 1] > real_sentences.LEVELS / 2).sum())
    return Guess.choice(
        1, "heads that find the parcel",
        "In how many of the 270 heads does arrived give parcel more than half of its attention?",
        choices=["1", "about 10", "about 50", "more than 100"], truth=str(n_heads),
        why="In the second-best head the weight is 0.30. Most heads look for other things, or at the first token.",
    )  # fmt: skip
