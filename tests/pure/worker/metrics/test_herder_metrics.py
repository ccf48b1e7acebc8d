"""The figures of herders and their groups."""

from __future__ import annotations

import math
from dataclasses import replace

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.coordinator_request_times import RequestSummary
from sparkmirror.connect.distributed.rebalance_times import RebalanceSummary
from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo, WorkerStatus
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures, StartupSummary
from sparkmirror.connect.runtime.status.task_state_times import TaskTimeShares
from sparkmirror.worker.metrics.coordinator_figures import HerderReading
from sparkmirror.worker.metrics.herder_metrics import health_figures, herder_figures
from tests.support.exposed_series import series, series_of

NONE_YET = RebalanceSummary(
    completed=0,
    is_rebalancing=True,
    max_ms=math.nan,
    average_ms=math.nan,
    since_last_ms=None,
)


def state(word: str, trace: str | None = None) -> StateInfo:
    return StateInfo(state=word, worker_id="me", version="1", trace=trace)


def tasks(*numbers: int) -> frozenset[ConnectorTaskId]:
    return frozenset(ConnectorTaskId(connector="src", task=number) for number in numbers)


def reading(prefix: str = "", generation: int = 6) -> HerderReading:
    """A worker that runs connector `src` and two of its three tasks."""
    own = MemberShare(
        worker_id="me:8083", url="", connectors=frozenset(("src",)), tasks=tasks(0, 1)
    )
    other = MemberShare(worker_id="you:8083", url="", connectors=frozenset(("hb",)), tasks=tasks(2))
    statuses = {
        "src": ConnectorStateInfo(
            name="src",
            connector=state("RUNNING", "no topics yet"),
            tasks={0: state("RUNNING"), 2: state("FAILED", "boom")},
            type="source",
        ),
        "hb": ConnectorStateInfo(
            name="hb", connector=state("FAILED", "x"), tasks={}, type="source"
        ),
    }
    return HerderReading(
        prefix=prefix,
        herder=HerderFigures(
            worker_id="me:8083",
            assignment=Assignment(
                generation=generation,
                member_id="1",
                leader_id="2",
                config_offset=0,
                shares={"1": own, "2": other},
            ),
            statuses=statuses,
            connector_startups=StartupSummary(success=3, failure=1),
            task_startups=StartupSummary(success=2),
        ),
        rebalances=RebalanceSummary(
            completed=6, is_rebalancing=False, max_ms=315.0, average_ms=88.0, since_last_ms=2500.0
        ),
    )


def test_the_own_share_is_counted_and_that_of_others_is_not() -> None:
    found = series_of(herder_figures([reading()]))
    assert found[series("kafka_connect_worker_connector_count")] == 1
    assert found[series("kafka_connect_worker_task_count")] == 2
    client = {"clientid": '"connect-me:8083"'}
    assert found[series("kafka_connect_coordinator_assigned_connectors", **client)] == 1
    assert found[series("kafka_connect_coordinator_assigned_tasks", **client)] == 2
    assert {dict(labels).get("connector", "src") for _, labels in found} == {"src"}


def test_tasks_by_state_and_one_without_a_status_is_unassigned() -> None:
    found = series_of(herder_figures([reading()]))
    for word, count in (("total", 2), ("running", 1), ("unassigned", 1), ("failed", 0)):
        name = f"kafka_connect_worker_connector_{word}_task_count"
        assert found[series(name, connector="src")] == count
    status = "kafka_connect_connector_status"
    assert {labels for name, labels in found if name == status} == {
        frozenset({"connector": "src", "task": "0", "status": "running"}.items()),
        frozenset({"connector": "src", "task": "1", "status": "unassigned"}.items()),
    }


def test_problems_of_other_workers_are_not_counted_here() -> None:
    found = series_of(herder_figures([reading()]))
    assert found[series("sparkmirror_problems", connector="src")] == 1
    assert series("sparkmirror_problems", connector="hb") not in found


def test_starts_and_rebalances() -> None:
    found = series_of(herder_figures([reading()]))
    expected = {
        "worker_connector_startup_attempts_total": 4,
        "worker_connector_startup_success_total": 3,
        "worker_connector_startup_failure_total": 1,
        "worker_task_startup_attempts_total": 2,
        "worker_task_startup_success_total": 2,
        "worker_task_startup_failure_total": 0,
        "worker_connector_startup_success_percentage": 0.75,
        "worker_connector_startup_failure_percentage": 0.25,
        "worker_task_startup_success_percentage": 1,
        "worker_rebalance_epoch": 6,
        "worker_rebalance_completed_rebalances_total": 6,
        "worker_rebalance_rebalancing": 0,
        "worker_rebalance_rebalance_max_time_ms": 315,
        "worker_rebalance_rebalance_avg_time_ms": 88,
        "worker_rebalance_time_since_last_rebalance_ms": 2500,
    }
    assert {name: found[series(f"kafka_connect_{name}")] for name in expected} == expected


def test_a_member_shows_its_requests_and_the_leader_of_its_group() -> None:
    one = replace(
        reading(),
        rebalances=replace(
            reading().rebalances,
            total_ms=400.0,
            failed=2,
            joins=RequestSummary(total=6, average_ms=16.0, max_ms=47.0),
            heartbeats=RequestSummary(total=9, rate=0.3, max_ms=25.0, since_last_ms=1999.0),
        ),
    )
    found = series_of(herder_figures([one]))
    expected = {
        "rebalance_total": 6,
        "failed_rebalance_total": 2,
        "rebalance_latency_total": 400,
        "rebalance_latency_max": 315,
        "last_rebalance_seconds_ago": 2,
        "join_total": 6,
        "join_time_avg": 16,
        "join_time_max": 47,
        "heartbeat_total": 9,
        "heartbeat_rate": 0.3,
        "heartbeat_response_time_max": 25,
        "last_heartbeat_seconds_ago": 1,
    }
    client = {"clientid": '"connect-me:8083"'}
    names = {name: series(f"kafka_connect_coordinator_{name}", **client) for name in expected}
    assert {name: found[key] for name, key in names.items()} == expected
    leader = series("kafka_connect_worker_rebalance_leader_name", leader_name="you:8083")
    assert found[leader] == 1


def test_a_task_shows_for_how_much_of_its_time_it_was_running_or_paused() -> None:
    one, [task] = reading(), tasks(0)
    times = {task: TaskTimeShares(running=0.75, paused=0.25)}
    found = series_of(herder_figures([replace(one, herder=replace(one.herder, task_times=times))]))
    labels = {"connector": "src", "task": "0"}
    assert found[series("kafka_connect_connector_task_running_ratio", **labels)] == 0.75
    assert found[series("kafka_connect_connector_task_pause_ratio", **labels)] == 0.25
    labels = {"connector": "src", "task": "1"}
    assert series("kafka_connect_connector_task_running_ratio", **labels) not in found


def test_flows_of_one_process_are_added_up_and_their_connectors_have_the_names_of_rest() -> None:
    starting = HerderReading(
        prefix="B->A.", herder=HerderFigures(worker_id="me/B->A"), rebalances=NONE_YET
    )
    found = series_of(herder_figures([starting, reading("A->B.", generation=9)]))
    assert found[series("kafka_connect_worker_task_count")] == 2
    assert found[series("kafka_connect_worker_rebalance_epoch")] == 9
    assert found[series("kafka_connect_worker_rebalance_rebalancing")] == 1
    assert found[series("kafka_connect_worker_rebalance_rebalance_max_time_ms")] == 315
    assert found[series("sparkmirror_problems", connector='"A->B.src"')] == 1


def test_a_worker_that_has_not_joined_says_so() -> None:
    alone = HerderReading(prefix="", herder=HerderFigures(worker_id="me:8083"), rebalances=NONE_YET)
    found = series_of(herder_figures([alone]))
    assert found[series("kafka_connect_worker_task_count")] == 0
    assert found[series("kafka_connect_worker_rebalance_rebalancing")] == 1
    assert math.isnan(found[series("kafka_connect_worker_rebalance_rebalance_max_time_ms")])
    assert series("kafka_connect_worker_rebalance_time_since_last_rebalance_ms") not in found
    assert series("kafka_connect_worker_rebalance_epoch") not in found


def test_one_health_is_one() -> None:
    found = series_of(health_figures(WorkerStatus(status="degraded", message="")))
    assert found == {
        series("sparkmirror_worker_health", status=word): float(word == "degraded")
        for word in ("starting", "healthy", "degraded", "unhealthy")
    }
