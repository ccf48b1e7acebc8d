"""What checkpoint and heartbeat tasks have written, and how long their offsets took.

A task's thread writes; any thread may read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.metrics.sampled_stat import DEFAULT_CONFIG, MetricConfig, SampledStat, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTaskSummary:
    """One task since it started. Values and rates are those of the window."""

    made: int = 0
    """Records that the task has made: they are written, or wait."""
    made_rate: float = 0.0
    written: int = 0
    write_rate: float = 0.0
    waiting: Values = Values()
    """How many records waited for their acknowledgement, write by write."""
    batches: Values = Values()
    """How many records were written at once."""
    commits: Values = Values()
    """Milliseconds of the writes of source offsets that succeeded."""
    commit_success: float = 0.0
    """Share of those writes; 0 if there was none."""
    commit_failure: float = 0.0
    last_heartbeat_s: float | None = None
    """When a heartbeat task wrote the last heartbeat, or started; None for other tasks."""


class SourceTaskStats:
    """Counts since the start of one task, and its values of the window."""

    def __init__(
        self, config: MetricConfig = DEFAULT_CONFIG, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made, self._written = 0, 0
        self._made_stat, self._written_stat = SampledStat(config), SampledStat(config)
        self._waiting, self._batches = SampledStat(config), SampledStat(config)
        self._commits, self._successes = SampledStat(config), SampledStat(config)
        self._last_heartbeat_s: float | None = None

    def on_made(self, records: int) -> None:
        """The task has made records that are to be written."""
        if records:
            with self._lock:
                self._made += records
                self._made_stat.record(records, self._now_ms())

    def on_written(self, records: int) -> None:
        """The target has acknowledged records that were written at once."""
        with self._lock:
            now_ms = self._now_ms()
            self._waiting.record(self._made - self._written, now_ms)
            self._written += records
            self._waiting.record(self._made - self._written, now_ms)
            self._written_stat.record(records, now_ms)
            self._batches.record(records, now_ms)

    def on_heartbeat(self, wall_s: float) -> None:
        """A heartbeat task starts, or has written a heartbeat."""
        self._last_heartbeat_s = wall_s

    @contextmanager
    def measure_commit(self) -> Iterator[None]:
        """Count what runs inside as one write of source offsets; an exception is a failure."""
        began_ms = self._now_ms()
        try:
            yield
        except BaseException:
            with self._lock:
                self._successes.record(0, self._now_ms())
            raise
        with self._lock:
            now_ms = self._now_ms()
            self._successes.record(1, now_ms)
            self._commits.record(now_ms - began_ms, now_ms)

    def summary(self) -> SourceTaskSummary:
        """Return the figures at this moment."""
        with self._lock:
            now_ms = self._now_ms()
            outcomes = self._successes.values(now_ms)
            return SourceTaskSummary(
                made=self._made,
                made_rate=self._made_stat.rate(now_ms),
                written=self._written,
                write_rate=self._written_stat.rate(now_ms),
                waiting=self._waiting.values(now_ms),
                batches=self._batches.values(now_ms),
                commits=self._commits.values(now_ms),
                commit_success=outcomes.average if outcomes.count else 0.0,
                commit_failure=1 - outcomes.average if outcomes.count else 0.0,
                last_heartbeat_s=self._last_heartbeat_s,
            )

    def _now_ms(self) -> float:
        return self._clock() * 1000


class HerderTaskStats:
    """The stats of the checkpoint and heartbeat tasks of one herder."""

    def __init__(self, config: MetricConfig = DEFAULT_CONFIG) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._tasks: dict[ConnectorTaskId, SourceTaskStats] = {}

    def start(self, connector: str, task: int) -> SourceTaskStats:
        """Return the stats of a task that starts; it begins with zero."""
        stats = SourceTaskStats(self.config)
        with self._lock:
            self._tasks[ConnectorTaskId(connector=connector, task=task)] = stats
        return stats

    def end(self, stats: SourceTaskStats) -> None:
        """Remove the stats of a task that has ended, unless another one has its place."""
        with self._lock:
            self._tasks = {key: one for key, one in self._tasks.items() if one is not stats}

    def summaries(self) -> dict[ConnectorTaskId, SourceTaskSummary]:
        """Return the figures of all tasks that run."""
        with self._lock:
            tasks = dict(self._tasks)
        return {key: stats.summary() for key, stats in tasks.items()}
