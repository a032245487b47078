"""Read notebook files, reporting what is wrong with them, and write them as the build does."""

from pathlib import Path

import nbformat


def read_notebook(path: Path) -> tuple[nbformat.NotebookNode | None, str]:
    """Return the notebook in a file and "", or None and what is wrong with the file."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        nbformat.validate(notebook)
        return notebook, ""
    except FileNotFoundError:
        return None, "not there"
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        return None, "not a notebook"


def dump(notebook: nbformat.NotebookNode) -> str:
    """Return the text of a notebook's file: keys sorted, indent 1, a newline at the end."""
    return nbformat.writes(notebook) + "\n"


def report_cells(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """Return the cells in which a learner writes answers for the lab report, by name."""
    cells = ((cell.metadata.get("course", {}).get("report"), cell) for cell in notebook.cells)
    return {name: cell for name, cell in cells if name}
