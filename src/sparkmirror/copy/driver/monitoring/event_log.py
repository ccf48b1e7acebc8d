"""Events for the operator: the latest ones are kept for the snapshot, all are logged."""

from __future__ import annotations

import logging
import time
from collections import deque

from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.snapshot import MAX_EVENTS, CopyEvent

log = logging.getLogger(__name__)

NOTHING_LOST = (-1, -1)


class EventLog:
    """The latest events, oldest first."""

    def __init__(self) -> None:
        self._latest: deque[CopyEvent] = deque(maxlen=MAX_EVENTS)

    def publish(
        self, kind: str, tracked: TrackedPartition, text: str, lost: tuple[int, int] = NOTHING_LOST
    ) -> None:
        """Log and keep an event of a partition. `lost`: the range of lost source offsets."""
        log.warning("%s: %s: %s", tracked.source, kind, text)
        self._latest.append(
            CopyEvent(
                at_ms=time.time_ns() // 1_000_000,
                kind=kind,
                partition=str(tracked.source),
                text=text,
                lost_from=lost[0],
                lost_to=lost[1],
            )
        )

    def latest(self) -> tuple[CopyEvent, ...]:
        """Return the events that are kept."""
        return tuple(self._latest.copy())
