"""What a learner looks at: figures and widgets. Nothing heavy loads until a name is first used.

Widgets are names of this package: each is a subclass of `CourseWidget` in a module of `widgets`, with its JavaScript
and CSS beside it; what several use lies in `shared`. `picture.picture` and `static_page.static_page` are functions in
their modules.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

_WIDGET = re.compile(r"^class (\w+)\(CourseWidget\):$", re.MULTILINE)


@cache
def _homes():
    """Return the module of each widget. The modules are read and not imported, which would take seconds."""
    paths = sorted((Path(__file__).parent / "widgets").glob("*.py"))
    return {name: path.stem for path in paths for name in _WIDGET.findall(path.read_text(encoding="utf-8"))}


def __getattr__(name):
    if name == "__all__":
        return sorted(_homes())
    if not name[0].isupper() or name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.widgets.{_homes()[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_homes()])
