"""Connect's offsets topic: read it to its end, write to it; Java reads ours, we read Java's.

What a record means is `mirror.connect_offsets`; this room knows only how to get at the topic.
Records of open and of aborted transactions are not offsets: markers decide, because with several
writers the last stable offset may hide what is committed already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sparkmirror.errors import TopicMissing
from sparkmirror.mirror.connect_offsets import OffsetsState, StoredOffset
from sparkmirror.mirror.partitioner import partition_for
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire import records
from sparkmirror.wire.aborted import Marker, marker
from sparkmirror.wire.append import append
from sparkmirror.wire.header import Header
from sparkmirror.wire.offsets import EARLIEST, list_offsets
from sparkmirror.wire.peek import demand, high_watermark, look, whole_batches
from sparkmirror.wire.records import Record
from sparkmirror.wire.routing import Router


class OffsetsTopic:
    """The offsets topic of one worker group. Blocks; belongs to the thread of its router."""

    def __init__(self, router: Router, topic: str) -> None:
        self._router = router
        self._topic = topic

    def load(self) -> OffsetsState:
        """Everything the topic says, as of now."""
        state = OffsetsState()
        for partition in self._partitions():
            for record in _committed(self._batches(partition)):
                state.apply(RecordBytes(key=record.key, value=record.value))
        return state

    def save(self, offsets: Iterable[StoredOffset], now_ms: int) -> None:
        """Append offsets, each to the partition where Connect looks for it."""
        count = len(self._partitions())
        by_partition: dict[int, list[Record]] = defaultdict(list)
        for offset in offsets:
            key, value = offset.encode()
            assert key is not None
            by_partition[partition_for(key, count)].append(Record(0, now_ms, key, value))
        for number, batch in by_partition.items():
            append(self._router, TopicPartition(self._topic, number), batch)

    def close(self) -> None:
        """Hang up."""
        self._router.close()

    def _partitions(self) -> list[TopicPartition]:
        topic = self._router.metadata.topics.get(self._topic)
        if topic is None or not topic.partitions:
            topic = self._router.refresh([self._topic]).topics.get(self._topic)
        if topic is None or not topic.partitions:
            raise TopicMissing(
                self._router.client.cluster, f"there is no offsets topic {self._topic}; create it"
            )
        return [TopicPartition(self._topic, number) for number in sorted(topic.partitions)]

    def _batches(self, partition: TopicPartition) -> Iterator[tuple[Header, bytes]]:
        start = list_offsets(self._router, {partition: EARLIEST})[partition]
        demand(self._router, partition, start.code)
        assert start.value is not None
        at, end = start.value.offset, high_watermark(self._router, partition)
        while at < end:
            before = at
            for header, batch in whole_batches(look(self._router, partition, at).records):
                if header.next_offset > at:
                    yield header, batch
                    at = header.next_offset
            if at == before:
                return


def _committed(batches: Iterable[tuple[Header, bytes]]) -> Iterator[Record]:
    """The records that count, in the order in which they came to count."""
    undecided: dict[int, list[Record]] = defaultdict(list)
    for header, batch in batches:
        if header.is_control:
            ended = undecided.pop(header.producer_id, [])
            if marker(header, batch) is Marker.COMMIT:
                yield from ended
        elif header.is_transactional:
            undecided[header.producer_id] += records.read(header, batch)
        else:
            yield from records.read(header, batch)
