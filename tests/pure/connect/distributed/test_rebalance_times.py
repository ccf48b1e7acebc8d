"""How often and how long a worker joins its group."""

from __future__ import annotations

import math

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
