"""A run map translates exactly; where runs are missing the result is too low, never too high."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError, RunMapConflict
from sparkmirror.mirror.offsets import run_map_codec
from sparkmirror.mirror.offsets.run_map import MAX_OFFSET, OffsetRun, RunMap

DOCUMENTED_RUNS = [OffsetRun(10, 70, 5), OffsetRun(17, 75, 2), OffsetRun(20, 78, 2)]

gaps = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 4))
gap_lists = st.lists(gaps, min_size=1, max_size=40)


def run_map_of(runs: list[OffsetRun], known_from: int | None = None) -> RunMap:
    run_map = RunMap(known_from)
    for run in runs:
        run_map.append(*run)
    return run_map


def runs_of(steps: list[tuple[int, int, int]]) -> list[OffsetRun]:
    """Turn gaps and lengths into runs."""
    runs, source, target = [], 5, 100
    for source_gap, target_gap, length in steps:
        source, target = source + source_gap, target + target_gap
        runs.append(OffsetRun(source, target, length))
        source, target = source + length, target + length
    return runs


def records(runs: list[OffsetRun]) -> list[tuple[int, int]]:
    """The source and target offset of each copied record."""
    return [(s + n, t + n) for s, t, length in runs for n in range(length)]


def translated(run_map: RunMap, positions: Iterable[int]) -> list[int | None]:
    return [run_map.translate_downstream(position) for position in positions]


def exact_offset(copied: list[tuple[int, int]], position: int) -> int:
    """The target offset of the first record at or after a position; the end if there is none."""
    return next((t for s, t in copied if s >= position), copied[-1][1] + 1)


def map_contents(run_map: RunMap) -> tuple[list[OffsetRun], int | None, int]:
    return list(run_map), run_map.known_from, run_map.coarse_runs


def test_the_example_of_the_module_is_correct() -> None:
    run_map = run_map_of(DOCUMENTED_RUNS)
    positions = [9, 10, 14, 15, 16, 17, 19, 20, 22, 99]
    assert translated(run_map, positions) == [
        None,
        70,
        74,
        75,
        75,
        75,
        78,
        78,
        80,
        80,
    ]
    assert (run_map.known_from, run_map.source_end, run_map.target_end) == (10, 22, 80)


def test_a_topic_without_gaps_is_one_run() -> None:
    run_map = RunMap()
    for first in range(0, 100_000, 10):
        run_map.append(first, first, 10)
    assert list(run_map) == [OffsetRun(0, 0, 100_000)]
    assert run_map.translate_downstream(54_321) == 54_321


def test_an_empty_map_translates_nothing() -> None:
    run_map = RunMap()
    assert run_map.translate_downstream(0) is None
    assert (run_map.source_end, run_map.target_end, len(run_map)) == (None, None, 0)


def test_positions_from_known_from_to_the_first_record_are_translated() -> None:
    """The source log starts at 3, and compaction has removed the records before 10."""
    run_map = run_map_of(DOCUMENTED_RUNS, known_from=3)
    assert translated(run_map, [2, 3, 9, 10]) == [None, 70, 70, 70]


@pytest.mark.parametrize(
    "run",
    [
        OffsetRun(21, 90, 1),
        OffsetRun(30, 79, 1),
        OffsetRun(30, 90, 0),
        OffsetRun(30, 90, -1),
        OffsetRun(MAX_OFFSET, 90, 1),
    ],
)
def test_a_run_that_contradicts_the_map_is_refused(run: OffsetRun) -> None:
    run_map = run_map_of(DOCUMENTED_RUNS)
    with pytest.raises(RunMapConflict):
        run_map.append(*run)
    assert list(run_map) == DOCUMENTED_RUNS


@pytest.mark.parametrize("run", [OffsetRun(-1, 0, 2), OffsetRun(0, -1, 2), OffsetRun(2, 0, 1)])
def test_a_first_run_before_known_from_is_refused(run: OffsetRun) -> None:
    with pytest.raises(RunMapConflict, match="lies before 3"):
        RunMap(3).append(*run)


@settings(max_examples=50)
@given(gap_lists)
def test_translation_is_exact_and_in_order(steps: list[tuple[int, int, int]]) -> None:
    runs = runs_of(steps)
    copied = records(runs)
    run_map = run_map_of(runs)
    positions = range(copied[0][0], copied[-1][0] + 3)
    expected = [exact_offset(copied, p) for p in positions]
    assert translated(run_map, positions) == expected


@settings(max_examples=50)
@given(gap_lists)
def test_adjacent_runs_become_one(steps: list[tuple[int, int, int]]) -> None:
    run_map = run_map_of(runs_of(steps))
    whole = list(run_map)
    for before, after in zip(whole, whole[1:], strict=False):
        source_gap = after.source_first - before.source_first - before.length
        target_gap = after.target_first - before.target_first - before.length
        assert source_gap > 0 or target_gap > 0
    assert records(whole) == records(runs_of(steps))


@settings(max_examples=50)
@given(gap_lists, st.data())
def test_where_runs_are_missing_the_result_is_too_low_never_too_high(
    steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    whole = list(run_map_of(runs_of(steps)))
    older = data.draw(st.integers(1, len(whole)))
    kept = [whole[0], *(run for run in whole[1:older] if data.draw(st.booleans()))]
    run_map = RunMap.restore([*kept, *whole[older:]], whole[0].source_first, len(kept))
    copied = records(whole)
    positions = range(copied[0][0], copied[-1][0] + 3)
    found = translated(run_map, positions)
    assert None not in found, "no position becomes too old"
    assert found == sorted(found, key=lambda offset: offset or 0)
    for position, offset in zip(positions, found, strict=True):
        assert offset is not None
        assert offset <= exact_offset(copied, position)


@settings(max_examples=50)
@given(gap_lists, st.data())
def test_an_encoded_map_is_read_back(
    steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    whole = list(run_map_of(runs_of(steps)))
    known_from = data.draw(st.integers(0, whole[0].source_first))
    run_map = RunMap.restore(whole, known_from, data.draw(st.integers(0, len(whole))))
    encoded = run_map_codec.encode_run_map(run_map)
    assert map_contents(run_map_codec.decode_run_map(encoded)) == map_contents(run_map)


def test_an_encoded_run_takes_three_bytes() -> None:
    runs = [OffsetRun(n * 10, n * 9, 9) for n in range(1000)]
    assert len(run_map_codec.encode_run_map(run_map_of(runs))) < 3.1 * len(runs)
    assert len(run_map_codec.encode_run_map(RunMap())) == 8


def test_large_offsets_are_encoded() -> None:
    run_map = run_map_of([OffsetRun(2**62, 2**61, 7), OffsetRun(MAX_OFFSET - 5, MAX_OFFSET - 9, 4)])
    assert map_contents(
        run_map_codec.decode_run_map(run_map_codec.encode_run_map(run_map))
    ) == map_contents(run_map)


def with_checksum(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "checksum"),
        (b"\0\0\0\0", "checksum"),
        (run_map_codec.encode_run_map(run_map_of(DOCUMENTED_RUNS))[:-1], "checksum"),
        (with_checksum(b"\x02\0\0\0"), "Version 2"),
        (with_checksum(b"\x01\0\0"), "its number of runs is wrong"),
        (with_checksum(b"\x01\x01\0\x01\0\0"), "its number of runs is wrong"),
        (with_checksum(b"\x01\0\0\0\0"), "its number of runs is wrong"),
        (with_checksum(b"\x01\0\0\x80"), "middle of a number"),
        (with_checksum(b"\x01\x01\0\x01\0\0\0"), "is inconsistent"),
        (with_checksum(b"\x01\x01\x02\x01\0\0\x01"), "is inconsistent"),
        (with_checksum(b"\x01\x01\0\0\0\0\x01"), "is inconsistent"),
        (with_checksum(b"\x01\x01\0\x01\0\0" + b"\xff" * 9 + b"\x01"), "is inconsistent"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        run_map_codec.decode_run_map(data)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_detected(index: int, change: int) -> None:
    data = bytearray(run_map_codec.encode_run_map(run_map_of(DOCUMENTED_RUNS)))
    data[index % len(data)] ^= change
    with pytest.raises(RecordError):
        run_map_codec.decode_run_map(bytes(data))
