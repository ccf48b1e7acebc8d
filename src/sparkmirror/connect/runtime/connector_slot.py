"""One connector's place on this worker: its two threads, and what was last asked of them.

A place is asked for by comparison: whatever differs from what was asked before is asked. A thread
that does not let go in time is given up and replaced; so a connector that hangs can be changed,
stopped and deleted. Belongs to the herder's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from sparkmirror.connect.runtime.config_transformer import ConfigTransformer
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.event_posting import ConnectorEventPoster, TaskEventPoster
from sparkmirror.connect.runtime.herder_thread import HerderThread
from sparkmirror.connect.runtime.worker_connector import (
    ConnectorEvents,
    DesiredConnector,
    WorkerConnector,
)
from sparkmirror.connect.runtime.worker_tasks import DesiredTasks, TaskEvents, WorkerTasks
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState

log = logging.getLogger(__name__)

INITIAL_RETRY_DELAY_S = 0.25
MAX_RETRY_DELAY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What connectors and tasks are run with."""

    registry: ConnectorRegistry
    transformer: ConfigTransformer
    herder_thread: HerderThread
    stop_timeout_s: float
    fence_zombies: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """What the config topic says about one connector."""

    properties: ConfigProperties
    state: TargetState
    tasks: tuple[ConfigProperties, ...]
    generation: int


@dataclass(slots=True)
class TaskReconfiguration:
    """When to ask a connector for its tasks, and why it could not say."""

    applied_properties: ConfigProperties | None = None
    """The connector's properties when its present tasks were planned."""
    is_in_progress: bool = False
    is_requested_again: bool = False
    last_error: str = ""
    retry_delay_s: float = INITIAL_RETRY_DELAY_S

    def next_retry_delay_s(self) -> float:
        """How long to wait before the next try; it doubles."""
        pause_s, self.retry_delay_s = (
            self.retry_delay_s,
            min(self.retry_delay_s * 2, MAX_RETRY_DELAY_S),
        )
        return pause_s

    def on_success(self) -> None:
        """It could say: nothing to remark."""
        self.last_error, self.retry_delay_s = "", INITIAL_RETRY_DELAY_S


class ConnectorSlot:
    """One connector, from the moment it is known until nothing of it is left."""

    def __init__(
        self, name: str, means: RunContext, events: ConnectorEvents, task_events: TaskEvents
    ) -> None:
        self.name = name
        self.reconfiguration = TaskReconfiguration()
        self.max_task_count = 0
        """The most there ever were: Connect remembers the configs of them all."""
        self.pending_restarts: list[Future[None]] = []
        """Those who wait for the connector to have started anew."""
        self.is_stopping = False
        self.has_failed = False
        """Whether the connector, not its tasks, has failed."""
        self._run_context = means
        self._events = events
        self._task_events = task_events
        self._restart_count = 0
        self._is_restart = False
        self._desired_connector: DesiredConnector | None = None
        self._desired_tasks: DesiredTasks | None = None
        self._stopped_parts = {"connector": False, "tasks": False}
        self._connector_poster, self._worker_connector = self._create_worker_connector()
        self._task_poster = TaskEventPoster(means.herder_thread, task_events)
        self._worker_tasks = WorkerTasks(
            name, means.registry, means.transformer, self._task_poster,
            stop_within_s=means.stop_timeout_s, fence=means.fence_zombies,
        )  # fmt: skip

    def transition_to(self, wanted: DesiredState) -> None:
        """Have it so."""
        assert not self.is_stopping
        self._transition_connector(
            DesiredConnector(
                properties=wanted.properties,
                state=wanted.state,
                restart_count=self._restart_count,
                is_restart=self._is_restart,
            )
        )
        wish = DesiredTasks(
            connector=wanted.properties,
            tasks=() if wanted.state is TargetState.STOPPED else wanted.tasks,
            generation=wanted.generation,
            paused=wanted.state is TargetState.PAUSED,
        )
        self.max_task_count = max(self.max_task_count, len(wish.tasks))
        if wish != self._desired_tasks:
            self._desired_tasks = wish
            self._worker_tasks.transition_to(wish)

    def request_restart(self, *, restarting: bool = False) -> None:
        """Let the next `want` start another instance of the connector."""
        self._restart_count += 1
        self._is_restart = restarting

    def restart_all_tasks(self) -> None:
        """Begin all tasks anew."""
        if self._desired_tasks is not None:
            self._worker_tasks.restart(range(len(self._desired_tasks.tasks)))

    def restart_tasks(self, tasks: Collection[int], done: Callable[[], None] | None = None) -> None:
        """Begin these tasks anew."""
        self._worker_tasks.restart(tasks, done)

    def submit_to_task_thread(self, job: Callable[[], None]) -> None:
        """Have something done by the thread that starts and stops the tasks."""
        self._worker_tasks.submit(job)

    def request_task_configs(self) -> None:
        """Ask the connector for its tasks, once more if it is just being asked."""
        if self.reconfiguration.is_in_progress:
            self.reconfiguration.is_requested_again = True
        else:
            self.reconfiguration.is_in_progress = True
            self._worker_connector.request_task_configs()

    def on_task_configs_received(self) -> None:
        """The connector has answered."""
        self.reconfiguration.is_in_progress = False
        if self.reconfiguration.is_requested_again:
            self.reconfiguration.is_requested_again = False
            self.request_task_configs()

    def is_current(self, wish: DesiredConnector) -> bool:
        """Say whether that is still what is wanted."""
        return self._desired_connector == wish

    def stop(self) -> None:
        """End everything. `connector_gone` and `tasks_gone` follow."""
        if self.is_stopping:
            return
        self.is_stopping = True
        self._transition_connector(None)
        self._worker_tasks.transition_to(None)
        self._run_context.herder_thread.schedule(
            2 * self._run_context.stop_timeout_s, self._abandon_hung_tasks
        )

    def mark_stopped(self, part: str) -> bool:
        """Note that the connector, or its tasks, are gone; say whether both are."""
        (self._connector_poster if part == "connector" else self._task_poster).close()
        self._stopped_parts[part] = True
        return all(self._stopped_parts.values())

    def joinables(self) -> tuple[WorkerConnector, WorkerTasks]:
        """Whose end may be waited for."""
        return self._worker_connector, self._worker_tasks

    def _create_worker_connector(self) -> tuple[ConnectorEventPoster, WorkerConnector]:
        reports = ConnectorEventPoster(self._run_context.herder_thread, self._events)
        return reports, WorkerConnector(
            self.name, self._run_context.registry, self._run_context.transformer, reports
        )

    def _transition_connector(self, wish: DesiredConnector | None) -> None:
        if wish == self._desired_connector and wish is not None:
            return
        self._desired_connector = wish
        self.reconfiguration.is_in_progress = self.reconfiguration.is_requested_again = False
        number = self._worker_connector.transition_to(wish)
        check = partial(self._replace_if_hung, self._worker_connector, number)
        self._run_context.herder_thread.schedule(self._run_context.stop_timeout_s, check)

    def _replace_if_hung(self, run: WorkerConnector, number: int) -> None:
        """Replace the connector's thread if it hangs."""
        if run is not self._worker_connector or run.has_released(number):
            return
        log.error(
            "Connector '%s' failed to properly shut down, has become unresponsive, and may be "
            "consuming external resources. Correct the configuration for this connector or remove "
            "the connector. After fixing the connector, it may be necessary to restart this "
            "worker to release any consumed resources.",
            self.name,
        )
        self._connector_poster.close()
        run.abandon()
        wish = self._desired_connector
        self._events.on_connector_stopped(
            self.name, restarting=wish is not None and wish.is_restart
        )
        if wish is None:
            self._events.on_connector_removed(self.name)
        else:
            self._connector_poster, self._worker_connector = self._create_worker_connector()
            self._desired_connector = None
            self._transition_connector(wish)

    def _abandon_hung_tasks(self) -> None:
        """Stop waiting for tasks that do not end."""
        if not self._stopped_parts["tasks"]:
            log.error("Graceful stop of tasks of %s failed.", self.name)
            self._task_poster.close()
            self._task_events.on_tasks_removed(self.name)
