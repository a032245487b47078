"""Find the code of an answer among the cells of a notebook, for the notebook's own check and for the grader.

An answer is the cell that defines it, together with the functions, imports and values from other cells that it uses by
name. Magics and shell commands are left out. Nothing is run here.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
LARGEST_CELL = 20_000  # characters; an answer takes a few hundred
BROUGHT = "# from other cells of the notebook, since the answer uses it:\n"
TRANSPARENT = ("time", "capture", "prun")  # cell magics that run the Python below them
PACKAGES = ("numpy", "torch", "triton", "matplotlib", "IPython", "mpl_toolkits", "functorch")  # beside Python's own
IN_A_KERNEL = re.compile(r"course_utils\.(checks(\..+)?|days\.day\d+)")  # course modules that a grader's kernel has
NAMES_OF_PYTHON = frozenset(dir(builtins)) | {"__name__", "__file__", "get_ipython", "In", "Out", "_", "display"}


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell.

    Attributes:
        binds: the names it defines; "*" for all names of a star import.
    """

    source: str
    binds: frozenset[str]


@dataclass(frozen=True)
class Found:
    """The code of an answer, with the code from other cells that it needs.

    Attributes:
        missing: names that the code uses and no cell defines.
        brought: names that the code from other cells defines.
    """

    source: str
    missing: frozenset[str] = frozenset()
    brought: frozenset[str] = frozenset()


def plain(source: str) -> str:
    """Return a cell as plain Python: without prompts, and with `pass` in place of each magic or shell command.

    A cell that a magic hands to another program comes back unchanged, because it defines nothing.
    """
    if _parses(source):
        return source
    lines = source.splitlines()
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and (magic := re.match(r"%%(\w+)", lines[first].strip())):
        if magic[1] not in TRANSPARENT:
            return source
        lines[first] = f"# {lines[first].strip()}"
    text = "\n".join(_without_commands(_without_prompt(line)) for line in lines)
    return text if _parses(text) else source


def _without_commands(line: str) -> str:
    """Replace a magic, a shell command or an IPython question in a line by `pass`, or by None where it is assigned."""
    bare = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if bare[:1] in ("%", "!", "?") or bare.endswith("?"):
        return f"{indent}pass"
    name, equals, value = bare.partition("=")
    return f"{indent}{name}= None" if equals and value.lstrip()[:1] in ("%", "!") else line


def _without_prompt(line: str) -> str:
    return re.sub(r"^(?:>>> |\.\.\. |In \[\d+\]: | {0,8}\.{3}: )", "", line)


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except NO_PYTHON:
        return False
    return True


@lru_cache(maxsize=512)
def statements(source: str) -> tuple[Statement, ...]:
    """Return the top-level statements of a cell; none if it is not Python."""
    text = plain(source)
    try:
        tree = ast.parse(text)
    except NO_PYTHON:
        return ()
    lines = text.splitlines(keepends=True)
    found = []
    for node in tree.body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        found.append(Statement("".join(lines[first - 1 : node.end_lineno]).rstrip("\n"), frozenset(_binds(node))))
    return tuple(found)


def _binds(statement: ast.AST) -> Iterable[str]:
    """Yield the names that a statement defines at the top level; without recursion, so that no nesting is too deep."""
    unread = [statement]
    while unread:
        node = unread.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            unread += ast.iter_child_nodes(node)


def used_names(source: str) -> set[str]:
    """Return the global names that a cell refers to; if it is not Python, roughly: every word in it."""
    source = plain(source)
    try:
        tables = [symtable.symtable(source, "cell", "exec")]
    except NO_PYTHON:
        return set(re.findall(r"\w+", source))
    found = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {each.get_name() for each in table.get_symbols() if each.is_referenced() and (top or each.is_global())}
    return found


def defines(source: str, names: Collection[str]) -> bool:
    """Return whether a cell defines all of these names."""
    bound = {name for statement in statements(source) for name in statement.binds}
    return bound.issuperset(names)


def definitions(source: str, names: Collection[str]) -> str:
    """Return the statements of a cell that define any of these names, as text."""
    wanted = frozenset(names)
    return "\n".join(each.source for each in statements(source) if not wanted.isdisjoint(each.binds))


def complete(source: str, cells: Sequence[str], known: Collection[str] = ()) -> Found:
    """Return the cell of an answer, preceded by the statements from other cells that it uses.

    Python's built-in names are not looked up. Where a name stays missing, the star imports of the other cells are
    added and are taken to define it.

    Args:
        source: the cell that defines the answer.
        cells: the other cells; where several define a name, the first one counts.
        known: names that exist anyway.
    """
    source = plain(source)
    if not _parses(source):
        return Found(source)
    own = {name for statement in statements(source) for name in statement.binds}
    brought: list[tuple[tuple[int, int], str]] = []
    have = own | set(known) | NAMES_OF_PYTHON
    taken: set[tuple[int, int]] = set()
    missing: set[str] = set()
    bound: set[str] = set()
    unread = sorted(used_names(source) - have)
    while unread:
        name = unread.pop(0)
        if name in have or name in missing:
            continue
        place = _place_of(name, cells)
        if place is None:
            missing.add(name)
            continue
        for spot in place:
            if spot in taken:
                continue
            statement = statements(cells[spot[0]])[spot[1]]
            taken.add(spot)
            brought.append((spot, statement.source))
            bound |= statement.binds
            have |= statement.binds
            unread += sorted(used_names(statement.source) - have)
    stars = [each.source for cell in cells for each in statements(cell) if "*" in each.binds]
    stars = [source for source in stars if not modules_not_graded(source)]
    if missing and stars:
        brought += [((len(cells), i), star) for i, star in enumerate(dict.fromkeys(stars))]
        missing = set()
    if not brought:
        return Found(source, frozenset(missing))
    before = "\n".join(text for _, text in sorted(brought, key=lambda each: (-each[0][0], each[0][1])))
    return Found(f"{BROUGHT}{before}\n\n{source}", frozenset(missing), frozenset(bound))


def _place_of(name: str, cells: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the places (cell, statement) that define a name, in the first cell that defines it."""
    for number, cell in enumerate(cells):
        if found := _bound_at(cell).get(name):
            return [(number, i) for i in found]
    return None


@lru_cache(maxsize=512)
def _bound_at(source: str) -> dict[str, list[int]]:
    """Map each name that a cell defines to the indices of the statements that define it."""
    places: dict[str, list[int]] = {}
    for i, statement in enumerate(statements(source)):
        for name in statement.binds:
            places.setdefault(name, []).append(i)
    return places


def modules_not_graded(source: str) -> list[str]:
    """List the modules that a cell imports, at any depth, and that a grader's kernel may lack, in order."""
    try:
        tree = ast.parse(plain(source))
    except NO_PYTHON:
        return []
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found[(node.module or ".") if not node.level else "."] = None
    there = {*PACKAGES, *sys.stdlib_module_names} - {"multiprocessing"}
    names = [name if name.startswith("course_utils") else name.partition(".")[0] or "." for name in found]
    return [name for name in dict.fromkeys(names) if name not in there and not IN_A_KERNEL.fullmatch(name)]
