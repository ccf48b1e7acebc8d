"""How much to ask a source broker for at once. Knows no socket and no partition."""

from __future__ import annotations

from dataclasses import dataclass

MIN_FETCH_BYTES = 4 << 20
MAX_FETCH_BYTES = 32 << 20


@dataclass(slots=True)
class FetchSizeEstimator:
    """What one broker is asked for: twice what is under way on the wire anyway.

    The quickest answer so far is taken for the round trip. On a short way that keeps answers small
    enough for the processor's cache; on a long one they grow until the way is full.
    """

    max_bytes: int = MIN_FETCH_BYTES
    _round_trip_s: float = float("inf")
    _rotation: int = 0

    def next_rotation(self) -> int:
        """Count the fetches from this broker.

        The partition that is asked for first may fill the whole answer, so each broker's partitions
        take turns. Counted together with other brokers' fetches, some would never have theirs.
        """
        self._rotation += 1
        return self._rotation

    def update(self, received: int, took_s: float) -> None:
        """Take in how long an answer took."""
        self._round_trip_s = min(self._round_trip_s, took_s)
        if received >= self.max_bytes // 2:
            under_way = received / max(took_s, 1e-6) * self._round_trip_s
            self.max_bytes = int(min(max(2 * under_way, MIN_FETCH_BYTES), MAX_FETCH_BYTES))
