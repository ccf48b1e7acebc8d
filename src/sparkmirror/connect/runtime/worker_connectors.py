"""All connectors of this worker: brings what runs to what the config topic says.

    herder thread ──▶ WorkerConnectors ──▶ ConnectorSlot ──▶ WorkerConnector, WorkerTasks
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

from sparkmirror.connect.runtime.config_transformer import (
    TransformedConfig,
    task_configs_to_store,
)
from sparkmirror.connect.runtime.connector_slot import ConnectorSlot
from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.connector_status_writer import ConnectorStatusWriter
from sparkmirror.connect.runtime.status.status_writer import StatusWriter
from sparkmirror.connect.runtime.status.task_status_writer import TaskStatusWriter
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connector import WorkerConnector
from sparkmirror.connect.runtime.worker_generation import WorkerGeneration
from sparkmirror.connect.runtime.worker_tasks import WorkerTasks
from sparkmirror.errors import Conflict, MirrorError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)

RELOAD_ACTION: Final = "config.action.reload"
RELOAD_RESTART: Final = "restart"
VALUE_CHECK_INTERVAL_S = 10.0
"""How often the values of config providers are compared with those that a connector has."""


class WorkerConnectors:
    """One slot per connector. Implements ConnectorEvents."""

    def __init__(
        self,
        run_context: RunContext,
        configs: ConfigBackingStore,
        statuses: StatusWriter,
        worker_generation: WorkerGeneration,
        tick_stage: TickThreadStage,
        *,
        tracks_topics: bool,
    ) -> None:
        self._run_context = run_context
        self._configs = configs
        self._worker_generation = worker_generation
        self._tick_stage = tick_stage
        self._connector_statuses = ConnectorStatusWriter(statuses)
        self._task_statuses = TaskStatusWriter(
            statuses, self._on_tasks_removed, tracks_topics=tracks_topics
        )
        self._slots: dict[str, ConnectorSlot] = {}
        self._is_stopping = False

    # -- the desired state -----------------------------------------------------------------------

    def reconcile_all(self) -> None:
        """Bring every connector to what the config topic says."""
        for name in self._configs.snapshot().connectors():
            self.reconcile(name)

    def reconcile(self, name: str) -> None:
        """Bring one connector to what the config topic says."""
        slot = self._slots.get(name)
        desired = (
            None
            if self._is_stopping
            else DesiredState.from_config_state(self._configs.snapshot(), name)
        )
        if desired is None:
            if slot is not None:
                slot.stop()
            return
        if slot is None:
            slot = self._slots[name] = ConnectorSlot(
                name, self._run_context, self, self._task_statuses
            )
            slot.reconfiguration.applied_properties = desired.properties
        if not slot.is_stopping:  # otherwise the earlier connector of that name must end first
            slot.transition_to(desired)

    def on_connector_config_update(self, name: str) -> None:
        """Restart a connector after its config was written; stop it after it was removed."""
        slot = self._slots.get(name)
        exists = self._configs.snapshot().connector_config(name) is not None
        if (slot is not None) is not exists:
            self._worker_generation.rebalance()
        if slot is not None:
            slot.request_restart()
        self.reconcile(name)

    def on_task_config_update(self, name: str) -> None:
        """Run the tasks of the set of task configs that was written."""
        self._worker_generation.rebalance()
        slot = self._slots.get(name)
        if slot is not None:
            properties = self._configs.snapshot().connector_config(name)
            slot.reconfiguration.applied_properties = properties
        self.reconcile(name)

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
        if connector:
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

    def _active_slot(self, name: str) -> ConnectorSlot:
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
        for slot in list(self._slots.values()):
            slot.stop()
        return [thread for slot in self._slots.values() for thread in slot.joinables()]

    # -- ConnectorEvents -------------------------------------------------------------------------

    def on_target_state_reached(
        self, name: str, desired: DesiredState, config: TransformedConfig | None
    ) -> None:
        """Write the status; ask a running connector for its task configs."""
        slot = self._slots[name]
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

    def on_values_changed(self, name: str, desired: DesiredState) -> None:
        """Restart a connector and its tasks with the changed values of config providers."""
        slot = self._slots.get(name)
        if slot is not None:
            self._restart_expired(slot, desired)

    def on_connector_failed(self, name: str, trace: str) -> None:
        """Write FAILED; fail the restart requests that wait."""
        slot = self._slots[name]
        slot.has_failed = True
        self._connector_statuses.on_failed(name, trace)
        self._fail_pending_restarts(slot)

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        """Write UNASSIGNED, and RESTARTING if a restart was requested."""
        self._connector_statuses.on_stopped(name, restarting=restarting)

    def on_connector_removed(self, name: str) -> None:
        """Remove the status, unless the worker shuts down."""
        slot = self._slots[name]
        self._fail_pending_restarts(slot)
        self._connector_statuses.on_removed(name, keep_status=self._is_stopping)
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
        slot = self._slots[name]
        slot.reconfiguration.on_success()
        slot.on_task_configs_received()

    def on_task_configs_failed(self, name: str, trace: str) -> None:
        """Ask again after a pause. Until then the status stays RUNNING and shows the trace."""
        slot = self._slots[name]
        delay_s = slot.reconfiguration.next_retry_delay_s()
        log.error(
            "Failed to reconfigure connector's tasks (%s), retrying after %.2f s: %s",
            name, delay_s, trace,
        )  # fmt: skip
        self._connector_statuses.on_planning_failed(name, trace)
        slot.reconfiguration.on_failure()
        self._run_context.herder_thread.schedule(delay_s, partial(self._retry_task_configs, slot))

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """Write the task configs if they changed and the connector should still run."""
        slot = self._slots[name]
        configs = task_configs_to_store(properties, tasks)
        if self._must_write_task_configs(slot, properties, configs):
            try:
                with self._tick_stage.enter(f"writing task configs of connector {name}"):
                    self._configs.put_task_configs(name, configs)
            except MirrorError as error:
                self.on_task_configs_failed(name, str(error))
                return
        self._connector_statuses.on_planning_failed(name, "")
        slot.reconfiguration.on_success()
        slot.on_task_configs_received()

    def _must_write_task_configs(
        self,
        slot: ConnectorSlot,
        properties: ConfigProperties,
        configs: Sequence[ConfigProperties],
    ) -> bool:
        state = self._configs.snapshot()
        is_started = state.target_state(slot.name) is TargetState.STARTED and not slot.is_stopping
        if not is_started or state.connector_config(slot.name) != properties:
            return False  # the answer of an instance that is about to stop
        if (
            configs == list(state.task_configs(slot.name))
            and slot.reconfiguration.applied_properties == properties
        ):
            log.debug("Skipping reconfiguration of connector %s: nothing has changed", slot.name)
            return False
        return True

    def _restart_expired(self, slot: ConnectorSlot, desired: DesiredState) -> None:
        """Restart a connector and its tasks: a config provider's TTL has expired."""
        if self._slots.get(slot.name) is slot and slot.is_current(desired):
            log.info(
                "Restarting connector %s: values of its config have changed or expired", slot.name
            )
            self.restart_connector_and_tasks(slot.name, connector=True, tasks=())
            slot.restart_all_tasks()

    def _schedule_value_check(self, slot: ConnectorSlot, desired: DesiredState) -> None:
        self._run_context.herder_thread.schedule(
            VALUE_CHECK_INTERVAL_S, partial(self._check_values, slot, desired)
        )

    def _check_values(self, slot: ConnectorSlot, desired: DesiredState) -> None:
        """Compare the values of config providers again and again, while the instance runs."""
        if self._slots.get(slot.name) is slot and slot.is_current(desired):
            slot.request_value_check()
            self._schedule_value_check(slot, desired)

    def _retry_task_configs(self, slot: ConnectorSlot) -> None:
        if self._slots.get(slot.name) is slot and not (slot.is_stopping or slot.has_failed):
            slot.retry_task_configs()

    def _on_tasks_removed(self, name: str) -> None:
        slot = self._slots[name]
        slot.mark_tasks_stopped()
        self._remove_if_stopped(slot)

    def _remove_if_stopped(self, slot: ConnectorSlot) -> None:
        if slot.has_stopped:
            del self._slots[slot.name]
            self._worker_generation.rebalance()
            self.reconcile(slot.name)  # a new connector may have the name by now

    def _fail_pending_restarts(self, slot: ConnectorSlot) -> None:
        for future in _pop_pending(slot.pending_restarts):
            future.set_exception(RequestFailed(f"Failed to start connector: {slot.name}"))


def _pop_pending(futures: list[Future[None]]) -> list[Future[None]]:
    """Empty the list; return those that are not done."""
    pending = [future for future in futures if not future.done()]
    futures.clear()
    return pending
