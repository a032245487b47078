"""Simulate another operating system, and report as JSON what works on it: python other_systems.py windows|macos

What the system lacks is taken away before anything is imported. Its name, `sys.platform`, is set after the libraries
were imported, since these would look for its own files.
"""

import ctypes
import json
import os
import shutil
import sys
from types import SimpleNamespace

LACKS = {
    "windows": {"resource", "fcntl", "pwd", "grp", "termios", "triton"},
    "macos": {"triton"},
}
PLATFORM = {"windows": "win32", "macos": "darwin"}
LIBRARIES = (
    "IPython.core.interactiveshell", "anywidget", "ipywidgets", "jupyter_client", "jupytext", "matplotlib.pyplot",
    "nbclient", "nbval.plugin", "numpy", "pytest", "rich.console", "torch.utils.flop_counter", "typer", "zmq",
)  # fmt: skip


class Without:
    """A finder of modules that does not find some of them."""

    def __init__(self, finder, names):
        self.finder = finder
        self.names = names

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in self.names else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


class NoLibrary:
    """A C library in which every call fails."""

    def __init__(self, *arguments, **options):
        if PLATFORM["windows"] == sys.platform:
            raise TypeError("there is no library without a name")

    def __getattr__(self, call):
        return lambda *arguments: -1


def imitate(system):
    import importlib

    for loaded in [name for name in sys.modules if name.split(".")[0] in LACKS[system]]:
        del sys.modules[loaded]
    sys.meta_path[:] = [Without(finder, LACKS[system]) for finder in sys.meta_path]
    if system == "windows":
        del os.fork
        shutil._winapi = SimpleNamespace(NeedCurrentDirectoryForExePath=lambda command: True)  # asked from 3.12 on
    for name in LIBRARIES:
        importlib.import_module(name)
    sys.platform = PLATFORM[system]
    ctypes.CDLL = NoLibrary


def attempt(action, *arguments):
    """What came of it: an empty text, or the error in words."""
    try:
        action(*arguments)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def modules():
    """Every module of the course that others import, by its full name."""
    import pkgutil

    import course_utils

    names = [module.name for module in pkgutil.walk_packages(course_utils.__path__, "course_utils.")]
    return [name for name in names if not name.endswith("__main__")]  # two programs


def import_cells(path):
    """The first cell that imports, whole, and the imports of all later ones that stand by themselves; without the cell
    for Colab."""
    import ast

    import nbformat

    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    cells = [cell.source for cell in code if "setup" not in cell.metadata.get("tags", [])]
    parsed = [(source, [s for s in body(source) if isinstance(s, ast.Import | ast.ImportFrom)]) for source in cells]
    importing = [(source, imports) for source, imports in parsed if imports]  # none on the page of references
    return [source for source, _ in importing[:1]] + ["\n".join(map(ast.unparse, nodes)) for _, nodes in importing[1:]]


def body(source):
    import ast

    try:
        return ast.parse(source).body
    except SyntaxError:  # an answer that is not written yet, or a magic
        return []


def run_cells(path):
    namespace = {"__name__": "__main__"}
    for source in import_cells(path):
        exec(source, namespace)


def cell_with(path, words):
    """Run the cell in which these words stand, and return what it prints."""
    import contextlib
    import io

    import nbformat

    namespace = {}
    exec(import_cells(path)[0], namespace)
    (source,) = [
        c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code" and words in c.source
    ]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, namespace)
    return printed.getvalue().strip()


def course(*arguments):
    """`course` with these arguments: exit status and standard error."""
    import contextlib
    import io

    from course_utils import cli

    sys.argv = ["course", *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as complaint:
        try:
            cli.main()
        except SystemExit as ended:
            return {"status": ended.code, "stderr": complaint.getvalue()}


def main(system):
    import importlib
    from pathlib import Path

    imitate(system)
    root = Path(__file__).parents[2]
    lessons = sorted([*root.glob("notebooks/*.ipynb"), *root.glob("exercises/*.ipynb")])
    report = {
        "cell of day 6": cell_with(root / "notebooks" / "day6_flash_attention.ipynb", "NO_TRITON ="),
        "notebooks": {path.relative_to(root).as_posix(): attempt(run_cells, path) for path in lessons},
        "modules": {name: attempt(importlib.import_module, name) for name in modules()},
        "help": course("--help"),
        "doctor": course("doctor"),
    }
    if system == "windows":
        report["grade"] = course("grade", str(root / "exercises" / "day1_attention_by_hand.ipynb"))
    print("\n" + json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
