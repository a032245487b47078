"""Commands run in the process of the tests, where the libraries that they need are loaded."""

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path

import pytest

from course_utils import cli

CONFINED = "course: Student code was confined by "


def course(*arguments, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `course ARGUMENT…`, run in the folder cwd, or in the present one.

    stderr is without the line on what a machine lacks to confine student code, which is no concern of those who ask.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", ["course", *map(str, arguments)])
        cli.main()
    complaints = [line for line in err.getvalue().splitlines(keepends=True) if not line.startswith(CONFINED)]
    return ended.value.code or 0, out.getvalue(), "".join(complaints)


def script(path: Path, *arguments) -> str:
    """What a script prints that is run as a program. It has to set no more than torch's threads: see `one_thread`."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))  # as it is again afterwards
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()
