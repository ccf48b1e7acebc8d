"""The decision table: which lane, and why."""

from __future__ import annotations

import pickle

import pytest

from sparkmirror.errors import BatchError
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.header import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Header,
)
from sparkmirror.wire.lane import Lane, Reason, choose
from sparkmirror.wire.target import EVERY_CODEC, WITHOUT_ZSTD, Target

PLAIN = Header(
    base_offset=100,
    length=1000 - 12,
    leader_epoch=4,
    magic=2,
    crc=0,
    attributes=Codec.NONE,
    last_offset_delta=9,
    base_timestamp=0,
    max_timestamp=0,
    producer_id=7,
    producer_epoch=0,
    base_sequence=0,
    record_count=10,
)
TARGET = Target(max_message_bytes=1000)
RESTAMPING = Target(max_message_bytes=1000, log_append_time=True)
OLD = Target(max_message_bytes=1000, codecs=WITHOUT_ZSTD)


def bits(attributes: int) -> Header:
    return PLAIN._replace(attributes=attributes)


TABLE = [
    ("contiguous", PLAIN, 100, False, TARGET, Reason.PLAIN),
    ("behind a gap between batches", PLAIN, 90, False, TARGET, Reason.PLAIN),
    ("committed transaction", bits(TRANSACTIONAL), 100, False, TARGET, Reason.PLAIN),
    ("control", bits(CONTROL | TRANSACTIONAL), 100, False, TARGET, Reason.CONTROL),
    ("emptied", PLAIN._replace(record_count=0), 100, False, TARGET, Reason.EMPTY),
    ("aborted", bits(TRANSACTIONAL), 100, True, TARGET, Reason.ABORTED),
    ("past", PLAIN, 110, False, TARGET, Reason.PAST),
    ("past and aborted", PLAIN, 110, True, TARGET, Reason.PAST),
    ("position on the last record", PLAIN, 109, False, TARGET, Reason.HEAD),
    ("position on the second record", PLAIN, 101, False, TARGET, Reason.HEAD),
    ("gaps", PLAIN._replace(record_count=9), 100, False, TARGET, Reason.GAPS),
    ("append time, target keeps", bits(LOG_APPEND_TIME), 100, False, TARGET, Reason.TIME_BAKED),
    ("append time both", bits(LOG_APPEND_TIME), 100, False, RESTAMPING, Reason.RESTAMPED),
    ("target restamps", PLAIN, 100, False, RESTAMPING, Reason.PLAIN),
    ("too large", PLAIN._replace(length=1000 - 11), 100, False, TARGET, Reason.TOO_LARGE),
    ("delete horizon", bits(DELETE_HORIZON), 100, False, TARGET, Reason.HORIZON_CLEARED),
    ("zstd", bits(Codec.ZSTD), 100, False, TARGET, Reason.PLAIN),
    ("zstd to an old broker", bits(Codec.ZSTD), 100, False, OLD, Reason.CODEC),
    ("lz4 to an old broker", bits(Codec.LZ4), 100, False, OLD, Reason.PLAIN),
    ("codec from the future", bits(5), 100, False, TARGET, Reason.CODEC),
    ("magic 1", PLAIN._replace(magic=1), 100, False, TARGET, Reason.LEGACY),
    ("magic 0", PLAIN._replace(magic=0), 100, False, TARGET, Reason.LEGACY),
]


@pytest.mark.parametrize(
    ("header", "position", "aborted", "target", "reason"),
    [row[1:] for row in TABLE],
    ids=[row[0].replace(" ", "-") for row in TABLE],
)
def test_the_table(
    header: Header, position: int, aborted: bool, target: Target, reason: Reason
) -> None:
    assert choose(header, position, aborted, target) is reason


def test_every_reason_but_transforms_is_in_the_table() -> None:
    """And but for merging: that is no matter of one batch."""
    assert {row[5] for row in TABLE} == set(Reason) - {Reason.TRANSFORMS, Reason.MERGED}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (PLAIN, Reason.TRANSFORMS),
        (PLAIN._replace(record_count=5), Reason.TRANSFORMS),
        (bits(CONTROL), Reason.CONTROL),
        (PLAIN._replace(record_count=0), Reason.EMPTY),
    ],
    ids=["plain", "gaps", "control", "emptied"],
)
def test_transforms_open_whatever_is_not_skipped(header: Header, reason: Reason) -> None:
    assert choose(header, 100, False, Target(transforms=True)) is reason


def test_each_reason_names_its_lane() -> None:
    assert {reason.value: reason.lane for reason in Reason} == {
        "plain": Lane.FORWARD,
        "delete-horizon-cleared": Lane.FORWARD,
        "restamped-by-target": Lane.FORWARD,
        "small-batches-merged": Lane.REOPEN,
        "starts-before-position": Lane.REOPEN,
        "compacted": Lane.REOPEN,
        "log-append-time": Lane.REOPEN,
        "larger-than-target-allows": Lane.REOPEN,
        "codec-unknown-to-target": Lane.REOPEN,
        "transforms": Lane.ROWS,
        "old-message-format": Lane.UPGRADE,
        "already-copied": Lane.SKIP,
        "control": Lane.SKIP,
        "emptied-by-compaction": Lane.SKIP,
        "aborted-transaction": Lane.SKIP,
    }


def test_a_reason_crosses_process_borders() -> None:
    assert [pickle.loads(pickle.dumps(reason)) for reason in Reason] == list(Reason)


@pytest.mark.parametrize("count", [0, 9, 11, -1])
def test_only_a_batch_without_gaps_is_forwarded(count: int) -> None:
    """Trap 1: whatever else is true of it."""
    header = PLAIN._replace(record_count=count)
    for target in (TARGET, RESTAMPING, OLD):
        assert choose(header, 100, False, target).lane is not Lane.FORWARD


def test_a_head_before_the_position_is_never_forwarded() -> None:
    """Traps 2 and 22: it would be copied twice."""
    for position in range(101, 120):
        assert choose(PLAIN, position, False, TARGET).lane in (Lane.REOPEN, Lane.SKIP)


def test_a_batch_that_ends_before_it_begins_is_refused_not_skipped() -> None:
    with pytest.raises(BatchError, match="ends before it begins"):
        choose(PLAIN._replace(last_offset_delta=-1), 100, False, TARGET)


def test_a_target_must_take_its_substitute() -> None:
    with pytest.raises(ValueError, match="zstd"):
        Target(codecs=WITHOUT_ZSTD, substitute=Codec.ZSTD)


def test_a_codec_is_kept_where_the_target_takes_it() -> None:
    assert [OLD.codec_for(codec) for codec in Codec] == [
        Codec.NONE,
        Codec.GZIP,
        Codec.SNAPPY,
        Codec.LZ4,
        Codec.LZ4,
    ]
    assert [TARGET.codec_for(codec) for codec in EVERY_CODEC] == list(EVERY_CODEC)
