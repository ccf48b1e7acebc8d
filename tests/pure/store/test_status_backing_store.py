"""The status store: Connect's bytes, safe writes, and retries in the background."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized, RequestRefused
from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    LifecycleState,
    StatusTombstone,
    TopicStatus,
    decode_status_record,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.outbox import Outbox
from sparkmirror.store.status_backing_store import KafkaStatusBackingStore
from sparkmirror.store.store_api import StatusBackingStore
from tests.support.connect.in_memory_stores import MemoryLog, memory_status_store
from tests.support.golden import golden_records
from tests.support.waiting import wait_until

RECORDINGS = {
    "connect": ("topics/connect-mode.connect-topics.jsonl", "connect-status"),
    "dedicated": ("topics/dedicated-mode.connect-topics.jsonl", "mm2-status.A.internal"),
}


def status(
    state: LifecycleState, worker: str = "w1", generation: int = 1, task: int | None = None
) -> ConnectStatus:
    return ConnectStatus(
        connector="c", task=task, state=state, worker_id=worker, generation=generation, version="1"
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_same_calls_write_the_bytes_that_java_wrote(name: str) -> None:
    file, topic = RECORDINGS[name]
    records = [line.record for line in golden_records(file) if line.topic == topic]
    log = MemoryLog()
    store: StatusBackingStore = memory_status_store(log)
    store.start()
    for record in records:
        match decode_status_record(record):
            case ConnectStatus() as status_record:
                store.put(status_record)
            case TopicStatus() as topic_status:
                store.put_topic(topic_status)
            case StatusTombstone(connector=connector, task=task):
                destroyed = ConnectStatus(
                    connector=connector,
                    task=task,
                    state=LifecycleState.DESTROYED,
                    worker_id="w1",
                    generation=1,
                )
                store.put(destroyed)
    assert log.records == records
    assert records


def test_a_status_is_read_until_it_is_destroyed() -> None:
    store = memory_status_store()
    store.start()
    store.put(status(LifecycleState.RUNNING))
    store.put(status(LifecycleState.RUNNING, task=1))
    store.put(status(LifecycleState.PAUSED, task=0))
    store.put_topic(TopicStatus(topic="t", connector="c", discovered_ms=5))
    assert store.connectors() == ("c",)
    assert [known.state for known in store.task_statuses("c")] == [
        LifecycleState.PAUSED,
        LifecycleState.RUNNING,
    ]
    assert store.topic_status("c", "t") == TopicStatus(topic="t", connector="c", discovered_ms=5)
    store.put(status(LifecycleState.DESTROYED))
    store.put(status(LifecycleState.DESTROYED, task=0))
    store.put(status(LifecycleState.DESTROYED, task=1))
    store.put_topic(TopicStatus(topic="t", connector="c", discovered_ms=None))
    assert store.connector_status("c") is None
    assert store.task_statuses("c") == ()
    assert store.topic_statuses("c") == ()
    assert store.connectors() == ()


def test_a_safe_status_of_an_older_generation_is_not_written() -> None:
    store = memory_status_store()
    store.start()
    store.put(status(LifecycleState.RUNNING, worker="w2", generation=7, task=0))
    store.put_safe(status(LifecycleState.UNASSIGNED, worker="w1", generation=6, task=0))
    known = store.task_status("c", 0)
    assert known is not None
    assert known.state is LifecycleState.RUNNING
    store.put_safe(status(LifecycleState.UNASSIGNED, worker="w2", generation=6, task=0))
    known = store.task_status("c", 0)
    assert known is not None
    assert known.state is LifecycleState.UNASSIGNED


class FailingLog(MemoryLog):
    """A log whose first appends raise the given errors."""

    def __init__(self, *errors: ClusterError) -> None:
        super().__init__()
        self.errors = list(errors)
        self.attempts = 0
        self.released = threading.Event()
        self.released.set()

    def append(self, records: Sequence[RecordBytes]) -> None:
        self.attempts += 1
        self.released.wait(50)
        if self.errors:
            raise self.errors.pop(0)
        super().append(records)


def test_a_write_is_retried_while_brokers_are_unavailable() -> None:
    log = FailingLog(*[ClusterUnavailable("B", "no broker")] * 2)
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    store.put(status(LifecycleState.RUNNING))
    wait_until(lambda: bool(log.records), "the status to be written")
    assert log.attempts == 3
    store.stop()


def test_a_status_is_visible_while_brokers_cannot_store_it() -> None:
    log = FailingLog(*[ClusterUnavailable("B", "no broker")] * 1000)
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    MemoryLog.append(log, [status(LifecycleState.RUNNING, worker="w0", generation=0).encode()])
    store.put(status(LifecycleState.PAUSED))
    store.put(status(LifecycleState.RUNNING, task=0))
    assert store.connector_status("c") == status(LifecycleState.PAUSED)
    assert store.task_statuses("c") == (status(LifecycleState.RUNNING, task=0),)
    wait_until(lambda: store.problem() == "B: no broker", "an attempt to fail")
    log.errors.clear()
    wait_until(lambda: len(log.records) == 3, "an attempt to succeed")
    wait_until(lambda: store.problem() == "", "the problem to be solved")
    store.stop()


def test_a_missing_right_to_write_is_a_problem_until_the_status_is_written() -> None:
    log = FailingLog(*[NotAuthorized("B", "grant Write on the topic")] * 1000)
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    store.put(status(LifecycleState.RUNNING))
    store.put(status(LifecycleState.RUNNING, task=0))
    wait_until(lambda: log.attempts > 2, "some attempts")
    assert store.problem() == "B: grant Write on the topic"
    log.errors.clear()
    wait_until(lambda: len(log.records) == 2, "the statuses to be written")
    wait_until(lambda: store.problem() == "", "the problem to be solved")
    store.stop()


def test_updates_that_are_dropped_at_shutdown_are_logged_with_topic_and_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = FailingLog(*[ClusterUnavailable("B", "no broker")] * 1000)
    log.topic = "statuses"
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    store.put(status(LifecycleState.RUNNING))
    wait_until(lambda: store.problem() != "", "an attempt to fail")
    store.stop()
    assert "Dropped 1 status updates of topic statuses at shutdown: B: no broker" in caplog.text


def test_a_removed_status_is_gone_before_the_brokers_have_the_tombstone() -> None:
    log = FailingLog()
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    MemoryLog.append(log, [status(LifecycleState.RUNNING).encode()])
    log.released.clear()
    store.put(status(LifecycleState.DESTROYED))
    assert store.connector_status("c") is None
    assert store.connectors() == ()
    log.released.set()
    store.stop()


def test_the_status_of_a_later_generation_replaces_one_that_is_not_stored() -> None:
    log = FailingLog()
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    log.released.clear()
    store.put(status(LifecycleState.RUNNING, generation=3))
    older = status(LifecycleState.FAILED, worker="w0", generation=2)
    MemoryLog.append(log, [older.encode()])
    assert store.connector_status("c") == status(LifecycleState.RUNNING, generation=3)
    newer = status(LifecycleState.RUNNING, worker="w2", generation=4)
    MemoryLog.append(log, [newer.encode()])
    assert store.connector_status("c") == newer
    log.released.set()
    store.stop()


def test_only_the_last_queued_status_of_each_key_is_written() -> None:
    log = FailingLog(ClusterUnavailable("B", "no broker"))
    store = KafkaStatusBackingStore(log, Outbox(log))
    log.released.clear()
    store.start()
    store.put(status(LifecycleState.RUNNING))
    store.put(status(LifecycleState.PAUSED))
    store.put(status(LifecycleState.RUNNING, task=0))
    log.released.set()
    wait_until(lambda: len(log.records) == 2, "the queued statuses to be written")
    assert [record.key for record in log.records] == [b"status-connector-c", b"status-task-c-0"]
    store.stop()


def test_a_queued_safe_status_is_dropped_if_a_newer_one_exists() -> None:
    log = FailingLog(ClusterUnavailable("B", "no broker"))
    store = KafkaStatusBackingStore(log, Outbox(log))
    log.released.clear()
    store.start()
    store.put_safe(status(LifecycleState.FAILED, worker="w1", generation=1))
    wait_until(lambda: log.attempts == 1, "the first attempt")
    newer = status(LifecycleState.RUNNING, worker="w2", generation=2)
    MemoryLog.append(log, [newer.encode()])  # another worker writes
    log.released.set()
    wait_until(lambda: not log.errors, "the attempt to fail")
    store.stop()
    assert store.connector_status("c") == newer


def test_a_refused_status_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    too_large = RequestRefused("B", "MESSAGE_TOO_LARGE", code=10)
    log = FailingLog(too_large, too_large)
    store = KafkaStatusBackingStore(log, Outbox(log))
    log.released.clear()
    store.start()
    store.put(status(LifecycleState.RUNNING, task=0))
    store.put(status(LifecycleState.RUNNING, task=1))
    store.put(status(LifecycleState.RUNNING, task=2))
    log.released.set()
    wait_until(lambda: len(log.records) == 2, "the other statuses to be written")
    store.stop()
    assert "Dropped the status update b'status-task-c-0'" in caplog.text


def test_stop_writes_queued_statuses() -> None:
    log = MemoryLog()
    store = KafkaStatusBackingStore(log, Outbox(log))
    store.start()
    for number in range(100):
        store.put(status(LifecycleState.RUNNING, task=number))
    store.stop()
    assert len(log.records) == 100
