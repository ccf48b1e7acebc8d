"""Complete logs of partitions, and assertions about a copy.

kafka-python reads the records of the batches (see `tests.support.kafka.record_batches`), so the
assertions do not depend on our own reader.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    OffsetOutOfRange,
    fetch_records,
    iter_complete_batches,
)
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets
from tests.support.kafka.record_batches import read_batch, without_offsets

READ_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLog:
    """The records of a partition, the offsets of its markers, and the headers of its batches."""

    start: int
    end: int
    records: list[Record] = field(default_factory=list)
    marker_offsets: list[int] = field(default_factory=list)
    batch_headers: list[BatchHeader] = field(default_factory=list)

    @property
    def expected_records(self) -> list[Record]:
        """The records without aborted ones; their values begin with `aborted`."""
        return [one for one in self.records if not (one.value or b"").startswith(b"aborted")]


def read_partition_log(router: Router, partition: TopicPartition) -> PartitionLog:
    """Read a partition from its beginning to its end."""
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        try:
            return _read(router, partition, deadline)
        except OffsetOutOfRange:  # the log start offset has moved
            if time.monotonic() > deadline:
                raise


def _read(router: Router, partition: TopicPartition, deadline: float) -> PartitionLog:
    start, end = log_start_and_end(router, partition)
    log = PartitionLog(start=start, end=end)
    at = start
    while at < end:
        before = at
        for header, batch in iter_complete_batches(fetch_records(router, partition, at).records):
            if header.base_offset < at:
                continue
            log.batch_headers.append(header)
            at = header.next_offset
            if header.is_control:
                log.marker_offsets.append(header.base_offset)
            elif header.record_count:
                log.records.extend(read_batch(batch))
        if at == before:  # a new leader does not know its high watermark at once
            assert time.monotonic() < deadline, f"{partition} cannot be read on from offset {at}"
            time.sleep(0.1)
    return log


def log_start_and_end(router: Router, partition: TopicPartition) -> tuple[int, int]:
    """Return the log start offset and the end offset."""
    start = list_offsets(router, {partition: EARLIEST})[partition].value
    end = list_offsets(router, {partition: LATEST})[partition].value
    assert start
    assert end
    return start.offset, end.offset


def assert_copied(
    wanted: Sequence[Record], target: PartitionLog, *, fences: int = 0, with_times: bool = True
) -> None:
    """Assert that the target has every record once, in order, unchanged, and no other records.

    `fences` is the maximum number of markers.
    """
    actual = without_offsets(target.records)
    expected = without_offsets(wanted)
    if not with_times:
        actual, expected = [one[1:] for one in actual], [one[1:] for one in expected]
    if actual != expected:
        raise AssertionError(_describe_difference(expected, actual))
    offsets = sorted([*(record.offset for record in target.records), *target.marker_offsets])
    assert offsets == list(range(target.start, target.end)), "the target has gaps"
    assert len(target.marker_offsets) <= fences, (
        f"{len(target.marker_offsets)} markers on the target"
    )


def assert_run_map_equals(
    wanted: Sequence[Record], target: PartitionLog, runs: Sequence[OffsetRun]
) -> None:
    """Assert that the run map has the target offset of every record, and no other pairs."""
    assert _offset_pairs(runs) == _copied_offsets(wanted, target)


def assert_run_map_consistent(
    wanted: Sequence[Record], target: PartitionLog, runs: Sequence[OffsetRun]
) -> None:
    """Assert that the pairs of the run map are correct. Pairs may be missing."""
    assert set(_offset_pairs(runs)) <= set(_copied_offsets(wanted, target))


def _offset_pairs(runs: Sequence[OffsetRun]) -> list[tuple[int, int]]:
    return [(run.source_first + n, run.target_first + n) for run in runs for n in range(run.length)]


def _copied_offsets(wanted: Sequence[Record], target: PartitionLog) -> list[tuple[int, int]]:
    pairs = zip(wanted, target.records, strict=True)
    return [(source.offset, copy.offset) for source, copy in pairs]


def _describe_difference(
    expected: Sequence[tuple[object, ...]], actual: Sequence[tuple[object, ...]]
) -> str:
    """Return a text with the first difference of two lists of records, and their lengths."""
    at = next(
        (n for n, (one, other) in enumerate(zip(expected, actual, strict=False)) if one != other),
        min(len(expected), len(actual)),
    )
    missing = len(set(map(repr, expected)) - set(map(repr, actual)))
    twice = len(actual) - len(set(map(repr, actual)))
    return (
        f"{len(actual)} records instead of {len(expected)}; {missing} are missing, {twice} come"
        f" twice; they differ at number {at}:\n  expected {_record_text(expected, at)}\n"
        f"  actual   {_record_text(actual, at)}"
    )


def _record_text(records: Sequence[tuple[object, ...]], at: int) -> str:
    return repr(records[at])[:300] if at < len(records) else "nothing"
