"""The guesses of the lesson on twice a number."""

from course_utils.views import Guess


def twice_the_last(doubled: list[int]) -> Guess:
    return Guess.number(
        10, "twice the last", "What is twice the last number?",
        truth=doubled[-1], low=0, high=100, why="It is the number and itself.",
    )  # fmt: skip


def odd_or_even(doubled: list[int]) -> Guess:
    return Guess.choice(
        10, "odd or even", "Is twice a number even or odd?",
        choices=["even", "odd"], truth=["even", "odd"][doubled[0] % 2],
        why="It has two equal parts.",
    )  # fmt: skip


def twice_as_steep(numbers: list[int], doubled: list[int]) -> Guess:
    return Guess.curve(
        10, "twice as steep", "How large is twice each number?", numbers,
        truth=doubled, low=0, high=100, x_label="number", y_label="twice that",
        why="A straight line through the origin, with the slope two.",
    )  # fmt: skip


def how_far_apart(doubled: list[int]) -> Guess:
    return Guess.number(
        10, "how far apart", "How far apart are the largest and the smallest?",
        truth=doubled[-1] - doubled[0], low=0, high=100,
        why="Twice as far as the numbers were.",
    )  # fmt: skip
