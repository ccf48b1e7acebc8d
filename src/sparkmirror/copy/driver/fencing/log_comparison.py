"""Which records of a source the log of a target has, by their content. Pure.

For targets without producer ids: there a log may hold a record twice, and no header says who wrote
it.

    source    A B C D E
    target    A B B C x D            x: of another program
    found     A B   C   D            copying resumes at E
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.batch.records import Record


def copied_records(
    source: Iterator[Record], target: Iterable[tuple[Record, bool]]
) -> Iterator[tuple[int, int]]:
    """Yield source and target offset of each source record that the target has, in order.

    With each target record comes whether its timestamp counts. Ends at the first source record that
    no later target record equals.
    """
    expected = next(source, None)
    for record, is_timed in target:
        if expected is None:
            return
        if has_same_content(expected, record) and (
            not is_timed or expected.timestamp == record.timestamp
        ):
            yield expected.offset, record.offset
            expected = next(source, None)


def extend_runs(runs: list[OffsetRun], source_offset: int, target_offset: int) -> None:
    """Add one copied record to the runs before it."""
    if runs:
        first, target_first, length = runs[-1]
        if (source_offset, target_offset) == (first + length, target_first + length):
            runs[-1] = OffsetRun(first, target_first, length + 1)
            return
    runs.append(OffsetRun(source_offset, target_offset, 1))


def has_same_content(source: Record, target: Record) -> bool:
    """Whether key, value and headers are equal."""
    return (source.key, source.value, source.headers) == (
        target.key,
        target.value,
        target.headers,
    )
