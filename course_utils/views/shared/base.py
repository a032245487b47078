"""What every widget of the course shares: text and a picture in the same output, for pages without a kernel."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from course_utils.views import palette
from course_utils.views.picture import natural_width, small_png
from course_utils.views.shared.state import KEPT, MIME, page_state

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARED = Path(__file__).parent
WIDGETS = SHARED.with_name("widgets")


def script(*names: str) -> str:
    """The text of a widget's ES module, made of these files of `widgets` and `shared`, with dom.js before them."""
    return _joined("dom.js", *names)


def style(*names: str) -> str:
    """The text of a widget's CSS, made of these files."""
    return _joined(*names)


def ramp_trait() -> traitlets.Dict:
    """The colours of weights for a page, as the trait `_ramp` that `makeRamp` of dom.js reads."""
    return traitlets.Dict({"colours": palette.ramp_bytes(), "light_ink_from": palette.light_ink_from()}).tag(sync=True)


class CourseWidget(anywidget.AnyWidget):
    """An anywidget with deterministic text and a picture of itself.

    A subclass gives `as_text()`, `alt()` and `figure()`; its JavaScript sets `_palette` as CSS variables on its root.
    """

    _palette = traitlets.Dict(palette.css_variables()).tag(sync=True)

    def as_text(self) -> str:
        """The widget for a terminal: no addresses, the same on every run."""
        raise NotImplementedError

    def alt(self) -> str:
        """What the picture shows, in words."""
        raise NotImplementedError

    def figure(self) -> Figure:
        """A matplotlib Figure outside pyplot."""
        raise NotImplementedError

    def alone_state(self) -> dict[str, Any]:
        """What the state of a page without a kernel holds besides, or in place of what a live page is sent.

        Answers that Python computes before, for the widget's JavaScript to give where `model.alone` is true.
        """
        return {}

    def notify_change(self, change: Any) -> None:
        """Hear of a changed trait. What follows from it travels with it, in one message."""
        with self.hold_sync():
            super().notify_change(change)

    def __repr__(self):
        return self.as_text()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        assert bundle is not None  # but for a widget without a view
        data, metadata = bundle
        fig = self.figure()
        data = {**data, "text/plain": self.as_text(), "image/png": base64.b64encode(small_png(fig)).decode()}
        if os.environ.get(KEPT):
            data[MIME] = {"widget": type(self).__name__, "state": page_state(self)}
        return data, {**metadata, "image/png": {"alt": self.alt(), "width": natural_width(fig)}}


def _joined(*names):
    paths = (next(folder / name for folder in (WIDGETS, SHARED) if (folder / name).exists()) for name in names)
    return "".join(path.read_text(encoding="utf-8") for path in paths)
