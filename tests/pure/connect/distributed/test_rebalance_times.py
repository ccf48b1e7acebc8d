"""How often and how long a worker joins its group."""

from __future__ import annotations

import math

import pytest

from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_rebalances_are_timed_and_counted() -> None:
    clock = Clock()
    times = RebalanceTimes(clock=clock)
    assert times.summary().since_last_ms is None
    for seconds in (1.0, 3.0):
        times.on_began()
        assert times.summary().is_rebalancing
        clock.now_s += seconds
        times.on_completed()
    clock.now_s += 5.0
    found = times.summary()
    assert (found.completed, found.is_rebalancing) == (2, False)
    assert (found.max_ms, found.average_ms, found.since_last_ms) == (3000, 2000, 5000)


def test_a_join_that_fails_is_none() -> None:
    times = RebalanceTimes(clock=Clock())
    times.on_began()
    times.on_abandoned()
    found = times.summary()
    assert (found.completed, found.is_rebalancing) == (0, False)
    assert math.isnan(found.max_ms)


def test_a_share_without_a_join_counts_and_has_no_duration() -> None:
    times = RebalanceTimes(clock=Clock())
    times.on_completed()
    assert times.summary().completed == 1
    assert math.isnan(times.summary().average_ms)


def test_rebalances_for_each_hour_are_computed_as_in_java() -> None:
    """The recorded worker had 6 rebalances, one failure, and showed 5.95 and 0.99 after 30 s."""
    clock = Clock()
    times = RebalanceTimes(clock=clock)
    for _ in range(6):
        times.on_completed()
    times.on_abandoned()
    clock.now_s += 30
    found = times.summary()
    assert found.failed == 1
    assert round(found.per_hour, 2) == 5.95
    assert round(found.failed_per_hour, 2) == 0.99


def test_requests_to_the_coordinator_are_counted_and_timed() -> None:
    clock = Clock()
    times = RebalanceTimes(clock=clock)
    assert times.summary().heartbeats.since_last_ms is None
    for measure, seconds in (
        (times.measure_join, 2.0),
        (times.measure_sync, 0.5),
        (times.measure_heartbeat, 0.1),
        (times.measure_heartbeat, 0.3),
    ):
        with measure():
            clock.now_s += seconds
    clock.now_s += 1.0
    found = times.summary()
    assert (found.joins.total, found.joins.average_ms) == (1, 2000)
    assert (found.syncs.total, found.syncs.max_ms) == (1, 500)
    assert found.heartbeats.total == 2
    assert round(found.heartbeats.max_ms) == 300
    assert round(found.heartbeats.since_last_ms or 0) == 1000
    assert 0.06 < found.heartbeats.rate < 0.07


def test_a_request_without_an_answer_is_not_counted() -> None:
    times = RebalanceTimes(clock=Clock())
    with pytest.raises(OSError), times.measure_heartbeat():
        raise OSError
    assert times.summary().heartbeats.total == 0
