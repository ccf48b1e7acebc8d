"""What checkpoint and heartbeat tasks have written."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.shared.source_task_stats import HerderTaskStats, SourceTaskStats


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_records_are_counted_when_they_are_made_and_when_they_are_written() -> None:
    clock = Clock()
    stats = SourceTaskStats(clock=clock)
    stats.on_made(5)
    stats.on_written(4)
    clock.now_s = 30.0
    found = stats.summary()
    assert (found.made, found.written) == (5, 4)
    assert (found.waiting.highest, found.waiting.average) == (5, 3)
    assert (found.batches.highest, found.batches.average) == (4, 4)
    assert found.write_rate == pytest.approx(4 / 30)
    assert found.last_heartbeat_s is None


def test_writes_of_offsets_are_timed_and_their_outcomes_are_shares() -> None:
    clock = Clock()
    stats = SourceTaskStats(clock=clock)
    assert (stats.summary().commit_success, stats.summary().commit_failure) == (0, 0)
    for seconds in (1.0, 2.0, 3.0):
        with stats.measure_commit():
            clock.now_s += seconds
    with pytest.raises(OSError), stats.measure_commit():
        raise OSError
    found = stats.summary()
    assert (found.commits.average, found.commits.highest) == (2000, 3000)
    assert (found.commit_success, found.commit_failure) == (0.75, 0.25)


def test_a_task_that_starts_again_begins_with_zero_and_its_predecessor_ends_alone() -> None:
    task_stats = HerderTaskStats()
    first = task_stats.start("c", 0)
    first.on_made(1)
    second = task_stats.start("c", 0)
    task_stats.end(first)
    assert task_stats.summaries()[ConnectorTaskId(connector="c", task=0)].made == 0
    task_stats.end(second)
    assert task_stats.summaries() == {}
