"""Find the lines of an answer that name machinery which no answer needs, for a teacher to look at.

Checks run in the student's own process, so code that wants to change what they see can. It costs no points to be listed
here: a thread, say, can be honest. The list is the place to look where numbers and code do not fit together.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

MOST = 5  # lines of one answer
NAMED = {
    "the display publisher": "display_pub displayhook iopub_socket publish_display_data",
    "IPython itself": "get_ipython InteractiveShell pre_run_cell post_run_cell ast_transformers input_transformers",
    "threads and processes": "threading _thread concurrent multiprocessing subprocess fork posix_spawn Popen",
    "tracing and profiling": "settrace setprofile gettrace getprofile addaudithook cProfile monitoring",
    "frames of its callers": "_getframe _current_frames currentframe getouterframes f_back f_globals f_locals tb_frame "
    "gi_frame cr_frame ag_frame",
    "the garbage collector": "gc",
    "foreign machine code": "ctypes cffi",
    "parts of PyTorch beneath its functions": "_C _refs _decomp _prims _python_dispatch overrides library redispatch",
    "code made from text": "exec eval compile __import__ importlib runpy marshal builtins __builtins__",
    "the modules that are loaded": "modules",
    "the course's own code": "course_utils",
    "what runs later": "atexit signal finalize",
}
WHAT = {name: what for what, names in NAMED.items() for name in names.split()}
PARENTS = {  # of names that elsewhere mean something else; "" is a name by itself
    "compile": {"torch", ""},
    "eval": {""},
    "fork": {"os"},
    "library": {"torch"},
    "modules": {"sys"},
    "monitoring": {"sys"},
    "overrides": {"torch"},
    "signal": {"import"},
}


def lines_to_review(source: str) -> str:
    """Return what a teacher should look at in an answer, as `line 3 names gc (the garbage collector)`; "" for nothing.

    Strings count too where they hold nothing but a name, because `getattr` takes one. Code that cannot be parsed has
    no lines, unless it is nested too deep to be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            found = {(line, name): what for line, name, what in _named(tree)}
    except (SyntaxError, ValueError):
        return ""
    except (RecursionError, MemoryError):
        return "nested too deep to be read"
    told = [f"line {line} names {name} ({what})" for (line, name), what in sorted(found.items())]
    return "; ".join([*told[:MOST], *([f"and {len(told) - MOST} more"] if len(told) > MOST else [])])


def _named(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and kind of machinery."""
    for node in ast.walk(tree):
        for name, parent in _names(node):
            if name in WHAT and (name not in PARENTS or parent in PARENTS[name]):
                yield getattr(node, "lineno", 1), name, WHAT[name]


def _names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name in a node with what it is taken from."""
    if isinstance(node, ast.Name):
        yield node.id, ""
    elif isinstance(node, ast.Attribute):
        yield node.attr, _last(node.value)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        module = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
        for alias in node.names:
            parts = [*filter(None, module), *alias.name.split(".")]
            yield from zip(parts, ["import", *parts], strict=False)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = node.value.split(".")
        if all(part.isidentifier() for part in parts):
            yield from ((part, "text") for part in parts)


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
