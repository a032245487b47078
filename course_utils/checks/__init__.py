"""The checks of the exercises, and the known mistakes that they recognise.

A notebook writes `from course_utils.checks import checks_for` and `check = checks_for(day=1)`; then
`check("softmax_row")` tries the notebook's answer on the test inputs (the rungs) of that exercise.

A grading kernel imports only `kernel`, which holds no answers, and the folder `given` of each day. The learner's own
notebook and the grader also use `judge`, `diagnosis` and `examples`.
"""


def __getattr__(name: str) -> object:
    if name in {"checks_for", "NotYet"}:
        from . import interactive

        return getattr(interactive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
