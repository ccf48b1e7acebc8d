"""Whole logs as they lie on a broker, read batch by batch, and what must be true of a copy.

kafka-python takes the records out of the batches (see `tests.support.batches`), so that what our
own reader gets wrong is not wrong on both sides in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.header import Header
from sparkmirror.wire.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.peek import OutOfRange, look, whole_batches
from sparkmirror.wire.records import Record
from sparkmirror.wire.routing import Router
from tests.support.batches import consumed, contents

READ_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One partition: its records, the offsets of its markers, the headers of all its batches."""

    start: int
    end: int
    records: list[Record] = field(default_factory=list)
    markers: list[int] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)

    @property
    def wanted(self) -> list[Record]:
        """Its records, but for those that say of themselves that they were aborted."""
        return [one for one in self.records if not (one.value or b"").startswith(b"aborted")]


def read_log(router: Router, partition: TopicPartition) -> Log:
    """Read a partition from its beginning to its end."""
    deadline = time.monotonic() + READ_WITHIN_S
    while True:
        try:
            return _read(router, partition, deadline)
        except OutOfRange:  # its beginning has moved meanwhile
            if time.monotonic() > deadline:
                raise


def _read(router: Router, partition: TopicPartition, deadline: float) -> Log:
    start, end = edges(router, partition)
    log = Log(start=start, end=end)
    at = start
    while at < end:
        before = at
        for header, batch in whole_batches(look(router, partition, at).records):
            if header.base_offset < at:
                continue
            log.headers.append(header)
            at = header.next_offset
            if header.is_control:
                log.markers.append(header.base_offset)
            elif header.record_count:
                log.records.extend(consumed(batch))
        if at == before:  # a leader that is new does not know at once how far its log counts
            assert time.monotonic() < deadline, f"{partition} cannot be read on from offset {at}"
            time.sleep(0.1)
    return log


def edges(router: Router, partition: TopicPartition) -> tuple[int, int]:
    """Where a log begins and ends."""
    start = list_offsets(router, {partition: EARLIEST})[partition].value
    end = list_offsets(router, {partition: LATEST})[partition].value
    assert start
    assert end
    return start.offset, end.offset


def assert_copied(
    wanted: Sequence[Record], target: Log, *, fences: int = 0, with_times: bool = True
) -> None:
    """Every record is there once, in order, unchanged; nothing else but so many fences is.

    `fences` is how many markers there may be at the most.
    """
    there = contents(target.records)
    expected = contents(wanted)
    if not with_times:
        there, expected = [one[1:] for one in there], [one[1:] for one in expected]
    if there != expected:
        raise AssertionError(_difference(expected, there))
    offsets = sorted([*(record.offset for record in target.records), *target.markers])
    assert offsets == list(range(target.start, target.end)), "the target has holes"
    assert len(target.markers) <= fences, f"{len(target.markers)} markers on the target"


def assert_runs(wanted: Sequence[Record], target: Log, runs: Sequence[Run]) -> None:
    """The run map names, for every record, where it lies on the target, and nothing else."""
    assert _expanded(runs) == _places(wanted, target)


def assert_runs_are_true(wanted: Sequence[Record], target: Log, runs: Sequence[Run]) -> None:
    """The run map may have forgotten something, but what it says is so."""
    assert set(_expanded(runs)) <= set(_places(wanted, target))


def _expanded(runs: Sequence[Run]) -> list[tuple[int, int]]:
    return [(run.source_first + n, run.target_first + n) for run in runs for n in range(run.length)]


def _places(wanted: Sequence[Record], target: Log) -> list[tuple[int, int]]:
    pairs = zip(wanted, target.records, strict=True)
    return [(source.offset, copy.offset) for source, copy in pairs]


def _difference(expected: Sequence[tuple[object, ...]], there: Sequence[tuple[object, ...]]) -> str:
    """Say where two lists of records part, and how they differ as a whole."""
    at = next(
        (n for n, (one, other) in enumerate(zip(expected, there, strict=False)) if one != other),
        min(len(expected), len(there)),
    )
    missing = len(set(map(repr, expected)) - set(map(repr, there)))
    twice = len(there) - len(set(map(repr, there)))
    return (
        f"{len(there)} records instead of {len(expected)}; {missing} are missing, {twice} come"
        f" twice; they part at number {at}:\n  expected {_shown(expected, at)}\n"
        f"  there is {_shown(there, at)}"
    )


def _shown(records: Sequence[tuple[object, ...]], at: int) -> str:
    return repr(records[at])[:300] if at < len(records) else "nothing"
