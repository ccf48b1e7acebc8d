"""Which offsets a batch or a micro-batch reads. Runs in Spark's driver.

    batch       startingOffsets to endingOffsets, as they are when the plan is made
    stream      first micro-batch: startingOffsets to the ends of now
                others: the end of the one before to the ends of now, limited by the caller

Invariants:
- The ends of a micro-batch are exact: they are in the checkpoint, and a restart reads the same.
- The offset before the first micro-batch says only that nothing was read. Even with
  `startingOffsets=latest` the first micro-batch decides the offsets, and they are in the checkpoint
  before anything is read: a crash in it loses no record.
- A partition that appears later is read from offset 0.
- What is not there any more is an error, or with `failOnDataLoss=false` a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from sparkmirror.datasource.offset_positions import (
    OffsetPositions,
    OffsetsJson,
    PartitionOffsets,
    offsets_from_json,
    offsets_to_json,
)
from sparkmirror.datasource.offset_ranges import OffsetRange, limit_ends, split_ranges
from sparkmirror.datasource.options import ENDING, STARTING, SourceOptions
from sparkmirror.errors import ConfigError, RecordsLost
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST

log = logging.getLogger(__name__)

NOTHING_READ: OffsetsJson = {"starting offsets": {}}
"""The offset of a stream before its first micro-batch. No topic can have this name."""


class SourceLogs(Protocol):
    """The logs that a source reads: `subscribed_logs`, or those of a test."""

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        ...

    def partitions(self, expected_topics: Collection[str] = ()) -> list[TopicPartition]:
        """Return the partitions that exist."""
        ...

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        """Raise the error of the first topic or partition that is named but not among these."""
        ...

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the first offsets of those partitions that exist."""
        ...

    def latest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Return the ends of those partitions that exist."""
        ...


class SourcePlanner:
    """Plans the reads of one source. Blocks; one thread. Raises ClusterError and ConfigError."""

    def __init__(self, options: SourceOptions, logs: SourceLogs) -> None:
        self._options = options
        self._logs = logs
        self._final_ends: PartitionOffsets | None = None
        self.listed_ends: PartitionOffsets = {}
        """The ends of the logs when they were last asked for."""

    def batch_ranges(self) -> list[OffsetRange]:
        """Return the ranges of a batch read."""
        partitions = self._logs.partitions()
        self._logs.require_named(partitions)
        latest = self._logs.latest(partitions)
        wanted = self._positions(ENDING, self._options.ending, latest)
        ends = {p: latest[p] if end == LATEST else min(end, latest[p]) for p, end in wanted.items()}
        self._report(
            [
                f"{ENDING} of {p} is {end}, but its log ends at offset {latest[p]}"
                for p, end in wanted.items()
                if end > latest[p]
            ]
        )
        return self._ranges(self._starts(None, ends), ends)

    def latest_offsets(self, start: OffsetsJson, max_offsets: int | None) -> OffsetsJson:
        """Return where the micro-batch that begins at `start` ends."""
        known = None if start == NOTHING_READ else offsets_from_json(start)
        ends = self._ends(known)
        if known is not None:
            self._report(_losses(known, ends))
        starts = self._starts(known, ends)
        return offsets_to_json(
            ends if max_offsets is None else limit_ends(starts, ends, max_offsets)
        )

    def ranges(self, start: OffsetsJson, end: OffsetsJson) -> list[OffsetRange]:
        """Return the ranges of a micro-batch."""
        known = None if start == NOTHING_READ else offsets_from_json(start)
        ends = {} if end == NOTHING_READ else offsets_from_json(end)
        return self._ranges(self._starts(known, ends), ends)

    def stop_at_present_ends(self) -> None:
        """Read nothing that is written from now on (`Trigger.AvailableNow`)."""
        self._final_ends = self._logs.latest(self._logs.partitions())

    def _ends(self, known: Mapping[TopicPartition, int] | None) -> PartitionOffsets:
        if self._final_ends is not None:
            if not known:
                self._logs.require_named(self._final_ends)
            return self._final_ends
        partitions = self._logs.partitions({p.topic for p in known or ()})
        if known is None:
            self._logs.require_named(partitions)
        self.listed_ends = self._logs.latest(partitions)
        return self.listed_ends

    def _starts(
        self, known: Mapping[TopicPartition, int] | None, ends: Mapping[TopicPartition, int]
    ) -> PartitionOffsets:
        """Return where reading begins, by the partitions of `ends`."""
        if known is not None:
            return {partition: known.get(partition, 0) for partition in ends}
        positions = self._positions(STARTING, self._options.starting, ends)
        at_first = [p for p, position in positions.items() if position == EARLIEST]
        earliest = self._logs.earliest(at_first) if at_first else {}
        starts: PartitionOffsets = {}
        for partition, position in positions.items():
            if position == LATEST:
                starts[partition] = ends[partition]
            elif position == EARLIEST:
                starts[partition] = min(earliest.get(partition, 0), ends[partition])
            else:
                starts[partition] = position
        return starts

    def _positions(
        self, option: str, positions: OffsetPositions, ends: Mapping[TopicPartition, int]
    ) -> PartitionOffsets:
        found = {partition: positions.position_of(partition) for partition in ends}
        missing = sorted(partition for partition, at in found.items() if at is None)
        if missing:
            raise ConfigError.of(option, f"{option} has no offset for {_listed(missing)}; add it")
        unknown = sorted(positions.by_partition.keys() - ends.keys())
        if unknown:
            raise ConfigError.of(
                option, f"{option} has an offset for {_listed(unknown)}, not read here; remove it"
            )
        return {partition: at for partition, at in found.items() if at is not None}

    def _ranges(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """Return what is still there of what is to be read, divided for `minPartitions`."""
        moved = [partition for partition, end in ends.items() if starts[partition] != end]
        earliest = self._logs.earliest(moved) if moved else {}
        ranges: list[OffsetRange] = []
        losses: list[str] = []
        for partition in sorted(moved):
            first, start, end = earliest.get(partition), starts[partition], ends[partition]
            if first is None:
                losses.append(f"{partition} does not exist any more; offset {start} was next")
                continue
            if end < start:
                losses.append(f"{partition} ends at offset {end}, but offset {start} was next")
                start = first
            elif start < first:
                losses.append(f"{partition} begins at offset {first}, but offset {start} was next")
                start = first
            if start < end:
                ranges.append(OffsetRange(partition, start, end))
        self._report(losses)
        return split_ranges(ranges, self._options.min_partitions)

    def _report(self, losses: Sequence[str]) -> None:
        """Raise RecordsLost, or log the losses if the user accepts them."""
        if losses and self._options.fail_on_data_loss:
            raise RecordsLost(self._logs.cluster, losses)
        for loss in losses:
            log.warning("Records are lost: %s", loss)


def _losses(known: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[str]:
    """Return a sentence for each partition that is gone, or ends before what was read."""
    gone = [
        f"{partition} does not exist any more; offset {offset} was next"
        for partition, offset in sorted(known.items())
        if partition not in ends
    ]
    shorter = [
        f"{partition} ends at offset {ends[partition]}, but offset {offset} was next"
        for partition, offset in sorted(known.items())
        if ends.get(partition, offset) < offset
    ]
    return gone + shorter


def _listed(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
