"""A worker gets ready for tasks that others are stopping, and for no others."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR
from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.task_preparations import (
    MAX_PREPARED,
    PREPARE_TIMEOUT_S,
    TaskPreparations,
    choose_connectors,
)
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    TargetState,
    TaskConfig,
    TasksCommit,
)
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry


def tasks_of(connector: str, *numbers: int) -> frozenset[ConnectorTaskId]:
    return frozenset(ConnectorTaskId(connector=connector, task=number) for number in numbers)


def assignment(
    own: frozenset[ConnectorTaskId] = frozenset(),
    other: frozenset[ConnectorTaskId] = frozenset(),
    **task_counts: int,
) -> Assignment:
    return Assignment(
        generation=2,
        member_id="own",
        leader_id="other",
        config_offset=7,
        shares={
            "own": MemberShare(worker_id="w1:8083", url="http://w1:8083/", tasks=own),
            "other": MemberShare(worker_id="w2:8083", url="http://w2:8083/", tasks=other),
        },
        task_counts=task_counts,
    )


@pytest.mark.parametrize("prepared", [(), ("c9",)])
def test_connectors_of_which_this_worker_runs_or_stops_no_task_are_prepared(
    prepared: tuple[str, ...],
) -> None:
    names = [f"c{number}" for number in range(10)]
    assert choose_connectors(["a", "b"], prepared, None) == {"a", "b"}
    one = assignment(own=tasks_of("a", 0), other=tasks_of("b", 0), a=1, b=1)
    assert choose_connectors(["a", "b"], prepared, one) == {"b"}
    stopping = replace(assignment(a=1), revoked_tasks=tasks_of("a", 0))
    assert not choose_connectors(["a"], prepared, stopping)
    most = choose_connectors(names, prepared, assignment(other=tasks_of("c9", 0), c9=1))
    assert len(most) == MAX_PREPARED
    assert ("c9" in most) == bool(prepared), "what is prepared stays"


def test_connectors_whose_tasks_no_member_runs_are_prepared_first() -> None:
    names = [f"c{number}" for number in range(10)]
    one = assignment(other=tasks_of("c0", 0), c0=1, c8=1)
    assert "c8" in choose_connectors(names, names[:MAX_PREPARED], one)


def test_a_worker_that_is_alone_prepares_nothing() -> None:
    one = assignment()
    alone = replace(one, leader_id="own", shares={"own": one.own_share})
    assert not choose_connectors(["a"], (), alone)


class RecordingPreparation:
    """Notes what it is asked; a connector named `bad` cannot be prepared."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ready: set[str] = set()
        self.done = threading.Semaphore(0)

    def prepare(self, plan: TaskPlan) -> None:
        self.calls.append(f"prepare {plan.connector} of {plan.task_count}, {dict(plan.tasks)}")
        self.done.release()
        if plan.connector == "bad":
            raise MirrorError("no such cluster")

    def is_ready(self, connector: str) -> bool:
        return connector in self.ready

    def forget(self, connector: str) -> None:
        self.calls.append(f"forget {connector}")
        self.done.release()

    def wait_for(self, calls: int) -> None:
        for _ in range(calls):
            assert self.done.acquire(timeout=30)


@pytest.fixture
def preparation() -> RecordingPreparation:
    return RecordingPreparation()


def registry_with(preparation: RecordingPreparation) -> ConnectorRegistry:
    registry = dict(fake_connector_registry(ConnectorProbe()))
    registry[SOURCE_CONNECTOR] = replace(registry[SOURCE_CONNECTOR], preparation=preparation)
    return registry


@pytest.fixture
def preparations(preparation: RecordingPreparation) -> TaskPreparations:
    return TaskPreparations(registry_with(preparation), ConfigTransformer({}))


def configs_of(
    *names: str, state: TargetState = TargetState.STARTED, kind: str = "Source"
) -> ClusterConfigState:
    configs = ClusterConfigState()
    for name in names:
        records: list[ConfigRecord] = [
            ConnectorConfig(
                connector=name, properties={"connector.class": f"Mirror{kind}Connector"}
            ),
            ConnectorTargetState(connector=name, state=state),
            TaskConfig(connector=name, task=0, properties={}),
            TasksCommit(connector=name, tasks=1),
        ]
        for record in records:
            configs.apply(record.encode())
    return configs


def test_a_connector_is_prepared_once_and_forgotten_when_it_cannot_come_any_more(
    preparations: TaskPreparations, preparation: RecordingPreparation
) -> None:
    configs = configs_of("a", "bad")
    for _ in range(2):
        preparations.update(assignment(a=1, bad=1), configs)
    preparation.wait_for(2)
    assert sorted(preparation.calls) == ["prepare a of 1, {}", "prepare bad of 1, {}"]
    preparations.update(assignment(own=tasks_of("a", 0), a=1), configs_of("a"))
    preparation.wait_for(1)
    assert preparation.calls[2:] == ["forget bad"], "the task of the other one uses it"
    preparations.update(assignment(other=tasks_of("a", 0), a=1), configs_of("a"))
    preparations.forget("a")
    preparation.wait_for(2)
    assert preparation.calls[3:] == ["prepare a of 1, {}", "forget a"]
    preparations.close()


def test_a_worker_joins_when_everything_is_prepared_or_after_a_limited_time(
    preparation: RecordingPreparation,
) -> None:
    now = 0.0
    preparations = TaskPreparations(
        registry_with(preparation), ConfigTransformer({}), clock=lambda: now
    )
    configs = configs_of("a", "b")
    assert not preparations.is_ready(configs)
    preparation.ready = {"a"}
    assert not preparations.is_ready(configs)
    preparation.ready = {"a", "b"}
    assert preparations.is_ready(configs)
    preparation.ready = set()
    assert not preparations.is_ready(configs)
    now = PREPARE_TIMEOUT_S
    assert preparations.is_ready(configs)
    preparations.update(assignment(a=1, b=1), configs)
    assert not preparations.is_ready(configs), "the next join has its own time"
    preparations.close()


@pytest.mark.parametrize(
    "configs",
    [
        configs_of("a", state=TargetState.PAUSED),
        configs_of("a", kind="Heartbeat"),
        ClusterConfigState(),
    ],
    ids=["paused", "its tasks are threads", "not read yet"],
)
def test_only_source_connectors_that_are_started_are_prepared(
    preparations: TaskPreparations, preparation: RecordingPreparation, configs: ClusterConfigState
) -> None:
    preparations.update(assignment(a=1), configs)
    preparations.update(assignment(c=1), configs_of("c"))
    preparation.wait_for(1)
    assert preparation.calls == ["prepare c of 1, {}"]
    preparations.close()
