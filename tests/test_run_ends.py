"""How a test run ends, told by `conftest.py`: skips are named, and CI accepts none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(folder: Path, *options: str, ci: str = ""):
    (folder / "conftest.py").write_bytes((ROOT / "conftest.py").read_bytes())
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "PYTEST"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options, str(folder)]
    return subprocess.run(command, cwd=folder, env=environment | {"CI": ci}, capture_output=True, text=True)


def skipping(folder: Path, reason: str) -> None:
    body = f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n\ndef test_two():\n    pass\n"
    (folder / "test_it.py").write_text(body)


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_skip_is_named_with_its_reason(options, tmp_path):
    skipping(tmp_path, "Chromium is not installed")
    ended = run(tmp_path, *options)
    assert ended.returncode == 0 and "1 test: Chromium is not installed" in ended.stdout
    assert "1 passed, 1 skipped" in ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_in_ci_a_skip_fails_the_run(options, tmp_path):
    skipping(tmp_path, "Chromium is not installed")
    ended = run(tmp_path, *options, ci="true")
    assert ended.returncode == 1 and "CI skips nothing" in ended.stdout


def test_ci_may_skip_what_needs_a_gpu(tmp_path):
    skipping(tmp_path, "no GPU on this machine")
    assert run(tmp_path, ci="true").returncode == 0


def test_cells_that_nbval_gave_up_after_a_time_out_fail_the_run(tmp_path):
    import nbformat

    slow = nbformat.v4.new_code_cell("import time\n\ntime.sleep(30)", metadata={"tags": ["raises-exception"]})
    slow.metadata.tags.append("nbval-ignore-output")
    notebook = nbformat.v4.new_notebook(cells=[slow, nbformat.v4.new_code_cell("1")])
    nbformat.write(notebook, tmp_path / "slow.ipynb")
    ended = run(tmp_path, "--nbval", "--nbval-cell-timeout", "2", "--nbval-current-env")
    assert ended.returncode == 1 and "cells not run after a time-out" in ended.stdout
