"""Connect's config topic: the bytes of every record, and the state after several records."""

from __future__ import annotations

import pytest

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.cluster_config_state import ClusterConfigState
from sparkmirror.mirror.connect_topics.connect_configs import (
    ClusterLoggerLevel,
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    RestartRequest,
    SessionKey,
    TargetState,
    TaskConfig,
    TaskCountRecord,
    TasksCommit,
    decode_config_record,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from tests.support.golden import GoldenRecord, golden_records

FILES = [
    "connect-mode.connect-topics",
    "dedicated-mode.connect-topics",
    "dedicated-mode.reverse-connect-topics",
    "exactly-once.connect-topics",
    "config-providers.connect-configs",
]


def config_records(file: str) -> list[GoldenRecord]:
    return [item for item in golden_records(f"topics/{file}.jsonl") if "configs" in item.topic]


def state_after(*records: ConfigRecord) -> ClusterConfigState:
    state = ClusterConfigState()
    for record in records:
        state.apply(record.encode())
    return state


def connector(name: str = "c") -> ConnectorConfig:
    return ConnectorConfig(connector=name, properties={"name": name})


def task(number: int, name: str = "c") -> TaskConfig:
    return TaskConfig(connector=name, task=number, properties={"task": str(number)})


def commit(tasks: int, name: str = "c") -> TasksCommit:
    return TasksCommit(connector=name, tasks=tasks)


def deleted(name: str = "c") -> ConnectorConfig:
    return ConnectorConfig(connector=name, properties=None)


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_config_record_is_read_and_written_back(file: str) -> None:
    recorded = config_records(file)
    assert recorded
    for item in recorded:
        assert decode_config_record(item.record).encode() == item.record


@pytest.mark.parametrize(
    "record",
    [
        connector(),
        deleted(),
        task(12, "a-b-3"),
        commit(0),
        *[ConnectorTargetState(connector="c", state=state) for state in [*TargetState, None]],
        RestartRequest(connector="c", include_tasks=True, only_failed=False),
        TaskCountRecord(connector="c", task_count=2),
        SessionKey(key="a2V5", algorithm="HmacSHA256", created_ms=5),
        ClusterLoggerLevel(namespace="org.apache", level="DEBUG"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_every_kind_of_record_is_read_and_written_back(record: ConfigRecord) -> None:
    assert decode_config_record(record.encode()) == record


def test_older_workers_read_stopped_as_paused() -> None:
    record = ConnectorTargetState(connector="c", state=TargetState.STOPPED).encode()
    assert record.value == b'{"state":"PAUSED","state.v2":"STOPPED"}'


def test_a_target_state_written_by_an_older_worker_is_read() -> None:
    record = RecordBytes(b"target-state-c", b'{"state":"PAUSED"}')
    assert decode_config_record(record) == ConnectorTargetState(
        connector="c", state=TargetState.PAUSED
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b"nonsense-c", b"{}"),
        (b"session-keys", b"{}"),
        (b"connector-c", b"[]"),
        (b"connector-c", b'{"properties":{"a":1}}'),
        (b"target-state-c", b'{"state":"DANCING"}'),
        (b"target-state-c", b'{"state.v2":[]}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"task-c-0", None),
        (b"commit-c", b'{"tasks":"1"}'),
        (b"commit-c", None),
        (b"tasks-fencing-c", None),
        (b"session-key", b'{"key":1}'),
        (b"logger-cluster-a", b"{}"),
    ],
)
def test_an_invalid_record_changes_nothing(key: bytes | None, value: bytes) -> None:
    with pytest.raises(RecordError):
        decode_config_record(RecordBytes(key, value))
    assert ClusterConfigState().apply(RecordBytes(key, value)) is None


def test_the_key_of_a_connector_named_like_a_task_is_recognised() -> None:
    """Prefixes are tried in Connect's order."""
    assert decode_config_record(
        RecordBytes(b"tasks-fencing-c", b'{"task-count":1}')
    ) == TaskCountRecord(connector="c", task_count=1)
    assert isinstance(
        decode_config_record(RecordBytes(b"connector-task-c-0", None)), ConnectorConfig
    )


def test_task_configs_take_effect_with_their_commit() -> None:
    state = state_after(connector(), task(0), task(1))
    assert state.task_configs("c") == ()
    assert state.apply(commit(2).encode()) == commit(2)
    assert state.task_configs("c") == ({"task": "0"}, {"task": "1"})
    assert state.task_config_generation("c") == 0


def test_a_commit_of_fewer_tasks_replaces_more() -> None:
    state = state_after(connector(), task(0), task(1), commit(2), task(0), commit(1))
    assert state.task_configs("c") == ({"task": "0"},)
    assert state.task_config_generation("c") == 1
    state.apply(commit(0).encode())
    assert state.task_configs("c") == ()
    assert not state.is_inconsistent("c")


def test_a_commit_without_all_its_tasks_makes_the_connector_inconsistent() -> None:
    """Compaction has removed task 0 of an older set. A complete new set is consistent again."""
    state = state_after(connector(), task(1), commit(2))
    assert state.is_inconsistent("c")
    assert state.task_configs("c") == ()
    assert state.task_count("c") == 2
    for record in (task(0), commit(2)):
        state.apply(record.encode())
    assert state.is_inconsistent("c"), "task 1 must be written again, too"
    for record in (task(0), task(1), commit(2)):
        state.apply(record.encode())
    assert state.task_configs("c") == ({"task": "0"}, {"task": "1"})


def test_tasks_that_compaction_has_left_of_a_larger_set_have_no_effect() -> None:
    """Tasks 0..3, then 0..1 were written. Compaction has kept the last record of each."""
    state = state_after(connector(), task(2), task(3), task(0), task(1), commit(2))
    assert not state.is_inconsistent("c")
    assert state.task_configs("c") == ({"task": "0"}, {"task": "1"})


def test_a_commit_with_a_wrong_task_number_makes_the_connector_inconsistent() -> None:
    state = state_after(connector(), task(1), task(2), commit(2))
    assert state.is_inconsistent("c")
    assert state.task_configs("c") == ()


def test_task_configs_of_a_deleted_connector_are_ignored() -> None:
    state = state_after(task(0), commit(1))
    assert state.task_configs("c") == ()
    assert not state.is_pending_fencing("c")
    state.apply(connector().encode())
    assert state.task_configs("c") == ()


def test_a_deleted_connector_keeps_only_its_task_count_record() -> None:
    state = state_after(
        connector(), task(0), commit(1), TaskCountRecord(connector="c", task_count=1), deleted()
    )
    assert state.connectors() == ()
    assert state.task_configs("c") == ()
    assert state.task_count_record("c") == 1


def test_a_connector_needs_fencing_from_a_commit_to_the_next_task_count_record() -> None:
    state = state_after(connector(), task(0), commit(1))
    assert state.is_pending_fencing("c")
    state.apply(TaskCountRecord(connector="c", task_count=1).encode())
    assert not state.is_pending_fencing("c")
    state.apply(commit(0).encode())
    assert state.is_pending_fencing("c")


def test_a_new_connector_is_started_unless_it_has_a_target_state() -> None:
    assert state_after(connector()).target_state("c") is TargetState.STARTED
    stopped = ConnectorTargetState(connector="c", state=TargetState.STOPPED)
    assert state_after(stopped, connector()).target_state("c") is TargetState.STOPPED


def test_only_a_changed_target_state_is_reported() -> None:
    state = state_after(connector())
    paused = ConnectorTargetState(connector="c", state=TargetState.PAUSED)
    assert state.apply(paused.encode()) == paused
    assert state.apply(paused.encode()) is None
    assert state.apply(ConnectorTargetState(connector="c", state=None).encode()) is None
    assert state.target_state("c") is None


def test_requests_in_the_first_read_are_ignored() -> None:
    restart = RestartRequest(connector="c", include_tasks=False, only_failed=True)
    level = ClusterLoggerLevel(namespace="root", level="TRACE")
    state = ClusterConfigState()
    for request in (restart, level):
        assert state.apply(request.encode(), first_read=True) is None
        assert state.apply(request.encode()) == request


def test_the_session_key_is_stored_and_not_printed() -> None:
    key = SessionKey(key="c2VjcmV0", algorithm="HmacSHA256", created_ms=5)
    state = state_after(key)
    assert state.session_key == key
    assert "c2VjcmV0" not in repr(key)


def test_the_recorded_dedicated_flow_ends_with_three_connectors_and_five_tasks() -> None:
    state = ClusterConfigState()
    for item in config_records("dedicated-mode.connect-topics"):
        state.apply(item.record, first_read=True)
    assert set(state.connectors()) == {
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    }
    assert {name: len(state.task_configs(name)) for name in state.connectors()} == {
        "MirrorSourceConnector": 2,
        "MirrorCheckpointConnector": 2,
        "MirrorHeartbeatConnector": 1,
    }
    assert {state.target_state(name) for name in state.connectors()} == {TargetState.STARTED}


def test_the_recorded_exactly_once_connectors_were_fenced_before_their_deletion() -> None:
    """Altering and resetting offsets fences the producers of the source connector."""
    state = ClusterConfigState()
    pending = []
    for item in config_records("exactly-once.connect-topics"):
        state.apply(item.record)
        pending.append(state.is_pending_fencing("mm2-msc"))
    assert state.connectors() == ()
    assert any(pending)
    assert state.task_count_record("mm2-cpc") == 1
    counts = [
        record.task_count
        for item in config_records("exactly-once.connect-topics")
        if isinstance(record := decode_config_record(item.record), TaskCountRecord)
        and record.connector == "mm2-msc"
    ]
    assert counts[:2] == [2, 1]
    assert 0 in counts


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        (b"connector-c", b"{", "write its config again"),
        (b"connector-c", b'{"properties":7}', "write its config again"),
        (b"target-state-c", b'{"state":"ASLEEP"}', "pause, stop or resume it again"),
    ],
)
def test_a_record_that_cannot_be_decoded_is_a_problem_until_its_key_is_written_again(
    key: bytes, value: bytes, remedy: str
) -> None:
    state = ClusterConfigState()
    where = "connect-configs-0, at offset 12 with key 'x'"
    assert state.apply(RecordBytes(key, value), location=where) is None
    (problem,) = state.copy().unreadable_records()
    assert problem.startswith(f"the record of {where} cannot be read: ")
    assert problem.endswith(remedy)
    assert "connector c" in problem
    state.apply(connector("other").encode())
    assert state.unreadable_records() == (problem,)
    state.apply(RecordBytes(key, None))
    assert state.unreadable_records() == ()


@pytest.mark.parametrize(
    ("key", "value"), [(b"task-c-0", b"{"), (b"commit-c", b"{"), (b"x", b"{"), (None, b"{")]
)
def test_a_record_that_the_connector_writes_again_or_that_is_unknown_is_no_problem(
    key: bytes | None, value: bytes
) -> None:
    state = ClusterConfigState()
    assert state.apply(RecordBytes(key, value)) is None
    assert state.unreadable_records() == ()
