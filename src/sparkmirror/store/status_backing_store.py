"""The status store on a log. An outbox writes the statuses in the background.

A status that this worker has put is visible at once, even if the brokers cannot store it now: the
worker knows the state of its own connectors and tasks. When the store has read the status from the
topic, or the status of a later generation, the topic counts.

A worker that reports FAILED or UNASSIGNED must not overwrite the status of a newer owner. Such a
status is written safely: `can_write_safely` is asked before each attempt.
`mirror.connect_topics.connect_statuses` interprets the records.
"""

from __future__ import annotations

import threading
from functools import partial

from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    LifecycleState,
    StatusState,
    StatusTombstone,
    TopicStatus,
    can_write_safely,
)
from sparkmirror.store.kafka_based_log import CompactedLog
from sparkmirror.store.outbox import QueuedRecord, RecordSink
from sparkmirror.store.topic_reader import ConsumedRecord


class KafkaStatusBackingStore:
    """The statuses of one worker group. A `store_api.StatusBackingStore`."""

    def __init__(self, compacted_log: CompactedLog, outbox: RecordSink) -> None:
        self._log = compacted_log
        self._outbox = outbox
        self._lock = threading.Lock()
        self._state = StatusState()
        self._unread: dict[str, dict[int | None, ConnectStatus]] = {}
        """Statuses that this worker has put and the store has not read from the topic yet.

        By connector, then by task; None is the connector itself. No inner dict is empty.
        """

    def start(self) -> None:
        """Read the topic to its end, keep following it, and start the outbox. Blocks."""
        self._log.start(self._on_record)
        self._outbox.start()

    def stop(self) -> None:
        """Try once to write the queued statuses, then stop following the topic."""
        self._outbox.stop()
        self._log.stop()

    def refresh(self) -> None:
        """Read the topic to its end. Blocks. Does not wait for queued statuses."""
        self._log.read_to_end()

    def problem(self) -> str:
        """Return why the topic cannot be read or written now; empty if it can."""
        return self._log.problem() or self._outbox.problem()

    # -- writing -------------------------------------------------------------------------------

    def put(self, status: ConnectStatus) -> None:
        """Queue a status. It is visible at once."""
        with self._lock:
            self._unread.setdefault(status.connector, {})[status.task] = status
        self._outbox.send(QueuedRecord(record=status.encode(), should_write=_always))

    def put_safe(self, status: ConnectStatus) -> None:
        """Queue a status that is dropped if a newer owner has written one."""
        with self._lock:
            if can_write_safely(self._current_status(status.connector, status.task), status):
                self._unread.setdefault(status.connector, {})[status.task] = status
        self._outbox.send(
            QueuedRecord(record=status.encode(), should_write=partial(self._may_write, status))
        )

    def put_topic(self, status: TopicStatus) -> None:
        """Queue the active topic of a connector, or its removal."""
        self._outbox.send(QueuedRecord(record=status.encode(), should_write=_always))

    def _may_write(self, status: ConnectStatus) -> bool:
        with self._lock:
            return can_write_safely(self._read_status(status.connector, status.task), status)

    # -- reading -------------------------------------------------------------------------------

    def connectors(self) -> tuple[str, ...]:
        """Return the names of all connectors that have a status, or a task with a status."""
        with self._lock:
            names = dict.fromkeys((*self._state.connectors(), *self._unread))
            return tuple(name for name in names if self._has_status(name))

    def connector_status(self, name: str) -> ConnectStatus | None:
        """Return the status of a connector, if there is one."""
        with self._lock:
            return self._current_status(name, None)

    def task_status(self, connector: str, task: int) -> ConnectStatus | None:
        """Return the status of a task, if there is one."""
        with self._lock:
            return self._current_status(connector, task)

    def task_statuses(self, connector: str) -> tuple[ConnectStatus, ...]:
        """Return the statuses of a connector's tasks, by task number."""
        with self._lock:
            return self._current_task_statuses(connector)

    def topic_status(self, connector: str, topic: str) -> TopicStatus | None:
        """Return since when a connector uses a topic, if it is an active topic."""
        with self._lock:
            return self._state.topic_status(connector, topic)

    def topic_statuses(self, connector: str) -> tuple[TopicStatus, ...]:
        """Return the active topics of a connector."""
        with self._lock:
            return self._state.topic_statuses(connector)

    def _has_status(self, name: str) -> bool:
        is_read = name not in self._unread
        return is_read or bool(
            self._current_status(name, None) or self._current_task_statuses(name)
        )

    def _current_task_statuses(self, connector: str) -> tuple[ConnectStatus, ...]:
        read = self._state.task_statuses(connector)
        unread = self._unread.get(connector)
        if not unread:
            return read
        tasks = sorted(
            task for task in {*unread, *(status.task for status in read)} if task is not None
        )
        found = (self._current_status(connector, task) for task in tasks)
        return tuple(status for status in found if status is not None)

    def _current_status(self, connector: str, task: int | None) -> ConnectStatus | None:
        unread = self._unread.get(connector, {}).get(task)
        if unread is None:
            return self._read_status(connector, task)
        return None if unread.state is LifecycleState.DESTROYED else unread

    def _read_status(self, connector: str, task: int | None) -> ConnectStatus | None:
        """Return the status as of the last record of the topic."""
        if task is None:
            return self._state.connector_status(connector)
        return self._state.task_status(connector, task)

    def _on_record(self, consumed: ConsumedRecord) -> None:
        with self._lock:
            change = self._state.apply(consumed.record, location=str(consumed))
            if isinstance(change, ConnectStatus | StatusTombstone):
                self._forget_unread(change)

    def _forget_unread(self, change: ConnectStatus | StatusTombstone) -> None:
        unread = self._unread.get(change.connector, {})
        status = unread.get(change.task)
        if status is not None and _replaces(change, status):
            del unread[change.task]
            if not unread:
                del self._unread[change.connector]


def _replaces(change: ConnectStatus | StatusTombstone, unread: ConnectStatus) -> bool:
    """Whether a record of the topic is the unread status, or of a later generation."""
    if isinstance(change, StatusTombstone):
        return unread.state is LifecycleState.DESTROYED
    return change == unread or change.generation > unread.generation


def _always() -> bool:
    return True
