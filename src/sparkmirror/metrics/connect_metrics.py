"""Metrics that Java has too, with the names that Strimzi's rules for the JMX exporter give them.

Every metric of MirrorMaker 2 is a gauge there, counts included.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import MetricDefinition, MetricType

_WORKER: Final = "kafka_connect_worker"
_REBALANCE: Final = "kafka_connect_worker_rebalance"
_COORDINATOR: Final = "kafka_connect_coordinator"
_SOURCE: Final = "kafka_connect_mirror_mirrorsourceconnector"

# -- the worker ----------------------------------------------------------------------------------

CONNECTOR_COUNT: Final = MetricDefinition(
    name=f"{_WORKER}_connector_count", doc="Connectors that this worker runs."
)
TASK_COUNT: Final = MetricDefinition(
    name=f"{_WORKER}_task_count", doc="Tasks that this worker runs."
)


def _startups(kind: str, outcome: str, doc: str) -> MetricDefinition:
    name = f"{_WORKER}_{kind}_startup_{outcome}_total"
    return MetricDefinition(name=name, doc=doc, type=MetricType.COUNTER)


CONNECTOR_STARTUP_ATTEMPTS: Final = _startups(
    "connector", "attempts", "Connector starts that this worker attempted."
)
CONNECTOR_STARTUP_SUCCESS: Final = _startups(
    "connector", "success", "Connector starts that succeeded."
)
CONNECTOR_STARTUP_FAILURE: Final = _startups(
    "connector", "failure", "Connector starts that failed."
)
TASK_STARTUP_ATTEMPTS: Final = _startups(
    "task", "attempts", "Task starts that this worker attempted."
)
TASK_STARTUP_SUCCESS: Final = _startups("task", "success", "Task starts that succeeded.")
TASK_STARTUP_FAILURE: Final = _startups("task", "failure", "Task starts that failed.")


def _task_count(state: str) -> MetricDefinition:
    name, doc = f"{_WORKER}_connector_{state}_task_count", f"Tasks of a connector here: {state}."
    return MetricDefinition(name=name, doc=doc, labels=("connector",))


TOTAL_TASK_COUNT: Final = _task_count("total")
TASK_COUNTS_BY_STATE: Final = {
    state: _task_count(state)
    for state in ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
}
"""By the state of a task in lower case."""

CONNECTOR_STATUS: Final = MetricDefinition(
    name="kafka_connect_connector_status",
    doc="1 for the state that a task of this worker has.",
    labels=("connector", "task", "status"),
)

# -- the group of workers ------------------------------------------------------------------------

REBALANCE_EPOCH: Final = MetricDefinition(
    name=f"{_REBALANCE}_epoch", doc="The generation of the group of workers."
)
COMPLETED_REBALANCES: Final = MetricDefinition(
    name=f"{_REBALANCE}_completed_rebalances_total",
    doc="Rebalances that this worker completed.",
    type=MetricType.COUNTER,
)
REBALANCING: Final = MetricDefinition(
    name=f"{_REBALANCE}_rebalancing", doc="1 while this worker joins its group, else 0."
)
REBALANCE_MAX_TIME_MS: Final = MetricDefinition(
    name=f"{_REBALANCE}_rebalance_max_time_ms", doc="The longest of the latest rebalances."
)
REBALANCE_AVG_TIME_MS: Final = MetricDefinition(
    name=f"{_REBALANCE}_rebalance_avg_time_ms", doc="The average of the latest rebalances."
)
TIME_SINCE_LAST_REBALANCE_MS: Final = MetricDefinition(
    name=f"{_REBALANCE}_time_since_last_rebalance_ms",
    doc="Milliseconds since this worker completed a rebalance.",
)
ASSIGNED_CONNECTORS: Final = MetricDefinition(
    name=f"{_COORDINATOR}_assigned_connectors",
    doc="Connectors that the group gave to this worker.",
    labels=("clientid",),
)
ASSIGNED_TASKS: Final = MetricDefinition(
    name=f"{_COORDINATOR}_assigned_tasks",
    doc="Tasks that the group gave to this worker.",
    labels=("clientid",),
)

# -- MirrorSourceConnector -----------------------------------------------------------------------


def _source(attribute: str, doc: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"{_SOURCE}_{attribute}",
        doc=f"{doc} `topic` is the remote topic.",
        labels=("source", "target", "topic"),
        has_partitions=True,
    )


RECORD_COUNT: Final = _source("record_count", "Records copied since the worker started.")
RECORD_RATE: Final = _source("record_rate", "Records copied in a second, over the last minute.")
BYTE_COUNT: Final = _source(
    "byte_count", "Bytes of record batches copied, as they are compressed, since the start."
)
BYTE_RATE: Final = _source(
    "byte_rate", "Bytes of record batches copied in a second, over the last minute."
)

RECORDS_LAG: Final = MetricDefinition(
    name="kafka_consumer_fetch_manager_records_lag",
    doc="Offsets that a task has still to copy. `topic` is the source topic.",
    labels=("clientid", "topic"),
    has_partitions=True,
)
