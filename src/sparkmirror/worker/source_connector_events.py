"""The latest events of one source connector, across the restarts of its driver. No threads.

A driver reports its latest events with every status, and begins without events when it starts. An
event that was reported before is not new.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.copy.snapshot import MAX_EVENTS, CopyEvent

SHOWN_EVENTS = 200
"""As many are shown by REST, and logged at once."""


class SourceConnectorEvents:
    """The latest events, oldest first."""

    def __init__(self) -> None:
        self._events: dict[CopyEvent, None] = {}
        """As many as a driver reports, so that no event of it is forgotten and then new."""
        self._reported: Sequence[CopyEvent] = ()

    def add(self, reported: Sequence[CopyEvent]) -> tuple[CopyEvent, ...]:
        """Keep the events that a driver reported; return the new ones."""
        if reported is self._reported:
            return ()
        self._reported = reported
        new = tuple(event for event in dict.fromkeys(reported) if event not in self._events)
        if new:
            kept = [*self._events, *new][-MAX_EVENTS:]
            self._events = dict.fromkeys(kept)
        return new

    def latest(self) -> tuple[CopyEvent, ...]:
        """Return the events to show."""
        return tuple(self._events)[-SHOWN_EVENTS:]
