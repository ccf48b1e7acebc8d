"""Joins adjacent runs where there are too many: behind a filter that drops every second record.

    upstream     10  .  12  .  .  15  .  17              . dropped
    downstream   70     71        72     73
    runs         (10, 70, 1)  (12, 71, 1)  (15, 72, 1)  (17, 73, 1)
    joined       (14, 70, 4)

A joined run has as many records as its members and ends where the last one ends. So it begins later
upstream, and its pairs are no records, apart from the last one. Translation stays right:

    p            10    11    12    13    14    15    16    17    18
    true         70    71    71    72    72    72    73    73    74
    joined       70    70    70    70    70    71    72    73    74

    A  The result is never too high. From p to the end there are at most as many records as offsets,
       so the record for p is at least at `target end - (source end - p)`, or the first one.
    B  It is too low by no more than the records of the joined run, and by no more than the offsets
       that were dropped between p and the end of the run. At the end it is exact.
    C  Joined runs ascend and do not overlap, as runs do. An offset sync of one is never too high.

Rule A needs runs that follow each other on the target without a gap: a marker or a fence there ends
a joined run.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.mirror.offsets.run_map import OffsetRun


def join_runs(runs: Sequence[OffsetRun], at_most: int) -> list[OffsetRun]:
    """Return at most so many runs, and one more for each gap on the target. Few runs stay exact."""
    assert at_most > 0
    members = -(-len(runs) // at_most)
    joined: list[OffsetRun] = []
    missing = 0
    for run in runs:
        if missing and _target_end(joined[-1]) == run.target_first:
            joined[-1] = _joined(joined[-1], run)
            missing -= 1
        else:
            joined.append(run)
            missing = members - 1
    assert all(one.source_first + one.length <= two.source_first for one, two in _pairs(joined))
    return joined


def _joined(run: OffsetRun, following: OffsetRun) -> OffsetRun:
    """One run that ends where the second one ends."""
    length = run.length + following.length
    source_end = following.source_first + following.length
    return OffsetRun(source_end - length, run.target_first, length)


def _target_end(run: OffsetRun) -> int:
    return run.target_first + run.length


def _pairs(runs: Sequence[OffsetRun]) -> zip[tuple[OffsetRun, OffsetRun]]:
    return zip(runs, runs[1:], strict=False)
