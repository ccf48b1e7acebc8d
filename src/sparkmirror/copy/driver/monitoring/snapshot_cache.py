"""The last snapshot of a conductor, for as long as nothing in it can have changed.

The driver takes a snapshot once a second. That of ten thousand partitions which are all copied and
have no news, or which wait for Spark, is the same object each time, so that to compare two of them
costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.tracked_partition import LeaseState
from sparkmirror.copy.snapshot import CopyEvent, CopySnapshot


class SnapshotInputs(NamedTuple):
    """What a snapshot shows besides the states of the partitions."""

    silent_attempts: Collection[Hello]
    driver_error: str
    events: tuple[CopyEvent, ...]


class SnapshotCache:
    """Holds at most one snapshot. The conductor's lock guards it."""

    def __init__(self) -> None:
        self._inputs: SnapshotInputs | None = None
        self._snapshot = CopySnapshot()

    def find(self, inputs: SnapshotInputs) -> CopySnapshot | None:
        """Return the snapshot with these inputs if no state has changed since; else None."""
        return self._snapshot if inputs == self._inputs else None

    def store(self, inputs: SnapshotInputs, snapshot: CopySnapshot) -> None:
        """Keep a snapshot of partitions that are leased or wait for their first lease.

        The reason of a leased partition may end with time alone: such a snapshot is not kept.
        """
        leased = (v for v in snapshot.partitions.values() if v.state == LeaseState.LEASED)
        if not any(view.reason for view in leased):
            self._inputs, self._snapshot = inputs, snapshot

    def invalidate(self) -> None:
        """Forget the snapshot: the state of a partition may have changed."""
        self._inputs = None
