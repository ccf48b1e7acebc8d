"""What is to be seen of the connectors of one worker: the latest word of each.

Connectors are known here under the names that REST gives them, so that a node of several flows can
have one sight for all.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.connect.connectors.explanations import Explanation, Explanations
from sparkmirror.connect.watching import PartitionStanding
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.model import TopicPartition


class Sight:
    """Implements `Watching`. Any thread may tell it something, or ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: dict[str, Snapshot] = {}
        self._explanations: dict[str, Explanations] = {}

    def of_flow(self, prefix: str = "") -> FlowSight:
        """The part of one herder, whose connectors are called `<prefix><name>` here."""
        with self._lock:
            explanations = self._explanations.setdefault(prefix, Explanations())
        return FlowSight(self, prefix, explanations)

    def saw(self, connector: str, snapshot: Snapshot) -> None:
        """Take in how far a source connector is."""
        with self._lock:
            self._snapshots[connector] = snapshot

    def partitions(self, connector: str) -> Sequence[PartitionStanding]:
        """How far a source connector is, partition by partition."""
        with self._lock:
            snapshot = self._snapshots.get(connector, Snapshot())
        return [
            PartitionStanding(
                topic=partition.topic,
                partition=partition.partition,
                remote_topic=view.remote,
                task=view.task,
                state=view.state,
                position=view.position,
                end=view.end,
                lag=view.lag,
                records=view.records,
                bytes=view.bytes,
                reason=view.reason,
            )
            for partition, view in sorted(
                (TopicPartition.parse(key), view) for key, view in snapshot.partitions.items()
            )
        ]

    def groups(self, connector: str) -> Sequence[Explanation]:
        """What became of each group's offsets, and why."""
        with self._lock:
            of_flows = list(self._explanations.items())
        for prefix, explanations in of_flows:
            if connector.startswith(prefix):
                found = explanations.of(connector.removeprefix(prefix))
                if found:
                    return found
        return ()


class FlowSight:
    """What one herder's connectors tell of themselves."""

    def __init__(self, sight: Sight, prefix: str, explanations: Explanations) -> None:
        self._sight = sight
        self._prefix = prefix
        self.explanations = explanations

    def saw(self, connector: str, snapshot: Snapshot) -> None:
        """Take in how far a source connector is."""
        self._sight.saw(f"{self._prefix}{connector}", snapshot)
