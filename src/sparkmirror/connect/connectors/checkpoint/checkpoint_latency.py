"""How long checkpoints take: from the listing of a group to the acknowledged write.

Java has one sensor for all groups, so that each shows the times of all. Here each group and
partition has its own. Any thread may call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sparkmirror.metrics.sampled_stat import DEFAULT_CONFIG, MetricConfig, SampledStat, Values
from sparkmirror.model import SourceAndTarget, TopicPartition


class CheckpointKey(NamedTuple):
    """What one latency belongs to. The partition is the remote one."""

    connector: str
    flow: SourceAndTarget
    group: str
    partition: TopicPartition


class CheckpointLatency(NamedTuple):
    """The last value and those of the window, in milliseconds."""

    key: CheckpointKey
    last_ms: float
    window: Values


class CheckpointLatencies:
    """The latencies of the checkpoints of one herder's connectors."""

    def __init__(
        self, config: MetricConfig = DEFAULT_CONFIG, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._stats: dict[CheckpointKey, tuple[float, SampledStat]] = {}

    def record(self, keys: Iterable[CheckpointKey], latency_ms: float) -> None:
        """Add one value for each checkpoint that was written."""
        now_ms = self._clock() * 1000
        with self._lock:
            for key in keys:
                _, stat = self._stats.get(key) or (0.0, SampledStat(self.config))
                stat.record(latency_ms, now_ms)
                self._stats[key] = (latency_ms, stat)

    def remove(self, connector: str, groups: Iterable[str]) -> None:
        """Forget groups that a connector does not follow here any more."""
        gone = set(groups)
        with self._lock:
            self._stats = {
                key: one
                for key, one in self._stats.items()
                if key.connector != connector or key.group not in gone
            }

    def latencies(self) -> Iterator[CheckpointLatency]:
        now_ms = self._clock() * 1000
        with self._lock:
            found = [
                CheckpointLatency(key, last_ms, stat.values(now_ms))
                for key, (last_ms, stat) in self._stats.items()
            ]
        yield from found
