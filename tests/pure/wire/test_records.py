"""Records: read and built as kafka-python and Java do."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.header import Header, read_header
from sparkmirror.wire.records import Record, build, inflate, read, scan
from tests.support.batches import (
    JAVA,
    LOG_APPEND_TIME,
    NOW,
    as_recorded,
    consumed,
    random_records,
    stored,
)

OPTIONAL = st.none() | st.binary(max_size=12)
NAMES = st.text(max_size=6).map(str.encode)
TIMES = st.sampled_from([-1, 0, 1, NOW, NOW + 3, 4_102_444_800_000]) | st.integers(-1, 1 << 41)
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


def rising(steps: list[Record]) -> list[Record]:
    """Turn the steps that the strategy drew into offsets."""
    offset, records = 1000, []
    for step in steps:
        offset += step.offset
        records.append(step._replace(offset=offset))
    return records


def labelled(codec: Codec) -> str:
    return codec.label


@settings(max_examples=25)
@given(RECORDS.map(rising))
def test_a_batch_is_built_as_another_client_builds_it(records: list[Record]) -> None:
    ours, theirs = build(records), stored(records)
    assert consumed(ours) == records
    assert ours[61:] == theirs[61:]
    assert read_header(ours)[5:9] == read_header(theirs)[5:9]


@settings(max_examples=25)
@given(RECORDS.map(rising))
def test_a_batch_is_read_as_another_client_reads_it(records: list[Record]) -> None:
    batch = stored(records)
    assert read(read_header(batch), batch) == consumed(batch) == records


@pytest.mark.parametrize(
    "name", [name for name, java in JAVA.items() if java.facts[0]["magic"] == 2]
)
def test_a_batch_is_read_as_java_reads_it(name: str) -> None:
    java = JAVA[name]
    assert [as_recorded(one) for one in read(java.header, java.buffer)] == java.records


CONTENTS = {
    "null": Record(5, NOW, None, None),
    "empty": Record(5, NOW, b"", b""),
    "tombstone": Record(5, NOW, b"key", None),
    "one header": Record(5, NOW, b"k", b"v", ((b"h", b"1"),)),
    "many headers": Record(5, NOW, b"k", b"v", tuple((b"h%d" % n, b"") for n in range(1000))),
    "one name twice": Record(5, NOW, b"k", b"v", ((b"h", b"2"), (b"h", b"1"))),
    "null header": Record(5, NOW, b"k", b"v", ((b"h", None), (b"", b""))),
    "no time": Record(5, -1, b"k", b"v"),
    "time 0": Record(5, 0, b"k", b"v"),
    "old": Record(5, 1, b"k", b"v"),
    "future": Record(5, 32_503_680_000_000, b"k", b"v"),
    "large": Record(5, NOW, b"k" * 70, b"v" * 20_000),
}


@pytest.mark.parametrize("codec", Codec, ids=labelled)
def test_every_kind_of_content_survives(codec: Codec) -> None:
    records = [one._replace(offset=5 + 2 * n) for n, one in enumerate(CONTENTS.values())]
    batch = build(records, codec)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset) == (5, records[-1].offset)
    assert header.max_timestamp == 32_503_680_000_000
    assert consumed(batch) == read(header, batch) == records


@pytest.mark.parametrize("content", CONTENTS)
def test_each_content_survives_alone(content: str) -> None:
    batch = build([CONTENTS[content]])
    assert consumed(batch) == read(read_header(batch), batch) == [CONTENTS[content]]


def test_a_header_name_that_is_not_utf8_stays_as_it_is() -> None:
    record = Record(0, NOW, None, None, ((b"\xff\xfe", b"x"),))
    batch = build([record])
    assert read(read_header(batch), batch) == [record]


def test_log_append_time_is_the_time_of_every_record() -> None:
    batch = stored(random_records(random.Random(7)), bits=LOG_APPEND_TIME)
    header = read_header(batch)
    assert {one.timestamp for one in read(header, batch)} == {header.max_timestamp}


def test_offsets_must_rise() -> None:
    record = CONTENTS["null"]
    with pytest.raises(ValueError, match="must rise"):
        build([record, record])


def test_scanning_finds_what_reading_finds() -> None:
    """Numbers of one, two and more bytes, in lengths, times and offsets."""
    records = [
        Record(9, NOW, None, b""),
        Record(40, NOW - 70, None, b"x" * 61),
        Record(9000, NOW + 20_000, None, b"x" * 8200),
        Record(2_000_000, NOW - 5_000_000, b"k", b"x"),
        Record(2_000_001, -1, b"k", b"x" * 2_000_000),
    ]
    batch = build(records)
    header = read_header(batch)
    body = inflate(header, batch)
    slots = scan(header, body)
    assert [slot[4] + header.base_offset for slot in slots] == [one.offset for one in records]
    assert [slot[5] + header.base_timestamp for slot in slots] == [one.timestamp for one in records]
    assert [slot[0] for slot in slots] == [0, *(slot[6] for slot in slots[:-1])]
    assert slots[-1][6] == len(body)


def scanned(body: bytes, count: int = 1, last: int = 0) -> Header:
    """Make a header that claims these records, for a scan that should fail."""
    return Header(77, 0, 0, 2, 0, 0, last, 0, 0, -1, -1, -1, count)


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
        scan(scanned(body, count), body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\x0c\0\0\0\1\1\1", "do not fill it"),
        (b"\x0e\0\0\0\1\1\0\0", "do not fill it"),
        (b"\x0c\0\0\0\1\2\0", "does not end"),
        (b"\x10\0\0\0\1\1\2\1\1", "without a name"),
        (b"\x0e\0\0\0\1\1\2\0", "does not end"),
    ],
    ids=["negative-headers", "left-over", "long-value", "nameless-header", "cut-header"],
)
def test_a_record_whose_parts_do_not_add_up_is_refused(body: bytes, message: str) -> None:
    header = scanned(body)
    with pytest.raises(BatchError, match=f"offset 77 .*{message}"):
        read(header, bytes(61) + body)


@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_damage_never_shows_as_another_error(place: int, change: int) -> None:
    batch = stored(random_records(random.Random(8), gaps=True))
    batch[61 + place % (len(batch) - 61)] ^= change
    try:
        read(read_header(batch), batch)
    except BatchError:
        return
