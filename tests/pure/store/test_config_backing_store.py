"""The config store writes Connect's records and reads them back before a call returns."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.mirror.connect_topics.connect_configs import (
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
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.store_api import ConfigBackingStore
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store
from tests.support.golden import golden_records

KEY = SessionKey(key="c2VjcmV0", algorithm="HmacSHA256", created_ms=5)
RECORDINGS = {
    "connect": ("topics/connect-mode.connect-topics.jsonl", "connect-configs"),
    "dedicated": ("topics/dedicated-mode.connect-topics.jsonl", "mm2-configs.A.internal"),
    "exactly-once": ("topics/exactly-once.connect-topics.jsonl", "connect-configs"),
    "providers": ("topics/config-providers.connect-configs.jsonl", "connect-configs"),
}


def started_store(log: MemoryLog) -> tuple[KafkaConfigBackingStore, list[ConfigRecord]]:
    store, changes = memory_config_store(log), list[ConfigRecord]()
    store.start(changes.append)
    return store, changes


def recorded(name: str) -> list[RecordBytes]:
    file, topic = RECORDINGS[name]
    return [line.record for line in golden_records(file) if line.topic == topic]


def test_an_empty_store_has_no_connectors_and_offset_minus_1() -> None:
    store: ConfigBackingStore = memory_config_store()
    store.start(lambda change: None)
    assert store.snapshot().connectors() == ()
    assert store.offset() == -1


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_same_calls_write_the_bytes_that_java_wrote(name: str) -> None:
    records = recorded(name)
    log = MemoryLog()
    store, _ = started_store(log)
    replay(store, [decode_config_record(record) for record in records])
    assert log.records == records
    assert records


def replay(store: ConfigBackingStore, changes: list[ConfigRecord]) -> None:
    """Make the calls that write the records of a recording."""
    tasks: list[TaskConfig] = []
    for change in changes:
        if isinstance(change, TaskConfig):
            tasks.append(change)
        elif isinstance(change, TasksCommit):
            store.put_task_configs(change.connector, [task.properties for task in tasks])
            tasks = []
        else:
            make_call(store, change)


def make_call(store: ConfigBackingStore, change: ConfigRecord) -> None:
    """Make the call that writes one record. States are deleted together with connectors."""
    match change:
        case ConnectorConfig(connector=name, properties=None):
            store.remove_connector_config(name)
        case ConnectorConfig(connector=name, properties=properties) if properties is not None:
            store.put_connector_config(name, properties)
        case ConnectorTargetState(connector=name, state=state) if state is not None:
            store.put_target_state(name, state)
        case RestartRequest():
            store.put_restart_request(change)
        case TaskCountRecord():
            store.put_task_count_record(change.connector, change.task_count)
        case SessionKey():
            store.put_session_key(change)


def test_a_write_is_in_the_snapshot_and_reaches_the_listener() -> None:
    store, changes = started_store(MemoryLog())
    store.put_connector_config("c", {"a": "1"}, TargetState.PAUSED)
    store.put_task_configs("c", [{"t": "0"}, {"t": "1"}])
    store.put_session_key(KEY)
    state = store.snapshot()
    assert state.connector_config("c") == {"a": "1"}
    assert state.target_state("c") is TargetState.PAUSED
    assert state.task_configs("c") == ({"t": "0"}, {"t": "1"})
    assert state.session_key == KEY
    assert store.offset() == 6
    assert [type(change) for change in changes] == [
        ConnectorTargetState,
        ConnectorConfig,
        TasksCommit,
        SessionKey,
    ]


def test_initial_state_is_written_before_the_connector() -> None:
    log = MemoryLog()
    store, _ = started_store(log)
    store.put_connector_config("c", {}, TargetState.STOPPED)
    assert [record.key for record in log.records] == [b"target-state-c", b"connector-c"]


def test_task_configs_are_in_the_order_of_javas_maps_and_connectors_as_sent() -> None:
    log = MemoryLog()
    store, _ = started_store(log)
    sent = {"topic": "t", "partition": "0", "cluster": "A"}
    store.put_connector_config("c", sent)
    store.put_task_configs("c", [sent])
    connector, task, _ = (record.value for record in log.records)
    assert connector == b'{"properties":{"topic":"t","partition":"0","cluster":"A"}}'
    assert task == b'{"properties":{"cluster":"A","partition":"0","topic":"t"}}'


def test_no_tasks_are_written_as_a_commit_of_0() -> None:
    log = MemoryLog()
    store, _ = started_store(log)
    store.put_connector_config("c", {})
    store.put_task_configs("c", [])
    assert log.records[-1] == RecordBytes(b"commit-c", b'{"tasks":0}')
    assert store.snapshot().task_configs("c") == ()


def test_snapshot_does_not_change_with_the_store() -> None:
    store, _ = started_store(MemoryLog())
    store.put_connector_config("c", {"a": "1"})
    before = store.snapshot()
    store.put_task_configs("c", [{"t": "0"}])
    store.put_connector_config("c", {"a": "2"})
    store.put_connector_config("d", {})
    assert before.connector_config("c") == {"a": "1"}
    assert before.connectors() == ("c",)
    assert before.task_configs("c") == ()
    store.remove_connector_config("c")
    assert store.snapshot().connectors() == ("d",)


def test_preexisting_records_do_not_reach_the_listener() -> None:
    log = MemoryLog(recorded("dedicated"))
    store, changes = started_store(log)
    assert changes == []
    assert set(store.snapshot().connectors()) == {
        "MirrorSourceConnector",
        "MirrorHeartbeatConnector",
        "MirrorCheckpointConnector",
    }
    store.put_restart_request(RestartRequest(connector="c", include_tasks=True, only_failed=False))
    assert [type(change) for change in changes] == [RestartRequest]


def test_bad_record_is_named_with_offset_and_key_and_the_rest_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = ConnectorConfig(connector="c", properties={"a": "1"}).encode()
    bad = RecordBytes(b"connector-broken", b"{not json")
    store, _ = started_store(MemoryLog([bad, good], topic="connect-configs"))
    assert store.snapshot().connectors() == ("c",)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "connect-configs-0, at offset 0 with key b'connector-broken': Not JSON" in line


def test_task_configs_that_compaction_removed_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    history = [
        ConnectorConfig(connector="c", properties={}).encode(),
        TaskConfig(connector="c", task=1, properties={}).encode(),
        TasksCommit(connector="c", tasks=2).encode(),
    ]
    with caplog.at_level(logging.WARNING):
        store, _ = started_store(MemoryLog(history))
    assert store.snapshot().is_inconsistent("c")
    assert "Connector c has no tasks: compaction has removed some of its 2" in caplog.text


def test_logger_level_is_written_for_all_workers() -> None:
    log = MemoryLog()
    store, changes = started_store(log)
    store.put_logger_level("org.apache.kafka", "DEBUG")
    assert log.records == [RecordBytes(b"logger-cluster-org.apache.kafka", b'{"level":"DEBUG"}')]
    assert changes == [decode_config_record(log.records[0])]


def test_commit_applies_only_to_the_tasks_of_its_connector() -> None:
    store, _ = started_store(MemoryLog())
    store.put_connector_config("c", {})
    store.put_connector_config("c-1", {})
    store.put_task_configs("c-1", [{"of": "c-1"}])
    store.put_task_configs("c", [{"of": "c"}])
    assert store.snapshot().task_configs("c-1") == ({"of": "c-1"},)
    assert store.snapshot().task_configs("c") == ({"of": "c"},)
