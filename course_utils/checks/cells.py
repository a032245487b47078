"""Read the cells of a notebook: what their statements define, use and change. Nothing is run here.

Magics and shell commands are left out.
"""

from __future__ import annotations

import ast
import itertools
import re
import symtable
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
MAX_CELL_LENGTH = 100_000  # characters, comments included; an answer takes a few hundred
FUNCTION = re.compile(
    r"^(?:(?:def|class)[ \t]+(\w+)|(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[^=\n]*)?=[ \t]*lambda\b)", re.MULTILINE
)
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Methods that change their object, in a call whose result is not used; and functions that change their first argument.
MUTATORS = {"add", "append", "clear", "difference_update", "discard", "extend", "fill", "insert", "intersection_update"}
MUTATORS |= {"partition", "pop", "popitem", "popleft", "put", "remove", "resize", "reverse", "rotate", "setdefault"}
MUTATORS |= {"appendleft", "extendleft", "move_to_end", "sort", "subtract", "symmetric_difference_update", "update"}
FILLERS = {"copyto", "fill_diagonal", "heapify", "heappush", "insort", "place", "put", "put_along_axis", "putmask"}
FILLERS |= {"setattr", "shuffle"}
IN_PLACE = re.compile(r"[a-z]\w*[a-z\d]_")  # such as the method fill_ of PyTorch
TRANSPARENT = ("time", "capture", "prun")  # cell magics that run the Python below them
PACKAGES = ("numpy", "torch", "triton", "matplotlib", "IPython", "mpl_toolkits", "functorch")  # beside Python's own
IN_A_KERNEL = re.compile(r"course_utils\.(checks(\..+)?|days\.day\d+)")  # course modules that a grader's kernel has


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a cell.

    Attributes:
        binds: the names it defines; "*" for all names of a star import.
        modules: those of them that an import defines.
        changes: the names whose object it changes, as `x[0] = 1`, `x.y = 1` and `x.append(1)` do.
        decorators: the names of the decorators of what it defines.
        calls: the names that it calls.
        sets: the global names that the function it defines assigns when it is called.
        reads: the names that it reads when it runs, and not only when a function that it defines is called.
    """

    source: str
    binds: frozenset[str]
    modules: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    decorators: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()


def as_python(source: str) -> str:
    """Return a cell as plain Python: without prompts, and with `pass` in place of each magic or shell command.

    A cell that a magic hands to another program comes back unchanged, because it defines nothing.
    """
    if parses(source):
        return source
    lines = _without_indent(_lines(source.removeprefix("\ufeff")))
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and (magic := re.match(r"%%(\w+)", lines[first].strip())):
        if magic[1] not in TRANSPARENT:
            return source
        lines[first] = f"# {lines[first].strip()}"
    text = "\n".join(_without_commands(_without_prompt(line)) for line in lines)
    return text if parses(text) else source


def _without_indent(lines: list[str]) -> list[str]:
    """Take the indentation of the first line that is not empty off all lines that have it, as IPython does."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines]


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


def parses(source: str) -> bool:
    """Return whether a source is Python."""
    try:
        ast.parse(source)
    except PARSE_ERRORS:
        return False
    return True


@lru_cache(maxsize=512)
def statements(source: str) -> tuple[Statement, ...]:
    """Return the top-level statements of a cell; none if it is not Python."""
    text = as_python(source)
    try:
        tree = ast.parse(text)
    except PARSE_ERRORS:
        return ()
    lines = _lines(text)
    sharing = _sharing_a_line(tree.body)
    top_level = []
    for node in tree.body:
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        whole_lines = "\n".join(lines[first - 1 : node.end_lineno])
        segment = ast.get_source_segment(text, node) if node in sharing else None
        top_level.append(_analyse(node, segment or whole_lines))
    return tuple(top_level)


def _lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them: a form feed or a Unicode separator ends none."""
    return re.split(r"\r\n|\r|\n", text)


def _sharing_a_line(statements: Sequence[ast.stmt]) -> set[ast.stmt]:
    """Return the statements that have another one on their first or last line."""
    pairs = [(one, other) for one, other in itertools.pairwise(statements) if one.end_lineno == other.lineno]
    return {statement for pair in pairs for statement in pair}


def _analyse(statement: ast.stmt, source: str) -> Statement:
    """Return what a statement does with names; without recursion, so that no nesting is too deep."""
    binds: set[str] = set()
    modules: set[str] = set()
    changes: set[str] = set()
    calls: set[str] = set()
    unread: list[Any] = [statement]
    while unread:
        node = unread.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            binds.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            binds.add(node.id)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            binds |= _names_by_walrus(node)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
                changes.add(_base(node))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                changes |= _changed_by_call(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                calls.add(node.func.id)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                binds.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                binds.add(node.rest)
            unread += ast.iter_child_nodes(node)
    binds |= modules
    decorators = {_base(each) for each in getattr(statement, "decorator_list", ())}
    sets = _globals_set(statement) if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()
    reads = _names_read(statement) if isinstance(statement, SIMPLE) else ()
    return Statement(source, *map(frozenset, (binds, modules, changes - {""}, decorators - {""}, calls, sets, reads)))


def _changed_by_call(call: ast.Call) -> set[str]:
    """Return the names whose object a call changes: by a method, or as an argument that is filled."""
    changed = {_base(each.value) for each in call.keywords if each.arg == "out"}
    if isinstance(call.func, ast.Attribute) and (call.func.attr in MUTATORS or IN_PLACE.fullmatch(call.func.attr)):
        changed.add(_base(call.func))
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in FILLERS and call.args:
        changed.add(_base(call.args[0]))
    return changed


def _names_by_walrus(comprehension: ast.expr) -> set[str]:
    """Return the names that := binds in a comprehension; they belong to the scope around it."""
    names: set[str] = set()
    unread: list[ast.AST] = [comprehension]
    while unread:
        node = unread.pop()
        if isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        if not isinstance(node, ast.Lambda):
            unread += ast.iter_child_nodes(node)
    return names


def _globals_set(function: ast.stmt) -> set[str]:
    """Return the names that a function declares as global and assigns."""
    nodes = list(ast.walk(function))
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    return declared & {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _base(node: ast.expr) -> str:
    """Return the name that an expression such as `x.y[0](1)` begins with; "" if it begins otherwise."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id


def _names_read(statement: ast.AST) -> set[str]:
    """Return the names that a statement reads when it runs, and not only when a function that it defines is called."""
    names: set[str] = set()
    unread: list[ast.AST] = [statement]
    while unread:
        node = unread.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            keyword_defaults = [each for each in node.args.kw_defaults if each is not None]
            unread += [*node.decorator_list, *node.args.defaults, *keyword_defaults]
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        if not isinstance(node, ast.Lambda):
            unread += ast.iter_child_nodes(node)
    return names


def used_names(source: str) -> set[str]:
    """Return the global names that a cell refers to; if it is not Python, roughly: every word in it."""
    source = as_python(source)
    try:
        tables = [symtable.symtable(_without_comprehensions(source), "cell", "exec")]
    except PARSE_ERRORS:
        return set(re.findall(r"\w+", source))
    names = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_top = table.get_type() == "module"
        for each in table.get_symbols():
            if each.is_referenced() and (is_top or each.is_global()):
                names.add(each.get_name())
    return names


@lru_cache(maxsize=512)
def _without_comprehensions(source: str) -> str:
    """Return a cell with a generator in place of each comprehension.

    From Python 3.12 on, `symtable` counts the variable of a comprehension as a name of the scope around it.
    """
    if not re.search(r"\bfor\b", source):
        return source
    try:
        return ast.unparse(_Generators().visit(ast.parse(source)))
    except PARSE_ERRORS:
        return source


class _Generators(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        if isinstance(node, (ast.ListComp, ast.SetComp)):
            return ast.GeneratorExp(node.elt, node.generators)
        if isinstance(node, ast.DictComp):
            return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        return node


def defines(source: str, names: Collection[str]) -> bool:
    """Return whether a cell defines all of these names."""
    bound = {name for statement in statements(source) for name in statement.binds}
    return bound.issuperset(names)


def definitions(source: str, names: Collection[str]) -> str:
    """Return the statements of a cell that define any of these names, as text."""
    requested = frozenset(names)
    return "\n".join(each.source for each in statements(source) if not requested.isdisjoint(each.binds))


def is_unanswered(source: str, stub: str, names: Collection[str]) -> bool:
    """Return whether a cell is empty, equals the stub, or defines these names as the stub does."""
    if same_code(source, stub) or same_code(source, ""):
        return True
    own = definitions(source, names)
    if any(each.changes.intersection(names) for each in statements(source)):
        return False
    return bool(own) and (same_code(own, definitions(stub, names)) or _only_raises(own))


def _only_raises(source: str) -> bool:
    """Return whether the source consists of functions that only raise NotImplementedError."""
    try:
        body = ast.parse(source).body
    except PARSE_ERRORS:
        return False
    return all(
        isinstance(node, ast.FunctionDef) and isinstance(last := node.body[-1], ast.Raise)
        and isinstance(kind := last.exc.func if isinstance(last.exc, ast.Call) else last.exc, ast.Name)
        and kind.id == "NotImplementedError"
        and all(isinstance(each, ast.Expr) for each in node.body[:-1])
        for node in body
    )  # fmt: skip


def same_code(a: str, b: str) -> bool:
    """Return whether two cells are the same program apart from comments and spacing."""
    return _program(a) == _program(b)


@lru_cache(maxsize=512)
def _program(source: str) -> str:
    """Return a cell's program without comments and spacing, or the cell's own text if Python cannot parse it."""
    try:
        return ast.dump(ast.parse(as_python(source)))
    except PARSE_ERRORS:
        return source.strip()


def may_define(source: str, names: Collection[str], by_hand: bool = False) -> bool:
    """Return whether a cell seems to define all of these names, without parsing it, since many files are searched.

    Args:
        by_hand: whether the names are those of numbers; else they are those of functions and classes.
    """
    return (_names_assigned(source) if by_hand else _names_of_functions(source)).issuperset(names)


@lru_cache(maxsize=512)
def _names_of_functions(source: str) -> frozenset[str]:
    """Return the names that a cell defines by unindented def, class or lambda; cached for all questions."""
    groups = (defined or named for defined, named in FUNCTION.findall(source))
    return frozenset(name.strip() for names in groups for name in names.split(","))


@lru_cache(maxsize=512)
def _names_assigned(source: str) -> frozenset[str]:
    """Return the words before the last equals sign of each line: the names that a cell may assign."""
    targets = (line.rpartition("=")[0] for line in source.splitlines())
    return frozenset(word for part in targets for word in re.findall(r"\w+", part))


@lru_cache(maxsize=512)
def names_changed(source: str) -> frozenset[str]:
    """Return the names whose objects a statement changes, also in the functions that it defines."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            names.add(_base(node))
        elif isinstance(node, ast.Call):
            names |= _changed_by_call(node)
    return frozenset(names)


def modules_not_graded(source: str) -> list[str]:
    """List the modules that a cell imports, at any depth, and that a grader's kernel may lack, in order.

    Imports that the cell can do without are left out: in `try` with a handler, below `if TYPE_CHECKING` or `find_spec`.
    """
    try:
        unread: list[ast.AST] = [ast.parse(as_python(source))]
    except PARSE_ERRORS:
        return []
    imported: dict[str, None] = {}
    while unread:
        node = unread.pop(0)
        if isinstance(node, ast.Import):
            imported |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported[(node.module or ".") if not node.level else "."] = None
        elif isinstance(node, ast.Try) and node.handlers:
            unread += [*node.handlers, *node.finalbody]
        elif isinstance(node, ast.If) and re.search("TYPE_CHECKING|find_spec", ast.unparse(node.test)):
            unread += node.orelse
        else:
            unread += ast.iter_child_nodes(node)
    installed = {*PACKAGES, *sys.stdlib_module_names} - {"multiprocessing"}
    names = [name if name.startswith("course_utils") else name.partition(".")[0] or "." for name in imported]
    return [name for name in dict.fromkeys(names) if name not in installed and not IN_A_KERNEL.fullmatch(name)]
