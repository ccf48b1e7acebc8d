"""The lane of a batch, and the reason for it."""

from __future__ import annotations

import pickle

import pytest

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
)
from sparkmirror.wire.batch.lanes.forward_or_reopen import choose_lane
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.wire.batch.target_limits import ALL_CODECS, TargetLimits
from tests.support.kafka.record_batches import WITHOUT_ZSTD

PLAIN = BatchHeader(
    base_offset=100,
    length=1000 - 12,
    leader_epoch=4,
    magic=2,
    crc=0,
    attributes=CompressionType.NONE,
    last_offset_delta=9,
    base_timestamp=0,
    max_timestamp=0,
    producer_id=7,
    producer_epoch=0,
    base_sequence=0,
    record_count=10,
)
TARGET = TargetLimits(max_message_bytes=1000)
RESTAMPING = TargetLimits(max_message_bytes=1000, log_append_time=True)
OLD = TargetLimits(max_message_bytes=1000, codecs=WITHOUT_ZSTD)


def with_attributes(attributes: int) -> BatchHeader:
    return PLAIN._replace(attributes=attributes)


TABLE = [
    ("contiguous", PLAIN, 100, False, TARGET, LaneReason.PLAIN),
    ("behind a gap between batches", PLAIN, 90, False, TARGET, LaneReason.PLAIN),
    ("committed transaction", with_attributes(TRANSACTIONAL), 100, False, TARGET, LaneReason.PLAIN),
    ("control", with_attributes(CONTROL | TRANSACTIONAL), 100, False, TARGET, LaneReason.CONTROL),
    ("emptied", PLAIN._replace(record_count=0), 100, False, TARGET, LaneReason.EMPTIED),
    ("aborted", with_attributes(TRANSACTIONAL), 100, True, TARGET, LaneReason.ABORTED_TRANSACTION),
    ("past", PLAIN, 110, False, TARGET, LaneReason.ALREADY_COPIED),
    ("past and aborted", PLAIN, 110, True, TARGET, LaneReason.ALREADY_COPIED),
    ("position on the last record", PLAIN, 109, False, TARGET, LaneReason.STARTS_BEFORE_POSITION),
    ("position on the second record", PLAIN, 101, False, TARGET, LaneReason.STARTS_BEFORE_POSITION),
    ("gaps", PLAIN._replace(record_count=9), 100, False, TARGET, LaneReason.COMPACTED),
    (
        "append time, target keeps",
        with_attributes(LOG_APPEND_TIME),
        100,
        False,
        TARGET,
        LaneReason.LOG_APPEND_TIME,
    ),
    (
        "append time both",
        with_attributes(LOG_APPEND_TIME),
        100,
        False,
        RESTAMPING,
        LaneReason.RESTAMPED,
    ),
    ("target restamps", PLAIN, 100, False, RESTAMPING, LaneReason.PLAIN),
    ("too large", PLAIN._replace(length=1000 - 11), 100, False, TARGET, LaneReason.TOO_LARGE),
    (
        "delete horizon",
        with_attributes(DELETE_HORIZON),
        100,
        False,
        TARGET,
        LaneReason.DELETE_HORIZON_CLEARED,
    ),
    ("zstd", with_attributes(CompressionType.ZSTD), 100, False, TARGET, LaneReason.PLAIN),
    (
        "zstd to an old broker",
        with_attributes(CompressionType.ZSTD),
        100,
        False,
        OLD,
        LaneReason.UNSUPPORTED_CODEC,
    ),
    (
        "lz4 to an old broker",
        with_attributes(CompressionType.LZ4),
        100,
        False,
        OLD,
        LaneReason.PLAIN,
    ),
    ("unknown codec", with_attributes(5), 100, False, TARGET, LaneReason.UNSUPPORTED_CODEC),
    ("magic 1", PLAIN._replace(magic=1), 100, False, TARGET, LaneReason.OLD_MESSAGE_FORMAT),
    ("magic 0", PLAIN._replace(magic=0), 100, False, TARGET, LaneReason.OLD_MESSAGE_FORMAT),
]


@pytest.mark.parametrize(
    ("header", "position", "aborted", "target", "reason"),
    [row[1:] for row in TABLE],
    ids=[row[0].replace(" ", "-") for row in TABLE],
)
def test_a_batch_gets_its_lane_for_its_reason(
    header: BatchHeader, position: int, aborted: bool, target: TargetLimits, reason: LaneReason
) -> None:
    assert choose_lane(header, position, aborted, target) is reason


def test_every_reason_of_a_single_batch_is_in_the_table() -> None:
    others = {LaneReason.MERGED, LaneReason.TRANSFORMED, LaneReason.FILTERED}
    assert {row[5] for row in TABLE} == set(LaneReason) - others


def test_each_reason_names_its_lane() -> None:
    assert {reason.value: reason.lane for reason in LaneReason} == {
        "plain": Lane.FORWARD,
        "delete-horizon-cleared": Lane.FORWARD,
        "restamped-by-target": Lane.FORWARD,
        "small-batches-merged": Lane.REOPEN,
        "starts-before-position": Lane.REOPEN,
        "compacted": Lane.REOPEN,
        "log-append-time": Lane.REOPEN,
        "larger-than-target-allows": Lane.REOPEN,
        "codec-unknown-to-target": Lane.REOPEN,
        "old-message-format": Lane.UPGRADE,
        "already-copied": Lane.SKIP,
        "control": Lane.SKIP,
        "emptied-by-compaction": Lane.SKIP,
        "aborted-transaction": Lane.SKIP,
        "transformed": Lane.TRANSFORM,
        "filtered": Lane.SKIP,
    }


def test_a_reason_can_be_pickled() -> None:
    assert [pickle.loads(pickle.dumps(reason)) for reason in LaneReason] == list(LaneReason)


@pytest.mark.parametrize("count", [0, 9, 11, -1])
def test_only_a_batch_without_gaps_is_forwarded(count: int) -> None:
    header = PLAIN._replace(record_count=count)
    for target in (TARGET, RESTAMPING, OLD):
        assert choose_lane(header, 100, False, target).lane is not Lane.FORWARD


def test_a_batch_that_starts_before_the_position_is_never_forwarded() -> None:
    """Its first records would be copied twice."""
    for position in range(101, 120):
        assert choose_lane(PLAIN, position, False, TARGET).lane in (Lane.REOPEN, Lane.SKIP)


def test_a_batch_that_ends_before_it_begins_is_refused_not_skipped() -> None:
    with pytest.raises(BatchError, match="ends before it begins"):
        choose_lane(PLAIN._replace(last_offset_delta=-1), 100, False, TARGET)


def test_a_target_must_support_its_fallback_codec() -> None:
    with pytest.raises(ValueError, match="zstd"):
        TargetLimits(codecs=WITHOUT_ZSTD, fallback_codec=CompressionType.ZSTD)


def test_a_codec_is_kept_if_the_target_supports_it() -> None:
    assert [OLD.codec_for(codec) for codec in CompressionType] == [
        CompressionType.NONE,
        CompressionType.GZIP,
        CompressionType.SNAPPY,
        CompressionType.LZ4,
        CompressionType.LZ4,
    ]
    assert [TARGET.codec_for(codec) for codec in ALL_CODECS] == list(ALL_CODECS)
