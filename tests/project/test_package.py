"""The course where it is not a checkout of mine: as a wheel, in a devcontainer, in Binder and in Colab."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
NOT_DATA = (".gitignore",)  # what a checkout alone needs


def tree() -> set[str]:
    """The files of the package that git tracks or would track, by their path in it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "course_utils"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("this is no clone: git knows of no files")
    names = [name for name in found.stdout.splitlines() if (ROOT / name).is_file()]
    return {name.removeprefix("course_utils/") for name in names if Path(name).name not in NOT_DATA}


def test_every_file_of_the_package_is_code_or_named_as_its_data():
    package = ROOT / "course_utils"
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["course_utils"]
    taken = {path.relative_to(package).as_posix() for pattern in patterns for path in package.glob(pattern)}
    left = {name for name in tree() if not name.endswith(".py")} - taken
    assert left == set(), "name them in pyproject.toml, package-data, or the wheel lacks them"


def test_every_folder_with_code_is_a_package():
    for name in tree():
        if name.endswith(".py"):
            assert (ROOT / "course_utils" / name).with_name("__init__.py").exists(), name


@pytest.mark.thorough("builds the wheel from the sdist")
def test_the_wheel_holds_the_tree(tmp_path):
    command = [sys.executable, "-m", "build", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"course_utils/{name}" for name in tree()} <= names
    data = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    asked = SETTINGS["tool"]["setuptools"]["data-files"]
    assert data == {f"{folder}/{Path(name).name}" for folder, files in asked.items() for name in files}
    assert {name.partition("/")[0] for name in names if ".d" not in name.partition("/")[0]} == {"course_utils"}


def test_the_devcontainer_calls_what_there_is():
    makefile = (ROOT / "Makefile").read_text()
    said = " ".join(CONTAINER[step] for step in ("postCreateCommand", "postAttachCommand"))
    assert "make .venv/.ready" in said and "STAMP := $(VENV)/.ready" in makefile and "VENV := .venv" in makefile
    for target in re.findall(r"\bmake ([a-z]+)", said):
        assert re.search(rf"^{target}: ", makefile, re.MULTILINE), target
    assert ".venv/bin/course doctor" in said and SETTINGS["project"]["scripts"]["course"]
    port = re.search(r"^PORT \?= (\d+)$", makefile, re.MULTILINE)[1]
    assert CONTAINER["forwardPorts"] == [int(port)] and list(CONTAINER["portsAttributes"]) == [port]


def test_the_devcontainer_has_a_python_that_the_course_takes():
    name, _, version = CONTAINER["image"].partition(":")
    assert name == "python" and SpecifierSet(SETTINGS["project"]["requires-python"]).contains(version)
