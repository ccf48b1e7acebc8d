"""Connectors that do no mirroring: small, real, and told by their config what to do.

They stand under MirrorMaker 2's class names, so that configs are judged as usual. The made-up
source cluster has four partitions and one group. Some keys of the config make them misbehave.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.classes import CHECKPOINT_CONNECTOR, HEARTBEAT_CONNECTOR, SOURCE_CONNECTOR
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.kinds import ConnectorKind, ConnectorKinds
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.errors import ClusterTimeout, MirrorError
from sparkmirror.javaregex import compile_java
from sparkmirror.mirror import offset_alterations as rules
from sparkmirror.mirror.offset_alterations import Alteration, AlterationRules
from sparkmirror.mirror.tasks import (
    assigned_partitions,
    checkpoint_task_configs,
    heartbeat_task_configs,
    source_task_configs,
)
from sparkmirror.model import TopicPartition

PARTITIONS = tuple(
    TopicPartition(topic, number)
    for topic, count in (("orders", 3), ("payments", 1))
    for number in range(count)
)
HANGS = "test.start.hangs"
TOO_MANY = "test.tasks"
UNANSWERED = "test.planning.fails"
START_FAILS = "test.tasks.fail.to.start"


@dataclass
class Watch:
    """What the test sees of the connectors, and what it holds in its hands."""

    connectors: dict[str, list[SmallConnector]] = field(default_factory=dict)
    groups: dict[str, list[SmallTasks]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    """Lets connectors go that hang."""
    failing: set[str] = field(default_factory=set)
    """Names of connectors whose tasks cannot be planned for now."""
    partitions: Sequence[TopicPartition] = PARTITIONS
    """What the made-up source cluster holds."""
    consumers: Sequence[str] = ("app-1",)
    """Its groups."""

    def connector(self, name: str) -> SmallConnector:
        """The latest instance of that name."""
        return self.connectors[name][-1]

    def group(self, name: str) -> SmallTasks:
        """The latest group of that name."""
        return self.groups[name][-1]


class SmallConnector:
    """A connector of one of the three classes."""

    def __init__(self, kind: str, name: str, context: ConnectorContext, watch: Watch) -> None:
        self.name = name
        self.context = context
        self.config: ExpandedConfig = {}
        self._kind = kind
        self._watch = watch
        watch.connectors.setdefault(name, []).append(self)

    def start(self, config: ExpandedConfig) -> None:
        self._watch.calls.append(f"start {self.name}")
        self.config = config
        if HANGS in config:
            self._watch.release.wait(20)
        if "target.cluster.bootstrap.servers" not in config:
            raise MirrorError("No resolvable bootstrap urls given in bootstrap.servers")
        for pattern in config.get("topics", ".*").split(","):
            compile_java(pattern)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self._watch.calls.append(f"plan {self.name}")
        if TOO_MANY in self.config:
            return [dict(self.config)] * int(self.config[TOO_MANY])
        if self.name in self._watch.failing:
            raise ClusterTimeout(
                "source", f"no answer, password {self.config.get('test.password')}"
            )
        enabled = self.config.get("enabled", "true") == "true"
        if self._kind == SOURCE_CONNECTOR:
            topics = [compile_java(one) for one in self.config.get("topics", ".*").split(",")]
            chosen = [
                p for p in self._watch.partitions if any(one.fullmatch(p.topic) for one in topics)
            ]
            return source_task_configs(self.config, chosen, tasks_max=max_tasks, enabled=enabled)
        if self._kind == CHECKPOINT_CONNECTOR:
            return checkpoint_task_configs(
                self.config, self._watch.consumers, tasks_max=max_tasks, enabled=enabled
            )
        emit = self.config.get("emit.heartbeats.enabled", "true") == "true"
        return heartbeat_task_configs(self.config, emit_heartbeats=emit)

    def stop(self) -> None:
        self._watch.calls.append(f"stop {self.name}")

    def alter_offsets(self, config: ExpandedConfig, alterations: Sequence[Alteration]) -> bool:
        rules.check(alterations, _RULES[self._kind])
        return "test.offsets.elsewhere" not in config


class SmallTasks:
    """Tasks that run without doing anything, until the test lets them."""

    def __init__(self, name: str, listener: TaskListener, watch: Watch) -> None:
        self.name = name
        self.listener = listener
        self.plans: list[TaskPlan] = []
        self.failed: set[int] = set()
        self._watch = watch
        self._is_paused = False
        watch.groups.setdefault(name, []).append(self)

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        self._watch.calls.append(f"start tasks {self.name}")
        if START_FAILS in plan.config:
            raise MirrorError(f"no slots for {len(plan.tasks)} tasks")
        self.plans.append(plan)
        self._is_paused = paused
        self._go(range(len(plan.tasks)))

    def reassign(self, plan: TaskPlan) -> None:
        self._watch.calls.append(f"reassign tasks {self.name}")
        before = len(self.plans[-1].tasks)
        self.plans.append(plan)
        self.failed.clear()
        self._go(range(len(plan.tasks)))
        for task in range(len(plan.tasks), before):
            self.listener.on_stopped(task)

    def pause(self) -> None:
        self._is_paused = True
        self._go(self._healthy())

    def resume(self) -> None:
        self._is_paused = False
        self._go(self._healthy())

    def restart(self, tasks: Mapping[int, ExpandedConfig]) -> None:
        self._watch.calls.append(f"restart tasks {self.name} {sorted(tasks)}")
        self.failed -= set(tasks)
        for task in tasks:
            self.listener.on_stopped(task)
        self._go(tasks)

    def stop(self, within_s: float) -> None:
        assert within_s > 0
        self._watch.calls.append(f"stop tasks {self.name}")
        for task in self._healthy():
            self.listener.on_stopped(task)

    def fail(self, task: int, error: Exception) -> None:
        """Let a task fail."""
        self.failed.add(task)
        self.listener.on_failed(task, error)

    def _healthy(self) -> list[int]:
        tasks = range(len(self.plans[-1].tasks)) if self.plans else range(0)
        return [task for task in tasks if task not in self.failed]

    def _go(self, tasks: Collection[int]) -> None:
        for task in tasks:
            config = self.plans[-1].tasks[task]
            if config.get("value.converter", "").endswith("IntegerConverter"):
                self.fail(task, MirrorError("Tolerance exceeded in error handler"))
            elif self._is_paused:
                self.listener.on_paused(task)
            else:
                self.listener.on_running(task)
                self.listener.on_topics(task, _topics(config))


def small_kinds(watch: Watch) -> ConnectorKinds:
    """All three classes."""
    return {kind: _small_kind(kind, watch) for kind in _RULES}


def _small_kind(kind: str, watch: Watch) -> ConnectorKind:
    return ConnectorKind(
        connector=lambda name, context: SmallConnector(kind, name, context, watch),
        task_group=lambda connector, listener: SmallTasks(connector, listener, watch),
    )


_RULES: dict[str, AlterationRules] = {
    SOURCE_CONNECTOR: rules.SOURCE,
    CHECKPOINT_CONNECTOR: rules.CHECKPOINT,
    HEARTBEAT_CONNECTOR: rules.HEARTBEAT,
}


def _topics(config: ExpandedConfig) -> list[str]:
    kind = config["connector.class"]
    if "Source" in kind:
        return sorted({partition.topic for partition in assigned_partitions(config)})
    return ["source.checkpoints.internal"] if "Checkpoint" in kind else ["heartbeats"]
