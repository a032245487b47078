"""The base class of widgets that show a walk step by step, where some of their traits decide the walk."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets

from course_utils.views.shared.base import CourseWidget


class WalkWidget(CourseWidget):
    """A widget that shows a step of a walk, and walks anew when one of its settings changes.

    A subclass has a trait for each setting, and defines `last` and `_walked`.
    """

    _SETTINGS: ClassVar[tuple[str, ...]] = ()  # the names of the traits that decide the walk

    step = traitlets.Int(0, help="steps taken").tag(sync=True)
    _walk = traitlets.Dict().tag(sync=True)

    @property
    def last(self) -> int:
        """The last step."""
        raise NotImplementedError

    def _walked(self, *_: Any, **settings: Any) -> dict[str, Any]:
        """Return the walk with these settings, and the settings in it under "settings"."""
        raise NotImplementedError

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value <= self.last:
            raise ValueError(f"step is {proposal.value}: give a number from 0 to {self.last}")
        return proposal.value

    @traitlets.observe(traitlets.All)
    def _walk_anew(self, change):
        if change.name not in self._SETTINGS:
            return
        settings = {name: getattr(self, name) for name in self._SETTINGS}
        if settings != self._walk["settings"]:  # several may have changed together
            self.step = 0
            self._walk = self._walked(**settings)
