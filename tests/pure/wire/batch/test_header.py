"""Batches are found in a fetched buffer, and their headers are read."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.header import (
    DELETE_HORIZON,
    HEADER_BYTES,
    BatchHeader,
    iter_batches,
    read_header,
)
from tests.support.kafka.record_batches import (
    JAVA_BATCHES,
    RecordedBatches,
    build_legacy_message,
    build_stored_batch,
    random_records,
)

MAGIC_2 = [java for java in JAVA_BATCHES.values() if java.facts[0]["magic"] == 2]


def java_name(java: RecordedBatches) -> str:
    return java.name.replace(" ", "-")


def test_the_header_is_61_bytes() -> None:
    assert HEADER_BYTES == 61


@pytest.mark.parametrize("java", MAGIC_2, ids=java_name)
def test_a_header_is_read_as_java_reads_it(java: RecordedBatches) -> None:
    header, fact = java.header, java.facts[0]
    assert (header.magic, header.base_offset, header.last_offset) == (
        2,
        fact["base_offset"],
        fact["last_offset"],
    )
    assert header.next_offset == fact["last_offset"] + 1
    assert header.size == fact["size"]
    assert header.is_control == fact["control"]
    assert header.is_transactional == fact["transactional"]
    assert header.is_log_append_time == (fact["timestamp_type"] == "LogAppendTime")
    assert header.max_timestamp == fact["max_timestamp"]
    assert header.producer_id == fact["producer_id"]
    assert bool(header.attributes & DELETE_HORIZON) == (fact["delete_horizon"] is not None)


def test_the_record_count_comes_from_the_header_not_from_the_offset_range() -> None:
    """After compaction the two differ."""
    header = JAVA_BATCHES["v2 none compacted"].header
    assert header.record_count == 60
    assert header.last_offset_delta + 1 == 200


@pytest.mark.parametrize("java", JAVA_BATCHES.values(), ids=java_name)
def test_every_batch_of_a_buffer_is_found(java: RecordedBatches) -> None:
    spans = list(iter_batches(java.buffer))
    assert [span.magic for span in spans] == [fact["magic"] for fact in java.facts]
    assert [span.end - span.start for span in spans] == [fact["size"] for fact in java.facts]
    assert spans[0].start == 0
    assert spans[-1].end == len(java.buffer)


def test_a_truncated_tail_is_left_for_the_next_fetch() -> None:
    """Only complete batches are found, wherever the response ends."""
    rng = random.Random(1)
    old = build_legacy_message(random_records(rng)[0]._replace(key=None, value=None), 0)
    parts = [
        bytes(build_stored_batch(random_records(rng, most=3))),
        old,
        bytes(build_stored_batch(random_records(rng))),
    ]
    buffer = b"".join(parts)
    ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
    for cut in range(len(buffer) + 1):
        found = [span.end for span in iter_batches(memoryview(buffer)[:cut])]
        assert found == [end for end in ends if end <= cut]


def test_a_message_shorter_than_a_header_is_found_at_the_end() -> None:
    record = random_records(random.Random(2))[0]._replace(key=None, value=None)
    buffer = build_legacy_message(record, 0)
    assert len(buffer) == 26
    assert list(iter_batches(buffer)) == [(0, 26, 0)]


@pytest.mark.parametrize(
    ("magic", "length"), [(2, 48), (2, 0), (2, -1), (2, -(1 << 31)), (1, 21), (0, 13)]
)
def test_an_invalid_length_is_refused(magic: int, length: int) -> None:
    buffer = struct.pack(">qiib", 0, length, 0, magic) + bytes(100)
    with pytest.raises(BatchError, match=f"length of {length} bytes, which is impossible"):
        list(iter_batches(buffer))


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_refused(magic: int) -> None:
    buffer = struct.pack(">qiib", 0, 80, 0, magic) + bytes(100)
    with pytest.raises(BatchError, match=f"magic {magic}"):
        list(iter_batches(buffer))


@settings(max_examples=40)
@given(st.binary(max_size=300))
def test_random_bytes_raise_only_a_batch_error(data: bytes) -> None:
    try:
        spans = list(iter_batches(data))
    except BatchError:
        return
    assert all(a.end == b.start for a, b in zip(spans, spans[1:], strict=False))


def test_a_header_is_read_at_its_position_in_the_buffer() -> None:
    batch = build_stored_batch(random_records(random.Random(3)))
    buffer = b"front" + bytes(batch)
    assert read_header(buffer, 5) == read_header(batch)
    assert isinstance(read_header(batch), BatchHeader)
