"""Read files that students send, with limits on their size, and parse the JSON of notebooks."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path

from course_utils.errors import Unreadable

LARGEST_FILE = 50 * 2**20
MOST_PARTS = {b"[": 500_000, b"{": 500_000, b",": 5_000_000}  # nested lists take 50 times their length in memory


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises Unreadable if it is missing, no regular file, or too large."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path}: not a file")
        verify_size(path.name, status.st_size)
        return path.read_bytes()
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file") from None
    except OSError as error:
        raise Unreadable(f"{path.name}: {error.strerror}") from None


def verify_size(name: str, size: int) -> None:
    """Raise Unreadable if a file has more than LARGEST_FILE bytes."""
    if size > LARGEST_FILE:
        raise Unreadable(f"{name}: {size / 2**20:.0f} MiB, more than the {LARGEST_FILE >> 20} allowed")


def parse_notebook(data: bytes, name: str) -> Mapping:
    """Return the JSON of a notebook in nbformat 4. Raises Unreadable with a one-line message for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"{name}: not text in UTF-8, so not a notebook") from None
    if not text.strip():
        raise Unreadable(f"{name}: empty file")
    if any(data.count(sign) > most for sign, most in MOST_PARTS.items()):
        raise Unreadable(f"{name}: more parts than a notebook has")
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise Unreadable(f"{name}: nested too deeply for a notebook") from None
    except ValueError as error:
        raise Unreadable(f"{name}: not JSON, or cut off ({str(error)[:80]})") from None
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        raise Unreadable(f"{name}: JSON, but not a notebook")
    version = notebook["nbformat"]
    if version != 4:
        raise Unreadable(f"{name}: notebook format {str(version)[:10]}; open it in JupyterLab and save it as format 4")
    if not isinstance(notebook.get("cells"), list):
        raise Unreadable(f"{name}: a notebook without cells")
    return notebook
