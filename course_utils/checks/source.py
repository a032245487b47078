"""The source of an answer cell: read as Python, never run."""

import ast
import re
import symtable

NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


def parse(source: str) -> ast.Module | None:
    """A cell as Python, its prompts taken off; a cell with magic or shell commands as `get_ipython()`.

    None if it is neither.
    """
    try:
        return ast.parse(source)
    except NO_PYTHON:
        pass
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        manager, lines = TransformerManager(), source.splitlines(keepends=True)
        for transform in (*manager.cleanup_transforms, *manager.line_transforms):
            lines = transform(lines)
        magic, lines = manager.do_one_token_transform(lines)
        return ast.parse("get_ipython()" if magic else "".join(lines))
    except Exception:  # IPython gives up on it in its own ways, here as in the kernel
        return None


def defined_names(source: str) -> set[str]:
    """The names that a cell defines at its top level, by def, class or assignment; roughly, if it is no Python."""
    try:
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except NO_PYTHON:
        return set(re.findall(r"^(?:def[ \t]+|class[ \t]+)?(\w+)[ \t]*[(:=]", source, re.MULTILINE))
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned()}


def used_names(source: str) -> set[str]:
    """The names that a cell takes from other cells or from its own top level; roughly, if it is no Python."""
    tree = parse(source)
    if tree is None:
        return set(re.findall(r"\w+", source))
    try:
        tables = [symtable.symtable(ast.unparse(tree), "cell", "exec")]
    except NO_PYTHON:
        return set()
    found = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {each.get_name() for each in table.get_symbols() if each.is_referenced() and (top or each.is_global())}
    return found
