"""Connect's metrics of one task, with the names of Strimzi's rules for the JMX exporter.

All tasks of the three connectors have them. What a task cannot know is in `absent_metrics`.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import MetricDefinition, MetricType

_TASK: Final = ("connector", "task")


def _gauge(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(name=f"kafka_connect_{name}", doc=doc, labels=_TASK)


def _total(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"kafka_connect_{name}_total", doc=doc, labels=_TASK, type=MetricType.COUNTER
    )


# -- what is copied ------------------------------------------------------------------------------

SOURCE_RECORD_POLL: Final = _total(
    "source_task_source_record_poll",
    "Records that a task has fetched, or made itself, since it started.",
)
SOURCE_RECORD_POLL_RATE: Final = _gauge(
    "source_task_source_record_poll_rate", "Records fetched per second, over the sample window."
)
SOURCE_RECORD_WRITE: Final = _total(
    "source_task_source_record_write",
    "Records that the target acknowledged, since the worker started.",
)
SOURCE_RECORD_WRITE_RATE: Final = _gauge(
    "source_task_source_record_write_rate", "Records written per second, over the sample window."
)
SOURCE_RECORD_ACTIVE: Final = _gauge(
    "source_task_source_record_active_count", "Records that are fetched and not acknowledged."
)
SOURCE_RECORD_ACTIVE_AVG: Final = _gauge(
    "source_task_source_record_active_count_avg",
    "Average number of records fetched and not acknowledged, over the sample window.",
)
SOURCE_RECORD_ACTIVE_MAX: Final = _gauge(
    "source_task_source_record_active_count_max",
    "Highest number of records fetched and not acknowledged, over the sample window.",
)
BATCH_SIZE_AVG: Final = _gauge(
    "connector_task_batch_size_avg",
    "Records that a checkpoint or heartbeat task writes at once, on average.",
)
BATCH_SIZE_MAX: Final = _gauge(
    "connector_task_batch_size_max", "Largest number of records written at once."
)

# -- source offsets ------------------------------------------------------------------------------

OFFSET_COMMIT_AVG_TIME_MS: Final = _gauge(
    "connector_task_offset_commit_avg_time_ms",
    "The average time of writing source offsets. The driver writes those of all its tasks at once.",
)
OFFSET_COMMIT_MAX_TIME_MS: Final = _gauge(
    "connector_task_offset_commit_max_time_ms", "The longest time of writing source offsets."
)
OFFSET_COMMIT_SUCCESS: Final = _gauge(
    "connector_task_offset_commit_success_percentage",
    "Share of the writes of source offsets that succeeded, from 0 to 1; 0 if there was none.",
)
OFFSET_COMMIT_FAILURE: Final = _gauge(
    "connector_task_offset_commit_failure_percentage",
    "Share of the writes of source offsets that failed.",
)

# -- states --------------------------------------------------------------------------------------

RUNNING_RATIO: Final = _gauge(
    "connector_task_running_ratio", "Share of its time that a task was running, from 0 to 1."
)
PAUSE_RATIO: Final = _gauge(
    "connector_task_pause_ratio", "Share of its time that a task was paused, from 0 to 1."
)

# -- errors --------------------------------------------------------------------------------------

RECORD_ERRORS: Final = _gauge(
    "task_error_total_record_errors",
    "Times that the target or the format of a record stopped a partition of the task.",
)
RECORD_FAILURES: Final = _gauge(
    "task_error_total_record_failures", "Times that a record stopped a partition of the task."
)
RECORDS_SKIPPED: Final = _gauge(
    "task_error_total_records_skipped",
    "Records that failed in a transformation and are not copied, because errors.tolerance is all.",
)
ERRORS_LOGGED: Final = _gauge(
    "task_error_total_errors_logged",
    "Log lines that name a record that failed in a transformation (errors.log.enable).",
)
DEADLETTERQUEUE_REQUESTS: Final = _gauge(
    "task_error_deadletterqueue_produce_requests",
    "Records that failed in a transformation and were to be written as dead letters.",
)
DEADLETTERQUEUE_FAILURES: Final = _gauge(
    "task_error_deadletterqueue_produce_failures",
    "Such writes that failed: they are tried again, or hold their partition.",
)
LAST_ERROR_TIMESTAMP: Final = _gauge(
    "task_error_last_error_timestamp",
    "When a record last stopped a partition, in Unix milliseconds; 0 if never.",
)
NEVER_HAPPENS: Final = {
    attribute: _gauge(f"task_error_{attribute}", f"0: {reason}")
    for attribute, reason in (
        ("total_retries", "the retries of requests are not those of records."),
    )
}
"""By attribute: 0 as in Java, where nothing of that happens to a mirror."""
