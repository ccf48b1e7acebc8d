"""One connector on this worker with its tasks: their two threads, and what the herder last asked.

`transition_to` compares the desired state with the last one and hands over only what differs. A
connector thread that does not stop in time is abandoned and replaced, so that a connector that
hangs can still be changed, stopped and deleted. Belongs to the herder thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from threading import Event

from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.task_reconfiguration_schedule import TaskReconfigurationSchedule
from sparkmirror.connect.runtime.threads.event_poster import EventPoster
from sparkmirror.connect.runtime.threads.graceful_shutdown_timeout import GracefulShutdownTimeout
from sparkmirror.connect.runtime.worker_connector import ConnectorEvents, WorkerConnector
from sparkmirror.connect.runtime.worker_tasks import TaskEvents, WorkerTasks


class ConnectorAndTasks:
    """One connector, from its first config until its connector and tasks have stopped."""

    def __init__(
        self, name: str, run_context: RunContext, events: ConnectorEvents, task_events: TaskEvents
    ) -> None:
        self.name = name
        self.reconfiguration = TaskReconfigurationSchedule()
        self.max_task_count = 0
        """The highest number of tasks so far: Connect remembers the configs of them all."""
        self.pending_restarts: list[Future[None]] = []
        """Restart requests that wait for the connector to start."""
        self.is_stopping = False
        self.is_deleted = False
        """Whether the slot stops because the connector was deleted."""
        self.has_failed = False
        """Whether the connector (not a task) has failed."""
        self._run_context = run_context
        self._events = events
        self._task_events = task_events
        self._shutdown_timeout = GracefulShutdownTimeout(
            name, run_context.herder_thread, run_context.stop_timeout_s
        )
        self._restart_count = 0
        self._is_restart = False
        self._desired: DesiredState | None = None
        self._has_connector_stopped = False
        self._have_tasks_stopped = False
        self._connector_poster, self._worker_connector = self._create_worker_connector()
        self._task_poster = EventPoster(run_context.herder_thread)
        self._worker_tasks = WorkerTasks(name, run_context, task_events, self._task_poster)

    def transition_to(self, desired: DesiredState) -> None:
        """Hand over what differs from the last desired state."""
        assert not self.is_stopping
        before, self._desired = (
            self._desired,
            replace(desired, restart_count=self._restart_count, is_restart=self._is_restart),
        )
        self.max_task_count = max(self.max_task_count, desired.task_count)
        if not self._desired.same_connector(before):
            self._transition_connector(self._desired)
        if not self._desired.same_tasks(before):
            self._worker_tasks.transition_to(self._desired)

    def request_restart(self, *, restarting: bool = False) -> None:
        """Make the next `transition_to` start another instance of the connector.

        `restarting`: the status topic says RESTARTING in between.
        """
        self._restart_count += 1
        self._is_restart = restarting

    def restart_all_tasks(self) -> None:
        """Restart every task."""
        if self._desired is not None:
            self._worker_tasks.restart(self._desired.tasks)

    def restart_tasks(self, tasks: Collection[int], done: Callable[[], None] | None = None) -> None:
        """Restart these tasks; the tasks' thread calls `done` after the task group accepted it."""
        self._worker_tasks.restart(tasks, done)

    def submit_to_task_thread(self, job: Callable[[], None]) -> None:
        """Run a job in the thread that starts and stops the tasks."""
        self._worker_tasks.submit(job)

    def request_task_configs(self) -> None:
        """Ask the connector for its task configs; once more if it is just being asked."""
        if self.reconfiguration.request():
            self._worker_connector.request_task_configs()

    def retry_task_configs(self) -> None:
        """Ask the connector for its task configs after a failure."""
        if self.reconfiguration.retry():
            self._worker_connector.request_task_configs()

    def request_value_check(self) -> None:
        """Compare the values of config providers with those that the connector has."""
        self._worker_connector.request_value_check()

    def on_task_configs_received(self) -> None:
        """Ask again if a request came while the connector was being asked."""
        if self.reconfiguration.on_answer():
            self._worker_connector.request_task_configs()

    def is_current(self, desired: DesiredState) -> bool:
        """Return whether the connector should still be as that state says."""
        return desired.same_connector(self._desired)

    @property
    def desired(self) -> DesiredState | None:
        """What the herder last asked of the connector and its tasks."""
        return self._desired

    def stop(self, *, is_deleted: bool) -> None:
        """Stop the connector and its tasks.

        `on_connector_removed` and `on_tasks_removed` follow, at the latest after the stop timeout.
        """
        self.is_deleted = self.is_deleted or is_deleted
        if self.is_stopping:
            return
        self.is_stopping = True
        self._desired = None
        self._transition_connector(None)
        self._worker_tasks.transition_to(None)
        self._shutdown_timeout.watch_tasks(
            lambda: self._have_tasks_stopped, self._abandon_hung_tasks
        )

    def mark_connector_stopped(self) -> None:
        """Note that the connector has stopped, and drop its later events."""
        self._connector_poster.close()
        self._has_connector_stopped = True

    def mark_tasks_stopped(self) -> None:
        """Note that the tasks have stopped, and drop their later events."""
        self._task_poster.close()
        self._have_tasks_stopped = True

    @property
    def has_stopped(self) -> bool:
        """Whether the connector and its tasks have both stopped."""
        return self._has_connector_stopped and self._have_tasks_stopped

    def submit_to_connector_thread(self, job: Callable[[], None]) -> None:
        """Run a job in the connector's thread, after its running call."""
        self._worker_connector.submit(job)

    def stop_waits(self) -> list[Callable[[float], bool]]:
        """Return functions that wait until all that was requested so far has been done.

        Each takes the seconds to wait and returns whether it is done.
        """
        if self.is_stopping:
            return [self._worker_connector.join, self._worker_tasks.join]
        connector_done, tasks_done = Event(), Event()
        self._worker_connector.submit(connector_done.set)
        self._worker_tasks.submit(tasks_done.set)
        return [connector_done.wait, tasks_done.wait]

    def joinables(self) -> tuple[WorkerConnector, WorkerTasks]:
        """Return the two threads that a shutdown waits for."""
        return self._worker_connector, self._worker_tasks

    def _create_worker_connector(self) -> tuple[EventPoster, WorkerConnector]:
        poster = EventPoster(self._run_context.herder_thread)
        return poster, WorkerConnector(self.name, self._run_context, self._events, poster)

    def _transition_connector(self, desired: DesiredState | None) -> None:
        self.reconfiguration.on_new_instance()
        thread = self._worker_connector
        request = thread.transition_to(desired)
        self._shutdown_timeout.watch_connector(
            lambda: thread is not self._worker_connector or thread.has_released(request),
            partial(self._replace_hung_connector, thread),
        )

    def _replace_hung_connector(self, hung: WorkerConnector) -> None:
        """Abandon the connector's thread; start another one unless the connector is removed."""
        self._connector_poster.close()
        hung.abandon()
        desired = self._desired
        self._events.on_connector_stopped(
            self.name, restarting=desired is not None and desired.is_restart
        )
        if desired is None:
            self._events.on_connector_removed(self.name)
        else:
            self._connector_poster, self._worker_connector = self._create_worker_connector()
            self._transition_connector(desired)

    def _abandon_hung_tasks(self) -> None:
        """Stop waiting for tasks that do not stop."""
        self._task_poster.close()
        self._task_events.on_tasks_removed(self.name)
