"""The state of a widget for a page without Python, such as a static page or a page of the site."""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Protocol

MIME = "application/vnd.course.widget+json"  # type of an output: the widget's class, and its state for such a page
KEEP_STATES = "COURSE_KEEP_STATES"  # environment variable: if it is set, every widget shown gives that output too
_OF_JUPYTER = {"_esm", "_css", "_anywidget_id", "layout", "tabbable", "tooltip"}


class HasState(Protocol):
    """A widget, as far as this module calls it."""

    def get_state(self) -> dict[str, Any]: ...

    def alone_state(self) -> dict[str, Any]: ...


def page_state(widget: HasState) -> dict[str, Any]:
    """Return the state of a widget as JSON holds it; bytes become {"base64": text}."""
    with _one_thread():
        state = {**widget.get_state(), **widget.alone_state()}
    return {
        name: _to_json(value)
        for name, value in sorted(state.items())
        if name not in _OF_JUPYTER and not name.startswith(("_model", "_view", "_dom"))
    }


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: matrices are small here, and waiting for other threads costs more than they save."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        if torch:
            torch.set_num_threads(1)
        yield
    finally:
        if torch:
            torch.set_num_threads(threads)


def _to_json(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {key: _to_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(inner) for inner in value]
    return value
