"""Connect's offsets topic: bytes, offsets of connectors, and alterations by an operator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkmirror.errors import OffsetsRejected, RecordError
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.connect_offsets import (
    OffsetsState,
    SourcePartition,
    StoredOffset,
    checkpoint_partition,
    connector_key_filter,
    group_by_offsets_partition,
    heartbeat_partition,
    offset_key,
    source_partition,
    to_java_offset,
    upstream_offset,
)
from sparkmirror.mirror.connect_topics.offset_alterations import (
    OffsetAlteration,
    normalize_alterations,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from tests.support.golden import GoldenRecord, golden_lines, golden_records

FILES = [
    "connect-mode.connect-topics",
    "dedicated-mode.connect-topics",
    "dedicated-mode.reverse-connect-topics",
    "exactly-once.connect-topics",
]

DEFAULT_PARTITIONS = 25
"""The default partition count of an offsets topic."""


def offset_records(file: str) -> list[GoldenRecord]:
    return [item for item in golden_records(f"topics/{file}.jsonl") if "offsets" in item.topic]


@pytest.mark.parametrize("file", FILES)
def test_an_offset_is_written_to_the_same_partition_as_by_java(file: str) -> None:
    for item in offset_records(file):
        stored = StoredOffset.decode(item.record)
        assert list(group_by_offsets_partition([stored], DEFAULT_PARTITIONS)) == [item.partition]


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_offset_is_read_and_written_back(file: str) -> None:
    recorded = offset_records(file)
    assert recorded
    for item in recorded:
        assert StoredOffset.decode(item.record).encode() == item.record


def test_keys_of_the_three_connectors() -> None:
    orders = TopicPartition("t", 0)
    remote = TopicPartition("A.t", 0)
    assert offset_key("MirrorSourceConnector", source_partition("A", orders)) == (
        b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]'
    )
    assert offset_key("MirrorCheckpointConnector", checkpoint_partition("g", remote)) == (
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]'
    )
    assert offset_key("MirrorHeartbeatConnector", heartbeat_partition("A", "B")) == (
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]'
    )


def test_the_order_of_members_does_not_matter() -> None:
    given: SourcePartition = {"topic": "größe", "partition": 0, "cluster": "A"}
    expected = '["c",{"cluster":"A","partition":0,"topic":"größe"}]'
    assert offset_key("c", given) == expected.encode()


def test_the_recorded_offsets_of_each_partition_are_read() -> None:
    state = OffsetsState()
    for item in offset_records("connect-mode.connect-topics"):
        state.apply(item.record)
    assert state.position("mm2-msc", "source", TopicPartition("big", 0)) == 410
    assert state.position("mm2-msc", "source", TopicPartition("orders", 1)) == 22
    assert state.position("mm2-msc", "source", TopicPartition("empty-topic", 0)) is None
    assert state.position("mm2-msc", "elsewhere", TopicPartition("big", 0)) is None
    assert len(state.of_connector("mm2-cpc")) == 6


@pytest.mark.parametrize("name", ["east", "e", 'a"b', "a\\b", "größe", "sparkmirror:runs:east"])
def test_the_keys_of_a_connector_are_found_without_decoding_those_of_others(name: str) -> None:
    may_belong = connector_key_filter(name)
    partition = source_partition("A", TopicPartition("t", 0))
    for key in (offset_key(name, partition), offset_key(name, None)):
        assert may_belong(key)
    assert may_belong(json.dumps([name, {"cluster": "A"}]).encode())
    assert may_belong(json.dumps([name, None], indent=1).encode()), "not as Connect writes it"
    assert not may_belong(offset_key("other", partition))
    assert not may_belong(offset_key(f"{name}2".replace('"', "").replace("\\", ""), partition))


def test_a_reset_removes_all_offsets() -> None:
    """In the exactly-once recording the source connector's offsets are altered, then reset."""
    state = OffsetsState()
    reset = [
        item.record
        for item in offset_records("exactly-once.connect-topics")
        if item.record.value is None
    ]
    assert reset
    for item in offset_records("exactly-once.connect-topics"):
        state.apply(item.record)
        if item.record.value is None:
            stored = StoredOffset.decode(item.record)
            assert stored.partition is not None
            assert state.offset(stored.connector, stored.partition) is None


def test_seek_behavior_during_start() -> None:
    """Upstream's MirrorSourceTaskTest: a task seeks only partitions with a stored offset."""
    state = OffsetsState()
    stored: dict[int, dict[str, Any] | None] = {0: {"offset": 2}, 1: {"offset": -1}, 2: {}, 3: None}
    for partition, offset in stored.items():
        where = source_partition("A", TopicPartition("t", partition))
        state.apply(StoredOffset(connector="c", partition=where, offset=offset).encode())
    positions = [state.position("c", "A", TopicPartition("t", n)) for n in range(5)]
    assert positions == [3, None, None, None, None]


def test_additional_members_are_kept_and_do_not_change_the_offset() -> None:
    offset = {"offset": 7, "target": 9, "open": True}
    record = StoredOffset(connector="c", partition={"topic": "t"}, offset=offset).encode()
    again = StoredOffset.decode(record).offset
    assert again == offset
    assert again is not None
    assert upstream_offset(again) == 7


@pytest.mark.parametrize(
    "key", [None, b"", b"{}", b'"c"', b'["c"]', b"[1,{}]", b'["c",{},1]', b'["c",1]']
)
def test_an_invalid_key_is_refused_and_ignored_by_the_state(key: bytes | None) -> None:
    with pytest.raises(RecordError):
        StoredOffset.decode(RecordBytes(key, b"{}"))
    assert OffsetsState().apply(RecordBytes(key, b"{}")) is None


@pytest.mark.parametrize("value", [True, "1", 1.5])
def test_an_offset_that_is_not_an_integer_is_refused(value: Any) -> None:
    with pytest.raises(RecordError, match="must be an integer"):
        upstream_offset({"offset": value})


RULES = {
    "mm2-msc": offset_alterations.SOURCE_RULES,
    "mm2-cpc": offset_alterations.CHECKPOINT_RULES,
    "mm2-hbc": offset_alterations.HEARTBEAT_RULES,
}


def requests() -> list[dict[str, Any]]:
    """Return the recorded REST requests about the offsets of the stopped connectors."""
    paths = {f"/connectors/{name}/offsets": name for name in RULES}
    return [
        line | {"connector": paths[line["path"]]}
        for line in golden_lines("rest/03-lifecycle-identity.jsonl")
        if line["path"] in paths and line["seq"] >= 100
    ]


def alterations(body: str) -> list[OffsetAlteration] | None:
    """Read a request body; return None if its shape is wrong, which the REST layer checks."""
    items = json.loads(body)["offsets"]
    known = {"partition", "offset"}
    if not items or any(item is None or set(item) - known for item in items):
        return None
    return [OffsetAlteration(item.get("partition"), item.get("offset")) for item in items]


def test_altered_offsets_give_the_recorded_responses_and_records() -> None:
    """The first response with offsets fills the store; later ones must equal it."""
    states: dict[str, OffsetsState] = {}
    checked = 0
    for line in requests():
        connector = line["connector"]
        state = states.setdefault(connector, OffsetsState())
        if line["method"] == "DELETE":
            store(
                state, connector, [OffsetAlteration(s.partition, None) for s in known(states, line)]
            )
        elif line["method"] == "PATCH" and (wanted := alterations(line["request_body"])):
            checked += 1
            assert alter(state, connector, wanted) == error_message(line), line["name"]
        elif line["method"] == "GET":
            listed = [OffsetAlteration(**o) for o in json.loads(line["body"])["offsets"]]
            if line["name"] == "offsets-stopped":
                store(state, connector, listed)
            mine = [OffsetAlteration(s.partition, s.offset) for s in known(states, line)]
            assert len(mine) == len(listed)
            assert all(pair in mine for pair in listed)
    assert checked > 40


def known(states: dict[str, OffsetsState], line: dict[str, Any]) -> tuple[StoredOffset, ...]:
    return states[line["connector"]].of_connector(line["connector"])


def alter(state: OffsetsState, connector: str, wanted: list[OffsetAlteration]) -> str | None:
    """Alter offsets as PATCH offsets does; return the error message, if any."""
    try:
        plain = normalize_alterations(wanted)
        offset_alterations.validate_alterations(plain, RULES[connector])
    except OffsetsRejected as error:
        return str(error)
    store(state, connector, plain)
    return None


def store(state: OffsetsState, connector: str, pairs: list[OffsetAlteration]) -> None:
    for partition, offset in pairs:
        record = StoredOffset(connector=connector, partition=partition, offset=offset).encode()
        state.apply(record)


def error_message(line: dict[str, Any]) -> str | None:
    return None if line["status"] == 200 else str(json.loads(line["body"])["message"])


def test_members_that_connect_lacks_are_not_shown() -> None:
    assert to_java_offset({"offset": 7, "pid": 1, "open": True}) == {"offset": 7}
    assert to_java_offset({"offset": -1, "pid": 1}) is None
    assert to_java_offset({"file": "a"}) == {"file": "a"}
    assert to_java_offset(None) is None
