"""Connectors that copy nothing; their config controls what they do.

They have MirrorMaker 2's class names, so that configs are validated as usual. The fake source
cluster has four partitions and one group. Some config keys make them fail or hang.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry, RegisteredConnector
from sparkmirror.connect.task_group import TaskListener, TaskPlan
from sparkmirror.errors import ClusterTimeout, MirrorError, TasksNotPlanned
from sparkmirror.javaregex.pattern import compile_java_pattern
from sparkmirror.mirror.connect_topics import offset_alterations as rules
from sparkmirror.mirror.connect_topics.offset_alterations import (
    OffsetAlteration,
    OffsetAlterationRules,
)
from sparkmirror.mirror.topics.task_assignment import (
    assigned_partitions,
    checkpoint_task_configs,
    heartbeat_task_configs,
    source_task_configs,
)
from sparkmirror.model import TopicPartition

SOURCE_PARTITIONS = tuple(
    TopicPartition(topic, number)
    for topic, count in (("orders", 3), ("payments", 1))
    for number in range(count)
)
START_HANGS = "test.start.hangs"
STOP_HANGS = "test.stop.hangs"
TASK_COUNT = "test.tasks"
PLANNING_FAILS = "test.planning.fails"
TASK_START_FAILS = "test.tasks.fail.to.start"


@dataclass
class ConnectorProbe:
    """Records the connectors and their calls; lets the test control them."""

    connectors: dict[str, list[FakeConnector]] = field(default_factory=dict)
    task_groups: dict[str, list[FakeTaskGroup]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    release_hanging: threading.Event = field(default_factory=threading.Event)
    """Ends the calls that hang."""
    failing_connectors: set[str] = field(default_factory=set)
    """Names of connectors whose `task_configs` fails."""
    waiting_connectors: set[str] = field(default_factory=set)
    """Names of connectors that do not know their tasks yet."""
    partitions: Sequence[TopicPartition] = SOURCE_PARTITIONS
    """The partitions of the fake source cluster."""
    consumer_groups: Sequence[str] = ("app-1",)
    """The groups of the fake source cluster."""

    def connector(self, name: str) -> FakeConnector:
        """The latest instance of that name."""
        return self.connectors[name][-1]

    def running(self, name: str) -> set[int]:
        """The tasks of that name that run now."""
        group = self.task_groups[name][-1] if name in self.task_groups else None
        if group is None or group.is_stopped or not group.plans:
            return set()
        return set(group.plans[-1].tasks)

    def task_group(self, name: str) -> FakeTaskGroup:
        """The latest group of that name."""
        return self.task_groups[name][-1]


class FakeConnector:
    """A connector of one of the three classes."""

    def __init__(
        self, connector_class: str, name: str, context: ConnectorContext, probe: ConnectorProbe
    ) -> None:
        self.name = name
        self.context = context
        self.config: ExpandedConfig = {}
        self._connector_class = connector_class
        self._probe = probe
        probe.connectors.setdefault(name, []).append(self)

    def start(self, config: ExpandedConfig) -> None:
        self._probe.calls.append(f"start {self.name}")
        self.config = config
        if START_HANGS in config:
            self._probe.release_hanging.wait(20)
        if "target.cluster.bootstrap.servers" not in config:
            raise MirrorError("No resolvable bootstrap urls given in bootstrap.servers")
        for pattern in config.get("topics", ".*").split(","):
            compile_java_pattern(pattern)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        is_failing = self.name in self._probe.failing_connectors
        is_waiting = self.name in self._probe.waiting_connectors
        self._probe.calls.append(f"plan {self.name}")  # the test may change them from now on
        if TASK_COUNT in self.config:
            return [dict(self.config)] * int(self.config[TASK_COUNT])
        if is_failing:
            raise ClusterTimeout(
                "source", f"no answer, password {self.config.get('test.password')}"
            )
        if is_waiting:
            raise TasksNotPlanned("source: waiting")
        enabled = self.config.get("enabled", "true") == "true"
        if self._connector_class == SOURCE_CONNECTOR:
            topics = [
                compile_java_pattern(one) for one in self.config.get("topics", ".*").split(",")
            ]
            chosen = [
                p for p in self._probe.partitions if any(one.fullmatch(p.topic) for one in topics)
            ]
            return source_task_configs(self.config, chosen, tasks_max=max_tasks, enabled=enabled)
        if self._connector_class == CHECKPOINT_CONNECTOR:
            return checkpoint_task_configs(
                self.config, self._probe.consumer_groups, tasks_max=max_tasks, enabled=enabled
            )
        emit = self.config.get("emit.heartbeats.enabled", "true") == "true"
        return heartbeat_task_configs(self.config, emit_heartbeats=emit)

    def stop(self) -> None:
        self._probe.calls.append(f"stop {self.name}")
        if STOP_HANGS in self.config:
            self._probe.release_hanging.wait(20)

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        rules.validate_alterations(alterations, _ALTERATION_RULES[self._connector_class])
        return "test.offsets.elsewhere" not in config


class FakeTaskGroup:
    """Tasks that run without doing anything; the test makes them fail."""

    def __init__(self, name: str, listener: TaskListener, probe: ConnectorProbe) -> None:
        self.name = name
        self.listener = listener
        self.plans: list[TaskPlan] = []
        self.failed: set[int] = set()
        self.is_stopped = False
        self._probe = probe
        self._is_paused = False
        probe.task_groups.setdefault(name, []).append(self)

    def start(self, plan: TaskPlan, *, paused: bool) -> None:
        self._probe.calls.append(f"start tasks {self.name}")
        if TASK_START_FAILS in plan.config:
            raise MirrorError(f"no slots for {len(plan.tasks)} tasks")
        self.plans.append(plan)
        self._is_paused = paused
        self._report_states(plan.tasks)

    def reassign(self, plan: TaskPlan) -> None:
        self._probe.calls.append(f"reassign tasks {self.name}")
        before = set(self.plans[-1].tasks)
        self.plans.append(plan)
        self.failed.clear()
        self._report_states(plan.tasks)
        for task in sorted(before - set(plan.tasks)):
            self.listener.on_stopped(task)

    def pause(self) -> None:
        self._is_paused = True
        self._report_states(self._healthy_tasks())

    def resume(self) -> None:
        self._is_paused = False
        self._report_states(self._healthy_tasks())

    def restart(self, plan: TaskPlan, tasks: Collection[int]) -> None:
        self.plans.append(plan)
        self._probe.calls.append(f"restart tasks {self.name} {sorted(tasks)}")
        self.failed -= set(tasks)
        for task in tasks:
            self.listener.on_stopped(task)
        self._report_states(tasks)

    def stop(self, timeout_s: float) -> None:
        assert timeout_s > 0
        self._probe.calls.append(f"stop tasks {self.name}")
        self.is_stopped = True
        for task in self._healthy_tasks():
            self.listener.on_stopped(task)

    def fail(self, task: int, error: Exception) -> None:
        """Report that a task has failed."""
        self.failed.add(task)
        self.listener.on_failed(task, error)

    def _healthy_tasks(self) -> list[int]:
        tasks = self.plans[-1].tasks if self.plans else ()
        return [task for task in tasks if task not in self.failed]

    def _report_states(self, tasks: Collection[int]) -> None:
        for task in tasks:
            config = self.plans[-1].tasks[task]
            if config.get("value.converter", "").endswith("IntegerConverter"):
                self.fail(task, MirrorError("Tolerance exceeded in error handler"))
            elif self._is_paused:
                self.listener.on_paused(task)
            else:
                self.listener.on_running(task)
                self.listener.on_topics(task, _written_topics(config))


def fake_connector_registry(probe: ConnectorProbe) -> ConnectorRegistry:
    """Return the registry of all three classes."""
    return {
        connector_class: _fake_connector_entry(connector_class, probe)
        for connector_class in _ALTERATION_RULES
    }


def _fake_connector_entry(connector_class: str, probe: ConnectorProbe) -> RegisteredConnector:
    return RegisteredConnector(
        connector=lambda name, context: FakeConnector(connector_class, name, context, probe),
        task_group=lambda connector, listener: FakeTaskGroup(connector, listener, probe),
    )


_ALTERATION_RULES: dict[str, OffsetAlterationRules] = {
    SOURCE_CONNECTOR: rules.SOURCE_RULES,
    CHECKPOINT_CONNECTOR: rules.CHECKPOINT_RULES,
    HEARTBEAT_CONNECTOR: rules.HEARTBEAT_RULES,
}


def _written_topics(config: ExpandedConfig) -> list[str]:
    connector_class = config["connector.class"]
    if "Source" in connector_class:
        return sorted({partition.topic for partition in assigned_partitions(config)})
    return ["source.checkpoints.internal"] if "Checkpoint" in connector_class else ["heartbeats"]
