"""Find the lines of an answer that name or change machinery which no answer needs, for a teacher to look at.

Checks run in the student's own process, so code that wants to change what they see can. It costs no points to be listed
here: a thread, say, can be honest. The list is the place to look if numbers and code do not fit together.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

MAX_LINES = 5  # of one answer
NAMED = {
    "the display publisher": "display_pub displayhook iopub_socket publish_display_data",
    "IPython itself": "get_ipython InteractiveShell pre_run_cell post_run_cell ast_transformers input_transformers",
    "threads and processes": "threading _thread concurrent multiprocessing subprocess fork posix_spawn Popen "
    "run_in_executor to_thread QueueListener ThreadingMixIn ForkingMixIn socketserver backgroundjobs",
    "tracing and profiling": "settrace setprofile gettrace getprofile addaudithook cProfile monitoring bdb "
    "set_continue linecache",
    "frames of its callers": "_getframe _current_frames currentframe getouterframes getinnerframes getargvalues stack "
    "walk_stack walk_tb f_back f_globals f_locals tb_frame gi_frame cr_frame ag_frame",
    "the insides of a function": "__closure__ cell_contents getclosurevars co_consts co_freevars",
    "the garbage collector": "gc",
    "foreign machine code": "ctypes cffi",
    "parts of PyTorch beneath its functions": "_C _refs _decomp _prims _python_dispatch overrides library redispatch",
    "code made from text": "exec eval compile __import__ importlib runpy marshal builtins __builtins__ "
    "InteractiveInterpreter InteractiveConsole codeop",
    "the modules that are loaded": "modules",
    "the course's own code": "course_utils",
    "what runs later": "atexit signal finalize",
}
SHARED = "what everything in the process shares"
KINDS = {name: kind for kind, names in NAMED.items() for name in names.split()}
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
IMPORTED = {
    "np": "numpy",
    "math": "math",
    "torch": "torch",
    "F": "functional",
}  # by notebooks, before an answer
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
            imported = _imported_names(tree)
            kinds = {(line, f"names {name}"): kind for line, name, kind in _find_named(tree, imported)}
            kinds |= {(line, f"changes {name}"): SHARED for line, name in _find_changed(tree, imported)}
    except (SyntaxError, ValueError):
        return ""
    except (RecursionError, MemoryError):
        return "nested too deep to be read"
    texts = [f"line {line} {name} ({kind})" for (line, name), kind in sorted(kinds.items())]
    if len(texts) > MAX_LINES:
        texts[MAX_LINES:] = [f"and {len(texts) - MAX_LINES} more"]
    return "; ".join(texts)


def _imported_names(tree: ast.AST) -> dict[str, str]:
    """Return what imported names stand for: the last part of a module's name, or the name that was taken from one.

    A name that is assigned an imported one, or a part of it, counts as imported, too.
    """
    meanings = dict(IMPORTED)
    nodes = list(ast.walk(tree))
    for node in nodes:
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            first, _, _ = alias.name.partition(".")
            meanings[alias.asname or first] = alias.name.rpartition(".")[2] if alias.asname else first
    for node in nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        if _root(node.value) in meanings or _goes_through_self(node.value):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            meanings |= dict.fromkeys(names, _last(node.value, meanings))
    return meanings


def _find_named(tree: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and kind of machinery."""
    for node in ast.walk(tree):
        for name, parent in _names_with_parents(node, imported):
            if name in KINDS and (name not in PARENTS or parent in {*PARENTS[name], BY_TEXT}):
                yield getattr(node, "lineno", 1), name, KINDS[name]


def _names_with_parents(node: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name in a node with what it is taken from, its parent."""
    # A plain name has no parent; in a.b, b is taken from a.
    if isinstance(node, ast.Name):
        yield node.id, ""
    elif isinstance(node, ast.Attribute):
        yield node.attr, _last(node.value, imported)
    # In `from a.b import c` each part is taken from the one before it, and the first is taken by an import.
    elif isinstance(node, ast.Import | ast.ImportFrom):
        module = node.module.split(".") if isinstance(node, ast.ImportFrom) and node.module else []
        for alias in node.names:
            parts = [*(part for part in module if part), *alias.name.split(".")]
            yield from zip(parts, ["import", *parts], strict=False)
    # A text that is nothing but a dotted name may be passed to `getattr` elsewhere.
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = node.value.split(".")
        if all(part.isidentifier() for part in parts):
            yield from ((part, "text") for part in parts)
    # getattr(a, "b") and vars(a)["b"] take b from anything.
    elif isinstance(node, ast.Call) and _last(node.func, {}) in BY_NAME:
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        yield from ((part, BY_TEXT) for text in texts for part in text.split("."))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and _is_attributes(node.value):
        yield str(node.slice.value), BY_TEXT


def _find_changed(tree: ast.AST, imported: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each attribute that is set or deleted and that everything in the process shares."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner = node.value
            name = node.attr
        elif (
            isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del) and _is_attributes(node.value)
        ):
            owner = node.value
            name = ast.unparse(node.slice)
        elif isinstance(node, ast.Call) and _last(node.func, {}) in ("setattr", "delattr", "__setattr__") and node.args:
            owner = node.args[0]
            name = ast.unparse(node.args[1]) if len(node.args) > 1 else "an attribute"
        else:
            continue
        if isinstance(owner, ast.Call) and owner.args:  # vars(module)
            owner = owner.args[0]
        if _root(owner) in imported or _goes_through_self(owner):
            yield node.lineno, f"{ast.unparse(owner)[:60]}.{name.strip(QUOTES)[:60]}"


def _is_attributes(node: ast.AST) -> bool:
    """Return whether this is the `__dict__` or the `vars` of something, from which a text takes an attribute."""
    return _last(node.func if isinstance(node, ast.Call) else node, {}) in BY_NAME


def _goes_through_self(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "__self__" for each in ast.walk(node))


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of attributes begins; "" if it begins with something else."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST, imported: Mapping[str, str]) -> str:
    """Return the last name in a chain of attributes, or what an imported name stands for."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    return node.attr if isinstance(node, ast.Attribute) else ""
