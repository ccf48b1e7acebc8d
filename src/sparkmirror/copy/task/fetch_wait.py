"""How the next fetch from a broker lets records collect while they keep coming, one by one.

A broker answers a fetch with the first record that arrives. If the next record follows a
millisecond later, each of them costs a fetch, a produce request and two wake-ups. Therefore the
second of two answers that follow each other closely begins to let records collect for some
milliseconds: one fetch finds all of them, and one request with a batch of each partition sends
them. A record that comes alone is fetched at once.

Records of few partitions collect at the broker: the fetch asks for as many bytes as arrive in that
time (`fetch.min.bytes`), by the rate of the last answers. So the last of them ends the wait, and
the task wakes once for each fetch. At every append the broker looks at all partitions of such a
fetch, so with many partitions the task pauses before it sends the fetch.

Records collect until they come at less than half the rate, or a large answer shows that the task
catches up: handling that takes longer. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COLLECT_S = 0.003
"""Records that follow each other within this time collect. A fetch asks for what arrives in it."""
MAX_WAIT_MS = 5
"""The longest wait for these bytes. The fetch is sent after the first record has come, and the next
ones may be late. An expired wait costs the broker more than one that an append ends."""
PAUSE_S = 0.00175
"""The pause before a fetch of many partitions; docs/decisions/0020 has the figures."""
LARGE_ANSWER_BYTES: Final = 1 << 18
MAX_PARTITIONS_AT_BROKER = 16
"""For more partitions the task pauses instead."""
_SMOOTHING: Final = 0.25
"""The share of the last answer in the rate."""


@dataclass(slots=True)
class FetchWait:
    """What the last answers of one broker mean for the next fetch."""

    is_collecting: bool = False
    """Whether records keep coming, one by one: the next fetch lets them collect."""
    is_catching_up: bool = False
    """Whether the last answer was a large one."""
    paused_until: float = 0.0
    """No fetch before this moment of the monotonic clock."""
    is_fetch_open: bool = False
    _bytes_per_s: float = 0.0
    """The rate of records while they collect."""
    _records_at: float = float("-inf")
    """When the last answer with records came."""

    def on_answer(self, now: float, record_bytes: int, partitions: int) -> None:
        """Decide about the next fetch after an answer with so many bytes of records.

        The fetch was for so many partitions.
        """
        self.is_fetch_open = False
        passed_s = max(now - self._records_at, 1e-6)
        rate = record_bytes / passed_s
        if self.is_collecting:
            self.is_collecting = 2 * rate >= self._bytes_per_s
            self._bytes_per_s += _SMOOTHING * (rate - self._bytes_per_s)
        else:
            self.is_collecting = passed_s <= COLLECT_S
            self._bytes_per_s = rate
        self.is_catching_up = record_bytes >= LARGE_ANSWER_BYTES
        if not 0 < record_bytes < LARGE_ANSWER_BYTES:
            self.is_collecting = False
        is_paused = self.is_collecting and partitions > MAX_PARTITIONS_AT_BROKER
        self.paused_until = now + PAUSE_S if is_paused else 0.0
        if record_bytes:
            self._records_at = now

    def is_answer_due(self, now: float) -> bool:
        """Whether records collect for a fetch that is open or follows a pause."""
        return self.is_collecting and (self.is_fetch_open or now < self.paused_until)

    def min_bytes(self, partitions: int) -> int:
        """Return how many bytes the next fetch, for so many partitions, waits for at the broker."""
        if not self.is_collecting or partitions > MAX_PARTITIONS_AT_BROKER:
            return 1
        return min(max(int(self._bytes_per_s * COLLECT_S), 1), LARGE_ANSWER_BYTES)
