"""The status store on a log: who is doing what, written in the background, read from the topic.

A worker that only reports an end must not overwrite what a newer owner has said, so FAILED and
UNASSIGNED are written safely: `may_overwrite` is asked each time before such a status is sent.
What records mean is `mirror.connect_topics.connect_statuses`.
"""

from __future__ import annotations

import threading
from functools import partial

from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    StatusState,
    TopicStatus,
    can_write_safely,
)
from sparkmirror.store.compacted_log import CompactedLog, ConsumedRecord
from sparkmirror.store.outbox import QueuedRecord, RecordSink


class KafkaStatusBackingStore:
    """The statuses of one worker group. A `keeping.StatusStore`."""

    def __init__(self, topic: CompactedLog, outbox: RecordSink) -> None:
        self._log = topic
        self._outbox = outbox
        self._lock = threading.Lock()
        self._state = StatusState()

    def start(self) -> None:
        """Read everything, go on following, and begin to write."""
        self._log.start(self._on_record)
        self._outbox.start()

    def stop(self) -> None:
        """Write what waits, if that goes now, and stop following."""
        self._outbox.stop()
        self._log.stop()

    def refresh(self) -> None:
        """Read to the end. What waits to be written is not seen by that."""
        self._log.read_to_end()

    # -- writing -------------------------------------------------------------------------------

    def put(self, status: ConnectStatus) -> None:
        """Write a status, whatever anybody else wrote."""
        self._outbox.send(QueuedRecord(record=status.encode(), should_write=_always))

    def put_safe(self, status: ConnectStatus) -> None:
        """Write it unless a newer owner has spoken."""
        self._outbox.send(
            QueuedRecord(record=status.encode(), should_write=partial(self._may_write, status))
        )

    def put_topic(self, status: TopicStatus) -> None:
        """Write that a connector uses a topic, or that this is forgotten."""
        self._outbox.send(QueuedRecord(record=status.encode(), should_write=_always))

    def _may_write(self, status: ConnectStatus) -> bool:
        with self._lock:
            return can_write_safely(self._current_status(status.connector, status.task), status)

    # -- reading -------------------------------------------------------------------------------

    def connectors(self) -> tuple[str, ...]:
        """The names of all connectors that have a status or a task with one."""
        with self._lock:
            return self._state.connectors()

    def connector(self, name: str) -> ConnectStatus | None:
        """What is known of a connector."""
        with self._lock:
            return self._state.connector_status(name)

    def task(self, connector: str, task: int) -> ConnectStatus | None:
        """What is known of a task."""
        with self._lock:
            return self._state.task_status(connector, task)

    def tasks(self, connector: str) -> tuple[ConnectStatus, ...]:
        """What is known of a connector's tasks, in their order."""
        with self._lock:
            return self._state.task_statuses(connector)

    def topic(self, connector: str, topic: str) -> TopicStatus | None:
        """Since when a connector is known to use a topic."""
        with self._lock:
            return self._state.topic_status(connector, topic)

    def topics(self, connector: str) -> tuple[TopicStatus, ...]:
        """The topics a connector was seen to use."""
        with self._lock:
            return self._state.topic_statuses(connector)

    def _current_status(self, connector: str, task: int | None) -> ConnectStatus | None:
        if task is None:
            return self._state.connector_status(connector)
        return self._state.task_status(connector, task)

    def _on_record(self, entry: ConsumedRecord) -> None:
        with self._lock:
            self._state.apply(entry.record, place=str(entry))


def _always() -> bool:
    return True
