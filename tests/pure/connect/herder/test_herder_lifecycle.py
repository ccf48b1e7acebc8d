"""How a worker starts, continues with the topics of earlier workers, and stops."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from sparkmirror.connect.herder import herder_parts
from sparkmirror.errors import MirrorError, RequestFailed, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConnectorConfig,
    TaskConfig,
    TasksCommit,
)
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus, LifecycleState
from sparkmirror.mirror.offsets.records import RecordBytes
from tests.support.connect.fake_connectors import (
    START_HANGS,
    ConnectorProbe,
)
from tests.support.connect.in_memory_herder import (
    SOURCE_CONFIG,
    WORKER_SETTINGS,
    named_config,
    poll_until,
    running_herder,
)
from tests.support.connect.unavailable_stores import SlowConfigs, herder_on
from tests.support.golden import golden_records


def running_statuses(worker_id: str = "java:8083", generation: int = 9) -> list[RecordBytes]:
    """The statuses that a killed worker has written."""
    return [
        ConnectStatus(
            connector="c", task=task, state=LifecycleState.RUNNING, worker_id=worker_id,
            generation=generation, version="4.3.0",
        ).encode()
        for task in (None, 0, 1)
    ]  # fmt: skip


def test_connectors_and_tasks_of_an_earlier_worker_are_started() -> None:
    task = {**named_config("c", SOURCE_CONFIG), "task.assigned.partitions": "orders-0"}
    configs = [
        ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode(),
        TaskConfig(connector="c", task=0, properties=task).encode(),
        TasksCommit(connector="c", tasks=1).encode(),
    ]
    probe = ConnectorProbe()
    probe.failing_connectors.add("c")
    with running_herder(configs=configs, statuses=running_statuses(), probe=probe) as harness:
        # The stored task runs, although the connector cannot return task configs yet.
        poll_until(lambda: probe.running("c") == {0}, "the stored task")
        assert [len(plan.tasks) for plan in probe.task_group("c").plans] == [1]
        probe.failing_connectors.clear()
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.connector_status("c").connector.worker_id == WORKER_SETTINGS.worker_id


def test_a_worker_continues_with_the_recorded_topics_of_a_java_worker() -> None:
    records = [
        one
        for one in golden_records("topics/exactly-once.connect-topics.jsonl")
        if one.topic == "connect-configs" and one.offset < 27  # all three run
    ]
    probe = ConnectorProbe(partitions=())
    with running_herder(configs=[one.record for one in records], probe=probe) as harness:
        assert set(harness.herder.connectors()) == {"mm2-msc", "mm2-cpc", "mm2-hbc"}
        harness.wait_for_states("mm2-hbc", "RUNNING", "RUNNING")
        harness.wait_for_states("mm2-cpc", "RUNNING", "RUNNING")


def test_incomplete_task_configs_are_written_again() -> None:
    configs = [
        ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode(),
        TasksCommit(connector="c", tasks=2).encode(),
    ]
    with running_herder(configs=configs) as harness:
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(harness.herder.task_configs("c")) == 2


def test_a_connector_whose_config_cannot_be_read_makes_the_worker_degraded() -> None:
    configs = [
        ConnectorConfig(connector="d", properties=named_config("d", SOURCE_CONFIG)).encode(),
        RecordBytes(b"connector-c", b'{"properties"'),
    ]
    with running_herder(configs=configs) as harness:
        harness.wait_for_states("d", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.connectors() == ("d",)
        health = harness.herder.health()
        assert health.status == "degraded"
        assert "offset 1 with key b'connector-c' cannot be read" in health.message
        harness.herder.put_connector_config("c", named_config("c", SOURCE_CONFIG))
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.herder.health().status == "healthy"


def test_a_new_worker_has_a_later_generation_than_all_earlier_ones() -> None:
    configs = [ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode()]
    with running_herder(configs=configs, statuses=running_statuses(generation=41)) as harness:
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        # FAILED is written safely: it counts only if its generation is not older.
        harness.probe.task_group("c").fail(0, MirrorError("no"))
        harness.wait_for_states("c", "RUNNING", "FAILED", "RUNNING")
        last = {record.key: record.value for record in harness.status_log.records}
        assert b'"generation":43' in (last[b"status-task-c-0"] or b"")


def test_a_connector_of_an_earlier_worker_is_unassigned_until_it_runs_here() -> None:
    probe = ConnectorProbe()
    configs = [
        ConnectorConfig(
            connector="c", properties=named_config("c", SOURCE_CONFIG) | {START_HANGS: "yes"}
        ).encode()
    ]
    with running_herder(configs=configs, statuses=running_statuses(), probe=probe) as harness:
        assert set(harness.states("c")) == {"UNASSIGNED"}
        probe.release_hanging.set()
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_statuses_of_connectors_deleted_before_the_start_are_removed() -> None:
    with running_herder(statuses=running_statuses()) as harness:
        assert harness.states("c") == []
        assert [record.value for record in harness.status_log.records[3:]] == [None, None, None]


def test_a_shutdown_stops_everything_and_writes_unassigned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with running_herder() as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
    assert {"stop c", "stop tasks c"} <= set(harness.probe.calls)
    last = {record.key: record.value for record in harness.status_log.records}
    for key in (b"status-connector-c", b"status-task-c-0", b"status-task-c-1"):
        assert b'"state":"UNASSIGNED"' in (last[key] or b"")
    assert last[b"status-topic-orders:connector-c"] is not None
    prefix = "[Worker clientId=connect-127.0.0.1:31083, groupId=connect-cluster] "
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith(prefix)]
    assert [line.removeprefix(prefix) for line in lines] == [
        "Herder starting",
        "Starting connectors and tasks using config offset -1",
        "Finished starting connectors and tasks",
        "Herder started",
        "Herder stopping",
        "Stopping connectors and tasks that are still assigned to this worker.",
        "Herder stopped",
    ]


def test_requests_during_the_start_say_that_the_worker_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(herder_parts, "START_PATIENCE_S", 0.1)
    configs = SlowConfigs()
    herder = herder_on(configs, has_long_timeout=False)
    herder.start()
    message = (
        "Worker is still starting up. The worker is currently reading the config topic, which be"
    )
    poll_until(
        lambda: herder.health().message.startswith(message), "the start to reach the config topic"
    )
    assert herder.health().status == "starting"
    with pytest.raises(WorkerStarting, match=r"starting up\. The worker is currently reading the"):
        herder.connectors()
    with pytest.raises(WorkerStarting, match="still starting up"):
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    configs.may_start.set()
    assert herder.await_started(50)
    poll_until(lambda: herder.health().status == "healthy", "healthy")
    assert herder.connectors() == ()
    herder.shut_down()


def test_a_failed_start_stops_the_herder_and_fails_all_requests() -> None:
    configs = SlowConfigs(MirrorError("the config topic has 3 partitions"))
    configs.may_start.set()
    herder = herder_on(configs)
    herder.start()
    with pytest.raises(MirrorError, match="has 3 partitions"):
        herder.await_started(50)
    assert str(herder.await_stopped(0)) == "the config topic has 3 partitions"
    assert herder.health().status == "unhealthy"
    with pytest.raises(RequestFailed, match="could not start: the config topic has 3 partitions"):
        herder.connectors()
    herder.shut_down()


def test_a_herder_can_be_shut_down_during_its_start() -> None:
    configs = SlowConfigs()
    herder = herder_on(configs)
    herder.start()
    herder.shut_down()
    assert herder.await_stopped(0) is None
    assert not herder.await_started(50), "a herder whose start was interrupted does not run"


def test_several_herders_live_in_one_process() -> None:
    with (
        running_herder() as one,
        running_herder(replace(WORKER_SETTINGS, worker_id="host/A->B/1")) as other,
    ):
        one.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        other.herder.create_connector("c", named_config("c", SOURCE_CONFIG, tasks__max="1"), None)
        one.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        other.wait_for_states("c", "RUNNING", "RUNNING")
        assert other.herder.connector_status("c").connector.worker_id == "host/A->B/1"
