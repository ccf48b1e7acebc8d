"""Metadata of a cluster: a newer leader epoch wins, and ids distinguish topics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.current_leader import BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.topics.metadata_snapshot import (
    MetadataSnapshot,
    PartitionInfo,
    TopicInfo,
    metadata_request,
    read_metadata,
)

ID, OTHER_ID = UUID(int=1), UUID(int=2)
BROKERS = {node: BrokerNode(node, f"b{node}", 9092) for node in (1, 2, 3)}
PARTITION = TopicPartition("t", 0)


def snapshot(
    node: int, epoch: int, topic_id: UUID | None = ID, code: ErrorCode = ErrorCode.NONE
) -> MetadataSnapshot:
    """Return the metadata of a cluster with one topic of one partition."""
    partitions = {} if code else {0: PartitionInfo(leader=LeaderAndEpoch(node, epoch))}
    topic = TopicInfo(name="t", topic_id=topic_id, partitions=partitions, error_code=code)
    return MetadataSnapshot(brokers=BROKERS, controller_id=1, topics={"t": topic})


def test_a_response_is_read_with_names_ids_racks_and_leaders() -> None:
    topic = MetadataResponse.MetadataResponseTopic
    answer = MetadataResponse(
        cluster_id="xyz",
        controller_id=2,
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=2, host="h", port=1, rack="r")],
        topics=[
            topic(
                error_code=0,
                name="t",
                topic_id=ID,
                is_internal=True,
                partitions=[
                    topic.MetadataResponsePartition(
                        partition_index=3,
                        leader_id=2,
                        leader_epoch=7,
                        replica_nodes=[2, 3],
                        isr_nodes=[2],
                        offline_replicas=[3],
                    )
                ],
            ),
            topic(error_code=3, name="gone", topic_id=UUID(int=0), partitions=[]),
        ],
    )
    found = read_metadata(answer)
    assert (found.cluster_id, found.controller_id) == ("xyz", 2)
    assert found.brokers == {2: BrokerNode(2, "h", 1, "r")}
    info = PartitionInfo(
        leader=LeaderAndEpoch(2, 7), replicas=(2, 3), isr=(2,), offline_replicas=(3,)
    )
    assert found.topics["t"] == TopicInfo(
        name="t", topic_id=ID, is_internal=True, partitions={3: info}
    )
    assert found.topic_id("gone") is None
    assert found.topics["gone"].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.leader_node(TopicPartition("t", 3)) == BrokerNode(2, "h", 1, "r")


def test_a_response_of_an_old_broker_has_no_topic_id() -> None:
    topic: Any = MetadataResponse.MetadataResponseTopic(error_code=0, name="t", partitions=[])
    old: Any = MetadataResponse(brokers=[], topics=[topic], cluster_id="c", controller_id=1)
    decode: Any = MetadataResponse
    answer = decode.decode(old.encode(version=7), version=7)
    assert read_metadata(answer).topics["t"].topic_id is None


def test_a_metadata_request_never_creates_a_topic() -> None:
    some, none, every = metadata_request(["a", "b"]), metadata_request([]), metadata_request(None)
    assert [topic.name for topic in some.topics or ()] == ["a", "b"]
    assert (none.topics, every.topics) == ([], None)
    assert not any(request.allow_auto_topic_creation for request in (some, none, every))


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ((1, 5), (2, 6), 2),
        ((1, 5), (2, 4), 1),
        ((1, 5), (2, 5), 2),
        ((1, 5), (2, -1), 2),
    ],
    ids=["newer", "older", "same", "no-epochs"],
)
def test_the_leader_with_the_higher_epoch_is_kept(
    old: tuple[int, int], new: tuple[int, int], kept: int
) -> None:
    merged = snapshot(*old).merge_with(snapshot(*new))
    leader = merged.leader_of(PARTITION)
    assert leader is not None
    assert leader.node_id == kept


@pytest.mark.parametrize(
    ("old_id", "new_id"),
    [(ID, OTHER_ID), (ID, None), (None, ID), (None, None)],
    ids=["other", "lost", "new", "none"],
)
def test_epochs_of_another_topic_or_of_an_unknown_one_are_not_compared(
    old_id: UUID | None, new_id: UUID | None
) -> None:
    old, new = snapshot(1, 50, old_id), snapshot(2, 0, new_id)
    assert old.merge_with(new).leader_of(PARTITION) == LeaderAndEpoch(2, 0)


def test_a_recreated_topic_has_its_new_id_and_a_missing_topic_has_its_error() -> None:
    old, new = snapshot(1, 5), snapshot(2, 0, OTHER_ID)
    assert old.merge_with(new).topic_id("t") == OTHER_ID
    missing = snapshot(0, 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    merged = old.merge_with(missing).topics["t"]
    assert merged.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_temporary_error_keeps_the_known_leader() -> None:
    unavailable = snapshot(0, 0, None, ErrorCode.LEADER_NOT_AVAILABLE)
    assert snapshot(1, 5).merge_with(unavailable).leader_of(PARTITION) == LeaderAndEpoch(1, 5)


def test_topics_outside_the_request_stay_known() -> None:
    merged = snapshot(1, 5).merge_with(MetadataSnapshot(brokers=BROKERS, controller_id=3))
    assert merged.leader_of(PARTITION) == LeaderAndEpoch(1, 5)
    assert merged.controller_id == 3


def test_a_leader_that_is_no_known_broker_is_none() -> None:
    assert snapshot(9, 5).leader_of(PARTITION) is None
    assert snapshot(9, 5).leader_node(PARTITION) is None
    assert MetadataSnapshot().leader_of(PARTITION) is None


def test_a_new_leader_is_stored_if_its_epoch_is_higher() -> None:
    known = snapshot(1, 5)
    updated = known.with_new_leader(PARTITION, LeaderAndEpoch(7, 6), [BrokerNode(7, "b7", 9092)])
    assert updated.leader_node(PARTITION) == BrokerNode(7, "b7", 9092)
    assert known.with_new_leader(PARTITION, LeaderAndEpoch(7, 5), []) is known
    assert known.with_new_leader(TopicPartition("u", 0), LeaderAndEpoch(7, 9), []) is known


def test_a_removed_leader_is_unknown_until_the_next_response() -> None:
    forgotten = snapshot(1, 5).without_leader(PARTITION)
    assert forgotten.leader_of(PARTITION) is None
    assert forgotten.merge_with(snapshot(1, 4)).leader_of(PARTITION) is None
    assert forgotten.merge_with(snapshot(1, 5)).leader_of(PARTITION) == LeaderAndEpoch(1, 5)
    assert snapshot(1, 5).without_broker(1).leader_of(PARTITION) is None
    assert snapshot(1, 5).without_controller().controller_id == -1
    assert MetadataSnapshot().without_leader(PARTITION) == MetadataSnapshot()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=10))
def test_the_leader_epoch_never_falls(leaders: list[tuple[int, int]]) -> None:
    known = MetadataSnapshot()
    for highest, (node, epoch) in enumerate(leaders):
        known = known.merge_with(snapshot(node, epoch))
        leader = known.leader_of(PARTITION)
        assert leader is not None
        assert leader.epoch == max(e for _, e in leaders[: highest + 1])
