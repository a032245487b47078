"""What an exercise must satisfy, and the misconceptions it recognises.

A notebook writes `from course_utils.checks import checks_for` and `check = checks_for(day=1)`; then
`check("softmax_row")` climbs the ladder of that exercise with what the notebook has defined.

`kernel` holds no answers and is all of this that a grading kernel sees, beside the folder `given` of each day; `judge`,
`diagnosis` and `examples` stay with the learner's own notebook and with the grader.
"""


def __getattr__(name: str) -> object:
    if name in {"checks_for", "NotYet"}:
        from . import interactive

        return getattr(interactive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
