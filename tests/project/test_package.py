"""The course where it is not a checkout of mine: as a wheel, in a devcontainer, in Binder and in Colab."""

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from other_systems import body
from packaging.specifiers import SpecifierSet

from course_utils.course import EXERCISES, LESSONS, SOLUTIONS, is_published, repository, version

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
NOTEBOOKS = [path for folder in (LESSONS, EXERCISES, SOLUTIONS) for path in sorted((ROOT / folder).glob("day*.ipynb"))]
ROOMS = ("attention", "costs", "models", "views", "guesses", "practice", "checks")  # which a notebook imports from
# What a notebook in Colab finds there, as of 2026; the cell tagged setup adds what else those rooms import.
IN_COLAB = {"IPython", "PIL", "ipywidgets", "jinja2", "matplotlib", "matplotlib_inline", "numpy", "platformdirs"}
IN_COLAB |= {"regex", "rich", "torch", "traitlets", "triton"}
NOT_DATA = (".gitignore",)  # what a checkout alone needs


def tree() -> set[str]:
    """The files of the package, by their path in it."""
    return {name.removeprefix("course_utils/") for name in tracked("course_utils") if Path(name).name not in NOT_DATA}


def tracked(*places: str) -> list[str]:
    """The files that git tracks or would track in these places."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *places]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("this is no clone: git knows of no files")
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def test_every_file_of_the_package_is_code_or_named_as_its_data():
    package = ROOT / "course_utils"
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["course_utils"]
    taken = {path.relative_to(package).as_posix() for pattern in patterns for path in package.glob(pattern)}
    unlisted = {name for name in tree() if not name.endswith(".py")} - taken
    assert unlisted == set(), "name them in pyproject.toml, package-data, or the wheel lacks them"


def test_every_folder_with_code_is_a_package():
    """But for those of a day, which Python and setuptools find without an `__init__.py`: a new day is to need none."""
    for name in tree():
        if name.endswith(".py") and not re.match(r"(days|answers)/day\d+/", name):
            assert (ROOT / "course_utils" / name).with_name("__init__.py").exists(), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sdist of this tree as a clone has it: the list of files that an earlier build left here
    would bring back a module that is left out."""
    folder = tmp_path_factory.mktemp("dist")
    clone = tmp_path_factory.mktemp("clone")
    for name in tracked("course_utils", "labconfig", "LICENSE*", "README.md", "pyproject.toml", "setup.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    run_python("-m", "build", "--no-isolation", "--outdir", folder, clone)
    assert len(list(folder.glob("*.tar.gz"))) == 1
    (built,) = folder.glob("*.whl")
    return built


def run_python(*arguments, python=sys.executable, cwd=None):
    """What a Python prints that sees nothing of this one's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(part) for part in (python, *arguments)]
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.thorough("the wheel is built from the sdist")
def test_the_wheel_holds_the_tree(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"course_utils/{name}" for name in tree()} <= names
    data = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    data_files = SETTINGS["tool"]["setuptools"]["data-files"]
    assert data == {f"{folder}/{Path(name).name}" for folder, files in data_files.items() for name in files}
    assert {name.partition("/")[0] for name in names if ".d" not in name.partition("/")[0]} == {"course_utils"}


IMPORT = """
import json, sys
import course_utils

failed = {}
for statement in json.loads(sys.argv[1]):
    try:
        exec(statement, {})
    except Exception as error:
        failed[statement] = f"{type(error).__name__}: {error}"
print(json.dumps({"package": course_utils.__file__, "failed": failed}))
"""


@pytest.mark.thorough("the wheel is built from the sdist")
def test_all_that_lessons_and_exercises_import_is_in_the_wheel(wheel, tmp_path):
    python = tmp_path / "environment" / "bin" / "python"
    here = tmp_path / "here"
    here.mkdir()
    run_python("-m", "venv", "--without-pip", tmp_path / "environment")
    run_python("-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", wheel)
    packages = Path(run_python("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=python).strip())
    # What the course depends on is found in this environment, after the wheel; an editable course is not: its own .pth
    # counts only where it lies.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    needed = sorted(set().union(*map(imports, (path for path in NOTEBOOKS if path.parent.name != SOLUTIONS))))
    assert any("course_utils.serving" in statement for statement in needed)
    first = imported_in(here, python, needed)
    assert Path(first["package"]).is_relative_to(packages) and first["failed"] == {}
    shutil.rmtree(packages / "course_utils" / "serving")  # 0.2.0 had none
    failed = imported_in(here, python, needed)["failed"]
    assert failed.keys() >= {each for each in needed if "course_utils.serving" in each}
    assert all("No module named 'course_utils.serving" in message for message in failed.values()), failed


def imported_in(folder, python, statements):
    """Where a Python finds the course, and which imports fail there and why."""
    output = run_python("-I", "-c", IMPORT, json.dumps(statements), python=python, cwd=folder)
    return json.loads(output.splitlines()[-1])


def imports(path):
    """The imports of a notebook as statements, wherever they stand; not those of a package that a cell only tries."""
    for cell in nbformat.read(path, as_version=4).cells:
        parsed = body(cell.source) if cell.cell_type == "code" else []
        nodes = [node for part in parsed for node in ast.walk(part) if isinstance(node, ast.Import | ast.ImportFrom)]
        yield from (ast.unparse(node) for node in nodes if node in parsed or "course_utils" in ast.unparse(node))


def test_the_devcontainer_calls_what_there_is():
    makefile = (ROOT / "Makefile").read_text()
    commands = " ".join(CONTAINER[step] for step in ("postCreateCommand", "postAttachCommand"))
    assert "make .venv/.ready" in commands and "STAMP := $(VENV)/.ready" in makefile and "VENV := .venv" in makefile
    for target in re.findall(r"\bmake ([a-z]+)", commands):
        assert re.search(rf"^{target}: ", makefile, re.MULTILINE), target
    assert ".venv/bin/course doctor" in commands and SETTINGS["project"]["scripts"]["course"]
    port = re.search(r"^PORT \?= (\d+)$", makefile, re.MULTILINE)[1]
    assert CONTAINER["forwardPorts"] == [int(port)] and list(CONTAINER["portsAttributes"]) == [port]


def test_the_devcontainer_has_a_python_that_the_course_takes():
    name, _, version = CONTAINER["image"].partition(":")
    assert name == "python" and SpecifierSet(SETTINGS["project"]["requires-python"]).contains(version)


ALONE = """
import json, shutil, sys
sys.path.insert(0, sys.argv[1])  # the folder of in_process
import in_process
from course_utils import course, guesses
from course_utils.views.passed import describe_passed
from course_utils.views import Guess, ProgressMap

asked = Guess.number(1, "one", "How many?", truth=3, low=0, high=10)
asked.take(4)
commands = ["progress", "check", "reset 1", "grade ada_day1.ipynb", "release --out release", "update"]
told = {command: in_process.course(*command.split())[::2] for command in commands}
print(json.dumps({"checkout": course.IN_CHECKOUT, "repository": course.repository(), "commands": told,
                  "passed": describe_passed(1, "softmax", {"softmax"})["text/plain"],
                  "map": ProgressMap()._shown["lines"]}))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the package says and leaves where it lies alone, as in site-packages, and is used in an empty folder."""
    packages = tmp_path_factory.mktemp("packages")
    here = tmp_path_factory.mktemp("here")
    (packages / "course_utils").symlink_to(ROOT / "course_utils")
    (here / "ada_day1.ipynb").write_bytes(NOTEBOOKS[0].read_bytes())
    environment = os.environ | {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-c", ALONE, str(ROOT / "tests" / "helpers")]
    ended = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    files = sorted(path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file())
    return json.loads(ended.stdout.splitlines()[-1]) | {"files": files, "packages": sorted(packages.iterdir())}


def test_a_course_that_was_installed_alone_keeps_guesses_in_the_current_folder(alone):
    assert not alone["checkout"] and alone["repository"] == repository()
    assert alone["files"] == ["ada_day1.ipynb", "guesses/day1.json"]
    assert [path.name for path in alone["packages"]] == ["course_utils"]


def test_what_needs_the_courses_folders_says_in_one_line_to_clone_it(alone):
    todo = f"git clone {repository()} " if is_published() else "run this in the course's folder"
    for command, (status, message) in alone["commands"].items():
        assert status == 2 and message.count("\n") == 1, (command, message)
        assert todo in message, (command, message)
    assert todo in alone["map"][1]


def test_a_check_that_passes_says_so_without_the_notebooks(alone):
    assert alone["passed"] == "✓ Passed. In this session 1 exercise."


@functools.cache
def setup_of(path):
    """The cell for Colab of a notebook, and its place among the code cells."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    ((place, cell),) = [(at, each) for at, each in enumerate(code) if "setup" in each.metadata.get("tags", [])]
    return place, cell


def test_each_day_begins_with_a_cell_for_colab():
    for path in NOTEBOOKS:
        place, cell = setup_of(path)
        assert (place, cell.id, cell.outputs, "nbgrader" in cell.metadata) == (0, "setup", [], False), path
        assert ("ungraded" in cell.metadata.tags) == (path.parent.name != LESSONS), path
        assert len(cell.source.splitlines()) <= 4 and cell.metadata.jupyter.source_hidden, path
        assert f"git+{repository()}@v{version()}" in cell.source, path


@pytest.mark.parametrize("there", [True, False])
def test_in_colab_it_installs_the_course_and_elsewhere_it_does_nothing(there, monkeypatch):
    _, cell = setup_of(NOTEBOOKS[0])
    ran = []
    shell = ModuleType("shell")
    shell.system = ran.append
    if there:
        monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    exec(cell.source, {"get_ipython": lambda: shell})
    assert ran == re.findall(r'system\("(.+)"\)', cell.source) * there
    assert not there or ("--no-deps" in ran[-1] and "--no-deps" not in ran[0])


def test_a_notebook_in_colab_lacks_nothing_that_its_rooms_import():
    _, cell = setup_of(NOTEBOOKS[0])
    there = IN_COLAB | set(re.search(r"pip install -q ([\w ]+)\"", cell.source)[1].split())
    for name in tree():
        in_a_notebook = name.startswith(tuple(f"{room}/" for room in ROOMS)) and name != "practice/worksheet.py"
        if name.endswith(".py") and in_a_notebook:
            used = {module.partition(".")[0] for module in imported(ROOT / "course_utils" / name)}
            assert used - set(sys.stdlib_module_names) - {"course_utils"} <= there, name


def imported(path):
    """The modules that a file names, but for those of its own package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
