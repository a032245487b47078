"""Find the lines of an answer that name or change machinery which no answer needs, for a teacher to look at.

Checks run in the student's own process, so code that wants to change what they see can. It costs no points to be listed
here: a thread, say, can be honest. The list is the place to look where numbers and code do not fit together.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

MOST = 5  # lines of one answer
NAMED = {
    "the display publisher": "display_pub displayhook iopub_socket publish_display_data",
    "IPython itself": "get_ipython InteractiveShell pre_run_cell post_run_cell ast_transformers input_transformers",
    "threads and processes": "threading _thread concurrent multiprocessing subprocess fork posix_spawn Popen "
    "run_in_executor to_thread QueueListener ThreadingMixIn ForkingMixIn socketserver backgroundjobs",
    "tracing and profiling": "settrace setprofile gettrace getprofile addaudithook cProfile monitoring bdb "
    "set_continue linecache",
    "frames of its callers": "_getframe _current_frames currentframe getouterframes getinnerframes getargvalues stack "
    "walk_stack walk_tb f_back f_globals f_locals tb_frame gi_frame cr_frame ag_frame",
    "the garbage collector": "gc",
    "foreign machine code": "ctypes cffi",
    "parts of PyTorch beneath its functions": "_C _refs _decomp _prims _python_dispatch overrides library redispatch",
    "code made from text": "exec eval compile __import__ importlib runpy marshal builtins __builtins__ "
    "InteractiveInterpreter InteractiveConsole codeop",
    "the modules that are loaded": "modules",
    "the course's own code": "course_utils",
    "what runs later": "atexit signal finalize",
}
CHANGED = "what everything in the process shares"
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
    "stack": {"inspect"},
}
GIVEN = {"np": "numpy", "math": "math", "torch": "torch", "F": "functional"}  # what notebooks import before an answer
BY_TEXT = "any"  # the parent of a name in a text by which an attribute is taken, whatever it is taken from
QUOTES = "'\""
BY_NAME = {"getattr", "setattr", "delattr", "attrgetter", "methodcaller", "__getattribute__", "__dict__", "vars"}


def lines_to_review(source: str) -> str:
    """Return what a teacher should look at in an answer, as `line 3 names gc (the garbage collector)`; "" for nothing.

    Strings count too where they hold nothing but a name, because `getattr` takes one. An assignment to an attribute of
    an imported module, or of something reached through `__self__`, changes what the checks use, too. Code that cannot
    be parsed has no lines, unless it is nested too deep to be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            imported = _imported(tree)
            found = {(line, f"names {name}"): what for line, name, what in _named(tree, imported)}
            found |= {(line, f"changes {name}"): CHANGED for line, name in _changed(tree, imported)}
    except (SyntaxError, ValueError):
        return ""
    except (RecursionError, MemoryError):
        return "nested too deep to be read"
    told = [f"line {line} {name} ({what})" for (line, name), what in sorted(found.items())]
    return "; ".join([*told[:MOST], *([f"and {len(told) - MOST} more"] if len(told) > MOST else [])])


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return what imported names stand for: the last part of a module's name, or the name that was taken from one.

    A name that is assigned an imported one, or a part of it, counts as imported, too.
    """
    found, nodes = dict(GIVEN), list(ast.walk(tree))
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            first, _, _ = alias.name.partition(".")
            found[alias.asname or first] = alias.name.rpartition(".")[2] if alias.asname else first
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        if _root(node.value) in found or _through_self(node.value):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            found |= dict.fromkeys(names, _last(node.value, found))
    return found


def _named(tree: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and kind of machinery."""
    for node in ast.walk(tree):
        for name, parent in _names(node, imported):
            if name in WHAT and (name not in PARENTS or parent in {*PARENTS[name], BY_TEXT}):
                yield getattr(node, "lineno", 1), name, WHAT[name]


def _names(node: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name in a node with what it is taken from."""
    if isinstance(node, ast.Name):
        yield node.id, ""
    elif isinstance(node, ast.Attribute):
        yield node.attr, _last(node.value, imported)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        module = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
        for alias in node.names:
            parts = [*filter(None, module), *alias.name.split(".")]
            yield from zip(parts, ["import", *parts], strict=False)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = node.value.split(".")
        if all(part.isidentifier() for part in parts):
            yield from ((part, "text") for part in parts)
    elif isinstance(node, ast.Call) and _last(node.func, {}) in BY_NAME:
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        yield from ((part, BY_TEXT) for text in texts for part in text.split("."))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and _by_name(node.value):
        yield str(node.slice.value), BY_TEXT


def _changed(tree: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each attribute that is set or deleted and that everything in the process shares."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            of, name = node.value, node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del) and _by_name(node.value):
            of, name = node.value, ast.unparse(node.slice)
        elif isinstance(node, ast.Call) and _last(node.func, {}) in ("setattr", "delattr", "__setattr__") and node.args:
            of, name = node.args[0], ast.unparse(node.args[1]) if len(node.args) > 1 else "an attribute"
        else:
            continue
        if isinstance(of, ast.Call) and of.args:  # vars(module)
            of = of.args[0]
        if _root(of) in imported or _through_self(of):
            yield node.lineno, f"{ast.unparse(of)[:60]}.{name.strip(QUOTES)[:60]}"


def _by_name(node: ast.AST) -> bool:
    """Return whether this is the `__dict__` or the `vars` of something, from which a text takes an attribute."""
    return _last(node.func if isinstance(node, ast.Call) else node, {}) in BY_NAME


def _through_self(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "__self__" for each in ast.walk(node))


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of attributes begins; "" where it begins with something else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST, imported: Mapping[str, str]) -> str:
    """Return the last name in a chain of attributes, or what an imported name stands for."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    return node.attr if isinstance(node, ast.Attribute) else ""
