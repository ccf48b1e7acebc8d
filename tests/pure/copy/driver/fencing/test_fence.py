"""The fence: which id, which partitions are left out, and what counts as its marker."""

from __future__ import annotations

import pytest

from sparkmirror.copy.driver.fencing.fence import (
    FENCE_IDS,
    LogEnd,
    fence_id_for,
    partitions_to_leave_out,
)
from sparkmirror.copy.driver.fencing.fence_markers import is_fence_marker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.transactions import EPOCH_BUMPING_VERSION
from tests.support.kafka.record_batches import CONTROL_BIT

A, B, C = (TopicPartition("t", number) for number in range(3))
NONE, MISSING = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED
IDENTITY = ProducerIdAndEpoch(7, 3)


def header(producer_id: int, epoch: int, *, is_control: bool) -> BatchHeader:
    plain = memoryview(build_batch([Record(0, 1, b"k", b"v")]))
    producer = BatchProducer(producer_id=producer_id, epoch=epoch)
    batch = bytearray(b"".join(forward_batch(read_header(plain), plain, producer, 0)))
    batch[22] |= CONTROL_BIT if is_control else 0
    return read_header(batch)


@pytest.mark.parametrize(
    ("codes", "left_out"),
    [
        ({A: NONE, B: NONE}, {}),
        ({A: MISSING, B: NOT_ATTEMPTED, C: NOT_ATTEMPTED}, {A: MISSING}),
        ({A: MISSING, B: NONE}, {A: MISSING}),
        ({A: NOT_ATTEMPTED, B: NOT_ATTEMPTED}, {A: NOT_ATTEMPTED, B: NOT_ATTEMPTED}),
    ],
    ids=["all-added", "one-keeps-the-others-out", "one-by-one", "no-cause-given"],
)
def test_only_the_partitions_that_keep_others_out_are_left_out(
    codes: dict[TopicPartition, ErrorCode], left_out: dict[TopicPartition, ErrorCode]
) -> None:
    assert partitions_to_leave_out(codes) == left_out


@pytest.mark.parametrize(
    ("epoch", "is_control", "bumping", "keeping"),
    [(4, True, True, True), (3, True, False, True), (4, False, False, False)],
    ids=["raised-epoch", "same-epoch", "no-marker"],
)
def test_a_marker_has_our_producer_id_and_the_epoch_of_its_transaction_version(
    epoch: int, is_control: bool, bumping: bool, keeping: bool
) -> None:
    batch = header(IDENTITY.producer_id, epoch, is_control=is_control)
    assert is_fence_marker(batch, IDENTITY, EPOCH_BUMPING_VERSION) is bumping
    assert is_fence_marker(batch, IDENTITY, EPOCH_BUMPING_VERSION - 1) is keeping


def test_a_batch_of_another_producer_decides_nothing() -> None:
    assert is_fence_marker(header(8, 9, is_control=True), IDENTITY, EPOCH_BUMPING_VERSION) is None


def test_every_driver_fences_a_partition_with_the_same_id() -> None:
    ids = {fence_id_for("g-c", TopicPartition("t", number)) for number in range(200)}
    assert ids == {f"g-c-fence-{number}" for number in range(FENCE_IDS)}
    assert fence_id_for("g-c", TopicPartition("orders", 3)) == "g-c-fence-2"


def test_the_last_batch_of_the_old_owner_lies_before_a_marker_at_the_end() -> None:
    assert LogEnd(IDENTITY, 10, has_marker_at_end=True).end_of_batches == 9
    assert LogEnd(IDENTITY, 10).end_of_batches == 10
    assert LogEnd(None, 10).end_of_batches == 10


def test_a_fence_takes_one_offset_of_the_target() -> None:
    assert LogEnd(IDENTITY, 61).end_before_fence == 60
    assert LogEnd(None, 60).end_before_fence == 60
