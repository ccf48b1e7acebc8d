"""What record age and replication latency cost, next to the rest of a task's work for a batch.

The rest is what a task does for each batch without brokers: convert, choose a lane, forward, queue,
encode the Produce request, acknowledge, count. Sockets and the parsing of responses come on top, so
that the true share is smaller. The age of what is fetched is counted once for each response, which
has many batches.

    python -m bench micro record_ages
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.record_ages import AgeCounter
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import REACHABLE, LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request

BATCHES = 64
"""Batches in one fetched response."""
SIZES = (16_000, 128_000)
VALUE_BYTES = 1_000
NOW_MS = 1_800_000_000_000


def seconds_per_batch(work: Callable[[], None]) -> float:
    """CPU seconds for each batch, the best of nine rounds: a busy machine changes little."""
    best = float("inf")
    for _ in range(9):
        begun = time.thread_time()
        work()
        best = min(best, time.thread_time() - begun)
    return best / BATCHES


def response(batch_bytes: int) -> tuple[bytes, int]:
    """A fetched response, and the records of each batch."""
    count = batch_bytes // VALUE_BYTES
    batches = [
        build_batch(
            [Record(number * count + n, NOW_MS + n, None, b"v" * VALUE_BYTES) for n in range(count)]
        )
        for number in range(BATCHES)
    ]
    return b"".join(map(bytes, batches)), count


def copy_batches(data: bytes) -> None:
    """Everything that a task does for the batches, except sockets and ages."""
    identity = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=0)
    source, target = TopicPartition("t", 0), TopicPartition("A.t", 0)
    lease = Lease(source=source, target=target, position=0, expected=0, identity=identity)
    queue, converter = PartitionQueue(lease), BatchConverter(TargetLimits())
    partition = LeasedPartition(queue, converter)
    reporter = TaskReporter(1.0, lambda _: None, lambda _: REACHABLE)
    frame = BufferPool().allocate(len(data))
    frame.view[:] = data
    converter.convert(queue, frame, frame.view, ())
    while batch := queue.next_to_send():
        produce_request(11, [OutgoingBatch("A.t", 0, batch.buffers)], timeout_ms=10_000)
        queue.on_request_done()
        reporter.count(partition, batch, queue.acknowledge(batch))


def show(batch_bytes: int) -> None:
    """Print the cost for batches of one size."""
    data, _ = response(batch_bytes)
    header = read_header(data)
    counter = AgeCounter()

    def count_ages() -> None:
        for _ in range(BATCHES):
            counter.add(
                header.base_timestamp, header.max_timestamp, header.record_count, NOW_MS + 50
            )

    def loop() -> None:
        for _ in range(BATCHES):
            pass

    rest = seconds_per_batch(lambda: copy_batches(data))
    ages = seconds_per_batch(count_ages) - seconds_per_batch(loop)
    print(
        f"batches of {batch_bytes // 1000} kB: {ages * 1e9:.0f} ns for the ages,"
        f" {rest * 1e6:.1f} us for the rest: {ages / rest:.2%}"
    )


def main() -> None:
    """Print everything."""
    for batch_bytes in SIZES:
        show(batch_bytes)


if __name__ == "__main__":
    main()
