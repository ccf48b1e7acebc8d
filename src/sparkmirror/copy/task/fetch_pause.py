"""The pause before the next fetch from a broker while records keep coming, one by one.

A fetch is answered with the first record that arrives. If the next record follows a millisecond
later, each of them costs a fetch, a produce request and two wake-ups. After a pause of a few
milliseconds one fetch finds all of them, and a request with a batch of each partition sends them.

A record that comes alone is fetched at once: the pause begins with the second of two answers that
follow each other closely, and ends when the broker has nothing to answer with. Large answers need
no pause: handling them takes longer. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

PAUSE_S = 0.003
"""How long records may collect at the source. Half of it is added to the median latency."""
LARGE_ANSWER_BYTES = 1 << 18


@dataclass(slots=True)
class FetchPause:
    """When the next fetch may be sent to one broker."""

    until: float = 0.0
    """No fetch before this moment of the monotonic clock."""
    is_catching_up: bool = False
    """Whether the last answer was a large one."""
    _records_at: float = float("-inf")
    """When the last answer with records came."""
    _is_pausing: bool = False

    def on_answer(self, sent_at: float, now: float, record_bytes: int) -> None:
        """Decide about the next fetch after an answer with so many bytes of records."""
        self.is_catching_up = record_bytes >= LARGE_ANSWER_BYTES
        waited_s = now - sent_at if self._is_pausing else now - self._records_at
        self._is_pausing = 0 < record_bytes < LARGE_ANSWER_BYTES and waited_s <= PAUSE_S
        self.until = now + PAUSE_S if self._is_pausing else 0.0
        if record_bytes:
            self._records_at = now
