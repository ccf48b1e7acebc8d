"""The figures of the tasks of one source connector, and of the clients they stand for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.metrics import client_metrics
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.copied_counts import ConnectorCounts
from sparkmirror.worker.metrics.task_figures import TaskReading, task_figures
from sparkmirror.worker.metrics.topic_labels import topic_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTasks:
    """The tasks of one source connector. `connector` is the name that REST shows."""

    connector: str
    job: CopyJob
    counts: ConnectorCounts
    failures: Mapping[int, int]
    """How often a record stopped a partition, by task."""
    last_failures_ms: Mapping[int, int]
    """When that happened last, in Unix time."""

    def figures(
        self, views: Mapping[TopicPartition, PartitionView], now_ms: float
    ) -> Iterator[Figure]:
        """Yield all figures. `views` are the partitions as the worker shows them now."""
        active: Counter[int] = Counter()
        queued: Counter[int] = Counter()
        for view in views.values():
            active[view.task] += view.active
            queued[view.task] += view.queued_bytes
        for task in sorted(self.job.tasks):
            reading = self._reading(task, active[task], now_ms)
            yield from task_figures(self.connector, task, reading)
            yield from self._client_figures(task, queued[task], now_ms)
        yield from self._client_lags(views)

    def _reading(self, task: int, active: int, now_ms: float) -> TaskReading:
        counts = self.counts.tasks[task]
        outcomes = self.counts.commit_outcomes.values(now_ms)
        return TaskReading(
            polled=counts.fetched,
            poll_rate=counts.fetch_rate.rate(now_ms),
            written=counts.records,
            write_rate=counts.record_rate.rate(now_ms),
            active=active,
            active_values=counts.active.values(now_ms),
            commits=self.counts.commit_times.values(now_ms),
            commit_success=outcomes.average if outcomes.count else 0.0,
            commit_failure=1 - outcomes.average if outcomes.count else 0.0,
            failures=self.failures.get(task, 0),
            skipped=counts.skipped,
            failure_counts=counts.failures,
            last_failure_ms=self.last_failures_ms.get(task, 0),
        )

    def _client_figures(self, task: int, queued: int, now_ms: float) -> Iterator[Figure]:
        counts = self.counts.tasks[task]
        record_rate, byte_rate = counts.record_rate.rate(now_ms), counts.byte_rate.rate(now_ms)
        total = self.job.settings.buffer_memory_bytes
        for client_id, values in (
            (
                self._consumer(task),
                {
                    client_metrics.RECORDS_CONSUMED: counts.records,
                    client_metrics.RECORDS_CONSUMED_RATE: record_rate,
                    client_metrics.BYTES_CONSUMED: counts.bytes,
                    client_metrics.BYTES_CONSUMED_RATE: byte_rate,
                    client_metrics.INCOMING_BYTES: counts.bytes,
                    client_metrics.INCOMING_BYTE_RATE: byte_rate,
                },
            ),
            (
                self._producer(task),
                {
                    client_metrics.OUTGOING_BYTES: counts.bytes,
                    client_metrics.OUTGOING_BYTE_RATE: byte_rate,
                    client_metrics.RECORDS_SENT: counts.records,
                    client_metrics.RECORD_SEND_RATE: record_rate,
                    client_metrics.BUFFER_TOTAL_BYTES: total,
                    client_metrics.BUFFER_AVAILABLE_BYTES: max(total - queued, 0),
                },
            ),
        ):
            for definition, value in values.items():
                yield Figure(definition=definition, labels={"clientid": client_id}, value=value)

    def _client_lags(self, views: Mapping[TopicPartition, PartitionView]) -> Iterator[Figure]:
        """Yield the lags as the consumers of MirrorMaker 2's tasks have them."""
        lags: Counter[tuple[int, TopicPartition]] = Counter()
        for partition, view in views.items():
            if view.lag is not None and view.task != NO_TASK:
                lags[view.task, self.counts.key(partition)] += view.lag
        for (task, key), lag in sorted(lags.items()):
            yield Figure(
                definition=client_metrics.RECORDS_LAG,
                labels={"clientid": self._consumer(task)} | topic_labels(key),
                value=lag,
            )

    def _consumer(self, task: int) -> str:
        """Return the client id that MirrorMaker 2 gives the consumer of a task."""
        name = f"{self.job.flow}|{self.job.connector}-{task}|replication-consumer"
        return jmx_sanitize(name)

    def _producer(self, task: int) -> str:
        """Return the client id that Connect gives the producer of a task."""
        return jmx_sanitize(f"connector-producer-{self.connector}-{task}")
