"""What the checks of day 10 try."""

from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.small import Small, one_of
from course_utils.days.shared.given.draws import draw


def double(rng):
    numbers = {"a small number": 3.0, "a negative one": -2.5, "another": float(draw(rng, 1)[0])}
    return [Rung(name, (number,), "It is the number and itself again.") for name, number in numbers.items()]


LADDERS = {"double": Ladder(("double",), ("twice",), double, small=(Small((one_of(1.0, 2.0),)),))}
