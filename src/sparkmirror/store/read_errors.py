"""What keeps a log from being read just now: said once, again now and then, and when it is over."""

from __future__ import annotations

import logging
import time

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError

log = logging.getLogger(__name__)

REPEAT_WARNING_S = 60.0
MAX_RETRY_DELAY_S = 2.0


class ReadErrorTracker:
    """The trouble of one topic. Noted by the thread that reads it; others may ask what it is."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._error: ClusterError | None = None
        self._since = 0.0
        self._logged_at = 0.0
        self._backoff = Backoff(max_s=MAX_RETRY_DELAY_S)

    def on_attempt(self, error: ClusterError | None) -> None:
        """Take in how the last attempt went."""
        now = time.monotonic()
        before, self._error = self._error, error
        if error is None:
            self._backoff.reset()
            if before is not None:
                log.info("%s can be read again, after %.1f s", self._topic, now - self._since)
            return
        if before is None:
            self._since = now
        if before is None or now - self._logged_at > REPEAT_WARNING_S:
            self._logged_at = now
            log.warning("%s cannot be read just now, trying again: %s", self._topic, error)

    def next_delay_s(self) -> float:
        """How long to wait before the next attempt."""
        return self._backoff.next_delay_s()

    def __str__(self) -> str:
        return "nothing is known to be wrong" if self._error is None else str(self._error)
