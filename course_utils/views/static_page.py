"""A widget on a page of its own, with no kernel, no server and no network."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_utils.views.shared.base import CourseWidget

_LEFT_OUT = {"layout", "tabbable", "tooltip"}


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
    host = _HOST.replace("STATE", _script(page_state(widget))).replace("CODE", _script(str(widget._esm)))
    return _PAGE.format(title=html.escape(title), css=str(widget._css), fallback=fallback, host=host)


def page_state(widget: CourseWidget) -> dict[str, Any]:
    """The state of a widget for a page on which no Python answers, as JSON holds it; bytes are {"base64": text}."""
    with _one_thread():
        state = {**widget.get_state(), **widget.alone_state()}
    return {
        name: _plain(value)
        for name, value in sorted(state.items())
        if name not in _LEFT_OUT and name not in _ANYWIDGET and not name.startswith(("_model", "_view", "_dom"))
    }


@contextlib.contextmanager
def _one_thread():
    """Torch on one thread: matrices are small here, and threads that wait for each other cost more than they bring."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        if torch:
            torch.set_num_threads(1)
        yield
    finally:
        if torch:
            torch.set_num_threads(threads)


_ANYWIDGET = {"_esm", "_css", "_anywidget_id"}

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
img {{ max-width: 100%; height: auto; background: #fff; }}
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

# The part of anywidget's host that a widget needs: get, set, on, off. Callbacks run on a change, as in Jupyter. `alone`
# says that no Python answers.
_HOST = """
const revive = (value) => {
  if (Array.isArray(value)) return value.map(revive);
  if (!value || typeof value !== "object") return value;
  if ("base64" in value) return new DataView(Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0)).buffer);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
};
const state = revive(STATE), listeners = {};
const model = {
  alone: true,
  get: (name) => state[name],
  set: (name, value) => {
    if (state[name] === value) return;
    state[name] = value;
    for (const call of listeners["change:" + name] ?? []) call();
  },
  save_changes: () => {},
  on: (event, call) => (listeners[event] ??= []).push(call),
  off: (event, call) => { listeners[event] = (listeners[event] ?? []).filter((other) => other !== call); },
};
const url = URL.createObjectURL(new Blob([CODE], { type: "text/javascript" }));
const { default: widget } = await import(url);
const el = document.getElementById("widget");
el.replaceChildren();
await widget.render({ model, el });
"""


def _plain(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def _script(value):
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
