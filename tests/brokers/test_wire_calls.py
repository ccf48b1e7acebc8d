"""Requests to real brokers about offsets, producers, transactions and configs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.lanes.forward import BatchProducer
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.routing import CoordinatorOf, CoordinatorType, LeaderOf, Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.fetch import EpochEndOffset
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request, produce_version
from sparkmirror.wire.protocol.producer_ids import (
    ProducerIdAndEpoch,
    describe_producers,
    init_producer_id,
)
from sparkmirror.wire.protocol.topics.offsets import (
    EARLIEST,
    LATEST,
    LeaderEpochQuery,
    list_offsets,
    offset_for_leader_epoch,
)
from sparkmirror.wire.protocol.topics.topic_log_config import (
    describe_topic_log_configs,
)
from sparkmirror.wire.protocol.transactions import (
    add_partitions_to_txn,
    describe_transaction,
    describe_transactions,
    end_txn,
    transaction_version,
)
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic
from tests.support.kafka.wire_copier import build_recent_batch, make_router, produce_buffers
from tests.support.waiting import wait_until


@pytest.fixture
def router(backup: SharedCluster) -> Iterator[Router]:
    made = make_router(backup.access)
    yield made
    made.close()


@pytest.fixture
def partition(backup: SharedCluster, router: Router, topic: str) -> TopicPartition:
    """A partition whose leader answers."""
    create_topic(backup.access, topic)
    only = TopicPartition(topic, 0)
    assert list_offsets(router, {only: LATEST})[only].code is ErrorCode.NONE
    return only


def append(
    router: Router, partition: TopicPartition, identity: ProducerIdAndEpoch, sequence: int
) -> ErrorCode:
    """Append three records as this producer; return the error code."""
    producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)
    link = router.connection_to(LeaderOf(partition))
    batch = OutgoingBatch(*partition, produce_buffers(build_recent_batch(3), producer, sequence))
    version = produce_version(link.api_versions, by_id=False)
    answer = link.send_and_wait(produce_request(version, [batch], timeout_ms=5000))
    return ErrorCode(answer.partition_responses[partition].error_code)


def fence(router: Router, transactional_id: str, partition: TopicPartition) -> ProducerIdAndEpoch:
    """Write a marker with a higher epoch to a partition, with an empty transaction."""
    version = transaction_version(router)
    identity = init_producer_id(router, transactional_id=transactional_id)
    assert add_partitions_to_txn(router, transactional_id, identity, [partition]) == {
        partition: ErrorCode.NONE
    }
    state = describe_transaction(router, transactional_id)
    assert state is not None
    assert (state.state, set(state.partitions)) == ("Ongoing", {partition})
    after = end_txn(router, transactional_id, identity, commit=False, version=version)

    def is_complete() -> bool:
        now = describe_transaction(router, transactional_id)
        return now is not None and now.is_complete

    wait_until(is_complete, "the markers to be written")
    return after


def test_offsets_are_listed_by_timestamp(router: Router, partition: TopicPartition) -> None:
    identity = init_producer_id(router)
    before_ms = int(time.time() * 1000) - 60_000
    for sequence in (0, 3):
        assert append(router, partition, identity, sequence) is ErrorCode.NONE

    def offset(when: int) -> int:
        listed = list_offsets(router, {partition: when})[partition].value
        assert listed is not None
        return listed.offset

    assert [offset(EARLIEST), offset(LATEST)] == [0, 6]
    assert offset(before_ms) == 0
    assert offset(before_ms + 3_600_000) == -1
    ends = offset_for_leader_epoch(router, {partition: LeaderEpochQuery(epoch=0)})
    assert ends[partition].value == EpochEndOffset(epoch=0, end_offset=6)


def test_a_leader_describes_the_last_sequence_of_a_producer(
    router: Router, partition: TopicPartition
) -> None:
    assert describe_producers(router, [partition])[partition].value == {}
    identity = init_producer_id(router)
    append(router, partition, identity, 0)
    states = describe_producers(router, [partition])[partition].value
    assert states is not None
    state = states[identity.producer_id]
    assert (state.epoch, state.last_sequence) == (identity.epoch, 2)
    assert state.current_txn_start_offset == -1


def test_an_empty_transaction_fences_the_producer_before(
    router: Router, partition: TopicPartition, unique_name: UniqueName
) -> None:
    fence_id = unique_name("fence")
    owner = fence(router, fence_id, partition)
    assert append(router, partition, owner, 0) is ErrorCode.NONE
    successor = fence(router, fence_id, partition)
    if transaction_version(router) < 2:
        successor = init_producer_id(router, transactional_id=fence_id)
    assert successor.producer_id == owner.producer_id
    assert successor.epoch > owner.epoch
    assert append(router, partition, owner, 3).action is ErrorAction.FENCED
    assert append(router, partition, successor, 0) is ErrorCode.NONE


def test_a_fenced_producer_stays_fenced(
    router: Router, partition: TopicPartition, unique_name: UniqueName
) -> None:
    key = unique_name("id")
    fenced = init_producer_id(router, transactional_id=key)
    for _ in range(2):
        init_producer_id(router, transactional_id=key)
    version = transaction_version(router)
    with pytest.raises(RequestRefused, match="another producer has taken over") as caught:
        init_producer_id(router, transactional_id=key, current=fenced)
    assert ErrorCode(caught.value.code).action is ErrorAction.FENCED
    with pytest.raises(RequestRefused, match="another producer has taken over") as caught:
        end_txn(router, key, fenced, commit=True, version=version)
    assert ErrorCode(caught.value.code).action is ErrorAction.FENCED
    refused = add_partitions_to_txn(router, key, fenced, [partition])
    assert refused[partition].action is ErrorAction.FENCED


def test_no_partition_is_added_to_a_transaction_if_one_is_missing(
    router: Router, partition: TopicPartition, unique_name: UniqueName
) -> None:
    key = unique_name("id")
    identity = init_producer_id(router, transactional_id=key)
    absent = TopicPartition(unique_name("absent"), 0)
    assert add_partitions_to_txn(router, key, identity, [partition, absent]) == {
        absent: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        partition: ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
    assert describe_transaction(router, unique_name("unused")) is None


def test_many_transactional_ids_are_described_with_one_request(
    router: Router, partition: TopicPartition, unique_name: UniqueName
) -> None:
    used, unused = [unique_name("id") for _ in range(5)], unique_name("unused")
    router.find_coordinators(CoordinatorType.TRANSACTION, [*used, unused])
    identities = {one: init_producer_id(router, transactional_id=one) for one in used}
    add_partitions_to_txn(router, used[0], identities[used[0]], [partition])
    found = describe_transactions(router, [*used, unused])
    assert found == {one: describe_transaction(router, one) for one in [*used, unused]}
    states = [one.state if one else None for one in found.values()]
    assert states == ["Ongoing", "Empty", "Empty", "Empty", "Empty", None]
    moved = CoordinatorOf(CoordinatorType.TRANSACTION, used[1])
    router._coordinators[moved] = Address("127.0.0.1", 1)
    assert describe_transactions(router, used) == {one: found[one] for one in used}


def test_configs_are_described_for_each_topic_or_its_error_is(
    backup: SharedCluster, router: Router, topic: str, unique_name: UniqueName
) -> None:
    wanted = {
        "max.message.bytes": "2000000",
        "message.timestamp.type": "LogAppendTime",
        "compression.type": "zstd",
        "message.timestamp.before.max.ms": "5000",
        "message.timestamp.after.max.ms": "6000",
    }
    with Admin(backup.access) as admin:
        admin.create_topic(NewTopic(name=topic, configs=wanted))
    absent = unique_name("absent")
    found = describe_topic_log_configs(router, [topic, absent])
    assert found[absent].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found[absent].value is None
    config = found[topic].value
    assert config is not None
    assert config.max_message_bytes == 2_000_000
    assert config.log_append_time
    assert config.compression_type == "zstd"
    assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (5000, 6000)
