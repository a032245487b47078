"""What `make test-all` does: a command of pytest's, run once for each folder of tests, and the minutes that each takes.

A folder that hangs or fails keeps no other from running, and CI can give folders to several machines.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FINE = (0, 5)  # pytest's exit statuses for "all passed" and "none chosen"


def folders() -> list[str]:
    """Every folder with tests, from the root of the course."""
    of_tests = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/test_*.py")}
    return ["notebooks", "solutions", *sorted(of_tests)]


def main(command: list[str]) -> int:
    """Run the command with each folder as its last argument; the exit status is 1 where it failed for one."""
    told, failed = [], []
    for folder in folders():
        print(f"\n== {folder}", flush=True)
        began = time.monotonic()
        if subprocess.run([*command, folder], cwd=ROOT).returncode not in FINE:
            failed.append(folder)
        minutes, seconds = divmod(round(time.monotonic() - began), 60)
        told.append(f"{folder:18}{minutes:4} min {seconds:2} s{'  failed' if folder in failed else ''}")
    print("\n".join(["\n== minutes by folder", *told]))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
