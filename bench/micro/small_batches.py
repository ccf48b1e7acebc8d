"""What a task computes for batches of 16 KB: from the fetched bytes to the acknowledgement.

Converts a response of one partition, takes what is ready, builds a request for each batch as the
sender does, and acknowledges it. No sockets. Small batches are merged as far as the task does so.

    python -m bench micro small_batches                          # the modules as they are loaded
    SPARKMIRROR_COMPILED=no python -m bench micro small_batches  # pure Python
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from bench.micro.batches import seconds
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import iter_batches, read_header
from sparkmirror.wire.batch.lanes.merge import SmallBatch, merge_batches
from sparkmirror.wire.batch.records import Record, build_batch, scan_records
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request

RECORD_BYTES = (1000, 100)
BATCH_BYTES = 16 << 10
RESPONSE_BYTES = 1 << 20
MERGED_BATCHES = 7
LATEST_PRODUCE_VERSION = 11
TOPIC = "orders"


def response_of(record_bytes: int) -> tuple[bytes, int]:
    """Build the batches of a response; return their bytes and the number of records."""
    rng = random.Random(record_bytes)
    parts, count = [], 0
    per_batch = BATCH_BYTES // (record_bytes + 10)
    for _ in range(RESPONSE_BYTES // BATCH_BYTES):
        records = [
            Record(
                offset=count + index,
                timestamp=1_700_000_000_000 + (count + index) // 50,
                key=None,
                value=rng.randbytes(record_bytes),
            )
            for index in range(per_batch)
        ]
        parts.append(build_batch(records))
        count += per_batch
    return b"".join(parts), count


def new_queue() -> PartitionQueue:
    """A queue at the first offset."""
    partition = TopicPartition(TOPIC, 0)
    identity = LeaseIdentity(producer_id=1, producer_epoch=0, anchor=0)
    return PartitionQueue(
        Lease(source=partition, target=partition, position=0, expected=0, identity=identity)
    )


def copy_response(pool: BufferPool, response: bytes) -> None:
    """Convert, send and acknowledge all batches of a response."""
    queue, converter = new_queue(), BatchConverter(TargetLimits())
    frame = pool.allocate(len(response))
    frame.view[:] = response
    assert converter.convert(queue, frame, frame.view, ()) is None
    frame.release()
    while batch := queue.next_to_send():
        produce_request(
            LATEST_PRODUCE_VERSION, [OutgoingBatch(TOPIC, 0, batch.buffers)], timeout_ms=30_000
        )
        queue.acknowledge(batch)
        queue.on_request_done()


def small_batches(response: bytes) -> list[SmallBatch]:
    """The first batches of a response, to be merged."""
    view = memoryview(response)
    spans = list(iter_batches(view))[:MERGED_BATCHES]
    return [
        SmallBatch(read_header(view, span.start), view[span.start : span.end]) for span in spans
    ]


def scan(batch: SmallBatch) -> None:
    """Find the records of a batch."""
    scan_records(batch.header, bytes(batch.batch[61:]))


def show(record_bytes: int) -> None:
    """Print what a response, merging and scanning cost."""
    response, count = response_of(record_bytes)
    small = small_batches(response)
    merged = sum(batch.header.record_count for batch in small)
    work: dict[str, tuple[Callable[[], object], int]] = {
        "the whole path": (partial(copy_response, BufferPool(), response), count),
        f"merge {MERGED_BATCHES} batches": (partial(merge_batches, small), merged),
        "scan a batch": (partial(scan, small[0]), small[0].header.record_count),
    }
    for name, (task, records) in work.items():
        cost = seconds(task, 50) / records
        print(f"{record_bytes:>4} B, batches of 16 KB, {name}: {cost * 1e6:.3f} us per record")


def main() -> None:
    """Print the table."""
    for record_bytes in RECORD_BYTES:
        show(record_bytes)


if __name__ == "__main__":
    main()
