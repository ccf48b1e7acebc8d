"""What this worker says about its connectors and tasks, written as Connect writes it.

FAILED and UNASSIGNED report an end and must not overwrite what a newer owner has said; everything
else may. What has ended carries no version. Belongs to the herder's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final

from sparkmirror.config.versions import PLUGIN_VERSION
from sparkmirror.connect.membership import Membership
from sparkmirror.mirror.connect_configs import TargetState
from sparkmirror.mirror.connect_statuses import SAFELY_WRITTEN, State, Status, TopicStatus
from sparkmirror.store.keeping import StatusStore

STATES: Final = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}
_ENDED: Final = frozenset({State.UNASSIGNED, State.RESTARTING, State.DESTROYED})


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class StatusBook:
    """Writes to the status store in the name of this worker."""

    def __init__(
        self, store: StatusStore, member: Membership, clock_ms: Callable[[], int] = _now_ms
    ) -> None:
        self._store = store
        self._member = member
        self._clock_ms = clock_ms
        self._used: set[tuple[str, str]] = set()
        """Topics whose use was written, whether or not it was read back yet."""

    def connector(self, name: str, state: State, trace: str | None = None) -> None:
        """Write how a connector is."""
        self._put(name, None, state, trace, PLUGIN_VERSION)

    def task(
        self,
        connector: str,
        task: int,
        state: State,
        trace: str | None = None,
        *,
        has_started: bool = True,
    ) -> None:
        """Write how a task is. One that never started has no version."""
        self._put(connector, task, state, trace, PLUGIN_VERSION if has_started else None)

    def forget_connector(self, name: str) -> None:
        """Remove what is known of a connector."""
        self.connector(name, State.DESTROYED)

    def forget_tasks(self, connector: str, numbers: range) -> None:
        """Remove what is known of these tasks and of all with higher numbers.

        The range names those whose statuses may not have been read back yet.
        """
        stored = {status.task for status in self._store.tasks(connector)}
        beyond = {task for task in stored if task is not None and task >= numbers.start}
        for task in sorted(beyond.union(numbers)):
            self.task(connector, task, State.DESTROYED)

    def take_over(self, connectors: Collection[str]) -> None:
        """Say that nothing runs yet, whatever workers before this one said; forget the deleted."""
        for name in self._store.connectors():
            if name not in connectors:
                self.forget_connector(name)
                self.forget_tasks(name, range(0))
                continue
            if self._store.connector(name) is not None:
                self.connector(name, State.UNASSIGNED)
            for status in self._store.tasks(name):
                assert status.task is not None
                self.task(name, status.task, State.UNASSIGNED)

    def use(self, connector: str, task: int, topics: Collection[str]) -> None:
        """Write that a task uses topics, unless that is known."""
        for topic in topics:
            known = (connector, topic)
            if known in self._used or self._store.topic(connector, topic) is not None:
                continue
            self._used.add(known)
            status = TopicStatus(
                topic=topic, connector=connector, task=task, discovered_ms=self._clock_ms()
            )
            self._store.put_topic(status)

    def forget_topics(self, connector: str) -> None:
        """Remove what is known of a connector's topics."""
        written = {topic for name, topic in self._used if name == connector}
        stored = {status.topic for status in self._store.topics(connector)}
        for topic in sorted(written | stored):
            self._used.discard((connector, topic))
            self._store.put_topic(TopicStatus(topic=topic, connector=connector, discovered_ms=None))

    def _put(
        self, name: str, task: int | None, state: State, trace: str | None, version: str | None
    ) -> None:
        status = Status(
            connector=name,
            task=task,
            state=state,
            worker_id=self._member.worker_id,
            generation=self._member.generation,
            trace=trace,
            version=None if state in _ENDED else version,
        )
        (self._store.put_safe if state in SAFELY_WRITTEN else self._store.put)(status)
