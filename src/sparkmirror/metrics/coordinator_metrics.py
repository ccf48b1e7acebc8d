"""The metrics of a worker as a member of its group, with the names of Strimzi's rules.

Strimzi's rules leave out rates and maxima of clients. They follow the same pattern here.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import MetricDefinition, MetricType

_CLIENT: Final = ("clientid",)
_REQUESTS: Final = {"join": "JoinGroup", "sync": "SyncGroup", "heartbeat": "Heartbeat"}


def _gauge(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(name=f"kafka_connect_coordinator_{name}", doc=doc, labels=_CLIENT)


def _total(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"kafka_connect_coordinator_{name}_total",
        doc=doc,
        labels=_CLIENT,
        type=MetricType.COUNTER,
    )


ASSIGNED_CONNECTORS: Final = _gauge(
    "assigned_connectors", "Connectors that the group gave to this worker."
)
ASSIGNED_TASKS: Final = _gauge("assigned_tasks", "Tasks that the group gave to this worker.")

REBALANCES: Final = _total("rebalance", "Rebalances that this worker completed.")
REBALANCES_PER_HOUR: Final = _gauge(
    "rebalance_rate_per_hour", "Rebalances that this worker completed in an hour."
)
FAILED_REBALANCES: Final = _total(
    "failed_rebalance", "Times that this worker began to join and got no share."
)
FAILED_REBALANCES_PER_HOUR: Final = _gauge(
    "failed_rebalance_rate_per_hour", "Failed rebalances in an hour."
)
REBALANCE_LATENCY: Final = _total(
    "rebalance_latency", "Milliseconds of all rebalances that this worker completed."
)
REBALANCE_LATENCY_AVG: Final = _gauge(
    "rebalance_latency_avg", "Milliseconds of a rebalance, on average over the sample window."
)
REBALANCE_LATENCY_MAX: Final = _gauge(
    "rebalance_latency_max", "Milliseconds of the longest rebalance in the sample window."
)
LAST_REBALANCE_SECONDS_AGO: Final = _gauge(
    "last_rebalance_seconds_ago",
    "Seconds since this worker completed a rebalance; -1 before the first.",
)
LAST_HEARTBEAT_SECONDS_AGO: Final = _gauge(
    "last_heartbeat_seconds_ago",
    "Seconds since the coordinator answered a heartbeat; -1 before the first.",
)
HEARTBEAT_RESPONSE_TIME_MAX: Final = _gauge(
    "heartbeat_response_time_max", "Milliseconds of the slowest answer to a heartbeat."
)
REQUESTS: Final = {
    kind: _total(kind, f"{name} requests that were answered.") for kind, name in _REQUESTS.items()
}
REQUEST_RATES: Final = {
    kind: _gauge(f"{kind}_rate", f"{name} requests in a second, over the sample window.")
    for kind, name in _REQUESTS.items()
}
REQUEST_TIME_AVG: Final = {
    kind: _gauge(f"{kind}_time_avg", f"Milliseconds of a {_REQUESTS[kind]} request, on average.")
    for kind in ("join", "sync")
}
REQUEST_TIME_MAX: Final = {
    kind: _gauge(f"{kind}_time_max", f"Milliseconds of the longest {_REQUESTS[kind]} request.")
    for kind in ("join", "sync")
}
"""The four above by kind of request: join, sync and heartbeat."""
