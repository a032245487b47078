"""Answers to the exercises, right and wrong, as people write them."""

RIGHT: dict[tuple[int, str], list] = {}
WRONG: dict[tuple[int, str], list] = {}


def right(day, grade_id):
    """Register a function as an answer that must get all points."""
    return lambda function: RIGHT.setdefault((day, grade_id), []).append(function) or function


def wrong(day, grade_id):
    """Register a function as an answer that must get none."""
    return lambda function: WRONG.setdefault((day, grade_id), []).append(function) or function
