"""The guesses of day 2's lesson: what each asks, what is computed, and why it comes out so."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from course_utils.attention import scaling
from course_utils.models import facts_record, scale_experiment
from course_utils.views import Guess, SaturationExplorer


def largest_weight() -> Guess:
    return Guess.curve(
        2, "largest weight",
        "Eight keys, plain dot products: how large is the largest weight, on average, for each d_k?",
        [8, 32, 128, 1024], truth=lambda d_k: SaturationExplorer(int(d_k), n_keys=8).means["no scale"].largest,
        low=0, high=1, x_label="d_k", y_label="largest weight, mean", x_scale="log",
        why="This is the mean over a million queries, each with eight keys of its own.",
    )  # fmt: skip


def four_times_as_long() -> Guess:
    def spread(d_k: int) -> float:
        vectors = np.array(list(itertools.product([1, -1], repeat=d_k)))  # every vector of coins
        return float((vectors @ vectors.T).std())

    factors = {"not at all": 1.0, "by √2": math.sqrt(2), "twofold": 2.0, "fourfold": 4.0}
    growth = spread(8) / spread(2)
    return Guess.choice(
        2, "four times as long",
        "The vectors become four times as long. By what factor does the spread of their dot products grow?",
        choices=factors, truth=min(factors, key=lambda choice: abs(factors[choice] - growth)),
        why="Counted over all vectors of coins, of 2 and of 8 entries.",
    )  # fmt: skip


def rows_that_break(shares: Mapping[int, float]) -> Guess:
    d_k = max(shares)
    return Guess.number(
        2, "rows that break",
        f"Eight keys, d_k = {d_k}, no scale, float16 and no shift: in how many of 100 rows is a weight NaN?",
        truth=100 * shares[d_k], low=0, high=100,
        why="One score above 11.09 is enough to break a row.",
    )  # fmt: skip


def slope_of_the_runner_up() -> Guess:
    return Guess.number(
        2, "slope of the runner-up",
        "The wrong one of two keys is ahead by 10. By what factor is the slope of the runner-up's weight smaller than "
        "1/4?",
        truth=0.25 / scaling.runner_up_gradient(10), low=1, high=1e6, scale="log",
        why="The gradient that reaches this score shrinks by the same factor.",
    )  # fmt: skip


def mean_gradient_without_the_scale(means: Mapping[int, float]) -> Guess:
    narrow, wide = min(means), max(means)
    growth = means[wide] / means[narrow]
    choices = {"it falls to less than a tenth": 0.01, "it falls to about a half": 0.5, "it stays about the same": 1.0,
               "it roughly doubles": 2.0}  # fmt: skip
    nearest = min(choices, key=lambda choice: abs(math.log(growth / choices[choice])))
    return Guess.choice(
        2, "mean gradient without the scale",
        f"Without the scale, d_k goes from {narrow} to {wide}. What happens to the mean length of dQ?",
        choices=choices, truth=nearest,
        why=f"From {means[narrow]:.2f} to {means[wide]:.2f}. Most queries do not get the mean: look at the medians.",
    )  # fmt: skip


def which_scale_comes_second() -> Guess:
    runs = [row for row in scale_experiment.summary() if (row["rate"], row["start"]) == (1e-3, 1)]
    steps = {row["scale"]: row["steps_to_learn"] or math.inf for row in runs}
    return Guess.choice(
        2, "which scale comes second",
        "At a learning rate of 0.001, which scale is the second to reach a loss of 0.1, in the median of five starts?",
        choices=steps, truth=sorted(steps, key=lambda scale: steps[scale])[1],
        why="The table below has three more learning rates.",
    )  # fmt: skip


def loss_of_a_real_model_without_its_scale() -> Guess:
    by_divisor = {model["divisor"]: model["loss"] for model in facts_record.fact("divisors")["models"]}
    return Guess.number(
        2, "loss of a real model without its scale",
        f"With its scale the loss is {by_divisor[8]:.2f} nats per token. What is it when no score is divided by 8?",
        truth=by_divisor[1], low=0, high=12, unit="nats",
        why="Only the scale is gone; every weight in the model is as it was after training.",
    )  # fmt: skip
