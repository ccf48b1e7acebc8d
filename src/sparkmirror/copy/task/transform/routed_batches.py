"""Collects the records that a chain keeps, by topic, and queues them as one group.

As `transformed_batches`, for records that go to several topics. Batches of a topic have its records
in source order. Everything is built before anything is queued: at a record that is too large the
group ends in all topics, so that it has every record before it and none behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.copy.task.batch_converter import UncopyableRecord, enqueue_piece, too_large
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.transform.batch_transform import RecordOutcomes
from sparkmirror.copy.task.transform.dropped_records import DroppedRecords
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.lanes.merge import MAX_MERGED_BYTES, MAX_TIME_GAP_MS
from sparkmirror.wire.batch.lanes.reopen import OversizedRecord, ReopenedBatch
from sparkmirror.wire.batch.rewrite import RewrittenRecord, rewrite_batches
from sparkmirror.wire.batch.target_limits import TargetLimits

_RECORD_OVERHEAD = 12
"""The most bytes of a usual record besides its content: length, attributes and two deltas."""


class RoutedTopic(NamedTuple):
    """A topic that records may go to: its number of partitions, and its limits."""

    partitions: int
    limits: TargetLimits


@dataclass(slots=True)
class _BatchRecords:
    """Records of one topic that may be in one batch."""

    codec_id: int
    records: list[RewrittenRecord]
    size: int


@dataclass(slots=True)
class RoutedBatches:
    """Records of one partition that are not queued yet; empty between two fetch responses."""

    target: TopicPartition
    limits: TargetLimits
    """Those of the remote topic."""
    routed_topics: Mapping[str, RoutedTopic]
    dropped: DroppedRecords = field(default_factory=DroppedRecords)
    _by_topic: dict[str, list[_BatchRecords]] = field(default_factory=dict)
    _end: int = 0
    """The source offset up to which everything is collected or dropped."""

    def is_known(self, topic: str) -> bool:
        """Whether another topic has the partition, as far as the driver has said."""
        known = self.routed_topics.get(topic)
        return known is not None and self.target.partition < known.partitions

    def position(self, queue: PartitionQueue) -> int:
        """The next source offset to read."""
        return max(queue.next_fetch_offset, self._end)

    def skip_to(self, next_source_offset: int) -> None:
        """Record that no more record is copied before this source offset."""
        self._end = max(self._end, next_source_offset)

    def collect(
        self,
        queue: PartitionQueue,
        outcomes: RecordOutcomes,
        codec_id: int,
        dead_letter_offset: int | None = None,
    ) -> UncopyableRecord | None:
        """Collect what is kept of one fetched batch with this codec. Always returns None."""
        assert dead_letter_offset is None, "there are no dead letters"
        self._add(self.target.topic, outcomes.kept, codec_id)
        for topic, routed in outcomes.routed.items():
            self._add(topic, routed, codec_id)
        return None

    def _add(self, topic: str, records: Sequence[RewrittenRecord], codec_id: int) -> None:
        """Collect what goes to one topic of one fetched batch with this codec."""
        if not records:
            return
        size = sum(len(record.content) for record in records) + _RECORD_OVERHEAD * len(records)
        collected = self._by_topic.setdefault(topic, [])
        if collected and _may_join(collected[-1], records[0], size, codec_id):
            collected[-1].records += records
            collected[-1].size += size
        else:
            collected.append(_BatchRecords(codec_id, list(records), size))
        self.skip_to(records[-1].source_offset + 1)

    def flush(self, queue: PartitionQueue) -> UncopyableRecord | None:
        """Queue what is collected, and advance; return the first record that is too large."""
        assert isinstance(queue, RoutingQueue)
        end, self._end = self._end, 0
        by_topic, self._by_topic = self._by_topic, {}
        built = {topic: list(self._build(topic, each)) for topic, each in by_topic.items()}
        oversized = self._first_oversized(built)
        if oversized is not None:
            end = oversized.offset
            built = {
                topic: list(self._build(topic, _before(each, end)))
                for topic, each in by_topic.items()
            }
        assert not (queue.has_group and any(built.values())), "one group at a time"
        for topic, pieces in built.items():
            target = queue.queue_for(topic)
            for piece in pieces:
                assert isinstance(piece, ReopenedBatch)
                enqueue_piece(target, piece)
        if end > queue.next_fetch_offset:
            queue.skip_to(end)
        self.dropped.count_before(queue.next_fetch_offset)
        return oversized

    def _first_oversized(
        self, built: Mapping[str, Sequence[ReopenedBatch | OversizedRecord]]
    ) -> UncopyableRecord | None:
        found = [
            too_large(piece, self._limits(topic))
            for topic, pieces in built.items()
            for piece in pieces
            if isinstance(piece, OversizedRecord)
        ]
        return min(found, key=lambda record: record.offset, default=None)

    def _build(
        self, topic: str, collected: Sequence[_BatchRecords]
    ) -> Iterator[ReopenedBatch | OversizedRecord]:
        limits = self._limits(topic)
        for each in collected:
            yield from rewrite_batches(
                each.records, limits.codec_for(each.codec_id), limits.max_batch_bytes
            )

    def _limits(self, topic: str) -> TargetLimits:
        return self.limits if topic == self.target.topic else self.routed_topics[topic].limits


def _may_join(before: _BatchRecords, first: RewrittenRecord, size: int, codec_id: int) -> bool:
    """Whether records may be in one batch with those before. A target may refuse a batch for one
    record that is too old or too new: records of another time must not be refused with it."""
    return (
        codec_id == before.codec_id
        and before.size + size <= MAX_MERGED_BYTES
        and abs(first.timestamp - before.records[-1].timestamp) <= MAX_TIME_GAP_MS
    )


def _before(collected: Sequence[_BatchRecords], end: int) -> list[_BatchRecords]:
    """The records before a source offset."""
    cut = [
        _BatchRecords(each.codec_id, [one for one in each.records if one.source_offset < end], 0)
        for each in collected
    ]
    return [each for each in cut if each.records]
