"""The tasks of one connector on this worker: brings the running task group to the desired state.

    herder thread ── transition_to, restart ──▶ executor ──▶ TaskGroup.start, reassign, pause, ...
    herder thread ◀── TaskEvents (posted, in order) ── executor, or threads of the group

With exactly-once support, producers of older tasks are fenced before newer tasks start. A group is
then never reassigned in place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.runtime.config_transformer import TransformedConfig
from sparkmirror.connect.runtime.connector_registry import RegisteredConnector, lookup_connector
from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.stack_traces import format_trace, hide_secrets
from sparkmirror.connect.runtime.tasks_max import check_tasks_max
from sparkmirror.connect.runtime.threads.event_poster import EventPoster
from sparkmirror.connect.runtime.threads.serial_executor import SerialExecutor
from sparkmirror.connect.start_turns import WORKER_TURNS
from sparkmirror.connect.task_group import TaskGroup, TaskPlan
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)


class TaskEvents(Protocol):
    """Events of tasks, handled on the herder thread."""

    def on_task_running(self, name: str, task: int, problem: str) -> None: ...
    def on_task_paused(self, name: str, task: int) -> None: ...
    def on_task_failed(self, name: str, task: int, trace: str, *, has_started: bool) -> None: ...
    def on_task_stopped(self, name: str, task: int) -> None: ...
    def on_task_topics(self, name: str, task: int, topics: Collection[str]) -> None: ...
    def on_tasks_restarting(self, name: str, tasks: Collection[int]) -> None: ...

    def on_task_count(self, name: str, count: int, own: Collection[int]) -> None:
        """The connector has so many tasks now, and this worker runs `own` of them.

        Forget all tasks with higher numbers. Only `own` tasks report from now on.
        """
        ...

    def on_tasks_removed(self, name: str) -> None:
        """The tasks have ended, and no others follow."""
        ...


class _GroupListener:
    """The TaskListener of one group: posts its events without secrets, until the group ends."""

    def __init__(
        self, name: str, events: TaskEvents, poster: EventPoster, secrets: Collection[str]
    ) -> None:
        self._name = name
        self._events = events
        self._poster = poster
        self._is_closed = False
        self.secrets = secrets
        self.active_tasks: set[int] = set()
        """Tasks that have not reported their end."""
        self._running_problems: dict[int, str] = {}
        """What was posted last of each running task: a group repeats it every few seconds."""

    def on_running(self, task: int, problem: str = "") -> None:
        if not self._is_closed and self._running_problems.get(task) != problem:
            self._running_problems[task] = problem
            self.active_tasks.add(task)
            text = hide_secrets(problem, self.secrets)
            self._poster.post(self._events.on_task_running, self._name, task, text)

    def forget_running(self) -> None:
        """Post the next report of every running task, even if it repeats the last one."""
        self._running_problems.clear()

    def on_paused(self, task: int) -> None:
        self._running_problems.pop(task, None)
        if not self._is_closed:
            self.active_tasks.add(task)
            self._poster.post(self._events.on_task_paused, self._name, task)

    def on_failed(self, task: int, error: BaseException) -> None:
        self._running_problems.pop(task, None)
        if not self._is_closed:
            self.active_tasks.discard(task)
            trace = format_trace(error, self.secrets)
            log.error("Task %s-%d threw an uncaught and unrecoverable exception. Task is being "
                      "killed and will not recover until manually restarted: %s",
                      self._name, task, trace)  # fmt: skip
            self._poster.post(
                self._events.on_task_failed, self._name, task, trace, has_started=True
            )

    def on_stopped(self, task: int) -> None:
        self._running_problems.pop(task, None)
        if not self._is_closed:
            self.active_tasks.discard(task)
            self._poster.post(self._events.on_task_stopped, self._name, task)

    def on_topics(self, task: int, topics: Collection[str]) -> None:
        if not self._is_closed:
            self._poster.post(self._events.on_task_topics, self._name, task, tuple(topics))

    def close(self) -> None:
        """Report the end of tasks that did not; ignore the group from now on."""
        self._is_closed = True
        for task in sorted(self.active_tasks):
            self._poster.post(self._events.on_task_stopped, self._name, task)


@dataclass(slots=True)
class _RunningGroup:
    """A task group, and what it was started with."""

    group: TaskGroup
    listener: _GroupListener
    registered: RegisteredConnector
    desired: DesiredState


class WorkerTasks:
    """One connector's tasks. The herder thread calls the public methods."""

    def __init__(
        self, name: str, run_context: RunContext, events: TaskEvents, poster: EventPoster
    ) -> None:
        """`poster` carries `events` to the herder thread."""
        self.name = name
        self._run_context = run_context
        self._events = events
        self._poster = poster
        self._executor = SerialExecutor(f"task-thread-{name}", connector=name, scope="tasks")
        self._requested: DesiredState | None = None
        """The last state that was asked for. The executor's thread reads it."""
        # The executor's thread owns the following attributes.
        self._desired: DesiredState | None = None
        self._running: _RunningGroup | None = None

    def transition_to(self, desired: DesiredState | None) -> None:
        """Bring the tasks to a state. None removes them."""
        self._requested = desired
        self._executor.submit(lambda: self._apply(desired))
        if desired is None:
            self._executor.close()

    def restart(self, tasks: Collection[int], done: Callable[[], None] | None = None) -> None:
        """Restart these tasks; the executor calls `done` after the group accepted it."""
        self._executor.submit(lambda: self._restart(tasks, done))

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job after all earlier requests and before all later ones."""
        self._executor.submit(job)

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        return self._executor.join(timeout_s)

    # -- the executor's thread -------------------------------------------------------------------

    def _apply(self, desired: DesiredState | None) -> None:
        self._desired, running = desired, self._running
        try:
            if desired is None or not desired.tasks:
                self._stop()
                if desired is not None:
                    self._run_context.on_tasks_ended(self.name, desired.state)
            elif running is None:
                self._start_in_turn(desired)
            elif not _same_plan(running.desired, desired):
                self._reassign(running, desired)
            elif running.desired.is_paused != desired.is_paused:
                running.desired = desired
                (running.group.pause if desired.is_paused else running.group.resume)()
        except Exception as error:  # noqa: BLE001  any error makes the tasks FAILED
            self._fail(desired, error)
        else:
            if desired is not None:
                self._report_task_count(desired)
        if desired is None:
            self._poster.post(self._events.on_tasks_removed, self.name)

    def _start_in_turn(self, desired: DesiredState) -> None:
        """Start the tasks, unless another state was asked for while they waited for their turn."""
        with WORKER_TURNS.turn():
            if self._requested is desired:
                self._start(desired)

    def _start(self, desired: DesiredState) -> None:
        plan, secrets = self._build_plan(desired)
        registered = lookup_connector(self._run_context.registry, plan.config)
        if self._run_context.fence_zombies is not None:
            self._run_context.fence_zombies(self.name)
        listener = _GroupListener(self.name, self._events, self._poster, secrets)
        group = registered.task_group(self.name, listener)
        self._running = _RunningGroup(group, listener, registered, desired)
        self._report_task_count(desired)
        log.info("Starting %d of %d tasks of connector %s",
                 len(plan.tasks), plan.task_count, self.name)  # fmt: skip
        group.start(plan, paused=desired.is_paused)

    def _reassign(self, running: _RunningGroup, desired: DesiredState) -> None:
        plan, secrets = self._build_plan(desired)
        is_same_set = running.desired.generation == desired.generation
        in_place = (self._run_context.fence_zombies is None or is_same_set) and lookup_connector(
            self._run_context.registry, plan.config
        ) is running.registered
        if not in_place or running.desired.is_paused != desired.is_paused:
            self._stop()
            self._start(desired)
            return
        # The count covers new tasks before they report, and ending tasks until they have.
        count = max(running.desired.task_count, desired.task_count)
        own = {*running.desired.tasks, *desired.tasks}
        self._poster.post(self._events.on_task_count, self.name, count, own)
        running.desired, running.listener.secrets = desired, secrets
        running.listener.forget_running()
        running.group.reassign(plan)

    def _stop(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        log.info("Stopping tasks of connector %s", self.name)
        try:
            running.group.stop(self._run_context.stop_timeout_s)
        except Exception as error:  # noqa: BLE001  the group is dropped in any case
            trace = format_trace(error, running.listener.secrets)
            log.error("Graceful stop of tasks of %s failed: %s", self.name, trace)
        running.listener.close()

    def _restart(self, tasks: Collection[int], done: Callable[[], None] | None) -> None:
        desired, running = self._desired, self._running
        if desired is not None and desired.tasks:
            concerned = [task for task in sorted(tasks) if task in desired.tasks]
            self._poster.post(self._events.on_tasks_restarting, self.name, concerned)
            if running is not None:
                running.listener.forget_running()  # the next reports follow the restart
            try:
                if running is None:
                    self._start(desired)
                else:
                    plan, running.listener.secrets = self._build_plan(desired)
                    running.group.restart(plan, concerned)
            except Exception as error:  # noqa: BLE001  any error makes the tasks FAILED
                self._fail(desired, error)
        if done is not None:
            done()

    def _build_plan(self, desired: DesiredState) -> tuple[TaskPlan, frozenset[str]]:
        transform = self._run_context.transformer.transform
        config = transform(desired.properties)
        check_tasks_max(self.name, desired.task_count, config.values)
        tasks: dict[int, TransformedConfig] = {
            number: transform(task) for number, task in desired.tasks.items()
        }
        plan = TaskPlan(
            connector=self.name,
            config=config.values,
            tasks={number: task.values for number, task in tasks.items()},
            task_count=desired.task_count,
            generation=desired.generation,
        )
        return plan, config.secrets.union(*(task.secrets for task in tasks.values()))

    def _secrets(self) -> frozenset[str]:
        """Return the texts to hide, if they can be fetched."""
        try:
            return frozenset() if self._desired is None else self._build_plan(self._desired)[1]
        except MirrorError:
            return frozenset()

    def _report_task_count(self, desired: DesiredState) -> None:
        self._poster.post(
            self._events.on_task_count, self.name, desired.task_count, tuple(desired.tasks)
        )
        if self._running is not None:
            self._running.listener.forget_running()

    def _fail(self, desired: DesiredState | None, error: Exception) -> None:
        running = self._running
        trace = format_trace(error, running.listener.secrets if running else self._secrets())
        log.error("Failed to start tasks of connector %s: %s", self.name, trace)
        if running is not None:  # a group that started only in part is stopped
            running.listener.active_tasks.clear()
            self._stop()
        if desired is None:
            return
        self._report_task_count(desired)
        for task in desired.tasks:
            self._poster.post(
                self._events.on_task_failed, self.name, task, trace, has_started=False
            )


def _same_plan(before: DesiredState, desired: DesiredState) -> bool:
    """Return whether both ask for the same tasks with the same configs."""
    return (
        before.generation == desired.generation
        and before.tasks.keys() == desired.tasks.keys()
        and before.task_count == desired.task_count
    )
