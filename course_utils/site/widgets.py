"""Put widgets on a page of the site: first a picture, which comes to life when the reader comes near."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_utils import views
from course_utils.views.shared.bundle import bundle


def place_widget(key: str, widget: str, picture: str) -> str:
    """Return the HTML of the place where a widget comes to life.

    Args:
        key: the key of its state, which becomes its id.
        picture: the HTML to show before.
    """
    return f'<div class="course-alive" id="{html.escape(key)}" data-widget="{html.escape(widget)}">{picture}</div>'


def scripts(names: Iterable[str], states: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return files by their path in the site's static folder: one for each class of widgets, and one for each state.

    They are scripts that call a function of page.js, because a page from the file system can load nothing else.
    """
    files = {}
    for name in sorted(set(names)):
        kind = getattr(views, name)
        files[f"widgets/{name}.js"] = f"course.widget({_js(name)}, {_js(str(kind._esm))}, {_js(str(kind._css))});\n"
    for key, state in states.items():
        files[f"states/{key}.js"] = f"course.state({_js(key)}, {_js(state)});\n"
    return files


def classic_script(path: Path) -> str:
    """Return a module of the pages, with all that it imports, as a script: a page from disk loads no modules."""
    return f"(() => {{\n{bundle(path)}}})();\n"


def _js(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
