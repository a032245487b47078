"""The ladders of day 8: the test inputs of each exercise; no answers.

Sizes differ wherever they can, and coincide where a wrong axis would fit.
"""

from __future__ import annotations

import numpy as np

from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.small import Small, one_of
from course_utils.days.shared.given.draws import draw

AS_IT_WAS = "what it is given stays as it was"
COPY = "The answer is right but writes into its arguments, which the caller still needs. Work on a copy."


# A delta step -------------------------------------------------------------------------------------------------------


def delta_step(rng: np.random.Generator) -> list[Rung]:
    def step(d: int, e: int, beta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return draw(rng, d, e), draw(rng, d), draw(rng, e), beta

    empty = np.zeros((3, 2)), np.array([0.0, 1.0, 0.0]), np.array([2.0, -1.0]), 1.0
    written = np.array([[5.0, 3.0], [7.0, 1.0]])
    return [
        Rung("into an empty state", empty, "The state holds nothing, so all of v is new: row 1 becomes v.",
            shape_hint="Return the new state, an array of the shape of the old one."),
        Rung("over what is there", (written, np.array([1.0, 0.0]), np.array([2.0, -1.0]), 1.0),
            "Row 0 reads (5, 3) and should read (2, −1): what is written is the difference."),
        Rung("half a step", (written, np.array([1.0, 0.0]), np.array([2.0, -1.0]), 0.5),
            "With β = 0.5, row 0 moves half of the way to v."),
        Rung("no step", step(3, 2, 0.0), "With β = 0 the state stays as it is."),
        Rung("a key of several numbers", step(3, 2, 1.0),
            "What the key reads is kᵀS, d numbers times a d × e state. Each row i changes by k[i] times the difference."),
        Rung("as many rows as columns", step(3, 3, 0.75),
            "When d = e, a transposed state raises no error. Keys belong to rows, values to columns."),
        Rung("one number each", step(1, 1, 0.5), "A state of one number: S + βk(v − kS)."),
        Rung("a long key", (draw(rng, 4, 3), 3 * draw(rng, 4), draw(rng, 3), 0.25),
            "The key need not have length 1: use it as it is."),
        Rung("more columns than rows", step(2, 6, 0.25), "e may be larger than d."),
        Rung(AS_IT_WAS, step(3, 2, 0.5), COPY, changes),
        Rung("numbers that float32 cannot tell apart",
            (np.array([[1e8]]), np.array([1.0]), np.array([1e8 + 1]), 1.0),
            "The arrays are float64: keep float64 on the way, too."),
    ]  # fmt: skip


SMALL_STEPS = (Small(("d e", "d", "e", one_of(1.0, 0.5, 0.0)), measures=(None,)),)
LADDERS = {
    "delta_step": Ladder(("delta_step",), ("state",), delta_step, small=SMALL_STEPS),
}
