"""All connectors of this worker: brings what runs to what the config topic says.

    config topic ──▶ heard ──▶ settle ──▶ Place ──▶ events ──▶ statuses, task configs

Belongs to the herder's thread: nothing here may block, but for writes to the stores. Everything is
done by comparing what is wanted with what was last asked for, so that nothing depends on which
changes were seen, and in which order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

from sparkmirror.connect.runtime.config_transformer import task_configs_to_store
from sparkmirror.connect.runtime.connector_slot import ConnectorSlot, DesiredState, RunContext
from sparkmirror.connect.runtime.group_membership import GroupMembership
from sparkmirror.connect.runtime.status_writer import STATE_BY_TARGET, StatusWriter
from sparkmirror.connect.runtime.task_status_writer import TaskStatusWriter
from sparkmirror.connect.runtime.tick_stage import TickThreadStage
from sparkmirror.connect.runtime.worker_connector import DesiredConnector, WorkerConnector
from sparkmirror.connect.runtime.worker_tasks import WorkerTasks
from sparkmirror.errors import Conflict, MirrorError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)

RELOAD_ACTION: Final = "config.action.reload"
RELOAD_RESTART: Final = "restart"


class WorkerConnectors:
    """Every connector's place. Also hears what becomes of connectors."""

    def __init__(
        self,
        means: RunContext,
        configs: ConfigBackingStore,
        statuses: StatusWriter,
        member: GroupMembership,
        stages: TickThreadStage,
        *,
        tracks_topics: bool,
    ) -> None:
        self._run_context = means
        self._configs = configs
        self._statuses = statuses
        self._membership = member
        self._tick_stage = stages
        self._task_statuses = TaskStatusWriter(
            statuses, self._on_tasks_removed, tracks_topics=tracks_topics
        )
        self._slots: dict[str, ConnectorSlot] = {}
        self._is_stopping = False

    # -- what is wanted --------------------------------------------------------------------------

    def reconcile_all(self) -> None:
        """Bring everything to what the config topic says."""
        for name in self._configs.snapshot().connectors():
            self.reconcile(name)

    def reconcile(self, name: str) -> None:
        """Bring one connector to what the config topic says."""
        state = self._configs.snapshot()
        properties = None if self._is_stopping else state.connector_config(name)
        place = self._slots.get(name)
        if properties is None:
            if place is not None:
                place.stop()
            return
        if place is None:
            place = self._slots[name] = ConnectorSlot(
                name, self._run_context, self, self._task_statuses
            )
            place.reconfiguration.applied_properties = properties
        if place.is_stopping:
            return  # what is left of the last one of that name has to go first
        place.transition_to(
            DesiredState(
                properties=properties,
                state=state.target_state(name) or TargetState.STARTED,
                tasks=state.task_configs(name),
                generation=state.task_config_generation(name) or 0,
            )
        )

    def on_connector_config_update(self, name: str) -> None:
        """A connector's config was written, or removed: begin it anew."""
        place = self._slots.get(name)
        exists = self._configs.snapshot().connector_config(name) is not None
        if (place is not None) is not exists:
            self._membership.rebalance()
        if place is not None:
            place.request_restart()
        self.reconcile(name)

    def on_task_config_update(self, name: str) -> None:
        """A set of task configs was written."""
        self._membership.rebalance()
        place = self._slots.get(name)
        if place is not None:
            place.reconfiguration.applied_properties = self._configs.snapshot().connector_config(
                name
            )
        self.reconcile(name)

    def restart_connector(self, name: str, waiting: Future[None]) -> None:
        """Begin a connector anew, but not its tasks. Answered when it has become what it should."""
        place = self._active_slot(name)
        place.pending_restarts.append(waiting)
        place.request_restart()
        self.reconcile(name)

    def restart_connector_and_tasks(
        self, name: str, *, connector: bool, tasks: Collection[int]
    ) -> None:
        """Begin anew what a restart plan says."""
        place = self._slots.get(name)
        if place is None or place.is_stopping:
            return
        if connector:
            place.request_restart(restarting=True)
            self.reconcile(name)
        if tasks:
            place.restart_tasks(tasks)

    def restart_task(self, name: str, task: int, waiting: Future[None]) -> None:
        """Begin one task anew. Answered when that was taken on."""
        self._active_slot(name).restart_tasks([task], done=partial(waiting.set_result, None))

    def submit_to_task_thread(self, name: str, job: Callable[[], None]) -> None:
        """Have something done while no task of a connector runs that was told to stop.

        It is done by the thread that starts and stops them, so that none can start meanwhile.
        """
        place = self._slots.get(name)
        if place is None or place.is_stopping:
            job()
        else:
            place.submit_to_task_thread(job)

    def has_had_task(self, name: str, task: int) -> bool:
        """Say whether a connector has, or had, a task of that number."""
        return name in self._slots and task < self._slots[name].max_task_count

    def _active_slot(self, name: str) -> ConnectorSlot:
        """Where a connector runs, unless it has just come or is about to go."""
        place = self._slots.get(name)
        if place is None or place.is_stopping:
            raise Conflict(
                "Cannot complete request momentarily due to stale configuration (typically caused "
                "by a concurrent config change)"
            )
        return place

    def stop_all(self) -> Sequence[WorkerConnector | WorkerTasks]:
        """Give everything up, because the worker ends. Returns whose end to wait for."""
        self._is_stopping = True
        self._task_statuses.stop()
        for place in list(self._slots.values()):
            place.stop()
        return [run for place in self._slots.values() for run in place.joinables()]

    # -- what became of connectors ---------------------------------------------------------------

    def on_target_state_reached(
        self, name: str, wish: DesiredConnector, ttl_ms: int | None
    ) -> None:
        """It has become what was wished; if it runs, it is asked for its tasks."""
        place = self._slots[name]
        if not place.is_current(wish):
            return
        place.has_failed = False
        self._statuses.put_connector(name, STATE_BY_TARGET[wish.state])
        for waiting in _pop_pending(place.pending_restarts):
            waiting.set_result(None)
        if wish.state is TargetState.STARTED:
            place.reconfiguration.on_success()
            place.request_task_configs()
        if (
            ttl_ms is not None
            and wish.properties.get(RELOAD_ACTION, RELOAD_RESTART) == RELOAD_RESTART
        ):
            self._run_context.herder_thread.schedule(
                ttl_ms / 1000, partial(self._restart_expired, place, wish)
            )

    def on_connector_failed(self, name: str, told: str) -> None:
        """It could not, or it raised an error later."""
        place = self._slots[name]
        place.has_failed = True
        self._statuses.put_connector(name, LifecycleState.FAILED, told)
        for waiting in _pop_pending(place.pending_restarts):
            waiting.set_exception(RequestFailed(f"Failed to start connector: {name}"))

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        """The instance is no more."""
        self._statuses.put_connector(name, LifecycleState.UNASSIGNED)
        if restarting:
            self._statuses.put_connector(name, LifecycleState.RESTARTING)

    def on_connector_removed(self, name: str) -> None:
        """Nothing is to follow."""
        place = self._slots[name]
        for waiting in _pop_pending(place.pending_restarts):
            waiting.set_exception(RequestFailed(f"Failed to start connector: {name}"))
        if not self._is_stopping:
            self._statuses.remove_connector(name)
        self._mark_stopped(place, "connector")

    def on_reconfiguration_requested(self, name: str) -> None:
        """It wants to be asked for its tasks; one that has failed is not."""
        if not self._slots[name].has_failed:
            self._slots[name].request_task_configs()

    def on_task_configs_failed(self, name: str, told: str) -> None:
        """It is asked again after a pause; meanwhile its status says why it has no new tasks."""
        place = self._slots[name]
        pause_s = place.reconfiguration.next_retry_delay_s()
        log.error(
            "Failed to reconfigure connector's tasks (%s), retrying after %.2f s: %s",
            name, pause_s, told,
        )  # fmt: skip
        if not place.has_failed:
            place.reconfiguration.last_error = told
            self._statuses.put_connector(name, LifecycleState.RUNNING, told)
        self._run_context.herder_thread.schedule(pause_s, partial(self._retry_task_configs, place))

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """Write its task configs if they changed, and it still should have any."""
        place = self._slots[name]
        if place.reconfiguration.last_error and not place.has_failed:
            self._statuses.put_connector(name, LifecycleState.RUNNING)
        if self._must_write_task_configs(
            place, properties, configs := task_configs_to_store(properties, tasks)
        ):
            try:
                with self._tick_stage.enter(f"writing task configs of connector {name}"):
                    self._configs.put_task_configs(name, configs)
            except MirrorError as error:
                self.on_task_configs_failed(name, str(error))
                return
        place.reconfiguration.on_success()
        place.on_task_configs_received()

    def _must_write_task_configs(
        self,
        place: ConnectorSlot,
        properties: ConfigProperties,
        configs: Sequence[ConfigProperties],
    ) -> bool:
        state = self._configs.snapshot()
        is_wanted = state.target_state(place.name) is TargetState.STARTED and not place.is_stopping
        if not is_wanted or state.connector_config(place.name) != properties:
            return False  # the answer of an instance that is about to go
        if (
            configs == list(state.task_configs(place.name))
            and place.reconfiguration.applied_properties == properties
        ):
            log.debug("Skipping reconfiguration of connector %s: nothing has changed", place.name)
            return False
        return True

    def _restart_expired(self, place: ConnectorSlot, wish: DesiredConnector) -> None:
        """Begin anew because a provider said that its values may have changed."""
        if self._slots.get(place.name) is place and place.is_current(wish):
            log.info("Restarting connector %s: values of its config have expired", place.name)
            self.restart_connector_and_tasks(place.name, connector=True, tasks=())
            place.restart_all_tasks()

    def _retry_task_configs(self, place: ConnectorSlot) -> None:
        if self._slots.get(place.name) is place and not (place.is_stopping or place.has_failed):
            place.reconfiguration.is_in_progress = False
            place.request_task_configs()

    def _on_tasks_removed(self, name: str) -> None:
        self._mark_stopped(self._slots[name], "tasks")

    def _mark_stopped(self, place: ConnectorSlot, part: str) -> None:
        if place.mark_stopped(part):
            del self._slots[place.name]
            self._membership.rebalance()
            self.reconcile(place.name)  # the name may have been taken again


def _pop_pending(waiting: list[Future[None]]) -> list[Future[None]]:
    """Take all out of the list; those that got an error meanwhile wait no more."""
    taken = [one for one in waiting if not one.done()]
    waiting.clear()
    return taken
