"""The guesses of day 2's lesson: what each asks, what it is compared with, and why it comes out so."""

from typing import Any

from course_utils.attention import scaling
from course_utils.views import Guess


def largest_weight(widths: Any, largest_raw: Any) -> Guess:
    return Guess.curve(
        2, "largest weight",
        "How does the largest of eight weights grow with d_k, without the scale?",
        widths, truth=largest_raw, low=0, high=1,
        x_label="d_k", y_label="largest weight, mean", x_scale="log",
        why="The mean over a million queries with eight keys each. Raw scores.",
    )  # fmt: skip


def what_the_spread_forgives(changes: Any, spread_of: Any) -> Guess:
    return Guess.choice(
        2, "what the spread forgives",
        "Entries have mean 0 and variance 1, d_k is 2. "
        "Which change leaves Var(q·k) at 2?",
        choices=changes,
        truth=min(changes, key=lambda name: abs(spread_of[name] - 2)),
        why="Counted over all cases, as in the proof. "
        "The cells of this part say which line falls.",
    )  # fmt: skip


def scatter_of_the_mean(scatter: Any) -> Guess:
    return Guess.number(
        2, "scatter of the mean",
        f"With 25 samples the estimates scatter by {scatter[25]:.1f} (their "
        "standard deviation). By how much do they scatter with 1600 samples?",
        truth=scatter[1600], low=0.01, high=2, scale="log",
        why="64 times as many samples, and √64 is 8.",
    )  # fmt: skip


def slope_of_the_runner_up() -> Guess:
    return Guess.number(
        2, "slope of the runner-up",
        "The wrong key is ahead by 10. How many times smaller than 1/4 is the "
        "slope of the right key's weight?",
        truth=0.25 / scaling.runner_up_gradient(10),
        low=1, high=1e6, scale="log",
        why="So many times less of the gradient reaches the score.",
    )  # fmt: skip


def which_scale_learns_first(steps_of: Any) -> Guess:
    return Guess.choice(
        2, "which scale learns first",
        "Which scale reaches a loss of 0.1 after the fewest steps, "
        "in the median of five starts?",
        choices=steps_of, truth=min(steps_of, key=steps_of.get),
        why="At a learning rate of 0.001. The table below has three more rates.",
    )  # fmt: skip
