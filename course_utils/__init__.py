"""Attention, from pencil to kernel: the code behind the notebooks.

Rooms, each of which uses those before it: `attention` (the mathematics), `costs` (counts, and what is measured),
`models` (small ones), `serving` (many requests on one model), `views` (figures and widgets); `checks` (what an
exercise must satisfy), `authoring` (sources made into notebooks and editions), `sandbox` (kernels for student code),
`grading`, `learner` (fresh exercises, a newer edition), `practice` (problems for a pencil), `doctor` (what a machine
can do). `course` says what the days are, `errors` and `files` serve all.
Importing this package loads none.
"""

import sys

# nbformat's jsonschema does without it where it is not there, and its import takes a second of each process.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
