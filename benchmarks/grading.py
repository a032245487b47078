"""How long grading day 1 takes, against a bare `pytest --nbval-lax` of the same notebook, in turns in one run.

Both sides are whole commands, start-up included. usage: python benchmarks/grading.py [ROUNDS]
"""

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

NOTEBOOK = Path(__file__).parents[1] / "solutions" / "day1_attention_by_hand.ipynb"
COMMANDS = {
    "course grade": ["-m", "course_utils", "grade", str(NOTEBOOK)],
    "pytest --nbval-lax": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval-lax", str(NOTEBOOK)],
}


def main(rounds: int) -> None:
    """Print the median seconds of both commands and their ratio."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            taken[name].append(time.perf_counter() - began)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {rounds} rounds")
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, seconds in medians.items():
        print(f"{name:20} {seconds:5.2f} s median of {', '.join(f'{s:.2f}' for s in taken[name])}")
    ratio = medians["course grade"] / medians["pytest --nbval-lax"]
    print(f"ratio {ratio:.2f} (at most 1 is the aim)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
