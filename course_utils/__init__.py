"""Attention, from pencil to kernel: the code behind the notebooks.

The subpackages ("rooms") are `attention` (the mathematics), `costs` (counts and measurements), `models` (small
models), `serving` (many requests on one model), `views` (figures and widgets), `checks` (what an exercise must
satisfy), `authoring` (builds notebooks and editions from sources), `sandbox` (kernels for student code), `grading`,
`learner` (fresh exercises, newer editions) and `practice` (problems to solve with pencil and paper). The module
`doctor` reports what a machine can do, `course` says what the days are, and every room may use `errors` and `files`.
docs/internals.md draws which room imports which. Importing this package imports none of them.
"""

import sys

# nbformat uses jsonschema, which works without rfc3987_syntax; importing it would cost each process a second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
