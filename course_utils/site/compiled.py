"""Runs in Pyodide, in Node: compile those modules of the page's Python that are imported now.

The rest stays source, since compiled code takes more room. A compiled module takes the place of its source, so it
carries the path of a file that ends in .pyc, as its `__file__` does.
"""

import importlib._bootstrap_external as external
import sys
import zipfile
from pathlib import Path


def compile_packs(folder: Path, places: dict[str, str]) -> None:
    """Write NAME.compiled.zip for each NAME.zip of a folder. `places` has the path that each is imported from."""
    imported = {name for name, module in sys.modules.items() if getattr(module, "__file__", None)}
    for pack, place in places.items():
        with (
            zipfile.ZipFile(folder / f"{pack}.zip") as sources,
            zipfile.ZipFile(folder / f"{pack}.compiled.zip", "w") as out,
        ):
            for name in sources.namelist():
                module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                if name.endswith(".py") and module in imported:
                    level = 2 if pack == "library" else 0  # 2: without docstrings
                    out.writestr(f"{name}c", _compile(sources.read(name), f"{place}/{name}c", level))


def _compile(source: bytes, path: str, level: int) -> bytes:
    """Return the text of a .pyc file that Python does not compare with its source."""
    code = compile(source, path, "exec", dont_inherit=True, optimize=level)
    return bytes(external._code_to_hash_pyc(code, bytes(8), False))  # type: ignore[attr-defined]
