"""Connect's metrics, with the names that Strimzi's rules for the JMX exporter give them."""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import (
    WITH_TEXTS,
    Merge,
    MetricDefinition,
    MetricType,
    RuleSet,
)

_WORKER: Final = "kafka_connect_worker"
_REBALANCE: Final = "kafka_connect_worker_rebalance"

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


def _startup_share(kind: str, outcome: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"{_WORKER}_{kind}_startup_{outcome}_percentage",
        doc=f"Share of the {kind} starts with this outcome: {outcome}.",
        merge=Merge.HIGHEST,
    )


STARTUP_SHARES: Final = {
    (kind, outcome): _startup_share(kind, outcome)
    for kind in ("connector", "task")
    for outcome in ("success", "failure")
}
"""By what starts, and by the outcome."""


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
    rule_sets=WITH_TEXTS,
)

TASK_STATUS: Final = MetricDefinition(
    name="kafka_connect_connector_task_status",
    doc="1 for the state of a task, with the name that Strimzi's rules for Connect give it.",
    labels=("connector", "task", "status"),
    rule_sets=WITH_TEXTS,
)


def _connector_text(attribute: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"kafka_connect_connector_connector_{attribute}",
        doc=f"1 for the {attribute} of a connector that this worker runs.",
        labels=("connector", f"connector_{attribute}"),
        rule_sets=WITH_TEXTS,
    )


CONNECTOR_CLASS: Final = _connector_text("class")
CONNECTOR_TYPE: Final = _connector_text("type")
CONNECTOR_VERSION: Final = _connector_text("version")

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
LEADER_NAME: Final = MetricDefinition(
    name=f"{_REBALANCE}_leader_name",
    doc="1 for the URL of the worker that leads the group, or its id if it has none.",
    labels=("leader_name",),
    type=MetricType.UNTYPED,
    merge=Merge.HIGHEST,
    rule_sets=WITH_TEXTS,
)
CONNECT_PROTOCOL: Final = MetricDefinition(
    name=f"{_REBALANCE}_connect_protocol",
    doc="1 for the protocol of the group: work moves bit by bit, and requests are signed.",
    labels=("connect_protocol",),
    type=MetricType.UNTYPED,
    merge=Merge.HIGHEST,
    rule_sets=WITH_TEXTS,
)

# -- the program ---------------------------------------------------------------------------------

START_TIME_SECONDS: Final = MetricDefinition(
    name="kafka_connect_start_time_seconds",
    doc="When the worker started, in Unix time.",
    labels=("clientid",),
    rule_sets=WITH_TEXTS,
)
VERSION_INFO: Final = MetricDefinition(
    name="kafka_connect_version_info",
    doc="1 for the version of Kafka whose behaviour the worker has.",
    labels=("clientid", "version"),
    type=MetricType.UNTYPED,
    rule_sets=WITH_TEXTS,
)
COMMIT_ID_INFO: Final = MetricDefinition(
    name="kafka_connect_commit_id_info",
    doc="1 for the name and the version of this program.",
    labels=("clientid", "commit_id"),
    type=MetricType.UNTYPED,
    rule_sets=WITH_TEXTS,
)
START_TIME_MS: Final = MetricDefinition(
    name="kafka_connect_app_info_start_time_ms",
    doc="When the worker started, in milliseconds of Unix time.",
    labels=("client_id",),
    type=MetricType.UNTYPED,
    rule_sets=frozenset({RuleSet.JMX}),
)
DEPRECATED_START_TIME_MS: Final = MetricDefinition(
    name="kafka_connect_app_info_StartTimeMs",
    doc="When the worker started, in Unix milliseconds; the name that Kafka used before.",
    labels=("id",),
    type=MetricType.UNTYPED,
    rule_sets=frozenset({RuleSet.JMX}),
)
