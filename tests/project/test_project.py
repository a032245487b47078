"""The project's own promises: one list of packages, a Makefile and a README that tell the truth, imports one way."""

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = ("requirements.lock", "requirements-dev.lock")


def files(*patterns: str) -> list[Path]:
    """The project's text files: what git tracks or would track; without git, everything but .venv and caches."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    names = (
        listing.stdout.splitlines() if listing.returncode == 0 else [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]
    )
    caches = r"\.venv|node_modules|\.git|build|__pycache__|\.\w+_cache|\.hypothesis|grades|[\w.]+\.egg-info"
    skipped = re.compile(rf"(^|/)({caches})(/|$)")
    paths = [ROOT / name for name in names if not skipped.search(name)]
    return [path for path in paths if path.is_file() and any(path.match(pattern) for pattern in patterns)]


def requirements(lines) -> dict[str, Requirement]:
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in parsed}


def locked(*names: str) -> dict[str, Requirement]:
    lines = [line for name in names or LOCKS for line in (ROOT / name).read_text().splitlines()]
    return requirements(line for line in lines if line.strip() and not line.startswith("#"))


def test_conda_and_pip_ask_for_the_same_packages():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip[-1] == "-e ."
    assert requirements(pip[:-1]) == requirements(PROJECT["dependencies"])
    python = next(entry for entry in environment["dependencies"] if str(entry).startswith("python"))
    assert PROJECT["requires-python"] in python


def test_version_and_repository_are_said_in_one_place_each():
    from course_utils.course import repository, version

    assert version() == PROJECT["version"]
    assert repository() == PROJECT["urls"]["Repository"].rstrip("/")
    assert re.fullmatch(r"https://[\w./-]+", repository())


@pytest.mark.parametrize(
    ("lock", "requested"), [(LOCKS[0], PROJECT["dependencies"]), (LOCKS[1], PROJECT["optional-dependencies"]["dev"])]
)
def test_each_lock_pins_what_is_asked_for_and_what_that_needs(lock, requested):
    pins = locked() if "dev" in lock else locked(lock)
    requested = requirements(requested)
    for name, requirement in requested.items():
        (pin,) = pins[name].specifier
        assert pin.operator == "==" and requirement.specifier.contains(pin.version, prereleases=True), name
    assert _needed(requested) <= set(pins)


def test_a_learner_installs_nothing_that_only_contributors_need():
    learners, tools = (set(locked(name)) for name in LOCKS)
    assert not learners & tools
    needed = _needed(requirements(PROJECT["dependencies"]), python=_oldest())  # the lock is made with the oldest
    assert learners <= needed | {"setuptools"}  # installs the course itself
    assert {"nbgrader", "dask", "distributed", "ruff", "playwright", "pytest-xdist"} <= tools


def _oldest() -> str:
    """The first Python of the oldest minor version that the course runs on."""
    (oldest,) = (f"{one.version}.0" for one in SpecifierSet(PROJECT["requires-python"]) if one.operator == ">=")
    return oldest


def _needed(requested: dict[str, Requirement], python: str = platform.python_version()) -> set[str]:
    """The names of the packages asked for and of all that they need here, as their own metadata say; but for CUDA."""
    here = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    open_ = {(name, *one.extras) for name, one in requested.items() if not one.marker or one.marker.evaluate()}
    visited = set()
    while open_:
        visited.add(one := open_.pop())
        name, *extras = one
        for needed in map(Requirement, metadata(name).get_all("Requires-Dist") or ()):
            if not needed.marker or any(needed.marker.evaluate(here | {"extra": extra}) for extra in extras or [""]):
                open_ |= {(canonicalize_name(needed.name), *needed.extras)} - visited
    return {name for name, *_ in visited if not name.startswith(("nvidia", "cuda"))}


def test_the_lock_serves_the_first_python_of_the_minor_version_asked_for():
    oldest = _oldest()
    for name in locked():
        with contextlib.suppress(PackageNotFoundError):
            required = metadata(name).get("Requires-Python") or ""
            assert SpecifierSet(required).contains(oldest), f"{name} asks for Python {required}: pin an older version"


def test_the_lock_serves_every_machine():
    for name, pin in locked().items():
        (only,) = pin.specifier
        assert only.operator == "==" and "+" not in only.version and not pin.url, name
        assert not name.startswith(("nvidia", "cuda")), name
    assert str(locked()["triton"].marker) == 'sys_platform == "linux"'


def test_plain_make_lists_every_target():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    for target in set(phony) - {"again"}:
        assert re.search(rf"make {target}\s+\w", listed), target
    assert {"lab", "test", "grade", "build", "check", "lint", "clean", "lock", "bench", "bench-gpu"} <= set(phony)


@pytest.mark.parametrize(
    "version, message",
    [((3, 9), "Python 3.9 found at"), ((2, 7), "3.11 to 3.14 needed"), ((3, 15), "Python 3.15 found"), ((3, 11), "")],
)
def test_an_old_python_is_named(version, message, monkeypatch, tmp_path):
    preflight = _preflight(monkeypatch)
    monkeypatch.chdir(tmp_path)  # where there is no .venv
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    assert message in preflight.missing() and (message or not preflight.missing())


def test_the_pythons_that_were_tested_are_named_in_one_way(monkeypatch):
    """By the classifiers, set-up and README; and CI runs on the oldest, on the newest and on one between them."""
    tested = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith("Programming Language")]
    assert f"{', '.join(tested[:-1])} and {tested[-1]}" == _preflight(monkeypatch).TESTED
    assert f"| Linux, Python {_preflight(monkeypatch).TESTED} |" in (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert {python for python in re.findall(r"3\.1\d", script)} >= set(tested)


def test_a_missing_venv_module_and_a_full_disk_are_named(monkeypatch, tmp_path):
    import importlib.util
    import shutil

    preflight = _preflight(monkeypatch)
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
        assert "no ensurepip module" in preflight.missing() and "apt-get install python3" in preflight.missing()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 10**9))
    assert "1.0 GB free" in preflight.missing()


def test_a_virtual_environment_of_another_python_is_not_mixed_with_this_one(monkeypatch, tmp_path):
    preflight = _preflight(monkeypatch)
    here = ".".join(map(str, sys.version_info[:2]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv").mkdir()
    for version, message in ((f"{here}.99", ""), ("3.4.1", ".venv was made with Python 3.4")):
        (tmp_path / ".venv/pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
        assert message in preflight.missing() and (message or "was made with" not in preflight.missing())


def _preflight(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import preflight

    return preflight


def test_a_missing_interpreter_is_named(tmp_path):
    for name in ("Makefile", "pyproject.toml", *LOCKS):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    made = subprocess.run(["make", "lint", "PYTHON=no-such-python"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode != 0 and "no no-such-python on this machine" in made.stderr


@pytest.mark.parametrize("name", ["$(shell touch made).ipynb", "`touch made`$(touch made) ${HOME} 'it'.ipynb"])
def test_the_name_of_a_submission_is_no_command(name, tmp_path):
    for each in ("Makefile", "pyproject.toml", *LOCKS):
        (tmp_path / each).write_bytes((ROOT / each).read_bytes())
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    (tmp_path / ".venv/.ready").write_text(f"{tmp_path.resolve()}\n")
    (tmp_path / name).touch()
    for more, extra in (([f"SUBMISSIONS={name}"], {}), ([], {"SUBMISSIONS": name})):
        made = subprocess.run(
            ["make", "--no-print-directory", "grade", *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=os.environ | extra,
        )
        assert made.stdout.splitlines()[-2:] == ["--", name] and not (tmp_path / "made").exists(), made.stderr


def test_paths_quoted_in_the_documents_exist():
    for document in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "docs/internals.md"):
        text = (ROOT / document).read_text()
        quoted = re.findall(r"`((?:\.ci|\w[\w.-]*)/[\w./-]*)`", text)
        for path in quoted:
            if path.split("/")[0] not in ("grades", "guesses", "release", "build", "cards", ".venv", "application"):
                there = path.replace("dayN", "day2").replace("NAME", "heatmap")  # of what something new touches
                assert (ROOT / there).exists(), f"{document} names {path}"


def test_the_map_of_days_calls_planned_what_is_not_there():
    rows = re.findall(r"^\| (\d) \|.*\| ([\w, +]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [int(day) for day, _ in rows] == list(range(1, 10))
    for day, minutes in rows:
        lessons = list((ROOT / "notebooks").glob(f"day{day}_*.ipynb"))
        assert bool(lessons) == (minutes != "planned"), f"day {day} is {minutes!r} in README.md"


# Assembled here, so that this file does not hold what it looks for.
MACHINE = re.compile("|".join(["/ro" + "ot/", "/wo" + "rk/", "/home/" + r"\w", "file" + "://", "/opt" + "/pypi"]))
REGISTRY = re.compile(
    "|".join(["pypi" + r"\.org", "pythonhosted" + r"\.org", "registry" + r"\.npmjs", "deb" + r"\.debian"])
)


def test_no_file_names_a_machine_or_a_registry():
    code = ("*.py", "*.js", "*.css", "Makefile", "run")
    for path in files(*code, "*.md", "*.toml", "*.yml", "*.lock", "package*.json", "*.ipynb"):
        text = path.read_text(encoding="utf-8")
        match = MACHINE.search(text) or REGISTRY.search(text)
        if path.parent.name == "browser" and match and match[0].startswith("file:"):
            continue  # a page opened from the file system
        assert not match, f"{path.relative_to(ROOT)}: {match}"


def test_lines_of_javascript_have_at_most_120_columns():
    """Biome breaks code, and leaves texts and comments as long as they are. One file is made by a tool."""
    for path in (path for path in files("*.js", "*.mjs") if path.name != "codemirror.js"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert len(line) <= 120, f"{path.relative_to(ROOT)}, line {number}"


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, course_utils, json; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", code], text=True)))
    assert not loaded & {"torch", "numpy", "matplotlib", "IPython", "ipywidgets", "nbformat"}


def test_the_command_line_loads_the_rooms_when_they_are_used():
    code = "import sys, course_utils.cli, json; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", code], text=True)))
    assert not loaded & {"torch", "numpy", "matplotlib", "nbformat", "jupytext", "nbclient", "pytest"}


@pytest.mark.parametrize("room", ["notebooks", "solutions", "exercises"])
def test_every_notebook_is_valid(room):
    for path in sorted((ROOT / room).glob("*.ipynb")):
        nbformat.validate(nbformat.read(path, as_version=4))


def test_sources_and_notebooks_agree():
    from course_utils.authoring.build import check

    assert check(ROOT, used="CI" not in os.environ) == []  # elsewhere a learner may have run and solved them


def test_ci_runs_what_the_readme_says():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^    env .*\bBUDGET=\$BUDGET make test$", script.read_text(), re.MULTILINE)
    what_is_left = 'make test-all ARGS="--left --share $SHARE"'
    assert script.read_text().count(what_is_left) == 2  # as an ordinary user, and where CI is one
