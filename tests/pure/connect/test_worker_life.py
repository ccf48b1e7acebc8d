"""How a worker starts, takes over what others left, and ends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sparkmirror.connect.herder import Herder
from sparkmirror.connect.herding import WorkerInfo
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.errors import ClusterTimeout, MirrorError, RequestFailed
from sparkmirror.mirror.connect_configs import (
    ConnectorConfig,
    Properties,
    TargetState,
    TaskConfig,
    TasksCommit,
)
from sparkmirror.mirror.connect_statuses import State, Status
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.store.configs import ConfigTopic
from sparkmirror.store.keeping import ConfigListener
from sparkmirror.store.memory import MemoryLog, memory_offsets, memory_statuses
from sparkmirror.store.stores import Stores
from tests.support.golden import golden_records
from tests.support.herders import SETTINGS, SOURCE, eventually, herding, named
from tests.support.small_connectors import HANGS, Watch, small_kinds


class SlowConfigs(ConfigTopic):
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


def herder_on(configs: ConfigTopic, *, is_patient: bool = True) -> Herder:
    """A herder whose callers wait as long as it takes, or hardly at all."""
    return Herder(
        replace(
            SETTINGS,
            health_timeout_s=50 if is_patient else 0.05,
            request_timeout_s=50 if is_patient else 0.1,
        ),
        Stores(configs=configs, statuses=memory_statuses(), offsets=memory_offsets()),
        Surroundings(
            kinds=small_kinds(Watch()),
            about=lambda: WorkerInfo(version="4.3.0", commit="c", kafka_cluster_id=None),
        ),
    )


def left_running(worker_id: str = "java:8083", generation: int = 9) -> list[RecordBytes]:
    """What a worker that was killed has left in the status topic."""
    return [
        Status(
            connector="c", task=task, state=State.RUNNING, worker_id=worker_id,
            generation=generation, version="4.3.0",
        ).encode()
        for task in (None, 0, 1)
    ]  # fmt: skip


def test_what_another_worker_left_is_taken_over_with_its_tasks() -> None:
    task = {**named("c", SOURCE), "task.assigned.partitions": "orders-0"}
    configs = [
        ConnectorConfig(connector="c", properties=named("c", SOURCE)).encode(),
        TaskConfig(connector="c", task=0, properties=task).encode(),
        TasksCommit(connector="c", tasks=1).encode(),
    ]
    watch = Watch()
    watch.failing.add("c")
    with herding(configs=configs, statuses=left_running(), watch=watch) as stage:
        # The stored task runs, although the connector cannot say yet what there is to do.
        eventually(lambda: "start tasks c" in watch.calls, "the stored task")
        assert [len(plan.tasks) for plan in watch.group("c").plans] == [1]
        watch.failing.clear()
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.herder.status("c").connector.worker_id == SETTINGS.worker_id


def test_the_recorded_topics_of_a_java_worker_are_taken_over() -> None:
    records = [
        one
        for one in golden_records("topics/exactly-once.connect-topics.jsonl")
        if one.topic == "connect-configs" and one.offset < 27  # all three run
    ]
    watch = Watch(partitions=())
    with herding(configs=[one.record for one in records], watch=watch) as stage:
        assert set(stage.herder.connectors()) == {"mm2-msc", "mm2-cpc", "mm2-hbc"}
        stage.reaches("mm2-hbc", "RUNNING", "RUNNING")
        stage.reaches("mm2-cpc", "RUNNING", "RUNNING")


def test_incomplete_task_configs_are_written_anew() -> None:
    configs = [
        ConnectorConfig(connector="c", properties=named("c", SOURCE)).encode(),
        TasksCommit(connector="c", tasks=2).encode(),
    ]
    with herding(configs=configs) as stage:
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.herder.tasks("c")) == 2


def test_a_new_worker_speaks_in_a_later_generation_than_all_before() -> None:
    configs = [ConnectorConfig(connector="c", properties=named("c", SOURCE)).encode()]
    with herding(configs=configs, statuses=left_running(generation=41)) as stage:
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        # A failure is written safely, so it counts only if it is not older than what is known.
        stage.watch.group("c").fail(0, MirrorError("no"))
        stage.reaches("c", "RUNNING", "FAILED", "RUNNING")
        last = {record.key: record.value for record in stage.statuses.records}
        assert b'"generation":43' in (last[b"status-task-c-0"] or b"")


def test_what_was_running_elsewhere_is_not_said_to_run_here_before_it_does() -> None:
    watch = Watch()
    configs = [
        ConnectorConfig(connector="c", properties=named("c", SOURCE) | {HANGS: "yes"}).encode()
    ]
    with herding(configs=configs, statuses=left_running(), watch=watch) as stage:
        assert set(stage.states("c")) == {"UNASSIGNED"}
        watch.release.set()
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")


def test_what_was_deleted_while_nobody_ran_is_forgotten() -> None:
    with herding(statuses=left_running()) as stage:
        assert stage.states("c") == []
        assert [record.value for record in stage.statuses.records[3:]] == [None, None, None]


def test_ending_stops_everything_and_says_so_in_the_statuses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with herding() as stage:
        stage.herder.create("c", named("c", SOURCE), None)
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
    assert {"stop c", "stop tasks c"} <= set(stage.watch.calls)
    last = {record.key: record.value for record in stage.statuses.records}
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
    eventually(lambda: herder.health().message.startswith(said), "it comes to the config topic")
    assert herder.health().status == "starting"
    with pytest.raises(RequestFailed, match=r"Request timed out\. The worker is currently read"):
        herder.connectors()
    with pytest.raises(RequestFailed, match=r"Request timed out\."):
        herder.create("c", named("c", SOURCE), None)
    configs.is_there.set()
    assert herder.wait_started(50)
    eventually(lambda: herder.health().status == "healthy", "healthy")
    assert herder.connectors() == ()
    herder.shut_down()


def test_a_start_that_fails_is_the_end() -> None:
    configs = SlowConfigs(MirrorError("the config topic has 3 partitions"))
    configs.is_there.set()
    herder = herder_on(configs)
    herder.start()
    with pytest.raises(MirrorError, match="has 3 partitions"):
        herder.wait_started(50)
    assert str(herder.wait_over(0)) == "the config topic has 3 partitions"
    assert herder.health().status == "unhealthy"
    with pytest.raises(RequestFailed, match="could not start: the config topic has 3 partitions"):
        herder.connectors()
    herder.shut_down()


def test_it_can_be_ended_while_it_starts() -> None:
    configs = SlowConfigs()
    herder = herder_on(configs)
    herder.start()
    herder.shut_down()
    assert herder.wait_over(0) is None


def test_who_cannot_write_says_what_was_tried() -> None:
    class Deaf(ConfigTopic):
        def put_target_state(self, name: str, state: TargetState) -> None:
            raise MirrorError(f"no broker takes {name} {state}")

    herder = herder_on(Deaf(MemoryLog()))
    herder.start()
    assert herder.wait_started(50)
    herder.create("c", named("c", SOURCE), None)
    with pytest.raises(RequestFailed, match="^Error writing target state to Kafka$"):
        herder.pause("c")
    assert herder.health().status == "healthy"
    herder.shut_down()


def test_task_configs_that_cannot_be_written_are_tried_again() -> None:
    class Reluctant(ConfigTopic):
        refusals = 1

        def put_tasks(self, name: str, configs: Sequence[Properties]) -> None:
            if self.refusals:
                self.refusals -= 1
                raise ClusterTimeout("target", "no answer within 30 s")
            super().put_tasks(name, configs)

    configs = Reluctant(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.wait_started(50)
    herder.create("c", named("c", SOURCE), None)
    eventually(lambda: len(herder.tasks("c")) == 2, "written in the end")
    assert configs.refusals == 0
    herder.shut_down()


def test_several_herders_live_in_one_process() -> None:
    with herding() as one, herding(replace(SETTINGS, worker_id="host/A->B/1")) as other:
        one.herder.create("c", named("c", SOURCE), None)
        other.herder.create("c", named("c", SOURCE, tasks__max="1"), None)
        one.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        other.reaches("c", "RUNNING", "RUNNING")
        assert other.herder.status("c").connector.worker_id == "host/A->B/1"
