"""Which offsets a batch or a micro-batch reads. Runs in Spark's driver.

    batch       startingOffsets to endingOffsets, as they are when the plan is made
    stream      first micro-batch: startingOffsets to the ends of now
                others: the end of the one before to the ends of now, limited by the caller

Invariants:
- The ends of a micro-batch are exact: they are in the checkpoint, and a restart reads the same.
- The offset before the first micro-batch says only that nothing was read. Even with
  `startingOffsets=latest` the first micro-batch decides the offsets, and they are in the checkpoint
  before anything is read: a crash in it loses no record.
- A partition that appears later is read from offset 0, and so is a topic that was created again.
- What is not there any more is an error, or with `failOnDataLoss=false` a warning. Then a partition
  that is gone keeps its offset, in case brokers know it again later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkmirror.datasource.offset_positions import PartitionOffsets
from sparkmirror.datasource.offset_ranges import (
    OffsetRange,
    gone_sentence,
    limit_ends,
    limit_lengths,
    readable_ranges,
    shorter_sentence,
    split_ranges,
)
from sparkmirror.datasource.option_offsets import OptionOffsets
from sparkmirror.datasource.options import ENDING, SourceOptions
from sparkmirror.datasource.stream_offsets import OffsetJson, StreamOffsets
from sparkmirror.datasource.subscription import SourceLogs
from sparkmirror.errors import RecordsLost
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)


class SourcePlanner:
    """Plans the reads of one source. Blocks; one thread. Raises ClusterError and ConfigError."""

    def __init__(self, options: SourceOptions, logs: SourceLogs) -> None:
        self._options = options
        self._logs = logs
        self._wanted = OptionOffsets(options, logs)
        self._final_ends: StreamOffsets | None = None
        self._gone: set[TopicPartition] = set()
        """Partitions whose loss is reported."""
        self._topic_ids: Mapping[str, str] | None = None
        """Those of the last listing."""
        self.listed_ends: PartitionOffsets | None = None
        """The ends of the logs when they were last asked for; None before."""

    def batch_ranges(self) -> list[OffsetRange]:
        """Return the ranges of a batch read."""
        partitions = self._logs.partitions().partitions
        self._logs.require_named(partitions)
        latest = self._logs.latest(partitions)
        self._report([f"{p} does not exist any more" for p in partitions if p not in latest])
        ends = self._wanted.ends(latest)
        self._report(
            [
                f"{ENDING} of {p} is {end}, but its log ends at offset {latest[p]}"
                for p, end in ends.items()
                if end > latest[p]
            ]
        )
        ends = {partition: min(end, latest[partition]) for partition, end in ends.items()}
        starts = self._wanted.starts(ends)
        self._report_beyond_end(starts, latest)
        return self._ranges(starts, ends)

    def latest_offsets(self, start: OffsetJson, max_offsets: int | None) -> OffsetJson:
        """Return where the micro-batch that begins at `start` ends."""
        known = StreamOffsets.from_json(start)
        ends = self._ends(known)
        if known is not None:
            ends = self._with_gone(known, ends)
        starts = self._starts(known, ends)
        if max_offsets is None:
            return ends.to_json()
        starts = self._skip_deleted(starts, ends.offsets)
        return replace(ends, offsets=limit_ends(starts, ends.offsets, max_offsets)).to_json()

    def ranges(self, start: OffsetJson, end: OffsetJson) -> list[OffsetRange]:
        """Return the ranges of a micro-batch."""
        known = StreamOffsets.from_json(start)
        ends = self._without_recreated(StreamOffsets.from_json(end) or StreamOffsets(offsets={}))
        starts = self._starts(known, ends)
        if known is None:
            self._report_beyond_end(starts, ends.offsets)
        return self._ranges(starts, ends.offsets)

    def stop_at_present_ends(self) -> None:
        """Read nothing that is written from now on (`Trigger.AvailableNow`)."""
        self._final_ends = self._list_ends(None)

    def _ends(self, known: StreamOffsets | None) -> StreamOffsets:
        if self._final_ends is None:
            ends = self._list_ends(known)
        elif known is None or not self._lacks(self._final_ends.offsets, known):
            ends = self._final_ends
        else:  # brokers did not know all when the query started
            ends = self._final_ends = self._list_ends(known)
        if known is None or not known.offsets:
            self._logs.require_named(ends.offsets)
        return ends

    def _list_ends(self, known: StreamOffsets | None) -> StreamOffsets:
        """Ask for the ends of the logs. Asks again if a log seems to be shorter than it was."""
        expected = self._expected(known)
        listed = self._logs.partitions(expected)
        ends = self._logs.latest(listed.partitions)
        if known is not None and self._lacks(ends, known):
            listed = self._logs.partitions(expected, is_recent=True)
            ends = self._logs.latest(
                listed.partitions,
                {
                    partition: offset
                    for partition, offset in expected.items()
                    if known.has_same_topic(partition.topic, listed.topic_ids)
                },
            )
        self.listed_ends, self._topic_ids = ends, listed.topic_ids
        return StreamOffsets(offsets=ends, topic_ids=listed.topic_ids)

    def _expected(self, known: StreamOffsets | None) -> PartitionOffsets:
        """Return the offsets of partitions that should exist."""
        offsets = {} if known is None else known.offsets
        has = self._options.subscription.has
        return {p: offset for p, offset in offsets.items() if has(p) and p not in self._gone}

    def _lacks(self, ends: Mapping[TopicPartition, int], known: StreamOffsets) -> bool:
        expected = self._expected(known)
        return any(ends.get(partition, -1) < offset for partition, offset in expected.items())

    def _with_gone(self, known: StreamOffsets, ends: StreamOffsets) -> StreamOffsets:
        """Report what is not there any more. Returns the ends with partitions that are gone."""
        losses: list[str] = []
        gone: PartitionOffsets = {}
        for partition, offset in sorted(known.offsets.items()):
            end = ends.offsets.get(partition)
            if not self._options.subscription.has(partition):
                losses.append(f"{partition} is not subscribed any more; offset {offset} was next")
            elif not known.has_same_topic(partition.topic, ends.topic_ids):
                if offset:
                    losses.append(_recreated_sentence(partition, offset))
            elif end is None:
                gone[partition] = offset
                if partition not in self._gone:
                    losses.append(gone_sentence(partition, offset))
            elif end < offset:
                losses.append(shorter_sentence(partition, end, offset))
        self._report(losses)
        self._gone = set(gone)
        ids = {p.topic: known.topic_ids[p.topic] for p in gone if p.topic in known.topic_ids}
        return StreamOffsets(offsets=ends.offsets | gone, topic_ids=ids | dict(ends.topic_ids))

    def _without_recreated(self, ends: StreamOffsets) -> StreamOffsets:
        """Return planned ends without those of topics that were created again since."""
        if self._topic_ids is None:
            self._topic_ids = self._logs.partitions(self._expected(ends)).topic_ids
        present = self._topic_ids
        offsets = {p: o for p, o in ends.offsets.items() if ends.has_same_topic(p.topic, present)}
        self._report(
            [_recreated_sentence(p, o) for p, o in ends.offsets.items() if o and p not in offsets]
        )
        return replace(ends, offsets=offsets)

    def _starts(self, known: StreamOffsets | None, ends: StreamOffsets) -> PartitionOffsets:
        """Return where reading begins, by the partitions of `ends`."""
        if known is None:
            return self._wanted.starts(ends.offsets)
        return {
            partition: known.offsets.get(partition, 0)
            if known.has_same_topic(partition.topic, ends.topic_ids)
            else 0
            for partition in ends.offsets
        }

    def _skip_deleted(
        self, starts: PartitionOffsets, ends: Mapping[TopicPartition, int]
    ) -> PartitionOffsets:
        """Return starts behind what is deleted, so that a limit does not count it."""
        moved = [partition for partition, start in starts.items() if start < ends[partition]]
        if self._options.fail_on_data_loss or not moved:
            return starts
        earliest = self._logs.earliest(moved)
        return starts | {p: max(starts[p], min(first, ends[p])) for p, first in earliest.items()}

    def _ranges(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """Return what is still there, divided for `minPartitions`."""
        moved = {p: start for p, start in starts.items() if start < ends[p]}
        earliest = self._logs.earliest(moved) if moved else {}
        ranges, losses = readable_ranges(moved, ends, earliest)
        self._report(losses)
        if self._options.max_records_per_partition is not None:
            ranges = limit_lengths(ranges, self._options.max_records_per_partition)
        return split_ranges(ranges, self._options.min_partitions)

    def _report_beyond_end(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        self._report(
            [shorter_sentence(p, ends[p], start) for p, start in starts.items() if start > ends[p]]
        )

    def _report(self, losses: Sequence[str]) -> None:
        """Raise RecordsLost, or log the losses if the user accepts them."""
        if losses and self._options.fail_on_data_loss:
            raise RecordsLost(self._logs.cluster, losses)
        for loss in losses:
            log.warning("Records are lost: %s", loss)


def _recreated_sentence(partition: TopicPartition, offset: int) -> str:
    return f"the topic of {partition} was deleted and created again; offset {offset} was next"
