"""How much to ask a source broker for at once. Knows no socket and no partition."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_ANSWER = 4 << 20
LARGEST_ANSWER = 32 << 20


@dataclass(slots=True)
class Appetite:
    """What one broker is asked for: twice what is under way on the wire anyway.

    The quickest answer so far is taken for the round trip. On a short way that keeps answers small
    enough for the processor's cache; on a long one they grow until the way is full.
    """

    bytes: int = SMALLEST_ANSWER
    _round_trip_s: float = float("inf")
    _turn: int = 0

    def next_turn(self) -> int:
        """Count the fetches from this broker.

        The partition that is asked for first may fill the whole answer, so each broker's partitions
        take turns. Counted together with other brokers' fetches, some would never have theirs.
        """
        self._turn += 1
        return self._turn

    def learn(self, received: int, took_s: float) -> None:
        """Take in how long an answer took."""
        self._round_trip_s = min(self._round_trip_s, took_s)
        if received >= self.bytes // 2:
            under_way = received / max(took_s, 1e-6) * self._round_trip_s
            self.bytes = int(min(max(2 * under_way, SMALLEST_ANSWER), LARGEST_ANSWER))
