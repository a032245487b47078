"""The base class of all widgets: text and a picture in the same output, for pages without a kernel."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import traitlets

from course_utils.views import palette
from course_utils.views.picture import natural_width, small_png
from course_utils.views.shared.bundle import bundle
from course_utils.views.shared.state import KEEP_STATES, MIME, page_state

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARED = Path(__file__).parent
WIDGETS = SHARED.with_name("widgets")


def script(name: str) -> str:
    """Return the text of a widget's ES module, a file of `widgets`, with all that it imports: see `bundle`."""
    return bundle(WIDGETS / name)


def style(*names: str) -> str:
    """Return the text of a widget's CSS: widget.css, then these files of `widgets` and `shared`."""
    paths = (next(folder / name for folder in (WIDGETS, SHARED) if (folder / name).exists()) for name in names)
    return "".join(path.read_text(encoding="utf-8") for path in (SHARED / "widget.css", *paths))


def ramp_trait() -> traitlets.Dict:
    """Return the trait `_ramp`, which holds the colours of weights for `makeRamp` of dom.js."""
    return traitlets.Dict({"colours": palette.ramp_bytes(), "light_ink_from": palette.light_ink_from()}).tag(sync=True)


@dataclass(frozen=True)
class InGallery:
    """What the site's page of widgets says about one; formulas as in a lesson.

    Attributes:
        place: its place there. A widget with a question has the number of its day before that within the day.
        title: what a reader does with it, in a few words.
        question: that of its lesson, if the widget lives on the page and is large.
        summary: a sentence on what one does with it, if it is a small picture there.
    """

    place: int
    title: str
    question: str = ""
    summary: str = ""


class CourseWidget(anywidget.AnyWidget):
    """An anywidget with deterministic text and a picture of itself.

    A subclass defines `as_text()`, `alt()` and `figure()`; its JavaScript sets `_palette` as CSS variables on its root.

    Attributes:
        in_gallery: its words for the site's page of widgets, which a widget of a lesson has to have.
        plays: whether a reader plays with it, rather than writes down an answer or reads.
        minutes: how long it takes a reader of a lesson, by the rule of `authoring/reading_time.py`.
    """

    in_gallery: ClassVar[InGallery | None] = None
    plays: ClassVar[bool] = True
    minutes: ClassVar[int] = 3

    _palette = traitlets.Dict(palette.css_variables()).tag(sync=True)

    def as_text(self) -> str:
        """Return the widget as text for a terminal: without addresses, and the same on every run."""
        raise NotImplementedError

    def alt(self) -> str:
        """Return what the picture shows, in words."""
        raise NotImplementedError

    def figure(self) -> Figure:
        """Return a matplotlib Figure that is made outside pyplot."""
        raise NotImplementedError

    def alone_state(self) -> dict[str, Any]:
        """Return state that a page without a kernel gets in addition to, or in place of, the state of a live page.

        It holds answers that Python computes in advance; the widget's JavaScript uses them if `model.alone` is true.
        """
        return {}

    def notify_change(self, change: Any) -> None:
        """Send a changed trait and everything that changes because of it in one message."""
        with self.hold_sync():
            super().notify_change(change)

    def __repr__(self):
        return self.as_text()

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        assert bundle is not None  # it is None only for a widget without a view
        data, metadata = bundle
        fig = self.figure()
        data = {**data, "text/plain": self.as_text(), "image/png": base64.b64encode(small_png(fig)).decode()}
        if os.environ.get(KEEP_STATES):
            data[MIME] = {"widget": type(self).__name__, "state": page_state(self)}
        return data, {**metadata, "image/png": {"alt": self.alt(), "width": natural_width(fig)}}
