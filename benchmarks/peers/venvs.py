"""Virtual environments for the peers, one each: the course's pinned packages, and the peer beside them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
PINS = {"nbgrader": "nbgrader==0.9.6", "otter": "otter-grader==7.0.0", "transformers": "transformers==5.23.0"}


def ensure(folder: Path, name: str) -> Path:
    """The Python of a peer's environment in `folder`, made with pip if it is not there. Raises CalledProcessError.

    The lock file pins torch, so the peer works with the packages of the course. Delete the folder to make it anew.
    """
    venv = folder.resolve() / name
    python = venv / "bin" / "python"
    stamp = venv / PINS[name]
    if not stamp.exists():
        print(f"installing {PINS[name]} into {venv}: minutes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(LOCK), PINS[name]], check=True)
        stamp.touch()
    return python
