"""Records are read and built as kafka-python and Java do it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.batch.records import (
    Record,
    build_batch,
    decompress_records,
    read_records,
    scan_records,
)
from tests.support.kafka.record_batches import (
    JAVA_BATCHES,
    LOG_APPEND_TIME,
    NOW_MS,
    as_recorded,
    build_stored_batch,
    random_records,
    read_batch,
)

OPTIONAL = st.none() | st.binary(max_size=12)
NAMES = st.text(max_size=6).map(str.encode)
TIMES = st.sampled_from([-1, 0, 1, NOW_MS, NOW_MS + 3, 4_102_444_800_000]) | st.integers(
    -1, 1 << 41
)
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.integers(1, 3),
        timestamp=TIMES,
        key=OPTIONAL,
        value=OPTIONAL,
        headers=st.lists(st.tuples(NAMES, OPTIONAL), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


def with_rising_offsets(steps: list[Record]) -> list[Record]:
    """Replace the steps between offsets by offsets."""
    offset, records = 1000, []
    for step in steps:
        offset += step.offset
        records.append(step._replace(offset=offset))
    return records


def codec_name(codec: CompressionType) -> str:
    return codec.config_name


@settings(max_examples=25)
@given(RECORDS.map(with_rising_offsets))
def test_a_batch_is_built_as_another_client_builds_it(records: list[Record]) -> None:
    ours, theirs = build_batch(records), build_stored_batch(records)
    assert read_batch(ours) == records
    assert ours[61:] == theirs[61:]
    assert read_header(ours)[5:9] == read_header(theirs)[5:9]


@settings(max_examples=25)
@given(RECORDS.map(with_rising_offsets))
def test_a_batch_is_read_as_another_client_reads_it(records: list[Record]) -> None:
    batch = build_stored_batch(records)
    assert read_records(read_header(batch), batch) == read_batch(batch) == records


@pytest.mark.parametrize(
    "name", [name for name, java in JAVA_BATCHES.items() if java.facts[0]["magic"] == 2]
)
def test_a_batch_is_read_as_java_reads_it(name: str) -> None:
    java = JAVA_BATCHES[name]
    assert [as_recorded(one) for one in read_records(java.header, java.buffer)] == java.records


CONTENTS = {
    "null": Record(5, NOW_MS, None, None),
    "empty": Record(5, NOW_MS, b"", b""),
    "tombstone": Record(5, NOW_MS, b"key", None),
    "one header": Record(5, NOW_MS, b"k", b"v", ((b"h", b"1"),)),
    "many headers": Record(5, NOW_MS, b"k", b"v", tuple((b"h%d" % n, b"") for n in range(1000))),
    "one name twice": Record(5, NOW_MS, b"k", b"v", ((b"h", b"2"), (b"h", b"1"))),
    "null header": Record(5, NOW_MS, b"k", b"v", ((b"h", None), (b"", b""))),
    "no time": Record(5, -1, b"k", b"v"),
    "time 0": Record(5, 0, b"k", b"v"),
    "old": Record(5, 1, b"k", b"v"),
    "future": Record(5, 32_503_680_000_000, b"k", b"v"),
    "large": Record(5, NOW_MS, b"k" * 70, b"v" * 20_000),
}


@pytest.mark.parametrize("codec", CompressionType, ids=codec_name)
def test_every_kind_of_content_is_read_back(codec: CompressionType) -> None:
    records = [one._replace(offset=5 + 2 * n) for n, one in enumerate(CONTENTS.values())]
    batch = build_batch(records, codec)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset) == (5, records[-1].offset)
    assert header.max_timestamp == 32_503_680_000_000
    assert read_batch(batch) == read_records(header, batch) == records


@pytest.mark.parametrize("content", CONTENTS)
def test_each_content_alone_is_read_back(content: str) -> None:
    batch = build_batch([CONTENTS[content]])
    assert read_batch(batch) == read_records(read_header(batch), batch) == [CONTENTS[content]]


def test_a_header_name_that_is_not_utf8_is_not_changed() -> None:
    record = Record(0, NOW_MS, None, None, ((b"\xff\xfe", b"x"),))
    batch = build_batch([record])
    assert read_records(read_header(batch), batch) == [record]


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = build_stored_batch(random_records(random.Random(7)), bits=LOG_APPEND_TIME)
    header = read_header(batch)
    assert {one.timestamp for one in read_records(header, batch)} == {header.max_timestamp}


def test_offsets_that_do_not_rise_are_refused() -> None:
    record = CONTENTS["null"]
    with pytest.raises(ValueError, match="must rise"):
        build_batch([record, record])


def test_a_scan_finds_the_offsets_and_timestamps_of_records() -> None:
    """Lengths, timestamps and offsets are varints of one, two and more bytes."""
    records = [
        Record(9, NOW_MS, None, b""),
        Record(40, NOW_MS - 70, None, b"x" * 61),
        Record(9000, NOW_MS + 20_000, None, b"x" * 8200),
        Record(2_000_000, NOW_MS - 5_000_000, b"k", b"x"),
        Record(2_000_001, -1, b"k", b"x" * 2_000_000),
    ]
    batch = build_batch(records)
    header = read_header(batch)
    body = decompress_records(header, batch)
    slots = scan_records(header, body)
    assert [slot[4] + header.base_offset for slot in slots] == [one.offset for one in records]
    assert [slot[5] + header.base_timestamp for slot in slots] == [one.timestamp for one in records]
    assert [slot[0] for slot in slots] == [0, *(slot[6] for slot in slots[:-1])]
    assert slots[-1][6] == len(body)


def header_with_count(body: bytes, count: int = 1, last: int = 0) -> BatchHeader:
    """Return a header with this record count."""
    return BatchHeader(77, 0, 0, 2, 0, 0, last, 0, 0, -1, -1, -1, count)


@pytest.mark.parametrize(
    ("body", "count", "message"),
    [
        (b"\x0c\0\0\0\1\1\0", 2, "middle of a record"),
        (b"\x0c\0\0\0\1\1\0\0", 1, "does not hold the 1 records"),
        (b"\x0c\0\0\0\1\1\0", 0, "does not hold the 0 records"),
        (b"\x0c\0\0\2\1\1\0", 1, "beyond its own end"),
        (b"\x0c\0\0\1\1\1\0", 1, "does not hold"),
        (b"\x0d\0\0\0\1\1\0", 1, "does not hold"),
        (b"\x02\0\0\0\1\1\0", 1, "does not hold"),
        (b"\x02\0\x0c\0\0\2\1\1\0", 2, "does not hold"),
        (b"\x0c\0\0\0\1\1\0" * 2, 2, "does not hold"),
        (b"\xff\xff\xff\xff\x0f\0\0\0\1\1\0", 1, "does not hold"),
        (b"\x0e\0\0\0\1\1\0", 1, "does not hold"),
        (b"\xff" * 12, 1, "does not end"),
        (b"", -1, "does not hold the -1 records"),
    ],
    ids=[
        "short",
        "longer",
        "uncounted",
        "beyond",
        "negative-offset",
        "negative-length",
        "too-small",
        "overlapping",
        "same-offset",
        "huge-length",
        "past-the-end",
        "endless-length",
        "negative-count",
    ],
)
def test_records_that_contradict_their_batch_are_refused(
    body: bytes, count: int, message: str
) -> None:
    with pytest.raises(BatchError, match=f"offset 77 .*{message}"):
        scan_records(header_with_count(body, count), body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\x0c\0\0\0\1\1\1", "do not fill it"),
        (b"\x0e\0\0\0\1\1\0\0", "do not fill it"),
        (b"\x0c\0\0\0\1\2\0", "does not end"),
        (b"\x10\0\0\0\1\1\2\1\1", "without a name"),
        (b"\x0e\0\0\0\1\1\2\0", "ends in the middle"),
    ],
    ids=["negative-headers", "left-over", "long-value", "nameless-header", "cut-header"],
)
def test_a_record_whose_fields_do_not_fill_it_is_refused(body: bytes, message: str) -> None:
    header = header_with_count(body)
    with pytest.raises(BatchError, match=f"offset 77 .*{message}"):
        read_records(header, bytes(61) + body)


@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_damaged_records_raise_only_a_batch_error(place: int, change: int) -> None:
    batch = build_stored_batch(random_records(random.Random(8), gaps=True))
    batch[61 + place % (len(batch) - 61)] ^= change
    try:
        read_records(read_header(batch), batch)
    except BatchError:
        return
