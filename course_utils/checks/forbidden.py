"""Which library calls an answer makes that do the exercise's whole job."""

import ast
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .source import defined_names, parse

UNREADABLE = "code made at run time cannot be read by the check"
INDIRECT = "write the name out, so that the check can read it"
BUILTINS = {
    "exec": UNREADABLE,
    "eval": UNREADABLE,
    "compile": UNREADABLE,
    "__import__": "write an import statement, so that the check can read it",
    "getattr": INDIRECT,
    "vars": INDIRECT,
    "globals": INDIRECT,
    "locals": INDIRECT,
}
UNSEEN = {name for name, why in BUILTINS.items() if why == UNREADABLE}  # what they define, no one can read
EVERYWHERE = {
    "course_utils": "it holds attention ready-made",
    "importlib": "write an import statement, so that the check can read it",
    "runpy": UNREADABLE,
    "builtins": INDIRECT,
    "__builtins__": INDIRECT,
    "__dict__": INDIRECT,
    "__getattribute__": INDIRECT,
    "__self__": INDIRECT,  # of print it is the builtins
    "attrgetter": INDIRECT,
    "methodcaller": INDIRECT,
    "resolve_name": INDIRECT,
    "inspect": INDIRECT,
    "sys.modules": INDIRECT,
    "_C": "write the public name, so that the check can read it",
    "settrace": "the check counts steps with it",
    "setprofile": "the check counts steps with it",
    "sys.monitoring": "the check counts steps with it",
    "get_field": INDIRECT,  # of string.Formatter
    "pydoc": INDIRECT,
    "get_objects": INDIRECT,  # of gc
    "get_referents": INDIRECT,
    "pickle.load": UNREADABLE,
    "pickle.loads": UNREADABLE,
    "pickle.Unpickler": UNREADABLE,
    "marshal": UNREADABLE,
    "timeit": UNREADABLE,
    "cProfile": UNREADABLE,
    "CompilationUnit": UNREADABLE,
    "get_ipython": "magic and shell commands are no part of an answer",
}


def forbidden_call(
    source: str, forbidden: Mapping[str, str], cells: Iterable[str] = (), lent: Container[str] = ()
) -> str | None:
    """What to say about the first forbidden name in an answer cell, or None.

    source: the cell. forbidden: from a part of a name, in lower case, to why names with it do not count; a name that
    the notebook itself defines, without a forbidden one, is the learner's own. cells: all cells of the notebook; what
    another one makes of a forbidden name, under whatever name, is forbidden too, except the names in lent, the answers
    that this one may build on. Comments and strings do not matter. A cell that cannot be parsed has nothing forbidden.
    """
    cell = _read(source)
    if cell is None:
        return None
    others = [other for other in cells if other != source]
    defined = _defined_by(others)
    brought = _brought(forbidden, others, defined)
    own = cell.own | defined - set(brought)
    for name, line, bare in cell.names:
        why = _everywhere(name, bare) or (None if bare and name in own else _why(name, forbidden))
        if why:
            return f"Line {line} uses {name}, which is not allowed here: {why}."
    for name, line, bare in cell.names:
        if bare and name in brought and name not in own and name not in lent:
            root, why = brought[name]
            return f"Line {line} uses {name}, which is not allowed here: another cell makes it of {root}, and {why}."
    return None


def forget_cells() -> None:
    """Let go of the cells that were read: those of one notebook are asked about many times, and then never again."""
    _read.cache_clear()
    _defined.cache_clear()


def latest(cells: Iterable[str]) -> list[str]:
    """The cells that still count: not those whose every name a later cell defines again."""
    kept: list[str] = []
    seen: set[str] = set()
    for cell in reversed(list(cells)):
        names = defined_names(cell)
        if not names or names - seen:
            kept.insert(0, cell)
        seen |= names
    return kept


def _why(name: str, forbidden: Mapping[str, str]) -> str | None:
    return next((why for part, why in forbidden.items() if part in name.lower()), None)


def _everywhere(name: str, bare: bool) -> str | None:
    return EVERYWHERE.get(name) or (BUILTINS.get(name) if bare else None)


@dataclass(frozen=True)
class _Cell:
    """What a cell says. names: what it refers to, by line. own: what it defines at any depth. made: for each import and
    statement the names that it defines, whether it is an import, and the (name, bare) of all that it refers to."""

    names: tuple[tuple[str, int, bool], ...]
    own: frozenset[str]
    imports_all: bool
    made: tuple[tuple[frozenset[str], bool, frozenset[tuple[str, bool]]], ...]


@lru_cache(maxsize=64)
def _read(source: str) -> _Cell | None:
    tree = parse(source)
    if tree is None:
        return None
    names = tuple(sorted(_names(tree), key=lambda found: found[1]))
    unseen = {(name, bare) for name, _, bare in names if name in UNSEEN}
    made = [
        (frozenset([alias.asname or alias.name]), True, frozenset([(alias.name.rpartition(".")[2], False)]))
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]
    for node in tree.body:
        used = {(name, bare) for name, _, bare in _names(node)} | unseen
        made.append((frozenset(_bound(node)), False, frozenset(used)))
    imports_all = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))
    return _Cell(names, frozenset(_own(tree)), imports_all, tuple(made))


@lru_cache(maxsize=64)
def _defined(source: str) -> frozenset[str]:
    return frozenset(defined_names(source))


def _defined_by(cells: Iterable[str]) -> set[str]:
    """The names that cells define, or none where a cell imports a whole module's names: they may stand for others."""
    if any(cell.imports_all for cell in filter(None, map(_read, cells))):
        return set()
    return {name for cell in cells for name in _defined(cell)}


def _brought(forbidden: Mapping[str, str], cells: list[str], defined: set[str]) -> dict[str, tuple[str, str]]:
    """The names that cells define by means of forbidden ones, each with the forbidden name at its root and why.

    defined: see `_defined_by`.
    """
    brought: dict[str, tuple[str, str]] = {}
    made_of = defaultdict(list)  # name -> the names of statements that refer to it
    for cell in filter(None, map(_read, cells)):
        private = set() if cell.imports_all else cell.own - defined
        for names, imported, used in cell.made:
            roots = []
            for use, bare in used:
                if bare and use in private and not imported and use not in UNSEEN:
                    continue
                made_of[use].append(names)
                why = _everywhere(use, bare) or (None if bare and use in defined else _why(use, forbidden))
                roots += [(use, why)] if why else []
            if roots:
                brought |= {name: min(roots) for name in names if name not in brought}
    reached, done = list(brought), set()
    while reached:
        root = reached.pop()
        for names in set(made_of.pop(root, ())) - done:
            done.add(names)
            new = names - brought.keys()
            brought |= dict.fromkeys(new, brought[root])
            reached += new
    return brought


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement defines where it stands, not inside a function, class or lambda of its own."""
    inner = [node]
    while inner:
        node = inner.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            inner += node.decorator_list
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, ast.comprehension):
            inner += [node.iter, *node.ifs]
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
                yield node.name
            inner += ast.iter_child_nodes(node)


def _names(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """Every (name, line, bare) that code in the tree refers to.

    An attribute of self, or of a class that the tree defines, is as bare as a name, but no builtin. A variable of a
    function that is called like a builtin is not meant by BUILTINS, and left out.
    """
    here = {"self", "cls", *(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))}
    variables = set(_called_like_builtins(tree))
    renamed = {
        alias.asname: alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield from [(node.id, node.lineno, True)] if node not in variables else []
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            yield node.attr, node.lineno, owner in here and node.attr not in BUILTINS
            dotted = f"{renamed.get(owner, owner)}.{node.attr}"
            yield from [(dotted, node.lineno, False)] if dotted in EVERYWHERE else []
        elif isinstance(node, ast.MatchClass):
            yield from ((name, node.lineno, False) for name in node.kwd_attrs)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None) or ""
            parts = [alias.name for alias in node.names] + [module]
            yield from ((name, node.lineno, False) for part in parts for name in part.split("."))
            dotted = (f"{module}.{alias.name}" for alias in node.names)
            yield from ((name, node.lineno, False) for name in dotted if name in EVERYWHERE)


def _called_like_builtins(tree: ast.AST) -> Iterator[ast.Name]:
    """The names in a tree that cannot be builtins, since they are variables of a function.

    A name that a function binds is its variable in the whole of it, before it is bound too. A class body is not so.
    """
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]  # with the variables of functions around it
    while waiting:
        node, around = waiting.pop()
        body, inside = set(), around
        if isinstance(node, ast.Name) and node.id in around and node.id in BUILTINS:
            yield node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            body = {node.body} if isinstance(node, ast.Lambda) else set(node.body)
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            inside = around.union(arg.arg for arg in given if arg)
            inside = inside.union(name for part in body for name in _bound(part))
            inside -= {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
        elif isinstance(node, ast.ClassDef):
            body = set(node.body)
            inside = around.difference(name for part in body for name in _bound(part))
        waiting += ((child, around) for child in ast.iter_child_nodes(node) if child not in body)
        waiting += ((child, inside) for child in body)


def _own(tree: ast.AST) -> Iterator[str]:
    """The names that the code in the tree defines: functions, classes, variables, parameters, attributes of self."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if isinstance(node.value, ast.Name) and node.value.id == "self" else []
        elif isinstance(node, ast.arg):
            yield node.arg
