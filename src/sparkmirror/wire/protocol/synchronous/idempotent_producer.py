"""A producer id and the sequences of its partitions, so that a retry appends no batch twice.

Invariant: a partition has one batch in flight, and the sequence advances when that is acknowledged.
A batch that is sent again has the same sequence, so a broker that has it does not append it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import BytesLike, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.sequence import next_sequence
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch


class IdempotentProducer:
    """Makes batches ready for Produce, with the next sequence of their partition."""

    def __init__(
        self, identity: ProducerIdAndEpoch, codec: CompressionType = CompressionType.NONE
    ) -> None:
        self._producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)
        self._codec = codec
        self._sequences: dict[TopicPartition, int] = {}

    def batch_buffers(
        self, partition: TopicPartition, records: Sequence[Record]
    ) -> Sequence[BytesLike]:
        """Return records as one batch. Their offsets are ignored."""
        numbered = [record._replace(offset=number) for number, record in enumerate(records)]
        batch = memoryview(build_batch(numbered, self._codec))
        sequence = self._sequences.get(partition, 0)
        return forward_batch(read_header(batch), batch, self._producer, sequence)

    def on_acknowledged(self, partition: TopicPartition, count: int) -> None:
        """Advance the sequence of a partition by a batch of `count` records."""
        self._sequences[partition] = next_sequence(self._sequences.get(partition, 0), count)
