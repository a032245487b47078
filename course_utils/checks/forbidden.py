"""Which library calls an answer makes that do the exercise's whole job."""

import ast
from collections.abc import Iterator, Mapping

EVERYWHERE = {
    "course_utils": "it holds the answers",
    "exec": "code made at run time cannot be read by the check",
    "eval": "code made at run time cannot be read by the check",
    "__import__": "write an import statement, so that the check can read it",
    "importlib": "write an import statement, so that the check can read it",
    "get_ipython": "magic and shell commands are no part of an answer",
}
FUSED = ("scaled_dot_product", "flash_attention", "efficient_attention")


def forbidden_call(source: str, forbidden: Mapping[str, str]) -> str | None:
    """What to say about the first forbidden name in an answer cell, or None.

    source: the cell. forbidden: from a name to why it does not count; a name that the cell itself defines is its own.
    Comments and docstrings do not matter. A cell that cannot be parsed has nothing forbidden.
    """
    tree = _parse(source)
    if tree is None:
        return None
    reasons = {**EVERYWHERE, **forbidden}
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for name, line, bare in sorted(_names(tree), key=lambda found: found[1]):
        if name in reasons and not (bare and name in own):
            return f"Line {line} uses {name}, which is not allowed here: {reasons[name]}."
        if forbidden and name.isidentifier() and any(part in name for part in FUSED):
            return f"Line {line} uses {name}, which is not allowed here: it is the whole of attention in one call."
    return None


def _parse(source: str) -> ast.AST | None:
    """The cell as Python, its magics turned into the calls that they are; None if it cannot be."""
    try:
        return ast.parse(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        source = TransformerManager().transform_cell(source)
    except (ValueError, RecursionError, MemoryError):
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """Every (name, line, bare) that code in the tree refers to, strings passed to calls included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno, True
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno, False
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            parts = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from ((name, node.lineno, False) for part in parts for name in part.split("."))
        elif isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, node.lineno, False
