"""Put widgets on a page of the site: first a picture, which comes to life when the reader comes near."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from course_utils import views
from course_utils.views.static_page import host_script


def placed(key: str, widget: str, picture: str) -> str:
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


def page_script(assets_text: str) -> str:
    """Return the script of every page.

    Args:
        assets_text: the text of page.js, in which HOST stands for the widgets' host.
    """
    return assets_text.replace("HOST;", host_script())


def _js(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
