"""Writes the task configs that a connector returns: by itself as the leader, else through it.

    connector's thread ── task_configs ──▶ herder thread ── leader: config topic
                                                         └─ other: connector's thread ──▶ leader

Belongs to the herder thread. Only the request to the leader runs in the connector's thread: it may
take long.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from sparkmirror.connect.distributed.leader_requests import LeaderRequests
from sparkmirror.connect.runtime.config_transformer import task_configs_to_store
from sparkmirror.connect.runtime.connector_and_tasks import ConnectorAndTasks
from sparkmirror.connect.runtime.status.connector_status_writer import ConnectorStatusWriter
from sparkmirror.connect.runtime.threads.herder_thread import HerderThread
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)


class GroupLink(Protocol):
    """The group of this worker, as what runs on the worker needs it."""

    @property
    def leader_requests(self) -> LeaderRequests:
        """What the worker can ask of the leader."""
        ...

    def leader_url(self) -> str:
        """Return the address of the leader, empty if it is this worker. Raises RebalanceNeeded."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Let the group divide the connectors and tasks again."""
        ...


class TaskConfigsWriter:
    """Writes task configs, and asks connectors again after a failure."""

    def __init__(
        self,
        configs: ConfigBackingStore,
        connector_statuses: ConnectorStatusWriter,
        herder_thread: HerderThread,
        tick_stage: TickThreadStage,
        group: GroupLink,
    ) -> None:
        self._configs = configs
        self._connector_statuses = connector_statuses
        self._herder_thread = herder_thread
        self._tick_stage = tick_stage
        self._group = group

    def on_generated(
        self,
        slot: ConnectorAndTasks,
        properties: ConfigProperties,
        tasks: Sequence[Mapping[str, str]],
    ) -> None:
        """Write the task configs if they changed and the connector should still run."""
        configs = task_configs_to_store(properties, tasks)
        if not self._must_write(slot, properties, configs):
            self._on_written(slot)
            return
        try:
            leader_url = self._group.leader_url()
            if not leader_url:
                with self._tick_stage.enter(f"writing task configs of connector {slot.name}"):
                    self._configs.put_task_configs(slot.name, configs)
        except MirrorError as error:
            self.on_failed(slot, str(error))
            return
        if leader_url:
            slot.submit_to_connector_thread(partial(self._transfer, slot, leader_url, configs))
        else:
            self._on_written(slot)

    def on_not_planned(self, slot: ConnectorAndTasks) -> None:
        """Keep the tasks as they are until the connector requests the next call."""
        slot.reconfiguration.on_success()
        slot.on_task_configs_received()

    def on_failed(self, slot: ConnectorAndTasks, trace: str) -> None:
        """Ask again after a pause. Until then the status stays RUNNING and shows the trace."""
        delay_s = slot.reconfiguration.next_retry_delay_s()
        log.error(
            "Failed to reconfigure connector's tasks (%s), retrying after %.2f s: %s",
            slot.name, delay_s, trace,
        )  # fmt: skip
        self._connector_statuses.on_planning_failed(slot.name, trace)
        slot.reconfiguration.on_failure()
        self._herder_thread.schedule(delay_s, partial(self._retry, slot))

    def _on_written(self, slot: ConnectorAndTasks) -> None:
        self._connector_statuses.on_planning_failed(slot.name, "")
        slot.reconfiguration.on_success()
        slot.on_task_configs_received()

    def _retry(self, slot: ConnectorAndTasks) -> None:
        if not (slot.is_stopping or slot.has_failed):
            slot.retry_task_configs()

    def _transfer(
        self, slot: ConnectorAndTasks, leader_url: str, configs: Sequence[ConfigProperties]
    ) -> None:
        """Give the task configs to the leader. Runs in the connector's thread."""
        try:
            self._group.leader_requests.put_task_configs(leader_url, slot.name, configs)
        except MirrorError as error:
            text = f"the leader at {leader_url} did not write the task configs: {error}"
            self._herder_thread.submit(partial(self._end_transfer, slot, text))
        else:
            self._herder_thread.submit(partial(self._end_transfer, slot, ""))

    def _end_transfer(self, slot: ConnectorAndTasks, failure: str) -> None:
        if slot.is_stopping:
            return
        if failure:
            self.on_failed(slot, failure)
        else:
            self._on_written(slot)

    def _must_write(
        self,
        slot: ConnectorAndTasks,
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
