"""The guesses of day 8's lesson: what each asks, what is computed, and why it comes out so."""

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
