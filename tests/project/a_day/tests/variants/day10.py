"""Day 10: answers, right and wrong."""

from . import right, wrong


@right(10, "double")
def double_by_adding(number):
    return number + number


@right(10, "double")
def double_by_halving(number):
    return number / 0.5


@wrong(10, "double")
def double_and_one(number):
    return 2 * number + 1
