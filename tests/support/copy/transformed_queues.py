"""Converters with a chain, and queues of what they make of a log, for tests without brokers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.batch_converter import BatchConverter, UncopyableRecord
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.failed_records import FailureReporting
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import StoredBatch, response_with
from tests.support.kafka.record_batches import WITHOUT_ZSTD, validate_as_broker

FIRST = 100
"""The first offset of the logs."""
LIMITS = [
    TargetLimits(),
    TargetLimits(max_message_bytes=900),
    TargetLimits(codecs=WITHOUT_ZSTD),
]


def converter_of(
    transforms: Mapping[str, str],
    limits: TargetLimits | None = None,
    tolerance: str = "none",
    *,
    uses_header_lane: bool = True,
) -> BatchConverter:
    """Return a converter of a task with a chain."""
    new = converters_of(transforms, limits, tolerance, uses_header_lane=uses_header_lane)
    return new()


def converters_of(
    transforms: Mapping[str, str],
    limits: TargetLimits | None = None,
    tolerance: str = "none",
    *,
    uses_header_lane: bool = True,
) -> Callable[[], BatchConverter]:
    """Compile a chain once, as a task does; return a function that makes converters with it."""
    settings = CopySettings(
        connector="mirror", transforms={**transforms, "errors.tolerance": tolerance}
    )
    factory = ConverterFactory.for_settings(settings)
    factory = replace(
        factory,
        uses_header_lane=uses_header_lane,
        reporting=FailureReporting.for_settings(settings),
    )
    lease = replace(make_lease(), chain=settings.chain)
    return lambda: factory.new_converter(lease, limits or TargetLimits(), {})


def convert(
    queue: PartitionQueue,
    converter: BatchConverter,
    batches: Sequence[StoredBatch],
    deadline: float = math.inf,
) -> UncopyableRecord | None:
    """Convert the batches that a fetch at the queue's position returns."""
    fetched = [one for one in batches if one.next_offset > queue.next_fetch_offset]
    frame = response_with(*(one.data for one in fetched))
    aborted = [entry for one in fetched for entry in one.aborted]
    uncopyable = converter.convert(queue, frame, frame.view, aborted, deadline)
    queue.check_invariants()
    return uncopyable


def send_all(queue: PartitionQueue, limits: TargetLimits) -> tuple[list[Record], list[OffsetRun]]:
    """Send and acknowledge everything; return the records with their target offsets, and runs."""
    sent: list[Record] = []
    runs: list[OffsetRun] = []
    while batch := queue.next_to_send():
        records = validate_as_broker(b"".join(map(bytes, batch.buffers)), limits.max_batch_bytes)
        assert sum(length for _, length in batch.spans) == len(records)
        assert queue.accept_base_offset(batch, queue.expected)
        sent += [one._replace(offset=batch.expected + one.offset) for one in records]
        runs += queue.acknowledge(batch)
        queue.on_request_done()
        queue.check_invariants()
    return sent, runs


def stored(records: list[Record], codec: CompressionType = CompressionType.NONE) -> StoredBatch:
    """Return a batch of records at their offsets."""
    batch = build_batch(records, codec)
    return StoredBatch(data=batch, next_offset=records[-1].offset + 1, records=records)
