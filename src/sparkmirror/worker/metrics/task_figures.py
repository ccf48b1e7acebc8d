"""The figures of one task of any of the three connectors, with Connect's names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.shared.source_task_stats import SourceTaskSummary
from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.metrics import sparkmirror_metrics, task_metrics
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.metrics.sampled_stat import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReading:
    """One task at one moment. Rates and values are those of the window."""

    polled: int
    poll_rate: float
    written: int
    write_rate: float
    active: int
    active_values: Values
    commits: Values
    """Milliseconds of the writes of source offsets."""
    commit_success: float
    commit_failure: float
    failures: int = 0
    """How often a record stopped a partition."""
    skipped: int = 0
    """Records that failed in a transformation and are not copied."""
    failure_counts: FailureCounts = FailureCounts()
    """What was logged and written about them."""
    last_failure_ms: int = 0
    """When that happened last, in Unix time; 0 if never."""
    batches: Values | None = None
    """Records that were written at once; None if that is not known."""


def stats_figures(
    prefix: str, summaries: Mapping[ConnectorTaskId, SourceTaskSummary]
) -> Iterator[Figure]:
    """Yield the figures of checkpoint and heartbeat tasks. `prefix` precedes the names in REST."""
    for task, summary in summaries.items():
        connector = prefix + task.connector
        yield from task_figures(connector, task.task, _reading(summary))
        if summary.last_heartbeat_s is not None:
            yield Figure(
                definition=sparkmirror_metrics.LAST_HEARTBEAT,
                labels={"connector": jmx_sanitize(connector)},
                value=summary.last_heartbeat_s,
            )


def _reading(summary: SourceTaskSummary) -> TaskReading:
    return TaskReading(
        polled=summary.made,
        poll_rate=summary.made_rate,
        written=summary.written,
        write_rate=summary.write_rate,
        active=summary.made - summary.written,
        active_values=summary.waiting,
        commits=summary.commits,
        commit_success=summary.commit_success,
        commit_failure=summary.commit_failure,
        batches=summary.batches,
    )


def task_figures(connector: str, task: int, reading: TaskReading) -> Iterator[Figure]:
    """Yield the figures of a task. `connector` is the name that REST shows."""
    labels = {"connector": jmx_sanitize(connector), "task": str(task)}
    values = {
        task_metrics.SOURCE_RECORD_POLL: reading.polled,
        task_metrics.SOURCE_RECORD_POLL_RATE: reading.poll_rate,
        task_metrics.SOURCE_RECORD_WRITE: reading.written,
        task_metrics.SOURCE_RECORD_WRITE_RATE: reading.write_rate,
        task_metrics.SOURCE_RECORD_ACTIVE: reading.active,
        task_metrics.SOURCE_RECORD_ACTIVE_AVG: reading.active_values.average,
        task_metrics.SOURCE_RECORD_ACTIVE_MAX: reading.active_values.highest,
        task_metrics.OFFSET_COMMIT_AVG_TIME_MS: reading.commits.average,
        task_metrics.OFFSET_COMMIT_MAX_TIME_MS: reading.commits.highest,
        task_metrics.OFFSET_COMMIT_SUCCESS: reading.commit_success,
        task_metrics.OFFSET_COMMIT_FAILURE: reading.commit_failure,
        task_metrics.RECORD_ERRORS: reading.failures + reading.skipped,
        task_metrics.RECORD_FAILURES: reading.failures + reading.skipped,
        task_metrics.RECORDS_SKIPPED: reading.skipped,
        task_metrics.ERRORS_LOGGED: reading.failure_counts.errors_logged,
        task_metrics.DEADLETTERQUEUE_REQUESTS: reading.failure_counts.dead_letter_requests,
        task_metrics.DEADLETTERQUEUE_FAILURES: reading.failure_counts.dead_letter_failures,
        task_metrics.LAST_ERROR_TIMESTAMP: reading.last_failure_ms,
        **dict.fromkeys(task_metrics.NEVER_HAPPENS.values(), 0.0),
    }
    if reading.batches is not None:
        values[task_metrics.BATCH_SIZE_AVG] = reading.batches.average
        values[task_metrics.BATCH_SIZE_MAX] = reading.batches.highest
    for definition, value in values.items():
        yield Figure(definition=definition, labels=labels, value=value)
