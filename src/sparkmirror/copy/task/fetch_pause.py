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

PAUSE_MS = 2
"""How long records may collect at the source. Half of it is added to the median latency."""
PAUSE_S = PAUSE_MS / 1000
LARGE_ANSWER_BYTES = 1 << 18
MAX_COLLECTED_PARTITIONS = 256
"""At every append a broker looks at all partitions of a fetch that waits for several records."""
_TIMER_S = 0.002
"""How much later than asked a broker may answer: its timer has milliseconds."""


@dataclass(slots=True)
class FetchPause:
    """How the next fetch from one broker lets records collect."""

    is_collecting: bool = False
    """Whether records keep coming, one by one: the next fetch waits for several of them."""
    is_catching_up: bool = False
    """Whether the last answer was a large one."""
    until: float = 0.0
    """No fetch before this moment of the monotonic clock."""
    _records_at: float = float("-inf")
    """When the last answer with records came."""

    def on_answer(self, sent_at: float, now: float, record_bytes: int) -> None:
        """Decide about the next fetch after an answer with so many bytes of records."""
        self.is_catching_up = record_bytes >= LARGE_ANSWER_BYTES
        if self.is_collecting:
            is_soon = now - sent_at <= PAUSE_S + _TIMER_S
        else:
            is_soon = now - self._records_at <= PAUSE_S
        self.is_collecting = is_soon and 0 < record_bytes < LARGE_ANSWER_BYTES
        self.until = 0.0
        if record_bytes:
            self._records_at = now
