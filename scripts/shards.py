"""What `make test-all` does: a command of pytest's, run once for each shard of folders, and the minutes of each.

A shard that hangs or fails keeps no other from running, and CI can give shards to several machines.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGE = ("tests/browser", "tests/checks", "tests/grading")  # a shard each; the other folders of tests are one together
FINE = (0, 5)  # pytest's exit statuses for "all passed" and "none chosen"


def shards() -> list[list[str]]:
    """Every folder with tests, from the root of the course, in the groups that run together."""
    of_tests = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")}
    return [["notebooks", "solutions"], *([folder] for folder in LARGE), sorted(of_tests.difference(LARGE))]


def main(command: list[str]) -> int:
    """Run the command with each shard's folders as its last arguments; the exit status is 1 where it failed for one."""
    lines = []
    failed = False
    for folders in shards():
        name = " ".join(folders)
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        fine = subprocess.run([*command, *folders], cwd=ROOT).returncode in FINE
        failed |= not fine
        minutes, seconds = divmod(round(time.monotonic() - began), 60)
        lines.append(f"{minutes:4} min {seconds:2} s{'' if fine else '  failed'}  {name}")
    print("\n".join(["\n== minutes by shard", *lines]))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
