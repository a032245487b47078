"""Answers to the exercises, right and wrong, as people write them.

An answer is a function or a class; where an exercise asks for several, a mapping from their names.
"""

RIGHT: dict[tuple[int, str], list] = {}
WRONG: dict[tuple[int, str], list] = {}
# Exercises whose answers take long to judge: they draw thousands of samples, train, or are watched while they run.
SLOW = {"dot_product_stats", "saturation", "first_leak", "multi_head", "tiled_attention", "triton_inner_loop"}
SLOW |= {"row_in_blocks", "tells_right"}  # it tries fifty implementations


def right(day, grade_id):
    """Register an answer as one that must get all points."""
    return lambda answer: RIGHT.setdefault((day, grade_id), []).append(answer) or answer


def wrong(day, grade_id):
    """Register an answer as one that must get none."""
    return lambda answer: WRONG.setdefault((day, grade_id), []).append(answer) or answer


from . import duels  # noqa: E402, F401  # registers the tests of all days
