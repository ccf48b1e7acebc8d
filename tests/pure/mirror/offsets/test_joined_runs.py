"""Joined runs: fewer than there are gaps; translation is too low there, never too high."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.mirror.offsets.joined_runs import join_runs
from sparkmirror.mirror.offsets.offset_sync_queue import OffsetSyncQueue
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.model import TopicPartition

FIRST, TARGET = 10, 70
T0 = TopicPartition("t", 0)
kept_or_dropped = st.lists(st.booleans(), max_size=200).map(lambda kept: [True, *kept])
markers = st.sets(st.integers(0, 200), max_size=5)


def runs_of(kept: Sequence[bool], markers_before: set[int]) -> list[OffsetRun]:
    """The runs of what a filter keeps; these records have a marker before them on the target."""
    runs: list[OffsetRun] = []
    target = TARGET
    for offset, is_kept in enumerate(kept, FIRST):
        if not is_kept:
            continue
        target += (offset - FIRST) in markers_before
        last = runs[-1] if runs else None
        if last and (last[0] + last[2], last[1] + last[2]) == (offset, target):
            runs[-1] = last._replace(length=last.length + 1)
        else:
            runs.append(OffsetRun(offset, target, 1))
        target += 1
    return runs


class Truth:
    """Where the copied records are."""

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        pairs = [(s + n, t + n) for s, t, length in runs for n in range(length)]
        self.sources, self.targets = [s for s, _ in pairs], [t for _, t in pairs]

    def first_at_or_after(self, position: int) -> int:
        """The target offset of the first record at or after a position; the end without one."""
        index = bisect_left(self.sources, position)
        return self.targets[index] if index < len(self.targets) else self.targets[-1] + 1


def test_the_documented_example() -> None:
    runs = runs_of([offset in (10, 12, 15, 17) for offset in range(10, 18)], set())
    joined = join_runs(runs, 1)
    assert joined == [OffsetRun(14, 70, 4)]
    run_map = RunMap(known_from=10)
    run_map.append(*joined[0])
    found = [run_map.translate_downstream(position) for position in range(10, 19)]
    assert found == [70, 70, 70, 70, 70, 71, 72, 73, 74]


@given(kept=kept_or_dropped, at_most=st.integers(1, 40), markers_before=markers)
@example(kept=[True, False] * 100, at_most=7, markers_before=set())
@example(kept=[True, False] * 100, at_most=7, markers_before={50, 51, 52})
def test_translation_with_joined_runs_is_monotone_and_never_too_high(
    kept: list[bool], at_most: int, markers_before: set[int]
) -> None:
    runs = runs_of(kept, markers_before)
    joined, truth = join_runs(runs, at_most), Truth(runs)
    assert len(joined) <= at_most + len(markers_before)
    if len(runs) <= at_most:
        assert joined == runs, "few runs stay exact"
    assert sum(run.length for run in joined) == len(truth.sources)
    run_map = RunMap(known_from=FIRST)
    for run in joined:
        run_map.append(*run)
    before = TARGET
    for position in range(FIRST, FIRST + len(kept) + 2):
        found = run_map.translate_downstream(position)
        assert found is not None
        assert before <= found <= truth.first_at_or_after(position)
        before = found
    for run in joined:
        last = run.source_first + run.length - 1
        found = run_map.translate_downstream(last)
        assert found == truth.first_at_or_after(last), "exact at the last record of each run"


@given(kept=kept_or_dropped, at_most=st.integers(1, 40), lag=st.integers(0, 20))
def test_offset_syncs_of_joined_runs_are_never_too_high(
    kept: list[bool], at_most: int, lag: int
) -> None:
    runs = runs_of(kept, set())
    truth, queue = Truth(runs), OffsetSyncQueue(lag)
    for run in join_runs(runs, at_most):
        queue.queue_run(T0, run)
        queue.promote_delayed()
        for sync in queue.pending:
            assert sync.downstream <= truth.first_at_or_after(sync.upstream)
            assert sync.downstream + 1 <= truth.first_at_or_after(sync.upstream + 1)
