"""Chains for which headers are enough: the same outcome as for opened records, in other lanes."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.batch_transform import BatchTransform
from sparkmirror.copy.task.transform.header_transform import HeaderTransform
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.record_headers import (
    encode_header_section,
    encode_name,
    find_header_section,
    read_header_section,
)
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.rewrite import encode_content
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import random_log
from tests.support.copy.transform_chains import DROP_MARKED
from tests.support.copy.transformed_queues import (
    FIRST,
    LIMITS,
    convert,
    converter_of,
    send_all,
    stored,
)
from tests.support.kafka.record_batches import without_offsets

_CLASSES = "org.apache.kafka.connect.transforms"
INSERT = {
    "transforms": "insert",
    "transforms.insert.type": f"{_CLASSES}.InsertHeader",
    "transforms.insert.header": "kept",
    "transforms.insert.value.literal": "yes",
}
CHAINS: dict[str, Mapping[str, str]] = {
    "drop": DROP_MARKED,
    "keep": {**DROP_MARKED, "transforms.drop.negate": "true"},
    "all": {**DROP_MARKED, "predicates.marked.name": "in no record"},
    "none": {**DROP_MARKED, "predicates.marked.name": "no", "transforms.drop.negate": "true"},
    "fails": INSERT,
    "inserts": {**INSERT, "sparkmirror.transform.header.format": "string"},
}
# Names that begin a value, or are a part of other names, are found in bytes and are no headers.
VALUES = [None, b"", b"drop", b"v" * 300, b"\x08pii"]


@given(st.integers(0, 1 << 30), st.sampled_from(list(CHAINS)), st.sampled_from(LIMITS), st.data())
def test_closed_and_opened_records_have_the_same_outcome(
    seed: int, chain: str, limits: TargetLimits, data: st.DataObject
) -> None:
    log = random_log(random.Random(seed), FIRST, VALUES)
    position = data.draw(st.integers(FIRST, log[-1].next_offset))
    tolerance = data.draw(st.sampled_from(["none", "all"]))
    results = []
    for uses_header_lane in (False, True):
        queue = PartitionQueue(make_lease(position, 50))
        converter = converter_of(
            CHAINS[chain], limits, tolerance, uses_header_lane=uses_header_lane
        )
        refused = convert(queue, converter, log)
        sent, runs = send_all(queue, limits)
        pairs = [
            (run.source_first + n, run.target_first + n) for run in runs for n in range(run.length)
        ]
        counts = (converter.filtered, converter.skipped)
        results.append((refused, without_offsets(sent), pairs, queue.position, counts))
    assert results[0] == results[1]


def records(count: int, *headers: tuple[bytes, bytes | None], value: bytes = b"v") -> list[Record]:
    return [Record(FIRST + n, 1, b"k", value, headers) for n in range(count)]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
@pytest.mark.parametrize("value", [b"v", b"drop pii"])
def test_a_batch_that_the_chain_does_not_change_is_forwarded(
    codec: CompressionType, value: bytes
) -> None:
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    batch = stored(records(40, (b"other", b"x"), value=value), codec)
    assert convert(queue, converter, [batch]) is None
    assert converter.pop_lanes() == {LaneReason.PLAIN: 1}
    assert bytes(queue.ready[0].batch) == batch.data, "no record was written again"


def test_a_batch_without_the_header_that_a_record_must_have_is_skipped() -> None:
    queue, converter = PartitionQueue(make_lease(FIRST + 5, 50)), converter_of(CHAINS["keep"])
    assert convert(queue, converter, [stored(records(40))]) is None
    assert converter.pop_lanes() == {LaneReason.FILTERED: 1}
    assert (queue.position, converter.filtered) == (140, 35)


def test_headers_taken_away_leave_key_value_and_order_of_the_others() -> None:
    headers = ((b"a", b"1"), (b"pii", None), (b"\xff", b""), (b"a", None), (b"pii", b"x"))
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), converter_of(DROP_MARKED)
    assert convert(queue, converter, [stored(records(40, *headers))]) is None
    content = encode_content(b"k", b"v", ((b"a", b"1"), (b"\xff", b""), (b"a", None)))
    assert bytes(queue.ready[0].batch).count(content) == 40


PARTS = st.one_of(st.none(), st.binary(max_size=70), st.integers(0, 20_000).map(bytes))


@given(PARTS, PARTS, st.lists(st.tuples(st.binary(max_size=9), PARTS), max_size=3))
def test_the_header_section_is_found_behind_any_key_and_value(
    key: bytes | None, value: bytes | None, headers: list[tuple[bytes, bytes | None]]
) -> None:
    content = encode_content(key, value, headers)
    at = find_header_section(content, 0, len(content))
    assert read_header_section(content[at:]) == tuple(headers)
    assert content[at:] == encode_header_section(headers)


@given(st.binary(max_size=300), st.binary(max_size=3), st.integers(0, 300))
def test_a_name_is_found_wherever_it_is(body: bytes, name: bytes, at: int) -> None:
    """In bodies in which its length is a rare byte, and in those in which it is a frequent one."""
    transform = converter_of({**DROP_MARKED, "predicates.marked.name": "x"})
    assert isinstance(transform, TransformingConverter)
    assert transform.headers
    assert isinstance(transform.transform, BatchTransform)
    found = HeaderTransform(transform.transform, [name.decode("latin-1")])
    encoded = encode_name(name.decode("latin-1").encode())
    assert found.may_concern(body) == (encoded in body)
    assert found.may_concern(body[:at] + encoded + body[at:])
    assert found.may_concern(encoded[:1] * 200 + body + encoded)
