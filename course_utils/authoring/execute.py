"""Execute a notebook and keep only the outputs that are the same on every machine and in every run."""

import copy
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course_utils.authoring.widget_states import States, take_states
from course_utils.costs.measure import TOLD
from course_utils.course import ROOT
from course_utils.errors import CellFailed
from course_utils.time_limits import BUILD_CELL_SECONDS
from course_utils.views.shared.state import KEEP_STATES

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OWN_LINE = re.compile(r"Cell In\[\d+\], line (\d+)")


def execute(
    notebook: NotebookNode, root: Path, on_cell: Callable[[int], None] = lambda index: None
) -> tuple[NotebookNode, States]:
    """Return a copy of the notebook with cleaned outputs, and the states of its widgets.

    The kernel is this environment's Python with one thread per numerical library, a fixed hash seed, no user profile,
    and an empty folder to run in.

    Args:
        root: tracebacks name files relative to this folder.
        on_cell: called with the index of each cell as it starts.

    Raises:
        CellFailed: a cell raises, runs too long, ends the kernel or prints something that differs between runs, or a
            check fails on the reference answer.
    """
    executed = copy.deepcopy(notebook)
    current = [0]

    def starts(cell: NotebookNode, cell_index: int) -> None:
        current[0] = cell_index
        on_cell(cell_index)

    with tempfile.TemporaryDirectory(prefix="course-build-") as folder:
        client = NotebookClient(
            executed,
            timeout=BUILD_CELL_SECONDS,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            store_widget_state=False,
            on_cell_start=starts,
            extra_arguments=["--log-level=ERROR"],  # a warning about the transport does not help an author
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute(env=_environment(folder))
        except CellExecutionError as error:
            what = f"the cell raised {error.ename}: {_first_line(error.evalue)}"
            raise CellFailed(current[0], _line_in_cell(error.traceback), what, "mend the cell") from None
        except CellTimeoutError:
            what = f"the cell ran for over {BUILD_CELL_SECONDS} s"
            raise CellFailed(current[0], 0, what, "make it shorter") from None
        except DeadKernelError:
            raise CellFailed(current[0], 0, "the kernel died in this cell", "run it alone to see why") from None
    states = take_states(executed)
    _verify_checks(executed)
    executed.metadata = copy.deepcopy(notebook.metadata)  # the client wrote the kernel's version there
    clean(executed, root)
    _verify_repeatable(executed, root)
    return executed, states


def clean(notebook: NotebookNode, root: Path) -> None:
    """Remove, in place, what differs from run to run: times, execution counts, widget ids, and paths in tracebacks.

    Without its widget-view entry, a widget's output shows the PNG beside it until the cell is run.
    """
    count = 0
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        count += bool(cell.source.strip())
        cell.execution_count = count if cell.source.strip() else None
        cell.outputs = [cleaned for output in cell.outputs if (cleaned := _clean_output(output, count, root))]


def _clean_output(output: NotebookNode, count: int, root: Path) -> NotebookNode | None:
    output.pop("transient", None)
    if output.output_type in ("display_data", "execute_result"):
        output.data.pop(_WIDGET_VIEW, None)
        if not output.data:
            return None
    if output.output_type == "execute_result":
        output.execution_count = count
    if output.output_type == "error":
        output.traceback = [_without_paths(line, root) for line in output.traceback]
    return output


def _without_paths(traceback: str, root: Path) -> str:
    """Return a traceback whose file names begin at the package or the repository."""
    traceback = re.sub(r"[^\s\"'\x1b]*[\\/]site-packages[\\/]", "", traceback)
    for folder in (root, ROOT, Path(sys.base_prefix)):
        for spelling in _spellings(folder):
            traceback = traceback.replace(spelling + os.sep, "")
    return traceback


def _verify_checks(notebook: NotebookNode) -> None:
    """Raise CellFailed when a check fails on the reference answers.

    The execution itself continues past such a cell, because it has the tag raises-exception.
    """
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or not cell.metadata.get("nbgrader", {}).get("grade"):
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                what = f"the check fails on the course's own answer: {output.ename}: {_first_line(output.evalue)}"
                raise CellFailed(index, _line_in_cell("\n".join(output.traceback)), what, "fix the answer or the check")


def _verify_repeatable(notebook: NotebookNode, root: Path) -> None:
    """Raise CellFailed when an output holds a memory address or a path of this machine."""
    own_paths = [spelling for folder in (root, ROOT, Path(tempfile.gettempdir()), Path.home(), Path(sys.prefix))
                 for spelling in _spellings(folder) if len(spelling) > 1]  # fmt: skip
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        text = _text_of(cell.outputs)
        path = next((path for path in own_paths if path + os.sep in text), None)
        if path:
            raise CellFailed(index, 0, f"the output holds a path of this machine, {path}{os.sep}", "print less")
        address = _ADDRESS.search(text)
        if address and "nbval-ignore-output" not in cell.metadata.get("tags", []):
            what = f"the output holds an address, {address[0]}, that differs in every run"
            raise CellFailed(index, 0, what, "print something else, or tag the cell nbval-ignore-output")


def _text_of(outputs: Iterable[NotebookNode]) -> str:
    parts = []
    for output in outputs:
        parts += [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", [])]
        parts += [
            body for mime, body in output.get("data", {}).items() if isinstance(body, str) and "image/" not in mime
        ]
    return "\n".join(parts)


def _spellings(folder: Path) -> list[str]:
    """Return a folder's full path and, inside the home folder, the path from ~ to which IPython shortens it."""
    home = str(Path.home())
    full = str(folder)
    return [full, "~" + full[len(home) :]] if full.startswith(home + os.sep) else [full]


def _environment(folder: str) -> dict[str, str]:
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        KEEP_STATES: "yes",
        TOLD: "yes",
        "IPYTHONDIR": str(Path(folder) / ".ipython"),
    }


def _line_in_cell(traceback: str) -> int:
    own = _OWN_LINE.search(_COLOUR.sub("", traceback))
    return int(own[1]) - 1 if own else 0


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]
