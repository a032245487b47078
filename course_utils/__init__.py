"""Attention, from pencil to kernel: the code behind the notebooks.

The subpackages ("rooms") are `attention` (the mathematics), `costs` (counts and measurements), `models` (small
models), `serving` (many requests on one model), `views` (figures and widgets), `guesses` (before a lesson computes),
`practice` (problems to solve with pencil and paper), `days` (what a day has of its own), `answers` (references and
known mistakes), `checks` (what an exercise must satisfy), `parts` (a learner's answers in a real model), `cards` (for
Anki), `answer_key` (the official notebooks), `authoring` (builds notebooks and editions from sources), `sandbox`
(kernels for student code), `grading`, `learner` (fresh exercises, newer editions) and `site` (the web pages). The
module `cli` has the commands, `doctor` reports what a machine can do, and `progress` what of the exercises is done.
Every room may use `course` (the days), `errors`, `files`, `loader` and `time_limits`. docs/internals.md draws which
room imports which. Importing this package imports none of them.
"""

import sys

# nbformat uses jsonschema, which works without rfc3987_syntax; importing it would cost each process a second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
