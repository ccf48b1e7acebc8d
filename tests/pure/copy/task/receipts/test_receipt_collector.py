"""Acknowledged batches add up to one receipt per partition."""

from __future__ import annotations

from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch


def add(receipts: ReceiptCollector, partition: int, batch: PendingBatch, *runs: OffsetRun) -> None:
    source = TopicPartition("orders", partition)
    receipts.add(source, TopicPartition("primary.orders", partition), batch, list(runs))


def batch_with_timestamps(*times_ms: int) -> PendingBatch:
    batch = memoryview(build_batch([Record(n, ms, None, b"v") for n, ms in enumerate(times_ms)]))
    return PendingBatch(
        header=read_header(batch),
        batch=batch,
        spans=((0, len(times_ms)),),
        next_source_offset=len(times_ms),
        release=lambda: None,
    )


def test_batches_of_a_partition_add_up() -> None:
    receipts = ReceiptCollector()
    first, second = batch_with_timestamps(1000, 3000), batch_with_timestamps(2000, 2500, 2600)
    add(receipts, 3, first, OffsetRun(10, 70, 2))
    add(receipts, 3, second, OffsetRun(14, 72, 1), OffsetRun(16, 73, 2))
    receipts.count_lanes(TopicPartition("orders", 3), {"plain": 1})
    receipts.count_lanes(TopicPartition("orders", 3), {"plain": 1, "compacted": 1})
    [(receipt, lanes)] = receipts.list_receipts()
    assert (receipt.source, receipt.target.topic) == (TopicPartition("orders", 3), "primary.orders")
    assert (receipt.source_first, receipt.source_last) == (10, 17)
    assert (receipt.target_first, receipt.target_last) == (70, 74)
    assert (receipt.records, receipt.bytes) == (5, first.size + second.size)
    assert (receipt.first_ms, receipt.last_ms) == (1000, 3000)
    assert lanes == {"plain": 2, "compacted": 1}


def test_each_partition_has_a_receipt_sorted_by_partition() -> None:
    receipts = ReceiptCollector()
    for number in (2, 0, 1):
        add(receipts, number, batch_with_timestamps(1), OffsetRun(number, number, 1))
    assert [receipt.source.partition for receipt, _ in receipts.list_receipts()] == [0, 1, 2]


def test_a_partition_without_copied_records_has_no_receipt() -> None:
    receipts = ReceiptCollector()
    receipts.count_lanes(TopicPartition("orders", 0), {"control": 4})
    assert receipts.list_receipts() == []


def test_each_topic_that_records_of_a_partition_go_to_has_a_receipt_and_lanes_count_once() -> None:
    receipts, source = ReceiptCollector(), TopicPartition("orders", 0)
    for topic, first in (("primary.orders", 10), ("late", 11), ("primary.orders", 12)):
        batch = batch_with_timestamps(1)
        receipts.add(source, TopicPartition(topic, 0), batch, [OffsetRun(first, first, 1)])
    receipts.count_lanes(source, {"transformed": 3})
    listed = receipts.list_receipts()
    assert [(one.target.topic, one.records) for one, _ in listed] == [
        ("late", 1),
        ("primary.orders", 2),
    ]
    assert [lanes for _, lanes in listed] == [{"transformed": 3}, {}]
