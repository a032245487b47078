"""The guesses of day 2's lesson: what each asks, what is computed, and why it comes out so."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from course_utils.attention import scaling
from course_utils.models import scale_experiment
from course_utils.views import Guess, SaturationExplorer


def largest_weight() -> Guess:
    return Guess.curve(
        2, "largest weight",
        "How does the largest of eight weights grow with d_k, without the scale?",
        [4, 16, 64, 512], truth=lambda d_k: SaturationExplorer(int(d_k), n_keys=8).means["no scale"].largest,
        low=0, high=1, x_label="d_k", y_label="largest weight, mean", x_scale="log",
        why="The mean over a million queries with eight keys each. Raw scores.",
    )  # fmt: skip


def what_the_spread_forgives() -> Guess:
    lopsided = np.array(list(itertools.product([2, -0.5, -0.5, -0.5, -0.5], repeat=2)))  # every vector of two entries
    coins = np.array(list(itertools.product([1, -1], repeat=2)))
    spread = {
        "every entry twice as large": np.var(2 * lopsided @ (2 * lopsided).T),
        "1 added to every entry": np.var((lopsided + 1) @ (lopsided + 1).T),
        "q = k": np.var((lopsided**2).sum(axis=1)),
        "coins for entries": np.var(coins @ coins.T),
    }
    return Guess.choice(
        2, "what the spread forgives",
        "Entries have mean 0 and variance 1, d_k is 2. Which change leaves Var(q·k) at 2?",
        choices=spread, truth=min(spread, key=lambda change: abs(spread[change] - 2)),
        why="Counted over all cases, as in the proof. The cells of this part say which line falls.",
    )  # fmt: skip


def scatter_of_the_mean(scatter: Mapping[int, float]) -> Guess:
    return Guess.number(
        2, "scatter of the mean",
        f"With 25 samples the estimates scatter by {scatter[25]:.1f} (their standard deviation). "
        "By how much do they scatter with 1600 samples?",
        truth=scatter[1600], low=0.01, high=2, scale="log",
        why="64 times as many samples, and √64 is 8.",
    )  # fmt: skip


def slope_of_the_runner_up() -> Guess:
    return Guess.number(
        2, "slope of the runner-up",
        "The wrong key is ahead by 10. How many times smaller than 1/4 is the slope of the right key's weight?",
        truth=0.25 / scaling.runner_up_gradient(10), low=1, high=1e6, scale="log",
        why="So many times less of the gradient reaches the score.",
    )  # fmt: skip


def which_scale_learns_first() -> Guess:
    runs = [row for row in scale_experiment.summary() if (row["rate"], row["start"]) == (1e-3, 1)]
    steps = {row["scale"]: row["steps_to_learn"] or math.inf for row in runs}
    return Guess.choice(
        2, "which scale learns first",
        "Which scale reaches a loss of 0.1 after the fewest steps, in the median of five starts?",
        choices=steps, truth=min(steps, key=lambda scale: steps[scale]),
        why="At a learning rate of 0.001. The table below has three more rates.",
    )  # fmt: skip
