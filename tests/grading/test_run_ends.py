"""How a test run ends, told by `conftest.py`: skips are named, and CI accepts none."""

from pathlib import Path

import nbformat
import pytest

pytest_plugins = ["pytester"]  # runs pytest in this process
WORKER = pytest.mark.thorough("pytest run with a worker of xdist, and outside CI")
CONFTEST = Path(__file__).parents[2] / "conftest.py"


@pytest.fixture
def run(pytester, monkeypatch):
    """pytest in a folder with the course's conftest.py: the exit status and the lines of the run."""
    for name in ("CI", "MAY_SKIP", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))

    def run(*options, ci=""):
        monkeypatch.setenv("CI", ci)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q", *options)

    return run


@pytest.fixture
def skipping(pytester):
    def skipping(reason):
        pytester.makepyfile(
            test_it=f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n\ndef test_two():\n    pass\n"
        )

    return skipping


@pytest.mark.thorough("pytest run once for each share of what is left")
def test_each_test_that_is_left_is_in_one_of_the_shares(run, pytester):
    pytester.makepyfile(
        test_it="import pytest\n\n@pytest.mark.thorough('long')\n@pytest.mark.parametrize('number', range(30))\n"
        "def test_left(number):\n    pass\n\ndef test_rest():\n    pass\n"
    )
    passed = [run("--left", "--share", f"{share}/3").parseoutcomes()["passed"] for share in (1, 2, 3)]
    assert sum(passed) == 30
    assert max(passed) < 30
    assert run("--left", "--share", "4/3").ret == pytest.ExitCode.USAGE_ERROR


@WORKER
def test_a_skip_is_named_with_its_reason(run, skipping):
    skipping("Chromium is not installed")
    ended = run()
    assert ended.ret == 0 and "1 test: Chromium is not installed" in ended.outlines
    assert "1 passed, 1 skipped" in ended.outlines[-1]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="alone"),
        pytest.param(("-n", "1"), marks=WORKER, id="with a worker of xdist"),
    ],
)
def test_in_ci_a_skip_is_named_and_fails_the_run(options, run, skipping):
    skipping("Chromium is not installed")
    ended = run(*options, ci="true")
    assert ended.ret == 1 and "1 test: Chromium is not installed" in ended.outlines
    assert any(line.startswith("CI skips nothing") for line in ended.outlines)
    assert "1 passed, 1 skipped" in ended.outlines[-1]


def test_ci_may_skip_what_needs_a_gpu(run, skipping):
    skipping("no GPU on this machine")
    ended = run(ci="true")
    assert ended.ret == 0 and "1 test: no GPU on this machine" in ended.outlines


def test_cells_that_nbval_gave_up_after_a_time_out_fail_the_run(run, pytester):
    slow = nbformat.v4.new_code_cell("import threading\n\nthreading.Event().wait()")
    slow.metadata.tags = ["raises-exception", "nbval-ignore-output"]
    notebook = nbformat.v4.new_notebook(cells=[slow, nbformat.v4.new_code_cell("1")])
    nbformat.write(notebook, pytester.path / "slow.ipynb")
    ended = run("--nbval", "--nbval-cell-timeout", "1", "--nbval-current-env")
    assert ended.ret == 1 and any("cells not run after a time-out" in line for line in ended.outlines)
