"""The tasks of one connector on this worker: brings what runs to what is wanted.

    herder's thread ── want, restart ──▶ lane ──▶ TaskGroup.start, reassign, pause, resume, stop
    herder's thread ◀── TaskEvents (posted, in order) ── lane, or threads of the group

With exactly-once support, producers of older tasks are fenced before newer ones start, so a group
is then never reassigned in place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.runtime.config_transformer import ConfigTransformer, TransformedConfig
from sparkmirror.connect.runtime.connector_registry import (
    ConnectorRegistry,
    RegisteredConnector,
    lookup_connector,
)
from sparkmirror.connect.runtime.serial_executor import SerialExecutor
from sparkmirror.connect.runtime.stack_traces import format_trace, hide_secrets
from sparkmirror.connect.runtime.tasks_max import check_tasks_max
from sparkmirror.connect.task_group import TaskGroup, TaskPlan
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredTasks:
    """What the tasks of a connector should be."""

    connector: ConfigProperties
    tasks: tuple[ConfigProperties, ...]
    generation: int
    paused: bool


class TaskEvents(Protocol):
    """What becomes of tasks. Any thread calls; nothing blocks."""

    def on_task_running(self, name: str, task: int, remark: str) -> None: ...
    def on_task_paused(self, name: str, task: int) -> None: ...
    def on_task_failed(self, name: str, task: int, told: str, *, has_started: bool) -> None: ...
    def on_task_stopped(self, name: str, task: int) -> None: ...
    def on_task_topics(self, name: str, task: int, topics: Collection[str]) -> None: ...
    def on_tasks_restarting(self, name: str, tasks: Collection[int]) -> None: ...

    def on_task_count(self, name: str, count: int) -> None:
        """From now on there are so many tasks; of others nothing is to be known any more."""
        ...

    def on_tasks_removed(self, name: str) -> None:
        """There are none, and nothing is to follow."""
        ...


class _GroupListener:
    """Passes on what one group says, without secrets, until the group is no more."""

    def __init__(self, name: str, events: TaskEvents, secrets: Collection[str]) -> None:
        self._name = name
        self._events = events
        self._is_closed = False
        self.secrets = secrets
        self.active_tasks: set[int] = set()
        """Tasks that were not heard to have ended."""

    def on_running(self, task: int, remark: str = "") -> None:
        if not self._is_closed:
            self.active_tasks.add(task)
            self._events.on_task_running(self._name, task, hide_secrets(remark, self.secrets))

    def on_paused(self, task: int) -> None:
        if not self._is_closed:
            self.active_tasks.add(task)
            self._events.on_task_paused(self._name, task)

    def on_failed(self, task: int, error: BaseException) -> None:
        if not self._is_closed:
            self.active_tasks.discard(task)
            told = format_trace(error, self.secrets)
            log.error("Task %s-%d threw an uncaught and unrecoverable exception. Task is being "
                      "killed and will not recover until manually restarted: %s",
                      self._name, task, told)  # fmt: skip
            self._events.on_task_failed(self._name, task, told, has_started=True)

    def on_stopped(self, task: int) -> None:
        if not self._is_closed:
            self.active_tasks.discard(task)
            self._events.on_task_stopped(self._name, task)

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        if not self._is_closed:
            self._events.on_task_topics(self._name, task, topics)

    def close(self) -> None:
        """Say for those who did not that they have ended; hear nothing any more."""
        self._is_closed = True
        for task in sorted(self.active_tasks):
            self._events.on_task_stopped(self._name, task)


@dataclass(slots=True)
class _RunningGroup:
    """A group, and what it was made of."""

    group: TaskGroup
    listener: _GroupListener
    registered: RegisteredConnector
    desired: DesiredTasks


class WorkerTasks:
    """One connector's tasks. Public methods are for the herder's thread."""

    def __init__(
        self,
        name: str,
        kinds: ConnectorRegistry,
        expander: ConfigTransformer,
        events: TaskEvents,
        *,
        stop_within_s: float,
        fence: Callable[[str], None] | None = None,
    ) -> None:
        """`fence` fences producers of older tasks; there is none without exactly-once support."""
        self.name = name
        self._registry = kinds
        self._transformer = expander
        self._events = events
        self._stop_timeout_s = stop_within_s
        self._fence_zombies = fence
        self._executor = SerialExecutor(f"task-thread-{name}", connector=name, scope="tasks")
        self._desired: DesiredTasks | None = None
        self._running: _RunningGroup | None = None

    def transition_to(self, wish: DesiredTasks | None) -> None:
        """Have it so. None ends the run."""
        self._executor.submit(lambda: self._apply(wish))
        if wish is None:
            self._executor.close()

    def restart(self, tasks: Collection[int], done: Callable[[], None] | None = None) -> None:
        """Begin these tasks anew; `done` is called by the lane when the group has taken it on."""
        self._executor.submit(lambda: self._restart(tasks, done))

    def submit(self, job: Callable[[], None]) -> None:
        """Do something after all that was asked before, and before what will be asked."""
        self._executor.submit(job)

    def join(self, within_s: float) -> bool:
        """Wait for the end of the thread; say whether it came."""
        return self._executor.join(within_s)

    # -- the lane --------------------------------------------------------------------------------

    def _apply(self, wish: DesiredTasks | None) -> None:
        count = 0 if wish is None else len(wish.tasks)
        self._desired, running = wish, self._running
        try:
            if wish is None or not wish.tasks:
                self._stop()
            elif running is None:
                self._start(wish)
            elif running.desired.generation != wish.generation:
                self._reassign(running, wish)
            elif running.desired.paused != wish.paused:
                running.desired = wish
                (running.group.pause if wish.paused else running.group.resume)()
        except Exception as error:  # noqa: BLE001  whatever it is, it makes the tasks FAILED
            self._fail(range(count), error)
        else:
            self._events.on_task_count(self.name, count)
        if wish is None:
            self._events.on_tasks_removed(self.name)

    def _start(self, wish: DesiredTasks) -> None:
        plan, secrets = self._build_plan(wish)
        kind = lookup_connector(self._registry, plan.config)
        if self._fence_zombies is not None:
            self._fence_zombies(self.name)
        listener = _GroupListener(self.name, self._events, secrets)
        group = kind.task_group(self.name, listener)
        self._running = _RunningGroup(group, listener, kind, wish)
        self._events.on_task_count(self.name, len(wish.tasks))
        log.info("Starting %d tasks of connector %s", len(plan.tasks), self.name)
        group.start(plan, paused=wish.paused)

    def _reassign(self, running: _RunningGroup, wish: DesiredTasks) -> None:
        plan, secrets = self._build_plan(wish)
        in_place = (
            self._fence_zombies is None
            and lookup_connector(self._registry, plan.config) is running.registered
        )
        if not in_place or running.desired.paused != wish.paused:
            self._stop()
            self._start(wish)
            return
        # New tasks are known before they report, those that end are until they have.
        self._events.on_task_count(self.name, max(len(running.desired.tasks), len(wish.tasks)))
        running.desired, running.listener.secrets = wish, secrets
        running.group.reassign(plan)

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        log.info("Stopping tasks of connector %s", self.name)
        try:
            running.group.stop(self._stop_timeout_s)
        except Exception as error:  # noqa: BLE001  it is being thrown away
            told = format_trace(error, running.listener.secrets)
            log.error("Graceful stop of tasks of %s failed: %s", self.name, told)
        running.listener.close()

    def _restart(self, tasks: Collection[int], done: Callable[[], None] | None) -> None:
        wish, running = self._desired, self._running
        if wish is not None and wish.tasks:
            concerned = [task for task in sorted(tasks) if task < len(wish.tasks)]
            self._events.on_tasks_restarting(self.name, concerned)
            try:
                if running is None:
                    self._start(wish)
                else:
                    plan, running.listener.secrets = self._build_plan(wish)
                    running.group.restart({task: plan.tasks[task] for task in concerned})
            except Exception as error:  # noqa: BLE001  whatever it is, it makes the tasks FAILED
                self._fail(range(len(wish.tasks)), error)
        if done is not None:
            done()

    def _build_plan(self, wish: DesiredTasks) -> tuple[TaskPlan, frozenset[str]]:
        config = self._transformer.transform(wish.connector)
        check_tasks_max(self.name, len(wish.tasks), config.values)
        tasks: list[TransformedConfig] = [self._transformer.transform(task) for task in wish.tasks]
        plan = TaskPlan(
            connector=self.name,
            config=config.values,
            tasks=tuple(task.values for task in tasks),
            generation=wish.generation,
        )
        return plan, config.secrets.union(*(task.secrets for task in tasks))

    def _secrets(self) -> frozenset[str]:
        """What must not be seen, as far as it can be fetched."""
        try:
            return frozenset() if self._desired is None else self._build_plan(self._desired)[1]
        except MirrorError:
            return frozenset()

    def _fail(self, tasks: Sequence[int], error: Exception) -> None:
        running = self._running
        told = format_trace(error, running.listener.secrets if running else self._secrets())
        log.error("Failed to start tasks of connector %s: %s", self.name, told)
        if running is not None:  # half a group is none
            running.listener.active_tasks.clear()
            self._stop()
        self._events.on_task_count(self.name, len(tasks))
        for task in tasks:
            self._events.on_task_failed(self.name, task, told, has_started=False)
