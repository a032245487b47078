"""A widget on a page of its own, with no kernel, no server and no network."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

from course_utils.views.shared.base import SHARED
from course_utils.views.shared.bundle import bundle
from course_utils.views.shared.state import page_state

if TYPE_CHECKING:
    from course_utils.views.shared.base import CourseWidget


def static_page(widget: CourseWidget, title: str) -> str:
    """HTML that opens from the file system and runs the widget's own JavaScript on its saved state.

    widget: an AttentionHeatmap, AttentionStepper, Quiz or other widget of the course. title: the page's heading.
    Before the script runs, or without scripts, the page shows the widget's picture with its alt text.
    """
    data, metadata = widget._repr_mimebundle_()
    picture = metadata["image/png"]
    fallback = (
        f'<img src="data:image/png;base64,{data["image/png"]}" width="{picture["width"]}" '
        f'alt="{html.escape(picture["alt"])}">'
    )
    code = _script(str(widget._esm))
    state = _script(page_state(widget))
    start = f'\nbringToLife(document.getElementById("widget"), await imported({code}), {state});\n'
    return _PAGE.format(title=html.escape(title), css=str(widget._css), fallback=fallback, host=host_script() + start)


def host_script() -> str:
    """JavaScript that stands in for Jupyter on a page without Python: `modelOf`, `imported` and `bringToLife`."""
    return bundle(SHARED / "host.js")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 24px auto; padding: 0 16px; max-width: 1000px;
  color: #1a1a1a; background: #fff; }}
h1 {{ font-size: 20px; }}
img {{ max-width: 100%; height: auto; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6e6e6; background: #161616; --jp-content-font-color1: #e6e6e6; --jp-content-font-color2: #b9bec6;
    --jp-layout-color1: #161616; --jp-layout-color2: #2b2e33;
    --jp-border-color1: #5c626b; --jp-border-color2: #3a3f46; }}
}}
{css}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<div id="widget">{fallback}</div>
</main>
<script type="module">{host}</script>
</body>
</html>
"""


def _script(value):
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
