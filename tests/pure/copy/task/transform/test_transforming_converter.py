"""Fetched batches through a chain: what is queued, under which source offsets, and what is not."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import StoredBatch, random_log
from tests.support.copy.transform_chains import DROP_MARKED, MASK_PRICE, transformed_records
from tests.support.copy.transformed_queues import (
    FIRST,
    LIMITS,
    convert,
    converter_of,
    send_all,
    stored,
)
from tests.support.kafka.record_batches import (
    build_legacy_message,
    without_offsets,
)

VALUES: dict[str, list[bytes | None]] = {
    "drop": [None, b"", b"v" * 300, b"\xff"],
    "mask": [b'{"id":7,"price":12.5}', b'{"id":8}', b'{"price":null}'],
}
CHAINS: dict[str, Mapping[str, str]] = {"drop": DROP_MARKED, "mask": MASK_PRICE}


def next_target(wanted: Sequence[Record], first_target: int, position: int) -> int:
    return first_target + sum(1 for one in wanted if one.offset < position)


@given(st.integers(0, 1 << 30), st.sampled_from(list(CHAINS)), st.sampled_from(LIMITS))
def test_every_kept_record_is_queued_once_with_its_source_offset(
    seed: int, chain: str, limits: TargetLimits
) -> None:
    rng = random.Random(seed)
    log = random_log(rng, FIRST, VALUES[chain])
    source = [record for one in log for record in one.records]
    wanted = transformed_records(CHAINS[chain], source)
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(CHAINS[chain], limits)
    assert convert(queue, converter, log) is None
    sent, runs = send_all(queue, limits)
    assert without_offsets(sent) == without_offsets(wanted)
    assert [one.offset for one in sent] == list(range(50, 50 + len(wanted)))
    assert queue.position == queue.next_fetch_offset == log[-1].next_offset
    assert queue.records == len(wanted)
    assert converter.filtered == len(source) - len(wanted)
    assert not converter.skipped
    translation = RunMap(known_from=FIRST)
    for run in runs:
        translation.append(*run)
    for position in range(FIRST, log[-1].next_offset + 1) if wanted else ():
        assert translation.translate_downstream(position) == next_target(wanted, 50, position)


@given(st.integers(0, 1 << 30), st.data())
def test_a_conversion_from_any_position_gives_the_same_records(
    seed: int, data: st.DataObject
) -> None:
    log = random_log(random.Random(seed), FIRST, VALUES["drop"])
    position = data.draw(st.integers(FIRST, log[-1].next_offset))
    wanted = transformed_records(DROP_MARKED, [r for one in log for r in one.records])
    queue = PartitionQueue(make_lease(position, 50))
    assert convert(queue, converter_of(DROP_MARKED), log) is None
    sent, _ = send_all(queue, TargetLimits())
    assert without_offsets(sent) == without_offsets([r for r in wanted if r.offset >= position])
    assert queue.position == log[-1].next_offset


@given(st.integers(0, 1 << 30), st.lists(st.integers(0, 6), max_size=4))
def test_responses_may_end_anywhere_and_unsent_batches_may_be_dropped(
    seed: int, turns: list[int]
) -> None:
    rng = random.Random(seed)
    log = random_log(rng, FIRST, VALUES["drop"])
    wanted = transformed_records(DROP_MARKED, [r for one in log for r in one.records])
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    sent: list[Record] = []
    for turn in turns:
        convert(queue, converter, log[:turn])
        if rng.random() < 0.5:
            queue.drop_unsent()
            queue.check_invariants()
        else:
            sent += send_all(queue, TargetLimits())[0]
    convert(queue, converter, log)
    sent += send_all(queue, TargetLimits())[0]
    assert without_offsets(sent) == without_offsets(wanted)


@given(st.integers(0, 1 << 30), st.sampled_from(list(CHAINS)), st.integers(0, 4))
def test_a_conversion_stops_at_its_deadline_and_goes_on_from_there(
    seed: int, chain: str, batches_in_time: int
) -> None:
    log = random_log(random.Random(seed), FIRST, VALUES[chain])
    wanted = transformed_records(CHAINS[chain], [r for one in log for r in one.records])
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(CHAINS[chain])
    assert isinstance(converter, TransformingConverter)
    sent: list[Record] = []
    responses = 0
    while queue.next_fetch_offset < log[-1].next_offset:
        before = queue.next_fetch_offset
        converter.monotonic = count(1).__next__
        assert convert(queue, converter, log, deadline=batches_in_time) is None
        assert queue.next_fetch_offset > before, "each call makes progress"
        is_at_end = queue.next_fetch_offset == log[-1].next_offset
        assert is_at_end is (converter.unread_bytes == 0)
        sent += send_all(queue, TargetLimits())[0]
        responses += 1
    assert without_offsets(sent) == without_offsets(wanted)
    assert converter.filtered == sum(len(one.records) for one in log) - len(wanted)
    if batches_in_time <= 1:
        assert responses == len(log)


def priced(offset: int, value: bytes = b'{"price":1}') -> Record:
    return Record(offset, 1, None, value)


def test_a_record_that_fails_stops_the_conversion_at_its_offset() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(MASK_PRICE)
    log = [
        stored([priced(100), priced(101)]),
        stored([priced(102), priced(103, b"[]"), priced(104)]),
    ]
    uncopyable = convert(queue, converter, log)
    assert uncopyable
    assert uncopyable.offset == queue.next_fetch_offset == 103
    assert uncopyable.reason == (
        "the record at offset 103 failed in TRANSFORMATION by transforms.mask:"
        " org.apache.kafka.connect.errors.DataException: Only Map objects supported in absence of"
        " schema for [mask fields], found: java.util.ArrayList; change the transforms, or drop such"
        " records with errors.tolerance=all"
    )
    assert [batch.spans for batch in queue.ready] == [((100, 3),)]
    assert convert(queue, converter, log), "and again, from its offset on"
    assert [batch.spans for batch in queue.ready] == [((100, 3),)]


def test_a_value_that_is_not_json_fails_where_it_is_read() -> None:
    queue = PartitionQueue(make_lease(FIRST, 50))
    uncopyable = convert(queue, converter_of(MASK_PRICE), [stored([priced(100, b"{")])])
    assert uncopyable
    assert "failed in TO_CONNECT_VALUE: org.apache.kafka.connect.errors" in uncopyable.reason


def test_a_failed_record_behind_dropped_ones_leaves_the_position_at_itself() -> None:
    mixed = {
        **DROP_MARKED,
        **MASK_PRICE,
        "transforms": "drop,strip,mask",
    }
    records = [Record(100, 1, None, b"", ((b"drop", b""),)), priced(101, b"1")]
    queue = PartitionQueue(make_lease(FIRST, 50))
    assert convert(queue, converter_of(mixed), [stored(records)])
    assert (queue.position, len(queue.ready)) == (101, 0)


def test_tolerated_records_are_skipped_and_counted() -> None:
    queue = PartitionQueue(make_lease(FIRST, 50))
    converter = converter_of(MASK_PRICE, tolerance="all")
    log = [stored([priced(100), priced(101, b"1"), priced(102)]), stored([priced(103, b"{")])]
    assert convert(queue, converter, log) is None
    assert [(one.spans, one.next_source_offset) for one in queue.ready] == [
        (((100, 1), (102, 1)), 104)
    ]
    assert (converter.filtered, converter.skipped) == (0, 2)


def test_a_log_of_dropped_records_only_moves_the_position() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    dropped = [Record(100 + n, 1, None, b"v", ((b"drop", b""),)) for n in range(3)]
    assert convert(queue, converter, [stored(dropped)]) is None
    assert (queue.position, queue.expected, len(queue.ready)) == (103, 50, 0)
    assert converter.pop_lanes() == {LaneReason.FILTERED: 1}
    assert converter.filtered == 3


def test_small_batches_of_one_response_become_one() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    assert convert(queue, converter, [stored([priced(100 + n)]) for n in range(5)]) is None
    assert [batch.spans for batch in queue.ready] == [((100, 5),)]
    assert converter.pop_lanes() == {LaneReason.TRANSFORMED: 5}


def test_records_of_another_codec_or_time_are_sent_apart() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    log = [
        stored([priced(100)]),
        stored([priced(101)], CompressionType.LZ4),
        stored([priced(102)._replace(timestamp=9_000_000)], CompressionType.LZ4),
    ]
    assert convert(queue, converter, log) is None
    assert [batch.spans for batch in queue.ready] == [((100, 1),), ((101, 1),), ((102, 1),)]


def test_a_record_that_is_too_large_afterwards_stops_the_conversion() -> None:
    queue = PartitionQueue(make_lease(FIRST, 50))
    converter = converter_of(DROP_MARKED, TargetLimits(max_message_bytes=1000))
    records = [priced(100), priced(101, b"x" * 2000), priced(102)]
    uncopyable = convert(queue, converter, [stored(records)])
    assert uncopyable
    assert uncopyable.offset == queue.next_fetch_offset == 101
    assert "max.message.bytes" in uncopyable.reason


@pytest.mark.parametrize("is_in_two_batches", [False, True])
@pytest.mark.parametrize("uses_header_lane", [False, True])
def test_dropped_records_behind_one_that_is_too_large_count_when_the_position_passes_them(
    is_in_two_batches: bool, uses_header_lane: bool
) -> None:
    def dropped(offset: int) -> Record:
        return Record(offset, 1, None, b"", ((b"drop", b""),))

    records = [dropped(100), priced(101), dropped(102), priced(103, b"x" * 2000), dropped(104)]
    log = [stored(records[:4]), stored(records[4:])] if is_in_two_batches else [stored(records)]
    queue = PartitionQueue(make_lease(FIRST, 50))
    small, large = (
        converter_of(
            DROP_MARKED, TargetLimits(max_message_bytes=size), uses_header_lane=uses_header_lane
        )
        for size in (1000, 9000)
    )
    for _ in range(3):
        uncopyable = convert(queue, small, log)
        assert uncopyable
        assert uncopyable.offset == 103
    assert small.filtered == 1, "the position is behind the first record only"
    assert convert(queue, large, log) is None
    assert small.filtered + large.filtered == 3


def test_a_damaged_batch_stops_the_conversion_behind_what_was_collected() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    broken = bytearray(stored([priced(101)]).data)
    broken[-1] ^= 1
    log = [stored([priced(100)]), StoredBatch(data=bytes(broken), next_offset=102)]
    uncopyable = convert(queue, converter, log)
    assert uncopyable
    assert (uncopyable.offset, len(queue.ready)) == (101, 1)
    assert "checksum" in uncopyable.reason


def test_header_names_that_are_not_utf_8_keep_their_bytes() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    headers = ((b"\xff\xfe", None), (b"pii", b"x"), (b"\xff\xfe", b""))
    record = Record(100, 1, None, b"v", headers)
    assert convert(queue, converter, [stored([record])]) is None
    assert b"".join(map(bytes, queue.ready[0].buffers)).count(b"\xff\xfe") == 2


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_transformed_too(magic: int) -> None:
    old = [build_legacy_message(priced(offset), magic) for offset in (100, 101)]
    queue, converter = PartitionQueue(make_lease(101, 50)), converter_of(MASK_PRICE)
    log = [StoredBatch(data=b"".join(old), next_offset=102), stored([priced(102)])]
    assert convert(queue, converter, log) is None
    sent, _ = send_all(queue, TargetLimits())
    assert [one.value for one in sent] == [b'{"price":0}'] * 2
    assert queue.position == 103
