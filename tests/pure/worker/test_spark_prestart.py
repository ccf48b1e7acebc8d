"""Spark is ready before a worker takes tasks over from others."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    TargetState,
    TaskConfig,
    TasksCommit,
)
from sparkmirror.worker.group import spark_prestart
from sparkmirror.worker.group.spark_prestart import SparkPrestart, count_divided_tasks
from sparkmirror.worker.group.undivided_connectors import undivided_rule


class RecordingSpark:
    """Spark that is never ready."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int]] = []

    def keep_ready(self, group: str, tasks: int) -> None:
        self.kept.append((group, tasks))

    def is_ready(self) -> bool:
        return False


def test_a_group_without_tasks_needs_no_spark() -> None:
    spark = RecordingSpark()
    assert SparkPrestart("g", spark, lambda: 0).is_ready()
    assert not spark.kept


def test_spark_that_does_not_start_delays_a_worker_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark = RecordingSpark()
    readiness = SparkPrestart("g", spark, lambda: 3)
    assert not readiness.is_ready()
    assert spark.kept == [("g", 3)]
    monkeypatch.setattr(spark_prestart, "START_TIMEOUT_S", -1.0)
    assert readiness.is_ready()


def test_spark_is_kept_ready_while_the_group_has_another_member() -> None:
    spark = RecordingSpark()
    readiness = SparkPrestart("g", spark, lambda: 3)
    for members in (1, 2, 3, 1):
        readiness.on_assigned(members)
    assert [tasks for _, tasks in spark.kept] == [0, 3, 3, 0]


@pytest.mark.parametrize(
    ("config", "worker_master", "state", "tasks"),
    [
        ({}, "", TargetState.STARTED, 2),
        ({}, "local[4]", TargetState.STARTED, 2),
        ({}, "spark://master:7077", TargetState.STARTED, 0),
        ({"spark.cores.max": "1"}, "", TargetState.STARTED, 0),
        ({"connector.class": "MirrorHeartbeatConnector"}, "", TargetState.STARTED, 0),
        ({}, "", TargetState.PAUSED, 0),
        ({}, "", TargetState.STOPPED, 0),
    ],
    ids=["source", "local", "cluster", "own Spark settings", "heartbeats", "paused", "stopped"],
)
def test_tasks_that_run_in_the_common_application_are_counted(
    config: dict[str, str], worker_master: str, state: TargetState, tasks: int
) -> None:
    configs = ClusterConfigState()
    properties = {"connector.class": "MirrorSourceConnector", **config}
    records: list[ConfigRecord] = [
        ConnectorConfig(connector="c", properties=properties),
        ConnectorTargetState(connector="c", state=state),
        *(TaskConfig(connector="c", task=number, properties={}) for number in range(2)),
        TasksCommit(connector="c", tasks=2),
    ]
    for record in records:
        configs.apply(record.encode())
    assert count_divided_tasks(configs, undivided_rule(worker_master)) == tasks
