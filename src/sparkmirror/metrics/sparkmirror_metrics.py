"""Metrics that MirrorMaker 2 does not have. `topic` is the source topic."""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import Merge, MetricDefinition, MetricType

_FLOW: Final = ("source", "target", "connector")
_TOPIC: Final = (*_FLOW, "topic")


def _gauge(name: str, doc: str, labels: tuple[str, ...]) -> MetricDefinition:
    return MetricDefinition(name=f"sparkmirror_{name}", doc=doc, labels=labels)


def _counter(name: str, doc: str, labels: tuple[str, ...]) -> MetricDefinition:
    return MetricDefinition(
        name=f"sparkmirror_{name}", doc=doc, labels=labels, type=MetricType.COUNTER
    )


def _topic_gauge(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(name=f"sparkmirror_{name}", doc=doc, labels=_TOPIC, has_partitions=True)


LAG_RECORDS: Final = _topic_gauge(
    "lag_records",
    "Offsets still to copy, of the partitions whose lag is known.",
)
LAG_BYTES: Final = _topic_gauge(
    "lag_bytes",
    "Bytes still to copy, if records are as large as those copied so far. Absent before the first.",
)
LAG_SECONDS: Final = MetricDefinition(
    name="sparkmirror_lag_seconds",
    doc="Age of the oldest record that waits, at the most; of the partition that is furthest back.",
    labels=_TOPIC,
    has_partitions=True,
    merge=Merge.HIGHEST,
)
LAG_UNKNOWN_PARTITIONS: Final = _gauge(
    "lag_unknown_partitions", "Partitions whose lag is not known now.", _TOPIC
)
ETA_SECONDS: Final = _topic_gauge(
    "eta_seconds",
    "Seconds until the lag is zero if it shrinks as in the last minute. Absent if it does not.",
)
LAST_PROGRESS: Final = _topic_gauge(
    "last_progress_timestamp_seconds",
    "When a driver last reported copied records, in Unix time. Absent before the first.",
)
PARTITIONS: Final = _gauge(
    "partitions", "Source partitions of this worker by state.", (*_TOPIC, "state")
)
STALLED_PARTITIONS: Final = _gauge(
    "stalled_partitions", "Source partitions that are not copied now, for a reason.", _TOPIC
)
LANE_BATCHES: Final = _counter(
    "lane_batches_total", "Batches by the reason of the lane that they took.", (*_TOPIC, "reason")
)
EVENTS: Final = _counter(
    "events_total", "Events of partitions by kind: losses, takeovers and others.", (*_TOPIC, "kind")
)
LOST_RECORDS: Final = _counter(
    "lost_records_total", "Source offsets that were lost, by the kind of loss.", (*_TOPIC, "kind")
)
SUPPRESSED_RECORDS: Final = _counter(
    "duplicates_suppressed_total",
    "Records that were not sent again after a failure, because the target had them already.",
    _TOPIC,
)
FILTERED_RECORDS: Final = _counter(
    "filtered_records_total", "Records that transformations dropped.", _TOPIC
)
TASK_RESTARTS: Final = _counter(
    "task_restarts_total",
    "Attempts of a connector's tasks that ended unexpectedly; Spark starts others.",
    _FLOW,
)
DRIVER_RESTARTS: Final = _counter(
    "driver_restarts_total", "Times that the Spark driver of a connector ended unexpectedly.", _FLOW
)
GROUP_PARTITIONS: Final = _gauge(
    "group_partitions",
    "Source partitions of a consumer group by how its offset is translated: exact, offset-sync, "
    "none.",
    ("connector", "group", "translation"),
)
LAST_HEARTBEAT: Final = MetricDefinition(
    name="sparkmirror_last_heartbeat_timestamp_seconds",
    doc="When a heartbeat task wrote the last heartbeat, or when it started, in Unix time.",
    labels=("connector",),
    merge=Merge.HIGHEST,
)
LEFT_OUT_SERIES: Final = _gauge(
    "metrics_left_out_series",
    "Series that /metrics leaves out, because a metric has more than "
    "sparkmirror.metrics.max.series.",
    (),
)
PROBLEMS: Final = _gauge(
    "problems", "Failures and problems in the status of a connector and its tasks.", ("connector",)
)
CERTIFICATE_EXPIRY: Final = MetricDefinition(
    name="sparkmirror_certificate_expiry_timestamp_seconds",
    doc="When the certificates of a store expire, in Unix time: of a key store the first one, of a "
    "trust store the last one.",
    labels=("cluster", "store"),
    merge=Merge.LOWEST,
)
WORKER_HEALTH: Final = _gauge(
    "worker_health", "1 for the status that /health answers now, 0 for the others.", ("status",)
)
