"""The `course` command run in the process of the tests, where the libraries that it needs are loaded."""

import contextlib
import io
import sys
from pathlib import Path

import pytest

from course_utils import cli


def course(*arguments, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `course ARGUMENT…`, run in the folder cwd, or in the present one."""
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
    return ended.value.code or 0, out.getvalue(), err.getvalue()
