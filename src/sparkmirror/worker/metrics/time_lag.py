"""The lag of partitions in seconds. No threads, no clock.

The oldest record that waits is not older than the newest one that was copied, as far as timestamps
grow. It also came after the last moment without a lag. The smaller of both ages is the lag: after
an idle hour the first record has not waited for an hour, and records with old timestamps that a
producer writes now have not waited for years. A timestamp in the future says nothing: such a record
counts as written when it was copied.
"""

from __future__ import annotations

from collections.abc import Collection

from sparkmirror.copy.snapshot import PartitionView


class TimeLags:
    """Remembers of each partition when it had no lag, and the newest record that was copied."""

    def __init__(self) -> None:
        self._newest_s: dict[str, float] = {}
        self._caught_up_s: dict[str, float] = {}

    def on_view(
        self,
        name: str,
        before: PartitionView | None,
        view: PartitionView,
        before_s: float,
        wall_s: float,
    ) -> None:
        """Read a view that has changed. `before_s` is the time of the status before."""
        if before is not None and before.lag == 0:
            self._caught_up_s[name] = before_s
        has_moved = before is None or view.position != before.position
        if view.newest_ms >= 0 and has_moved:
            newest_s = min(view.newest_ms / 1000, wall_s)
            self._newest_s[name] = max(self._newest_s.get(name, newest_s), newest_s)

    def keep(self, planned: Collection[str]) -> None:
        """Forget the partitions that are not planned any more."""
        for known in (self._newest_s, self._caught_up_s):
            for name in known.keys() - planned:
                del known[name]

    def seconds(self, name: str, view: PartitionView, wall_s: float) -> float | None:
        """Return the lag of a partition; None if it is not known."""
        if not view.lag:
            return 0.0 if view.lag == 0 else None
        since = (known.get(name) for known in (self._newest_s, self._caught_up_s))
        return min((max(wall_s - one, 0.0) for one in since if one is not None), default=None)
