"""A widget as a page in a browser meets it: the state that it is sent, and what it sends back."""

from types import SimpleNamespace
from typing import Any

from ipywidgets import Widget


def on_page(widget: Widget) -> SimpleNamespace:
    """What the page is sent of a widget; a leading underscore, which says that learners leave it alone, is dropped.

    `layout` is the course's own, which its scripts read, and not the box that ipywidgets keeps under that name.
    """
    sent = widget.get_state()
    own = {name[1:]: value for name, value in sent.items() if name.startswith("_")}
    return SimpleNamespace(**sent | own)


def send(widget: Widget, **state: Any) -> None:
    """Set a widget's state as its page does: the names are those of `on_page`."""
    named = {name.removeprefix("_"): name for name in sorted(widget.keys, reverse=True)}  # ours last, as above
    widget.set_state({named[name]: value for name, value in state.items()})
