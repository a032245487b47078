"""Which of the known mistakes in the exercises show in the real model, where, and how long it takes to see.

Each is put into the model as `course_utils.parts` puts a learner's answer there. What does not show must be what
`course_utils/parts/hidden.toml` lists, and nothing else. Seconds are the processor's, of one thread.
usage: python benchmarks/parts.py [EXERCISE ...]
"""

import os
import sys
import time
from collections import Counter

os.environ["OMP_NUM_THREADS"] = "1"

from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.models import real
from course_utils.parts import SLOTS, compare
from course_utils.parts.notebook import Parts, Row


def place(comparison) -> str:
    """Return where a comparison shows a mistake first."""
    if not comparison.shows:
        return "hidden"
    if comparison.layer is not None:
        return "later" if comparison.layer else "layer 0"
    return "error" if comparison.error else "text"


def main() -> None:
    model = real.load()
    amiss = []
    print(f"{'exercise':18} tried  layer 0  later  error  text  hidden  slowest")
    for slot in SLOTS:
        if len(sys.argv) > 1 and slot.grade_id not in sys.argv[1:]:
            continue
        counts = Counter()
        slowest = 0.0
        for mistake in all_exercises(slot.day)[slot.grade_id].mistakes:
            began = time.process_time()
            parts = Parts((Row(slot, mistake.answer, "tried"),))
            comparison = compare(model, parts, most=6 if slot.part == "writes" else 4)
            slowest = max(slowest, time.process_time() - began)
            counts[place(comparison)] += 1
            if comparison.shows == (mistake.name in slot.hidden):
                amiss.append(f"{slot.grade_id}: {mistake.name!r} {'shows' if comparison.shows else 'does not show'}")
        numbers = "".join(f"{counts[name]:{len(name) + 2}}" for name in ("layer 0", "later", "error", "text", "hidden"))
        print(f"{slot.grade_id:18} {counts.total():5}{numbers}  {slowest:6.1f} s", flush=True)
    if amiss:
        raise SystemExit("\n".join(["hidden.toml says otherwise:", *amiss]))


if __name__ == "__main__":
    main()
