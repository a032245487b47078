"""Notebooks as files: read with what is wrong with them, and written as the build writes them."""

from pathlib import Path

import nbformat


def read_notebook(path: Path) -> tuple[nbformat.NotebookNode | None, str]:
    """The notebook in a file, or None and what is wrong with it."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
        return notebook, ""
    except FileNotFoundError:
        return None, "not there"
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        return None, "not a notebook"


def dump(notebook: nbformat.NotebookNode) -> str:
    """The text of a notebook's file: keys sorted, indent 1, a newline at the end."""
    return nbformat.writes(notebook) + "\n"
