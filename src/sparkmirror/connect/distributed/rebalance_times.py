"""How often and how long this worker joins its group. The member's thread writes, any reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sparkmirror.connect.distributed.coordinator_request_times import (
    CoordinatorRequestTimes,
    RequestSummary,
)
from sparkmirror.metrics.sampled_stat import DEFAULT_CONFIG, MetricConfig, SampledStat

_HOUR_S: Final = 3600
_HOURLY: Final = MetricConfig(window_ms=_HOUR_S * 1000)
"""Kafka counts rebalances over two hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceSummary:
    """The rebalances of one worker so far, and the requests to its coordinator."""

    completed: int
    is_rebalancing: bool
    max_ms: float
    """The longest one in the window; NaN if there was none."""
    average_ms: float
    since_last_ms: float | None
    """None before the first one."""
    total_ms: float = 0.0
    """The time of all that were completed."""
    per_hour: float = 0.0
    failed: int = 0
    failed_per_hour: float = 0.0
    joins: RequestSummary = RequestSummary()
    syncs: RequestSummary = RequestSummary()
    heartbeats: RequestSummary = RequestSummary()


class RebalanceTimes:
    """The rebalances of one worker, and the requests to its coordinator."""

    def __init__(
        self, config: MetricConfig = DEFAULT_CONFIG, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._durations = SampledStat(config)
        self._completions, self._failures = SampledStat(_HOURLY), SampledStat(_HOURLY)
        self._completed = 0
        self._failed = 0
        self._total_ms = 0.0
        self._began_ms: float | None = None
        self._ended_ms: float | None = None
        self._joins, self._syncs = CoordinatorRequestTimes(config), CoordinatorRequestTimes(config)
        self._heartbeats = CoordinatorRequestTimes(config)

    def on_began(self) -> None:
        """The worker joins, or joins again."""
        with self._lock:
            self._began_ms = self._now_ms()

    def on_completed(self) -> None:
        """The worker has its share."""
        with self._lock:
            now_ms = self._now_ms()
            if self._began_ms is not None:
                self._durations.record(now_ms - self._began_ms, now_ms)
                self._total_ms += now_ms - self._began_ms
            self._completed += 1
            self._completions.record(1, now_ms)
            self._began_ms, self._ended_ms = None, now_ms

    def on_abandoned(self) -> None:
        """The worker has not joined: it tries again later, or it may not."""
        with self._lock:
            self._began_ms = None
            self._failed += 1
            self._failures.record(1, self._now_ms())

    @contextmanager
    def measure_join(self) -> Iterator[None]:
        """Measure a JoinGroup request; an exception counts nothing."""
        with self._measure(self._joins):
            yield

    @contextmanager
    def measure_sync(self) -> Iterator[None]:
        """Measure a SyncGroup request; an exception counts nothing."""
        with self._measure(self._syncs):
            yield

    @contextmanager
    def measure_heartbeat(self) -> Iterator[None]:
        """Measure a Heartbeat request; an exception counts nothing."""
        with self._measure(self._heartbeats):
            yield

    def summary(self) -> RebalanceSummary:
        """Return the figures at this moment."""
        with self._lock:
            now_ms, ended_ms = self._now_ms(), self._ended_ms
            return RebalanceSummary(
                completed=self._completed,
                is_rebalancing=self._began_ms is not None,
                max_ms=self._durations.maximum(now_ms),
                average_ms=self._durations.average(now_ms),
                since_last_ms=None if ended_ms is None else now_ms - ended_ms,
                total_ms=self._total_ms,
                per_hour=self._completions.rate(now_ms) * _HOUR_S,
                failed=self._failed,
                failed_per_hour=self._failures.rate(now_ms) * _HOUR_S,
                joins=self._joins.summary(now_ms),
                syncs=self._syncs.summary(now_ms),
                heartbeats=self._heartbeats.summary(now_ms),
            )

    @contextmanager
    def _measure(self, requests: CoordinatorRequestTimes) -> Iterator[None]:
        began_ms = self._now_ms()
        yield
        now_ms = self._now_ms()
        with self._lock:
            requests.add(now_ms - began_ms, now_ms)

    def _now_ms(self) -> float:
        return self._clock() * 1000
