"""Writes the statuses of connectors and tasks to the status topic, as Connect does.

FAILED and UNASSIGNED are written safely: they must not overwrite the status of a newer owner. All
other states overwrite it. An ended connector or task has no version. Belongs to the herder thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION
from sparkmirror.connect.runtime.worker_generation import WorkerGeneration
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_statuses import (
    SAFE_WRITE_STATES,
    ConnectStatus,
    LifecycleState,
    TopicStatus,
)
from sparkmirror.store.store_api import StatusBackingStore

STATE_BY_TARGET: Final = {
    TargetState.STARTED: LifecycleState.RUNNING,
    TargetState.PAUSED: LifecycleState.PAUSED,
    TargetState.STOPPED: LifecycleState.STOPPED,
}
_ENDED: Final = frozenset(
    {LifecycleState.UNASSIGNED, LifecycleState.RESTARTING, LifecycleState.DESTROYED}
)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class StatusWriter:
    """Writes to the status store with this worker's id and generation."""

    def __init__(
        self,
        store: StatusBackingStore,
        worker_generation: WorkerGeneration,
        clock_ms: Callable[[], int] = _now_ms,
    ) -> None:
        self._store = store
        self._worker_generation = worker_generation
        self._clock_ms = clock_ms
        self._recorded_topics: set[tuple[str, str]] = set()
        """Topics that were written here; the store may not have read them back yet."""
        self._written: dict[tuple[str, int | None], ConnectStatus] = {}
        """The last own status of each connector and task that has not ended here."""

    def put_connector(self, name: str, state: LifecycleState, trace: str | None = None) -> None:
        """Write the state of a connector."""
        self._put(name, None, state, trace, PLUGIN_VERSION)

    def put_task(
        self,
        connector: str,
        task: int,
        state: LifecycleState,
        trace: str | None = None,
        *,
        has_started: bool = True,
    ) -> None:
        """Write the state of a task. A task that never started has no version."""
        self._put(connector, task, state, trace, PLUGIN_VERSION if has_started else None)

    def remove_connector(self, name: str) -> None:
        """Remove the status of a connector."""
        self.put_connector(name, LifecycleState.DESTROYED)

    def remove_tasks(self, connector: str, numbers: range) -> None:
        """Remove the statuses of these tasks and of all with higher numbers.

        The range names tasks whose statuses may not have been read back yet.
        """
        stored = {status.task for status in self._store.task_statuses(connector)}
        beyond = {task for task in stored if task is not None and task >= numbers.start}
        for task in sorted(beyond.union(numbers)):
            self.put_task(connector, task, LifecycleState.DESTROYED)

    def task_statuses(self, connector: str) -> Sequence[ConnectStatus]:
        """Return the statuses of a connector's tasks."""
        return self._store.task_statuses(connector)

    def remove_deleted(
        self, connectors: Collection[str], is_due: Callable[[ConnectStatus], bool]
    ) -> None:
        """Remove such statuses of all connectors but these."""
        for status in self._stored_statuses():
            if status.connector not in connectors and is_due(status):
                self._put_state(status, LifecycleState.DESTROYED)

    def mark_unassigned(self, is_due: Callable[[ConnectStatus], bool]) -> None:
        """Write UNASSIGNED for connectors and tasks with such a status."""
        for status in self._stored_statuses():
            if is_due(status):
                self._put_state(status, LifecycleState.UNASSIGNED)

    def correct_statuses(self, is_own: Callable[[str, int | None], bool]) -> None:
        """Write the statuses of own connectors and tasks again that another worker overwrote.

        A worker that was cut off may write late that a task has stopped, when that task runs on
        another worker already. A status of a later generation is that of a newer owner.
        """
        for (name, task), written in list(self._written.items()):
            stored = self._find_stored(name, task)
            is_foreign = (
                stored is not None
                and stored.worker_id != written.worker_id
                and stored.generation <= self._worker_generation.number
            )
            if is_foreign and is_own(name, task):
                self._put(name, task, written.state, written.trace, written.version)

    def _find_stored(self, name: str, task: int | None) -> ConnectStatus | None:
        if task is None:
            return self._store.connector_status(name)
        return self._store.task_status(name, task)

    def _stored_statuses(self) -> Iterator[ConnectStatus]:
        """Yield the statuses of all connectors and tasks."""
        for name in self._store.connectors():
            connector = self._store.connector_status(name)
            if connector is not None:
                yield connector
            yield from self._store.task_statuses(name)

    def _put_state(self, status: ConnectStatus, state: LifecycleState) -> None:
        if status.task is None:
            self.put_connector(status.connector, state)
        else:
            self.put_task(status.connector, status.task, state)

    def record_topics(self, connector: str, task: int, topics: Collection[str]) -> None:
        """Write that a task uses topics, except those already written."""
        for topic in topics:
            known = (connector, topic)
            if (
                known in self._recorded_topics
                or self._store.topic_status(connector, topic) is not None
            ):
                continue
            self._recorded_topics.add(known)
            status = TopicStatus(
                topic=topic, connector=connector, task=task, discovered_ms=self._clock_ms()
            )
            self._store.put_topic(status)

    def remove_topics(self, connector: str) -> None:
        """Remove the active topics of a connector."""
        written = {topic for name, topic in self._recorded_topics if name == connector}
        stored = {status.topic for status in self._store.topic_statuses(connector)}
        for topic in sorted(written | stored):
            self._recorded_topics.discard((connector, topic))
            self._store.put_topic(TopicStatus(topic=topic, connector=connector, discovered_ms=None))

    def _put(
        self,
        name: str,
        task: int | None,
        state: LifecycleState,
        trace: str | None,
        version: str | None,
    ) -> None:
        status = ConnectStatus(
            connector=name,
            task=task,
            state=state,
            worker_id=self._worker_generation.worker_id,
            generation=self._worker_generation.number,
            trace=trace,
            version=None if state in _ENDED else version,
        )
        if state in _ENDED:
            self._written.pop((name, task), None)
        else:
            self._written[name, task] = status
        (self._store.put_safe if state in SAFE_WRITE_STATES else self._store.put)(status)
