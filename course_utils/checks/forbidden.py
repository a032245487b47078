"""Which library calls an answer makes that do the exercise's whole job."""

import ast
from collections.abc import Container, Iterable, Iterator, Mapping

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
    "course_utils": "it holds the answers",
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
    tree = parse(source)
    if tree is None:
        return None
    others = [cell for cell in cells if cell != source]
    defined = _defined_by(others)
    brought = _brought(forbidden, others, defined)
    own = set(_own(tree)) | defined - set(brought)
    for name, line, bare in sorted(_names(tree), key=lambda found: found[1]):
        why = _everywhere(name, bare) or (None if bare and name in own else _why(name, forbidden))
        if why:
            return f"Line {line} uses {name}, which is not allowed here: {why}."
    for name, line, bare in sorted(_names(tree), key=lambda found: found[1]):
        if bare and name in brought and name not in own and name not in lent:
            root, why = brought[name]
            return f"Line {line} uses {name}, which is not allowed here: another cell makes it of {root}, and {why}."
    return None


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


def _defined_by(cells: Iterable[str]) -> set[str]:
    """The names that cells define, or none where a cell imports a whole module's names: they may stand for others."""
    if any(map(_imports_all, filter(None, map(parse, cells)))):
        return set()
    return {name for cell in cells for name in defined_names(cell)}


def _imports_all(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))


def _brought(forbidden: Mapping[str, str], cells: list[str], defined: set[str]) -> dict[str, tuple[str, str]]:
    """The names that cells define by means of forbidden ones, each with the forbidden name at its root and why.

    defined: see `_defined_by`.
    """
    made = []  # (name, what it is made of: (name, bare) each)
    for tree in filter(None, map(parse, cells)):
        own = set() if _imports_all(tree) else set(_own(tree))
        hidden = {(name, bare) for name, _, bare in _names(tree) if name in UNSEEN}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                made += [(alias.asname or alias.name, {(alias.name.rpartition(".")[2], False)}) for alias in node.names]
        for node in tree.body:
            used = {(name, bare) for name, _, bare in _names(node) if not (bare and name in own - defined)} | hidden
            made += [(name, used) for name in defined_names(ast.unparse(node))]
    brought: dict[str, tuple[str, str]] = {}
    while True:
        before = len(brought)
        for name, used in made:
            roots = [brought[use] for use, _ in used if use in brought]
            for use, bare in used:
                why = _everywhere(use, bare) or (None if bare and use in defined else _why(use, forbidden))
                roots += [(use, why)] if why else []
            if roots:
                brought.setdefault(name, min(roots))
        if len(brought) == before:
            return brought


def _names(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """Every (name, line, bare) that code in the tree refers to.

    An attribute of self, or of a class that the tree defines, is as bare as a name.
    """
    here = {"self", "cls", *(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))}
    renamed = {
        alias.asname: alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno, True
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            yield node.attr, node.lineno, owner in here
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
