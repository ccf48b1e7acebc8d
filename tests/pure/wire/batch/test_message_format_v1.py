"""Messages of magic 0 and 1 are read as Java and kafka-python read them, and upgraded."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch import message_format_v1
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import iter_batches, read_header
from sparkmirror.wire.batch.lanes.forward_or_reopen import choose_lane
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.kafka.record_batches import (
    JAVA_BATCHES,
    as_recorded,
    build_legacy_message,
    read_batch,
    read_legacy_message,
)

OLD = [name for name, java in JAVA_BATCHES.items() if java.facts[0]["magic"] < 2]
OPTIONAL = st.none() | st.binary(max_size=20)
RECORDS = st.builds(
    Record,
    offset=st.integers(0, 1 << 50),
    timestamp=st.sampled_from([-1, 0, 1_500_000_000_000]),
    key=OPTIONAL,
    value=OPTIONAL,
)


def messages(name: str) -> list[memoryview]:
    buffer = JAVA_BATCHES[name].buffer
    return [buffer[span.start : span.end] for span in iter_batches(buffer)]


@pytest.mark.parametrize("name", OLD)
def test_messages_are_read_as_java_reads_them(name: str) -> None:
    """LZ4 frames in magic 0 have the wrong header checksum."""
    found = [
        record for message in messages(name) for record in message_format_v1.read_messages(message)
    ]
    assert [as_recorded(record) for record in found] == JAVA_BATCHES[name].records


@pytest.mark.parametrize(
    "codec", [CompressionType.NONE, CompressionType.GZIP], ids=lambda codec: codec.config_name
)
@pytest.mark.parametrize("magic", [0, 1])
@settings(max_examples=15)
@given(record=RECORDS)
def test_messages_are_read_as_another_client_reads_them(
    magic: int, codec: CompressionType, record: Record
) -> None:
    message = build_legacy_message(record, magic, codec)
    assert message_format_v1.read_messages(message) == read_legacy_message(message, magic)


@pytest.mark.parametrize("name", OLD)
def test_an_upgraded_batch_holds_the_same_records_at_the_same_offsets(name: str) -> None:
    batch = message_format_v1.upgrade_messages(messages(name))
    header = read_header(batch)
    assert [as_recorded(record) for record in read_batch(batch)] == JAVA_BATCHES[name].records
    assert header.codec_id == CompressionType[JAVA_BATCHES[name].facts[0]["codec"].upper()]
    assert not header.is_log_append_time
    assert header.last_offset == JAVA_BATCHES[name].facts[-1]["last_offset"]


def test_an_upgraded_batch_is_forwarded_like_any_other() -> None:
    whole = read_header(message_format_v1.upgrade_messages(messages("v1 snappy")))
    assert choose_lane(whole, 42, False, TargetLimits()) is LaneReason.PLAIN
    assert choose_lane(whole, 44, False, TargetLimits()).lane is Lane.REOPEN
    gaps = read_header(message_format_v1.upgrade_messages(messages("v1 snappy gaps")))
    assert choose_lane(gaps, 42, False, TargetLimits()) is LaneReason.COMPACTED


def test_a_message_of_magic_0_has_no_timestamp() -> None:
    batch = message_format_v1.upgrade_messages(messages("v0 none"))
    assert {record.timestamp for record in read_batch(batch)} == {-1}
    assert read_header(batch).max_timestamp == -1


def test_messages_in_a_wrapper_with_log_append_time_have_its_timestamp() -> None:
    (message,) = messages("v1 gzip log append time")
    assert [one.timestamp for one in message_format_v1.read_messages(message)] == [
        1_500_000_001_234
    ] * 2


def test_any_flipped_bit_is_detected() -> None:
    message = bytearray(build_legacy_message(Record(7, 5, b"key", b"value"), 1))
    for bit in range(17 * 8, len(message) * 8):
        message[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BatchError, match="does not match its checksum"):
            message_format_v1.read_messages(message)
        message[bit // 8] ^= 1 << bit % 8


def with_checksum(content: bytes, magic: int, attributes: int, offset: int = 9) -> bytes:
    """Return a message with this content after its attributes, and with its checksum."""
    checked = struct.pack(">bb", magic, attributes) + content
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def wrapper(row: bytes, magic: int = 0, codec: CompressionType = CompressionType.GZIP) -> bytes:
    value = zlib.compress(row, wbits=31)
    front = b"" if magic == 0 else bytes(8)
    return with_checksum(front + struct.pack(">ii", -1, len(value)) + value, magic, codec)


PLAIN = build_legacy_message(Record(3, 5, b"k", b"v"), 0)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (wrapper(b""), "wraps nothing"),
        (wrapper(PLAIN[:-1]), "cut off"),
        (wrapper(PLAIN + b"\0"), "cut off"),
        (wrapper(PLAIN, magic=1), "another format"),
        (wrapper(wrapper(PLAIN)), "another format"),
        (wrapper(b"\0" * 40), "length of 0 bytes"),
        (with_checksum(struct.pack(">ii", -1, 50), 0, 0), "do not fill it"),
        (with_checksum(struct.pack(">iii", -1, -1, 0), 0, 0), "do not fill it"),
        (with_checksum(struct.pack(">ii", 50, 0), 0, 0), "ends early"),
        (
            with_checksum(struct.pack(">ii", -1, -1), 0, CompressionType.LZ4),
            "too short for its header",
        ),
        (with_checksum(struct.pack(">ii", -1, -1), 0, 6), "codec 6"),
    ],
    ids=[
        "empty",
        "cut",
        "left-over",
        "other-magic",
        "nested",
        "zeros",
        "long-value",
        "bytes-behind",
        "long-key",
        "no-frame",
        "unknown-codec",
    ],
)
def test_an_invalid_message_is_refused(message: bytes, text: str) -> None:
    with pytest.raises(BatchError, match=text):
        message_format_v1.read_messages(message)


def test_a_wrapper_that_decompresses_beyond_the_limit_is_refused() -> None:
    with pytest.raises(BatchError, match="more than 1000 bytes"):
        message_format_v1.read_messages(wrapper(bytes(100_000)), limit=1000)
