"""Connect's status topic: the bytes, the latest status, and which worker may overwrite it."""

from __future__ import annotations

import pytest

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.connect_statuses import (
    ConnectStatus,
    LifecycleState,
    StatusRecord,
    StatusState,
    StatusTombstone,
    TopicStatus,
    can_write_safely,
    decode_status_record,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from tests.support.golden import GoldenRecord, golden_json, golden_records

FILES = [
    "connect-mode.connect-topics",
    "dedicated-mode.connect-topics",
    "dedicated-mode.reverse-connect-topics",
]


def status_records(file: str) -> list[GoldenRecord]:
    return [item for item in golden_records(f"topics/{file}.jsonl") if "status" in item.topic]


def encoded(record: StatusRecord) -> RecordBytes:
    """Encode a decoded record; a removed status is encoded as DESTROYED."""
    if isinstance(record, StatusTombstone):
        return ConnectStatus(
            connector=record.connector,
            task=record.task,
            state=LifecycleState.DESTROYED,
            worker_id="w",
            generation=0,
        ).encode()
    return record.encode()


def status(state: LifecycleState, worker_id: str = "w1", generation: int = 1) -> ConnectStatus:
    return ConnectStatus(connector="c", state=state, worker_id=worker_id, generation=generation)


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_status_is_read_and_written_back(file: str) -> None:
    recorded = status_records(file)
    assert recorded
    for item in recorded:
        assert encoded(decode_status_record(item.record)) == item.record


def test_statuses_of_workers_with_internal_rest_are_read_and_written_back() -> None:
    latest = golden_json("topics/dedicated-internal-rest.status-latest.json")
    for key, value in latest.items():
        record = RecordBytes(key.encode(), value.encode())
        assert encoded(decode_status_record(record)) == record


def test_a_status_of_an_older_worker_has_no_version() -> None:
    value = b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":3}'
    found = decode_status_record(RecordBytes(b"status-task-a-b-12", value))
    assert found == ConnectStatus(
        connector="a-b", task=12, state=LifecycleState.RUNNING, worker_id="w", generation=3
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"nonsense", b"{}"),
        (b"status-task-c", b"{}"),
        (b"status-task-c-x", b"{}"),
        (b"status-connector-c", b"{}"),
        (b"status-connector-c", b"[]"),
        (b"status-connector-c", b'{"state":"ODD","worker_id":"w","generation":1}'),
        (b"status-connector-c", b'{"state":"FAILED","trace":1,"worker_id":"w","generation":1}'),
        (b"status-topic-t", b"{}"),
        (b"status-topic-:connector-c", b"{}"),
        (b"status-topic-t:connector-c", b'{"topic":{}}'),
    ],
)
def test_an_invalid_record_is_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(RecordError):
        decode_status_record(RecordBytes(key, value))
    assert StatusState().apply(RecordBytes(key, value)) is None


def test_the_latest_status_wins_and_a_tombstone_removes_it() -> None:
    state = StatusState()
    state.apply(status(LifecycleState.RUNNING, generation=5).encode())
    state.apply(status(LifecycleState.PAUSED, generation=2).encode())
    found = state.connector_status("c")
    assert found is not None
    assert found.state is LifecycleState.PAUSED
    state.apply(status(LifecycleState.DESTROYED).encode())
    assert state.connector_status("c") is None


def test_tasks_are_listed_in_the_order_of_their_ids() -> None:
    state = StatusState()
    for number in (10, 2, 0):
        state.apply(
            ConnectStatus(
                connector="c",
                task=number,
                state=LifecycleState.RUNNING,
                worker_id="w",
                generation=1,
            ).encode()
        )
    state.apply(status(LifecycleState.RUNNING).encode())
    assert [found.task for found in state.task_statuses("c")] == [0, 2, 10]
    assert state.task_status("c", 2) is not None
    assert state.task_status("c", 3) is None


def test_active_topics_are_kept_until_a_reset() -> None:
    state = StatusState()
    seen = TopicStatus(topic="A.t", connector="c", task=1, discovered_ms=5)
    state.apply(seen.encode())
    assert state.topic_statuses("c") == (seen,)
    state.apply(TopicStatus(topic="A.t", connector="c", discovered_ms=None).encode())
    assert state.topic_statuses("c") == ()


@pytest.mark.parametrize(
    ("known", "new", "allowed"),
    [
        (None, status(LifecycleState.FAILED), True),
        (status(LifecycleState.RUNNING, "w1", 9), status(LifecycleState.FAILED, "w1", 3), True),
        (status(LifecycleState.RUNNING, "w2", 3), status(LifecycleState.UNASSIGNED, "w1", 3), True),
        (
            status(LifecycleState.RUNNING, "w2", 4),
            status(LifecycleState.UNASSIGNED, "w1", 3),
            False,
        ),
        (status(LifecycleState.RUNNING, "w2", 4), status(LifecycleState.FAILED, "w1", 3), False),
        (status(LifecycleState.RUNNING, "w2", 4), status(LifecycleState.RUNNING, "w1", 3), True),
    ],
)
def test_an_older_worker_does_not_overwrite_the_status_of_a_newer_one(
    known: ConnectStatus | None, new: ConnectStatus, allowed: bool
) -> None:
    assert can_write_safely(known, new) is allowed


def test_the_recorded_connectors_are_deleted_at_the_end() -> None:
    state = StatusState()
    for item in status_records("connect-mode.connect-topics"):
        state.apply(item.record)
    for name in ("mm2-msc", "mm2-cpc", "mm2-hbc"):
        assert state.connector_status(name) is None
        assert state.task_statuses(name) == ()
        assert state.topic_statuses(name) == ()
