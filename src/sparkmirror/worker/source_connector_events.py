"""The latest events of one source connector, across the restarts of its driver. No threads.

A driver reports its latest events with every status, and begins without events when it starts. An
event that was reported before is not new.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.copy.snapshot import CopyEvent

MAX_EVENTS = 200
"""As many as a driver reports, so that no event of the running driver is forgotten and then new."""


class SourceConnectorEvents:
    """The latest events, oldest first."""

    def __init__(self) -> None:
        self._events: dict[CopyEvent, None] = {}

    def add(self, reported: Iterable[CopyEvent]) -> tuple[CopyEvent, ...]:
        """Keep the events that a driver reported; return the new ones."""
        new = tuple(event for event in dict.fromkeys(reported) if event not in self._events)
        if new:
            kept = [*self._events, *new][-MAX_EVENTS:]
            self._events = dict.fromkeys(kept)
        return new

    def latest(self) -> tuple[CopyEvent, ...]:
        """Return the events that are kept."""
        return tuple(self._events)
