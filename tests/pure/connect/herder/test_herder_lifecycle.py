"""How a worker starts, continues with the topics of earlier workers, and stops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import RawConfig, ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.errors import ClusterTimeout, MirrorError, NotFound, RequestFailed, WorkerStarting
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
    memory_config_store,
    memory_offset_store,
    memory_status_store,
)
from tests.support.golden import golden_records


class SlowConfigs(KafkaConfigBackingStore):
    """A config store whose start blocks, and may fail."""

    def __init__(self, failure: MirrorError | None = None) -> None:
        super().__init__(MemoryLog())
        self.may_start = threading.Event()
        self._failure = failure

    def start(self, listener: ConfigListener) -> None:
        self.may_start.wait(50)
        if self._failure is not None:
            raise self._failure
        super().start(listener)

    def stop(self) -> None:
        self.may_start.set()


def herder_on(
    configs: KafkaConfigBackingStore,
    *,
    has_long_timeout: bool = True,
    configured: Mapping[str, RawConfig] = MappingProxyType({}),
    get_unconfigured: Callable[[], str] = str,
) -> DistributedHerder:
    """A herder whose requests have a long timeout, or a very short one."""
    return DistributedHerder(
        replace(
            WORKER_SETTINGS,
            health_timeout_s=50 if has_long_timeout else 0.05,
            request_timeout_s=50 if has_long_timeout else 0.1,
        ),
        BackingStores(
            configs=configs, statuses=memory_status_store(), offsets=memory_offset_store()
        ),
        HerderDependencies(
            registry=fake_connector_registry(ConnectorProbe()),
            get_server_info=lambda: ServerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
            configured_connectors=configured,
            get_unconfigured=get_unconfigured,
        ),
    )


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
        poll_until(lambda: "start tasks c" in probe.calls, "the stored task")
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


def test_requests_during_the_start_say_that_the_worker_starts() -> None:
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


def test_reads_do_not_wait_for_a_cluster_that_is_down() -> None:
    class UnreachableConfigs(SlowConfigs):
        def problem(self) -> str:
            return "" if self.may_start.is_set() else "backup: b1:9092: connection refused"

    configs = UnreachableConfigs()
    herder = herder_on(configs, configured={"c": named_config("c", SOURCE_CONFIG)})
    herder.start()
    assert herder.connectors() == ("c",)
    assert herder.connector_info("c").tasks == ()
    assert herder.connector_info("c").type == "source"
    status = herder.connector_status("c")
    assert (status.connector.state, status.tasks) == ("UNASSIGNED", {})
    assert str(status.connector.trace).endswith("backup: b1:9092: connection refused")
    with pytest.raises(NotFound):
        herder.connector_info("d")
    with pytest.raises(WorkerStarting, match="backup: b1:9092: connection refused"):
        herder.pause_connector("c")
    assert herder.health().status == "starting"
    configs.may_start.set()
    assert herder.await_started(50)
    assert herder.connectors() == ()
    herder.shut_down()


def test_a_worker_that_cannot_reach_its_topics_is_unhealthy_and_names_the_cause() -> None:
    class FailingLaterConfigs(KafkaConfigBackingStore):
        fails = False

        def problem(self) -> str:
            return "backup: b1:9092: connection refused" if self.fails else ""

    configs = FailingLaterConfigs(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.await_started(50)
    assert herder.health().status == "healthy"
    configs.fails = True
    health = herder.health()
    assert health.status == "unhealthy"
    assert health.message.endswith("backup: b1:9092: connection refused")
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


def test_a_failed_write_names_the_operation_and_the_cause() -> None:
    class FailingConfigs(KafkaConfigBackingStore):
        def put_target_state(self, name: str, state: TargetState) -> None:
            raise MirrorError(f"no broker accepts {name} {state.value}")

    herder = herder_on(FailingConfigs(MemoryLog()))
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    with pytest.raises(
        RequestFailed, match="^Error writing target state to Kafka: no broker accepts c PAUSED$"
    ):
        herder.pause_connector("c")
    assert herder.health().status == "healthy"
    herder.shut_down()


def test_task_configs_that_cannot_be_written_are_tried_again() -> None:
    class FailingOnceConfigs(KafkaConfigBackingStore):
        failures = 1

        def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
            if self.failures:
                self.failures -= 1
                raise ClusterTimeout("target", "no answer within 30 s")
            super().put_task_configs(name, configs)

    configs = FailingOnceConfigs(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    poll_until(lambda: len(herder.task_configs("c")) == 2, "written in the end")
    assert configs.failures == 0
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


def test_health_is_starting_until_the_connectors_of_the_file_are_configured() -> None:
    unconfigured = ["Its connectors are not configured yet."]
    herder = herder_on(
        memory_config_store(MemoryLog()), get_unconfigured=lambda: " ".join(unconfigured)
    )
    herder.start()
    try:
        assert herder.await_started(50)
        health = herder.health()
        assert health.status == "starting"
        assert health.message.endswith("Its connectors are not configured yet.")
        unconfigured.clear()
        assert herder.health().status == "healthy"
    finally:
        herder.shut_down()
