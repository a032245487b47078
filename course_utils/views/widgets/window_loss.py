"""The real model's loss by position when it keeps some keys only: recorded curves, for a cache's room and its sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import traitlets

from course_utils.models import window_record
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class WindowLoss(CourseWidget):
    """SmolLM2's loss by position with room for some keys: the first `sinks` tokens and the latest others.

    room and sinks are those of the record, `window_record.ROOMS` and SINKS. Both can be read and set, and the page's
    sliders set them. Beside the chosen curve are the one without first tokens and the one of the whole text. Raises
    ValueError for what was not recorded.
    """

    in_gallery = InGallery(
        81, "Keep the first tokens", question="How many first tokens are enough for a model that sees a window only?"
    )

    _esm = script("window_loss.js")
    _css = style("bars.css", "window_loss.css")

    room = traitlets.Int(128).tag(sync=True)
    sinks = traitlets.Int(0).tag(sync=True)
    _record = traitlets.Dict().tag(sync=True)

    def __init__(self, room: int = 128, sinks: int = 0):
        rows = {f"{room},{sinks}": (room, sinks) for room in window_record.ROOMS for sinks in window_record.SINKS}
        settings = window_record.recorded()["settings"]
        record = {
            "rooms": list(window_record.ROOMS), "sinks": list(window_record.SINKS), "length": settings["length"],
            "positions": window_record.curve(None)[0], "all": window_record.curve(None)[1],
            "all_loss": window_record.loss(None),
            "losses": {key: window_record.loss(*row) for key, row in rows.items()},
            "curves": {key: window_record.curve(*row)[1] for key, row in rows.items()},
        }  # fmt: skip
        super().__init__(room=room, sinks=sinks, _record=record)

    @traitlets.validate("room", "sinks")
    def _recorded(self, proposal):
        name = proposal.trait.name
        allowed = window_record.ROOMS if name == "room" else window_record.SINKS
        if proposal.value not in allowed:
            raise ValueError(f"{name} is {proposal.value}: recorded are {', '.join(map(str, allowed))}")
        return proposal.value

    def describe(self) -> str:
        """Say which keys the last query sees, and what the model loses by it."""
        kept = "none of the first" if not self.sinks else "the first" if self.sinks == 1 else f"the first {self.sinks}"
        loss = self._record["losses"][f"{self.room},{self.sinks}"]
        return (
            f"Room for {self.room} keys: {kept}, and the last {self.room - self.sinks}. "
            f"Loss {loss:.2f} nats per token; with all tokens {self._record['all_loss']:.2f}."
        )

    def as_text(self) -> str:
        lines = [f"room {'  '.join(f'{n:>2} first' for n in self._record['sinks'])}"]
        for room in self._record["rooms"]:
            losses = (self._record["losses"][f"{room},{sinks}"] for sinks in self._record["sinks"])
            lines.append(f"{room:>4} {'  '.join(f'{loss:8.2f}' for loss in losses)}")
        return "\n".join([*lines, self.describe()])

    def alt(self) -> str:
        return f"Loss of SmolLM2 by position, with all tokens and with a part of them. {self.describe()}"

    def figure(self) -> Figure:
        fig = new_figure(680, 300)
        ax = fig.add_subplot()
        at = self._record["positions"]
        ax.plot(at, self._record["all"], color=palette.INK, label="all tokens")
        none = self._record["curves"][f"{self.room},0"]
        ax.plot(at, none, color=palette.WRONG, linestyle="--", label="no first tokens")
        if self.sinks:
            chosen = self._record["curves"][f"{self.room},{self.sinks}"]
            words = "token" if self.sinks == 1 else "tokens"
            ax.plot(at, chosen, color=palette.QUERY, label=f"{self.sinks} first {words}")
        ax.set(xlabel="position in the text", ylabel="loss, nats per token")
        ax.set_title(f"room for {self.room} keys")
        ax.legend()
        fig.tight_layout()
        return fig
