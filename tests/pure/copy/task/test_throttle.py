"""The rate limit of a task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.settings import rate_per_task
from sparkmirror.copy.task.throttle import Throttle


@given(st.lists(st.integers(1, 5000), min_size=20, max_size=60))
def test_a_throttle_keeps_the_rate_over_time(sizes: list[int]) -> None:
    throttle, now, total = Throttle(bytes_per_s=10_000), 100.0, 0
    assert throttle.allows(now)
    start = now
    for size in sizes:
        now += throttle.wait_s(now)
        assert throttle.allows(now)
        throttle.consume(size, now)
        total += size
    assert total <= (now - start) * 10_000 + 10_000 + max(sizes)


def test_no_rate_means_no_limit() -> None:
    throttle = Throttle()
    throttle.consume(1 << 40, 1.0)
    assert throttle.allows(1.0)
    assert throttle.wait_s(1.0) == 0.0


def test_tasks_share_a_rate_limit_equally_and_get_at_least_one_byte() -> None:
    assert rate_per_task(1000, 4) == 250
    assert rate_per_task(3, 4) == 1
    assert rate_per_task(0, 4) == 0
    assert rate_per_task(1000, 0) == 1000
