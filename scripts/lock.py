"""Write the lines of `pip freeze`, read from standard input, as a lock file that serves every machine.

usage: python lock.py FILE [OTHER]    OTHER: a lock file whose packages are left out

The comments at the top of FILE stay. The course itself, pip, and what only a torch with CUDA brings are left out, as
well as the local part of versions such as 2.13.0+cpu.
"""

import re
import sys
from pathlib import Path

LEFT_OUT = re.compile(r"pip==|course[_-]utils\b|nvidia-|cuda-|#|-e ", re.IGNORECASE)


def locked(frozen: list[str], other: list[str]) -> list[str]:
    """Return the lines of a lock file, without those of another one."""
    pins = [re.sub(r"\+[a-z0-9.]+$", "", line.strip()) for line in frozen if line.strip() and not LEFT_OUT.match(line)]
    pins = [f"{pin}; sys_platform == 'linux'" if pin.startswith("triton==") else pin for pin in pins]
    return [pin for pin in pins if pin not in other]


if __name__ == "__main__":
    target, *others = map(Path, sys.argv[1:])
    comments = [line for line in target.read_text().splitlines() if line.startswith("#")]
    known = [line for other in others for line in other.read_text().splitlines()]
    target.write_text("\n".join(comments + locked(sys.stdin.readlines(), known)) + "\n")
