"""The figures of the tasks of one source connector, and of the clients they stand for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.metrics import client_metrics, connect_metrics
from sparkmirror.metrics.definition import Figure, MetricDefinition
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.copied_counts import ConnectorCounts
from sparkmirror.worker.metrics.topic_labels import topic_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTasks:
    """The tasks of one source connector. `connector` is the name that REST shows."""

    connector: str
    job: CopyJob
    counts: ConnectorCounts
    failures: Mapping[int, int]
    """How often a record stopped a partition, by task."""

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
            yield from self._task_figures(task, active[task], now_ms)
            yield from self._client_figures(task, queued[task])
        yield from self._client_lags(views)

    def _task_figures(self, task: int, active: int, now_ms: float) -> Iterator[Figure]:
        labels = {"connector": jmx_sanitize(self.connector), "task": str(task)}
        commits = self.counts.commit_times.values(now_ms)
        for definition, value in (
            (connect_metrics.SOURCE_RECORD_WRITE, self.counts.task_records[task]),
            (connect_metrics.SOURCE_RECORD_ACTIVE, active),
            (connect_metrics.OFFSET_COMMIT_AVG_TIME_MS, commits.average),
            (connect_metrics.OFFSET_COMMIT_MAX_TIME_MS, commits.highest),
            (connect_metrics.RECORD_FAILURES, self.failures.get(task, 0)),
        ):
            yield Figure(definition=definition, labels=labels, value=value)

    def _client_figures(self, task: int, queued: int) -> Iterator[Figure]:
        records, size = self.counts.task_records[task], self.counts.task_bytes[task]
        total = self.job.settings.buffer_memory_bytes
        consumer, producer = self._consumer(task), self._producer(task)
        yield _figure(client_metrics.RECORDS_CONSUMED, consumer, records)
        yield _figure(client_metrics.BYTES_CONSUMED, consumer, size)
        yield _figure(client_metrics.INCOMING_BYTES, consumer, size)
        yield _figure(client_metrics.OUTGOING_BYTES, producer, size)
        yield _figure(client_metrics.RECORDS_SENT, producer, records)
        yield _figure(client_metrics.BUFFER_TOTAL_BYTES, producer, total)
        yield _figure(client_metrics.BUFFER_AVAILABLE_BYTES, producer, max(total - queued, 0))

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


def _figure(definition: MetricDefinition, client_id: str, value: float) -> Figure:
    return Figure(definition=definition, labels={"clientid": client_id}, value=value)
