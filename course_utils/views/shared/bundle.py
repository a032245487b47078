"""One text of an ES module and of what it imports, since anywidget loads a single one and a page from disk none."""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async |const |function |class |let ))", re.MULTILINE)


def bundle(path: Path) -> str:
    """Return the text of a module, after that of all modules that it imports, each once, without imports and exports.

    All of them share one scope, so no two may give the same name to something at their top. What the module itself
    exports as default stays. Biome writes each import as one statement that begins a line: the only form known here.
    """
    found: dict[Path, str] = {}
    _collect(path.resolve(), found)
    return "".join(found.values())


def _collect(path: Path, found: dict[Path, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for address in IMPORT.findall(text):
        imported = (path.parent / address).resolve()
        if imported not in found:
            _collect(imported, found)
    found[path] = EXPORT.sub("", IMPORT.sub("", text))
