"""How a worker starts, takes over what others left, and ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.errors import ClusterTimeout, MirrorError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigProperties,
    ConnectorConfig,
    TargetState,
    TaskConfig,
    TasksCommit,
)
from sparkmirror.mirror.connect_topics.connect_statuses import ConnectStatus, LifecycleState
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.backing_stores import BackingStores
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.store_api import ConfigListener
from tests.support.connect.fake_connectors import (
    START_HANGS,
    ConnectorProbe,
    fake_connector_registry,
)
from tests.support.connect.in_memory_herder import (
    SOURCE_CONFIG,
    WORKER_SETTINGS,
    named_config,
    poll_until,
    running_herder,
)
from tests.support.connect.in_memory_stores import (
    MemoryLog,
    memory_offset_store,
    memory_status_store,
)
from tests.support.golden import golden_records


class SlowConfigs(KafkaConfigBackingStore):
    """A config store whose start waits for brokers, and may fail."""

    def __init__(self, failure: MirrorError | None = None) -> None:
        super().__init__(MemoryLog())
        self.is_there = threading.Event()
        self._failure = failure

    def start(self, listener: ConfigListener) -> None:
        self.is_there.wait(50)
        if self._failure is not None:
            raise self._failure
        super().start(listener)

    def stop(self) -> None:
        self.is_there.set()


def herder_on(configs: KafkaConfigBackingStore, *, is_patient: bool = True) -> DistributedHerder:
    """A herder whose callers wait as long as it takes, or hardly at all."""
    return DistributedHerder(
        replace(
            WORKER_SETTINGS,
            health_timeout_s=50 if is_patient else 0.05,
            request_timeout_s=50 if is_patient else 0.1,
        ),
        BackingStores(
            configs=configs, statuses=memory_status_store(), offsets=memory_offset_store()
        ),
        HerderDependencies(
            registry=fake_connector_registry(ConnectorProbe()),
            get_server_info=lambda: ServerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
        ),
    )


def left_running(worker_id: str = "java:8083", generation: int = 9) -> list[RecordBytes]:
    """What a worker that was killed has left in the status topic."""
    return [
        ConnectStatus(
            connector="c", task=task, state=LifecycleState.RUNNING, worker_id=worker_id,
            generation=generation, version="4.3.0",
        ).encode()
        for task in (None, 0, 1)
    ]  # fmt: skip


def test_what_another_worker_left_is_taken_over_with_its_tasks() -> None:
    task = {**named_config("c", SOURCE_CONFIG), "task.assigned.partitions": "orders-0"}
    configs = [
        ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode(),
        TaskConfig(connector="c", task=0, properties=task).encode(),
        TasksCommit(connector="c", tasks=1).encode(),
    ]
    watch = ConnectorProbe()
    watch.failing_connectors.add("c")
    with running_herder(configs=configs, statuses=left_running(), watch=watch) as stage:
        # The stored task runs, although the connector cannot say yet what there is to do.
        poll_until(lambda: "start tasks c" in watch.calls, "the stored task")
        assert [len(plan.tasks) for plan in watch.task_group("c").plans] == [1]
        watch.failing_connectors.clear()
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.herder.connector_status("c").connector.worker_id == WORKER_SETTINGS.worker_id


def test_the_recorded_topics_of_a_java_worker_are_taken_over() -> None:
    records = [
        one
        for one in golden_records("topics/exactly-once.connect-topics.jsonl")
        if one.topic == "connect-configs" and one.offset < 27  # all three run
    ]
    watch = ConnectorProbe(partitions=())
    with running_herder(configs=[one.record for one in records], watch=watch) as stage:
        assert set(stage.herder.connectors()) == {"mm2-msc", "mm2-cpc", "mm2-hbc"}
        stage.wait_for_states("mm2-hbc", "RUNNING", "RUNNING")
        stage.wait_for_states("mm2-cpc", "RUNNING", "RUNNING")


def test_incomplete_task_configs_are_written_anew() -> None:
    configs = [
        ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode(),
        TasksCommit(connector="c", tasks=2).encode(),
    ]
    with running_herder(configs=configs) as stage:
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.herder.task_configs("c")) == 2


def test_a_new_worker_speaks_in_a_later_generation_than_all_before() -> None:
    configs = [ConnectorConfig(connector="c", properties=named_config("c", SOURCE_CONFIG)).encode()]
    with running_herder(configs=configs, statuses=left_running(generation=41)) as stage:
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        # A failure is written safely, so it counts only if it is not older than what is known.
        stage.probe.task_group("c").fail(0, MirrorError("no"))
        stage.wait_for_states("c", "RUNNING", "FAILED", "RUNNING")
        last = {record.key: record.value for record in stage.status_log.records}
        assert b'"generation":43' in (last[b"status-task-c-0"] or b"")


def test_what_was_running_elsewhere_is_not_said_to_run_here_before_it_does() -> None:
    watch = ConnectorProbe()
    configs = [
        ConnectorConfig(
            connector="c", properties=named_config("c", SOURCE_CONFIG) | {START_HANGS: "yes"}
        ).encode()
    ]
    with running_herder(configs=configs, statuses=left_running(), watch=watch) as stage:
        assert set(stage.states("c")) == {"UNASSIGNED"}
        watch.release_hanging.set()
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")


def test_what_was_deleted_while_nobody_ran_is_forgotten() -> None:
    with running_herder(statuses=left_running()) as stage:
        assert stage.states("c") == []
        assert [record.value for record in stage.status_log.records[3:]] == [None, None, None]


def test_ending_stops_everything_and_says_so_in_the_statuses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with running_herder() as stage:
        stage.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
    assert {"stop c", "stop tasks c"} <= set(stage.probe.calls)
    last = {record.key: record.value for record in stage.status_log.records}
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


def test_while_it_starts_whoever_asks_is_told_so() -> None:
    configs = SlowConfigs()
    herder = herder_on(configs, is_patient=False)
    herder.start()
    said = "Worker is still starting up. The worker is currently reading the config topic, which be"
    poll_until(lambda: herder.health().message.startswith(said), "it comes to the config topic")
    assert herder.health().status == "starting"
    with pytest.raises(RequestFailed, match=r"Request timed out\. The worker is currently read"):
        herder.connectors()
    with pytest.raises(RequestFailed, match=r"Request timed out\."):
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    configs.is_there.set()
    assert herder.await_started(50)
    poll_until(lambda: herder.health().status == "healthy", "healthy")
    assert herder.connectors() == ()
    herder.shut_down()


def test_a_start_that_fails_is_the_end() -> None:
    configs = SlowConfigs(MirrorError("the config topic has 3 partitions"))
    configs.is_there.set()
    herder = herder_on(configs)
    herder.start()
    with pytest.raises(MirrorError, match="has 3 partitions"):
        herder.await_started(50)
    assert str(herder.await_stopped(0)) == "the config topic has 3 partitions"
    assert herder.health().status == "unhealthy"
    with pytest.raises(RequestFailed, match="could not start: the config topic has 3 partitions"):
        herder.connectors()
    herder.shut_down()


def test_it_can_be_ended_while_it_starts() -> None:
    configs = SlowConfigs()
    herder = herder_on(configs)
    herder.start()
    herder.shut_down()
    assert herder.await_stopped(0) is None


def test_who_cannot_write_says_what_was_tried() -> None:
    class Deaf(KafkaConfigBackingStore):
        def put_target_state(self, name: str, state: TargetState) -> None:
            raise MirrorError(f"no broker takes {name} {state}")

    herder = herder_on(Deaf(MemoryLog()))
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    with pytest.raises(RequestFailed, match="^Error writing target state to Kafka$"):
        herder.pause_connector("c")
    assert herder.health().status == "healthy"
    herder.shut_down()


def test_task_configs_that_cannot_be_written_are_tried_again() -> None:
    class Reluctant(KafkaConfigBackingStore):
        refusals = 1

        def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
            if self.refusals:
                self.refusals -= 1
                raise ClusterTimeout("target", "no answer within 30 s")
            super().put_task_configs(name, configs)

    configs = Reluctant(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    poll_until(lambda: len(herder.task_configs("c")) == 2, "written in the end")
    assert configs.refusals == 0
    herder.shut_down()


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
