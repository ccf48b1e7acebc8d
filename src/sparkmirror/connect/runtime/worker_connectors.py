"""What this worker runs: brings it to what the config topic and the worker's share say.

    herder thread ──▶ WorkerConnectors ──▶ ConnectorAndTasks ──▶ WorkerConnector, WorkerTasks
          ▲           (compares desired     (one per           │  (one SerialExecutor each)
          │            and last state)       connector)        ▼
          │                                                 Connector, TaskGroup
          │                                                    │  (executor thread, or a
          │                                                    ▼   thread of their own)
          └──── EventPoster ◀──── ConnectorEvents, TaskEvents ─┘

    ConnectorEvents end here: task configs are written, and statuses by ConnectorStatusWriter.
    TaskEvents end in TaskStatusWriter.

Everything here runs on the herder thread. Only writes to the stores may block. Every step compares
the desired state with the last one that was asked for, so the result does not depend on which
changes were read, or in which order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.runtime.config_transformer import TransformedConfig
from sparkmirror.connect.runtime.connector_and_tasks import ConnectorAndTasks
from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.own_share import OwnShare
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.connector_status_writer import ConnectorStatusWriter
from sparkmirror.connect.runtime.status.startup_counts import StartupCounts
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.status.task_state_times import TaskStateTimes
from sparkmirror.connect.runtime.status.task_status_writer import TaskStatusWriter
from sparkmirror.connect.runtime.status.unassigned import is_left_behind, is_unassigned_due
from sparkmirror.connect.runtime.task_configs_writer import GroupLink, TaskConfigsWriter
from sparkmirror.connect.runtime.task_preparations import TaskPreparations
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connector import WorkerConnector
from sparkmirror.connect.runtime.worker_generation import WorkerGeneration
from sparkmirror.connect.runtime.worker_tasks import WorkerTasks
from sparkmirror.errors import Conflict, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)

RELOAD_ACTION: Final = "config.action.reload"
RELOAD_RESTART: Final = "restart"
VALUE_CHECK_INTERVAL_S = 10.0
"""How often the values of config providers are compared with those that a connector has."""

STATUS_CHECK_INTERVAL_S = 10.0
"""How often a worker of a group looks for own statuses that another worker has overwritten."""


class WorkerConnectors:
    """One slot per connector. Implements ConnectorEvents."""

    def __init__(
        self,
        run_context: RunContext,
        configs: ConfigBackingStore,
        statuses: StatusWriter,
        worker_generation: WorkerGeneration,
        tick_stage: TickThreadStage,
        group: GroupLink,
        *,
        tracks_topics: bool,
    ) -> None:
        self._run_context = run_context
        self._configs = configs
        self._statuses = statuses
        self._worker_generation = worker_generation
        self._group = group
        self._share = OwnShare()
        self._preparations = TaskPreparations(run_context.registry, run_context.transformer)
        self._connector_statuses = ConnectorStatusWriter(statuses)
        self._task_statuses = TaskStatusWriter(
            statuses,
            self._on_tasks_removed,
            lambda name: self._slots[name].is_deleted,
            tracks_topics=tracks_topics,
        )
        self._task_configs = TaskConfigsWriter(
            configs, self._connector_statuses, run_context.herder_thread, tick_stage, group
        )
        self._slots: dict[str, ConnectorAndTasks] = {}
        self.connector_startups = StartupCounts()
        self._is_stopping = False
        self._checks_statuses = False

    # -- the desired state -----------------------------------------------------------------------

    def assign(self, assignment: Assignment | None) -> None:
        """Run the own share of an assignment and nothing else. None: run nothing."""
        before, self._share = self._share, OwnShare(assignment)
        if assignment is not None:
            self._worker_generation.start(assignment.generation)
            self._mark_unassigned(before, assignment)
        for name in {*before.names(), *self._share.names(), *self._slots}:
            self.reconcile(name)
        if assignment is not None:
            self._preparations.update(assignment, self._configs.snapshot())
        if assignment is not None:
            self._check_work()
            if len(assignment.shares) > 1 and not self._checks_statuses:
                self._checks_statuses = True
                self._schedule_status_check()

    def _mark_unassigned(self, before: OwnShare, assignment: Assignment) -> None:
        """Write UNASSIGNED for what comes to this worker, and for what lost workers have left."""
        if assignment.is_leader:
            self._statuses.remove_deleted(
                self._configs.snapshot().connectors(),
                partial(is_left_behind, assignment, self._slots),
            )
        self._statuses.mark_unassigned(partial(is_unassigned_due, before, self._share, assignment))

    def _check_work(self) -> None:
        """Let the group divide the work again if this worker has read of other work.

        Only records that the leader had not read can be such: a set of task configs that compaction
        has made incomplete for this worker alone leads to no rebalance.
        """
        offset = self._configs.offset()
        is_newer = self._share.is_leader or offset > self._share.config_offset
        covers_all = self._share.covers_all(self._configs.snapshot())
        if is_newer and not covers_all and not self._is_stopping:
            self._group.request_rejoin("connectors or tasks were added or removed")

    def _schedule_status_check(self) -> None:
        self._run_context.herder_thread.schedule(STATUS_CHECK_INTERVAL_S, self._check_statuses)

    def _check_statuses(self) -> None:
        if not self._is_stopping:
            self._statuses.correct_statuses(self._share.has)
            self._schedule_status_check()

    def stop_waits(self, names: Collection[str]) -> list[Callable[[float], bool]]:
        """Return functions that wait until these connectors and tasks are as last requested."""
        slots = (self._slots.get(name) for name in names)
        return [wait for slot in slots if slot is not None for wait in slot.stop_waits()]

    @property
    def task_startups(self) -> StartupCounts:
        """The starts of tasks on this worker."""
        return self._task_statuses.startups

    @property
    def task_state_times(self) -> TaskStateTimes:
        """For how much of their time the tasks were running or paused. Any thread may read."""
        return self._task_statuses.state_times

    def running_names(self) -> Collection[str]:
        """Return the connectors that this worker runs something of, or that still stop."""
        return tuple(self._slots)

    def reconcile(self, name: str) -> None:
        """Bring one connector and its tasks to what the config topic and the share say."""
        slot = self._slots.get(name)
        desired = self._desired_state(name, slot)
        if desired is None:
            configs = self._configs.snapshot()
            is_deleted = configs.connector_config(name) is None
            if slot is not None:
                slot.stop(is_deleted=is_deleted)
            else:  # other workers may run it, or it is stopped
                state = None if is_deleted else configs.target_state(name) or TargetState.STARTED
                self._run_context.on_tasks_ended(name, state)
            return
        if slot is None:
            slot = self._slots[name] = ConnectorAndTasks(
                name, self._run_context, self, self._task_statuses
            )
            slot.reconfiguration.applied_properties = desired.properties
        if not slot.is_stopping:  # otherwise the earlier connector of that name must end first
            slot.transition_to(desired)

    def _desired_state(self, name: str, slot: ConnectorAndTasks | None) -> DesiredState | None:
        """Return what one connector should be. None: nothing of it runs here.

        Tasks stay as they are until the group has divided the number of tasks that the connector
        has now. So a new set of task configs takes effect once, with all its tasks.
        """
        configs = self._configs.snapshot()
        if self._is_stopping:
            return None
        desired = DesiredState.from_config_state(configs, name, self._share)
        if desired is None or desired.state is TargetState.STOPPED:
            return desired
        if self._share.covers_tasks(configs, name):
            return desired
        before = slot.desired if slot is not None else None
        return desired.with_tasks_of(before, self._share.task_numbers(name))

    def is_prepared(self) -> bool:
        """Prepare for tasks of other workers before this one joins; whether it may join now.

        Any thread may call it.
        """
        return self._preparations.is_ready(self._configs.snapshot())

    def on_connector_config_update(self, name: str) -> None:
        """Restart a connector after its config was written; stop it after it was removed."""
        self._preparations.forget(name)
        slot = self._slots.get(name)
        if slot is not None:
            slot.request_restart()
        self.reconcile(name)
        self._check_work()

    def on_task_config_update(self, name: str) -> None:
        """Run the tasks of the set of task configs that was written."""
        slot = self._slots.get(name)
        if slot is not None:
            properties = self._configs.snapshot().connector_config(name)
            slot.reconfiguration.applied_properties = properties
        self.reconcile(name)
        self._check_work()

    def restart_connector(self, name: str, future: Future[None]) -> None:
        """Restart a connector without its tasks. Completes the future when it has started."""
        slot = self._active_slot(name)
        slot.pending_restarts.append(future)
        slot.request_restart()
        self.reconcile(name)

    def restart_connector_and_tasks(
        self, name: str, *, connector: bool, tasks: Collection[int]
    ) -> None:
        """Restart what a restart plan names."""
        slot = self._slots.get(name)
        if slot is None or slot.is_stopping:
            return
        if connector and self._share.runs_connector(name):
            slot.request_restart(restarting=True)
            self.reconcile(name)
        if tasks:
            slot.restart_tasks(tasks)

    def restart_task(self, name: str, task: int, future: Future[None]) -> None:
        """Restart one task. Completes the future when the task group has accepted it."""
        self._active_slot(name).restart_tasks([task], done=partial(future.set_result, None))

    def submit_to_task_thread(self, name: str, job: Callable[[], None]) -> None:
        """Run a job after earlier task stops, and before later task starts, of a connector.

        The thread that starts and stops the tasks runs it.
        """
        slot = self._slots.get(name)
        if slot is None or slot.is_stopping:
            job()
        else:
            slot.submit_to_task_thread(job)

    def has_had_task(self, name: str, task: int) -> bool:
        """Return whether a connector has, or had, a task of that number."""
        return name in self._slots and task < self._slots[name].max_task_count

    def _active_slot(self, name: str) -> ConnectorAndTasks:
        """Return the slot of a connector. Raises Conflict if it is not here yet, or is stopping."""
        slot = self._slots.get(name)
        if slot is None or slot.is_stopping:
            raise Conflict(
                "Cannot complete request momentarily due to stale configuration (typically caused "
                "by a concurrent config change)"
            )
        return slot

    def stop_all(self) -> Sequence[WorkerConnector | WorkerTasks]:
        """Stop everything, because the worker shuts down. Returns the threads to wait for."""
        self._is_stopping = True
        self._task_statuses.stop()
        self._preparations.close()
        for slot in list(self._slots.values()):
            slot.stop(is_deleted=False)
        return [thread for slot in self._slots.values() for thread in slot.joinables()]

    # -- ConnectorEvents -------------------------------------------------------------------------

    def on_target_state_reached(
        self, name: str, desired: DesiredState, config: TransformedConfig | None
    ) -> None:
        """Write the status; ask a running connector for its task configs."""
        slot = self._slots[name]
        self._count_startup(name, desired.state)
        if not slot.is_current(desired):
            return
        slot.has_failed = False
        self._connector_statuses.on_target_state_reached(name, desired.state)
        for future in _pop_pending(slot.pending_restarts):
            future.set_result(None)
        if desired.state is TargetState.STARTED:
            slot.reconfiguration.on_success()
            slot.request_task_configs()
        reload_action = desired.properties.get(RELOAD_ACTION, RELOAD_RESTART)
        has_variables = (
            config is not None and config.has_variables
        ) or self._run_context.read_worker_values is not None
        if config is None or not has_variables or reload_action != RELOAD_RESTART:
            return
        if config.ttl_ms is not None:
            self._run_context.herder_thread.schedule(
                config.ttl_ms / 1000, partial(self._restart_expired, slot, desired)
            )
        else:
            self._schedule_value_check(slot, desired)

    def _count_startup(self, name: str, state: TargetState) -> None:
        if state is TargetState.STARTED:
            self.connector_startups.on_started(name)
        else:
            self.connector_startups.on_stopped(name)

    def on_values_changed(self, name: str, desired: DesiredState) -> None:
        """Restart a connector and its tasks with the changed values of config providers."""
        slot = self._slots.get(name)
        if slot is not None:
            self._restart_expired(slot, desired)

    def on_connector_failed(self, name: str, trace: str) -> None:
        """Write FAILED; fail the restart requests that wait."""
        slot = self._slots[name]
        slot.has_failed = True
        self.connector_startups.on_failed(name)
        self._connector_statuses.on_failed(name, trace)
        self._fail_pending_restarts(slot)

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        """Write UNASSIGNED, and RESTARTING if a restart was requested."""
        self.connector_startups.on_stopped(name)
        self._connector_statuses.on_stopped(name, restarting=restarting)

    def on_connector_removed(self, name: str) -> None:
        """Remove the status of a connector that was deleted, unless the worker shuts down."""
        slot = self._slots[name]
        self._fail_pending_restarts(slot)
        keeps_status = self._is_stopping or not slot.is_deleted
        self._connector_statuses.on_removed(name, keep_status=keeps_status)
        slot.mark_connector_stopped()
        self._remove_if_stopped(slot)

    def on_reconfiguration_requested(self, name: str) -> None:
        """Ask the connector for its task configs, unless it has failed."""
        if not self._slots[name].has_failed:
            self._slots[name].request_task_configs()

    def on_connector_problem(self, name: str, text: str) -> None:
        """Show the problem in the status of the running connector."""
        self._connector_statuses.on_problem(name, text)

    def on_tasks_not_planned(self, name: str) -> None:
        """Keep the tasks as they are until the connector requests the next call."""
        self._task_configs.on_not_planned(self._slots[name])

    def on_task_configs_failed(self, name: str, trace: str) -> None:
        """Ask again after a pause."""
        self._task_configs.on_failed(self._slots[name], trace)

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """Write the task configs."""
        self._task_configs.on_generated(self._slots[name], properties, tasks)

    def _restart_expired(self, slot: ConnectorAndTasks, desired: DesiredState) -> None:
        """Restart a connector and its tasks: a config provider's TTL has expired."""
        if self._slots.get(slot.name) is slot and slot.is_current(desired):
            log.info(
                "Restarting connector %s: values of its config have changed or expired", slot.name
            )
            self.restart_connector_and_tasks(slot.name, connector=True, tasks=())
            slot.restart_all_tasks()

    def _schedule_value_check(self, slot: ConnectorAndTasks, desired: DesiredState) -> None:
        self._run_context.herder_thread.schedule(
            VALUE_CHECK_INTERVAL_S, partial(self._check_values, slot, desired)
        )

    def _check_values(self, slot: ConnectorAndTasks, desired: DesiredState) -> None:
        """Compare the values of config providers again and again, while the instance runs."""
        if self._slots.get(slot.name) is slot and slot.is_current(desired):
            slot.request_value_check()
            self._schedule_value_check(slot, desired)

    def _on_tasks_removed(self, name: str) -> None:
        slot = self._slots[name]
        slot.mark_tasks_stopped()
        self._remove_if_stopped(slot)

    def _remove_if_stopped(self, slot: ConnectorAndTasks) -> None:
        if slot.has_stopped:
            del self._slots[slot.name]
            self.reconcile(slot.name)  # a new connector may have the name, or it comes back here

    def _fail_pending_restarts(self, slot: ConnectorAndTasks) -> None:
        for future in _pop_pending(slot.pending_restarts):
            future.set_exception(RequestFailed(f"Failed to start connector: {slot.name}"))


def _pop_pending(futures: list[Future[None]]) -> list[Future[None]]:
    """Empty the list; return those that are not done."""
    pending = [future for future in futures if not future.done()]
    futures.clear()
    return pending
