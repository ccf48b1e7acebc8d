"""The figures of a worker as a member of its group, with Connect's names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.connect.distributed.coordinator_request_times import RequestSummary
from sparkmirror.connect.distributed.rebalance_times import RebalanceSummary
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures
from sparkmirror.metrics import connect_metrics, coordinator_metrics
from sparkmirror.metrics.definition import Figure, MetricDefinition
from sparkmirror.metrics.jmx_quoting import jmx_sanitize

_PROTOCOL: Final = "SESSIONED"
"""What Connect calls a group whose work moves bit by bit and whose requests are signed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderReading:
    """One herder and its group at one moment. `prefix` precedes the names of its connectors."""

    prefix: str
    herder: HerderFigures
    rebalances: RebalanceSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramInfo:
    """The version and the start of this process."""

    version: str
    commit: str
    started_s: float
    """In Unix time."""


def rebalance_figures(readings: Sequence[HerderReading]) -> Iterator[Figure]:
    """Yield the rebalances of the process. The longest one counts, and the latest one."""
    rebalances = [reading.rebalances for reading in readings]
    assignments = [one.herder.assignment for one in readings if one.herder.assignment is not None]
    if assignments:
        generation = max(one.generation for one in assignments)
        yield _figure(connect_metrics.REBALANCE_EPOCH, generation)
    yield _figure(connect_metrics.COMPLETED_REBALANCES, sum(one.completed for one in rebalances))
    yield _figure(connect_metrics.REBALANCING, any(one.is_rebalancing for one in rebalances))
    longest = max(rebalances, key=lambda one: (one.max_ms == one.max_ms, one.max_ms))
    yield _figure(connect_metrics.REBALANCE_MAX_TIME_MS, longest.max_ms)
    yield _figure(connect_metrics.REBALANCE_AVG_TIME_MS, longest.average_ms)
    times = [one.since_last_ms for one in rebalances if one.since_last_ms is not None]
    if times:
        yield _figure(connect_metrics.TIME_SINCE_LAST_REBALANCE_MS, min(times))
    for leader in sorted({one.leader.url or one.leader.worker_id for one in assignments}):
        yield _figure(connect_metrics.LEADER_NAME, 1, {"leader_name": leader})
    yield _figure(connect_metrics.CONNECT_PROTOCOL, 1, {"connect_protocol": _PROTOCOL})


def coordinator_figures(herder: HerderFigures, rebalances: RebalanceSummary) -> Iterator[Figure]:
    """Yield the figures of the group of one herder."""
    labels = {"clientid": jmx_sanitize(f"connect-{herder.worker_id}")}
    share = herder.assignment.own_share if herder.assignment is not None else None
    values = {
        coordinator_metrics.ASSIGNED_CONNECTORS: len(share.connectors) if share else 0,
        coordinator_metrics.ASSIGNED_TASKS: len(share.tasks) if share else 0,
        coordinator_metrics.REBALANCES: rebalances.completed,
        coordinator_metrics.REBALANCES_PER_HOUR: rebalances.per_hour,
        coordinator_metrics.FAILED_REBALANCES: rebalances.failed,
        coordinator_metrics.FAILED_REBALANCES_PER_HOUR: rebalances.failed_per_hour,
        coordinator_metrics.REBALANCE_LATENCY: rebalances.total_ms,
        coordinator_metrics.REBALANCE_LATENCY_AVG: rebalances.average_ms,
        coordinator_metrics.REBALANCE_LATENCY_MAX: rebalances.max_ms,
        coordinator_metrics.LAST_REBALANCE_SECONDS_AGO: _seconds(rebalances.since_last_ms),
        coordinator_metrics.LAST_HEARTBEAT_SECONDS_AGO: _seconds(
            rebalances.heartbeats.since_last_ms
        ),
        coordinator_metrics.HEARTBEAT_RESPONSE_TIME_MAX: rebalances.heartbeats.max_ms,
        **_request_values("join", rebalances.joins),
        **_request_values("sync", rebalances.syncs),
        **_request_values("heartbeat", rebalances.heartbeats),
    }
    for definition, value in values.items():
        yield _figure(definition, value, labels)


def _request_values(kind: str, requests: RequestSummary) -> dict[MetricDefinition, float]:
    values: dict[MetricDefinition, float] = {
        coordinator_metrics.REQUESTS[kind]: requests.total,
        coordinator_metrics.REQUEST_RATES[kind]: requests.rate,
    }
    if kind in coordinator_metrics.REQUEST_TIME_AVG:
        values[coordinator_metrics.REQUEST_TIME_AVG[kind]] = requests.average_ms
        values[coordinator_metrics.REQUEST_TIME_MAX[kind]] = requests.max_ms
    return values


def program_figures(worker_ids: Sequence[str], info: ProgramInfo) -> Iterator[Figure]:
    """Yield version and start of the process: for each worker, and for its member of the group."""
    for name in dict.fromkeys(one for each in worker_ids for one in (each, f"connect-{each}")):
        client = jmx_sanitize(name)
        start_ms = info.started_s * 1000
        for definition, labels, value in (
            (connect_metrics.START_TIME_SECONDS, {"clientid": client}, info.started_s),
            (connect_metrics.VERSION_INFO, {"clientid": client, "version": info.version}, 1.0),
            (connect_metrics.COMMIT_ID_INFO, {"clientid": client, "commit_id": info.commit}, 1.0),
            (connect_metrics.START_TIME_MS, {"client_id": client}, start_ms),
            (connect_metrics.DEPRECATED_START_TIME_MS, {"id": client}, start_ms),
        ):
            yield _figure(definition, value, labels)


def _seconds(milliseconds: float | None) -> float:
    return -1.0 if milliseconds is None else float(milliseconds // 1000)


def _figure(
    definition: MetricDefinition, value: float, labels: dict[str, str] | None = None
) -> Figure:
    return Figure(definition=definition, value=float(value), labels=labels or {})
