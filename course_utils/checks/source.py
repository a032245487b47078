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
