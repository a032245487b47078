"""The cells of a lesson that its widgets need, so that the browser need not run those that nbval runs anyway."""

import ast
import re
import symtable

from course_utils import views

_WIDGETS = re.compile(rf"\b({'|'.join(views.__all__)})(\.\w+)?\(")


def widget_cells(notebook):
    """The indices of the cells that make a widget of the course and show it or anything else."""
    return [place for place, cell in _code(notebook) if _WIDGETS.search(cell.source) and cell.outputs]


def needed_cells(notebook):
    """The indices of the cells that make widgets, and of those above that set, or may change, a name they go back to.

    A change that no name tells, as an optimiser makes to a model's weights, is not seen: compare what the widgets say.
    """
    displaying = set(widget_cells(notebook))
    needed = []
    names = set()
    for place, cell in reversed(_code(notebook)):
        sets, changes, uses = _names(cell.source)
        if place in displaying or (sets | changes) & names:
            needed.append(place)
            names = names - sets | changes | uses
    return needed[::-1]


def _code(notebook):
    return [(place, cell) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code"]


def _names(source):
    """The global names that a cell sets, those it may change, as `x[0] = 1` and `x.sort()` do, and those it uses."""
    top = symtable.symtable(source, "cell", "exec")
    tree = ast.parse(source)
    sets = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    changes = {name for node in ast.walk(tree) for name in _changed(node)} - {"torch"}  # its settings change no value
    loops = {part.id for node in tree.body if isinstance(node, ast.For) for part in ast.walk(node.target)
             if isinstance(part, ast.Name)}  # fmt: skip
    return sets - changes, changes, set(_used(top)) - loops


def _used(table):
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _used(inner)


def _changed(node):
    match node:
        case ast.AugAssign(target=changed) | ast.Expr(value=ast.Call(func=ast.Attribute() as changed)):
            return _root(changed)
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            return _root(node)
    return []


def _root(node):
    """The name in front of dots, brackets and calls."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return [node.id] if isinstance(node, ast.Name) else []
