"""The control connections that have not authenticated yet: how many there may be, and their log.

Every program that reaches the port can open connections. So their number is limited, and a flood of
them fills neither the file descriptors of the driver nor its log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from sparkmirror.engine.driver.control.authenticated_connection import Handshake

log = logging.getLogger(__name__)

MAX_PENDING_HANDSHAKES = 256
MAX_LINES_PER_PERIOD = 20
PERIOD_S = 60.0


class PendingHandshakes:
    """The connections whose handshake is not finished, in the order in which they began."""

    def __init__(self, limit: int = MAX_PENDING_HANDSHAKES) -> None:
        self._limit = limit
        self._handshakes: dict[Handshake, None] = {}

    def add(self, handshake: Handshake) -> Handshake | None:
        """Add a new one. Returns the oldest, which must be rejected, if there are too many.

        A task finishes its handshake within milliseconds. So a client that opens connections and
        stays silent loses them to tasks, not the other way round.
        """
        self._handshakes[handshake] = None
        return next(iter(self._handshakes)) if len(self._handshakes) > self._limit else None

    def discard(self, handshake: Handshake) -> None:
        """Remove one that has ended. May be called again."""
        self._handshakes.pop(handshake, None)

    def overdue(self, now: float) -> list[Handshake]:
        """Return those whose deadline has passed."""
        return [handshake for handshake in self._handshakes if now > handshake.deadline]

    def __iter__(self) -> Iterator[Handshake]:
        return iter(tuple(self._handshakes))

    def __len__(self) -> int:
        return len(self._handshakes)


class RejectionLog:
    """Logs rejected connections: a limited number of lines a minute, then only how many."""

    def __init__(self) -> None:
        self._period_ends_at = 0.0
        self._rejected = 0

    def write(self, peer: str, reason: str, now: float) -> None:
        """Log one rejected connection, or count it."""
        if now >= self._period_ends_at:
            self._end_period()
            self._period_ends_at = now + PERIOD_S
        self._rejected += 1
        if self._rejected <= MAX_LINES_PER_PERIOD:
            log.warning("Rejected control connection from %s: %s", peer, reason)

    def _end_period(self) -> None:
        if self._rejected > MAX_LINES_PER_PERIOD:
            more = self._rejected - MAX_LINES_PER_PERIOD
            log.warning("Rejected %d more control connections within a minute", more)
        self._rejected = 0
