"""Leases, batches and leased partitions for tests without brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkmirror.copy.lease import NOT_IDEMPOTENT, Lease, LeaseIdentity
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits

IDENTITY = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=40)


def make_lease(position: int = 100, expected: int = 50, *, partition: int = 3) -> Lease:
    """Return a lease of a partition of `orders`."""
    return Lease(
        source=TopicPartition("orders", partition),
        target=TopicPartition("primary.orders", partition),
        position=position,
        expected=expected,
        identity=IDENTITY,
    )


def without_producer_id(lease: Lease) -> Lease:
    """Return the lease for a target without producer ids."""
    identity = LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=lease.expected)
    return replace(lease, identity=identity)


def make_batch(first: int, count: int, release: Callable[[], None] = lambda: None) -> PendingBatch:
    """Return a batch of `count` records from a source offset on."""
    batch = memoryview(build_batch([Record(first + n, 1, None, b"v") for n in range(count)]))
    return PendingBatch(
        header=read_header(batch),
        batch=batch,
        spans=((first, count),),
        next_source_offset=first + count,
        release=release,
    )


def make_partition(queue: PartitionQueue) -> LeasedPartition:
    """Return the leased partition of a queue."""
    return LeasedPartition(queue, BatchConverter(TargetLimits()))
