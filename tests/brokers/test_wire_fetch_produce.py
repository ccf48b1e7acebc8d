"""Fetch and Produce with real brokers, in every supported version."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.cluster.produce_and_consume import produce_records as write_records
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import BytesLike, iter_batches, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer
from sparkmirror.wire.net.routing import AnyBroker, LeaderOf, Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.fetch import (
    EpochEndOffset,
    FetchParams,
    FetchPosition,
    FetchResponseData,
    fetch_request,
)
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    PartitionProduceResponse,
    produce_request,
    produce_version,
    supports_topic_ids,
)
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.topics.topic_key import TopicKey
from sparkmirror.wire.protocol.transactions import (
    add_partitions_to_txn,
    describe_transaction,
    end_txn,
    transaction_version,
)
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic
from tests.support.kafka.record_batches import NOW_MS
from tests.support.kafka.wire_copier import (
    WireCopier,
    build_recent_batch,
    make_router,
    produce_buffers,
    read_stored_batches,
)
from tests.support.waiting import wait_until


@pytest.fixture
def source(primary: SharedCluster) -> Iterator[Router]:
    router = make_router(primary.access)
    yield router
    router.close()


@pytest.fixture
def target(backup: SharedCluster) -> Iterator[Router]:
    router = make_router(backup.access)
    yield router
    router.close()


def send(
    router: Router,
    partition: TopicPartition,
    buffers: tuple[BytesLike, ...],
    *,
    topic: bytes | None = None,
    transactional_id: str | None = None,
) -> PartitionProduceResponse:
    """Produce one batch; return the leader's response for its partition."""
    key: TopicKey = partition.topic if topic is None else topic
    link = router.connection_to(LeaderOf(partition))
    request = produce_request(
        produce_version(link.api_versions, by_id=topic is not None),
        [OutgoingBatch(key, partition.partition, buffers)],
        timeout_ms=5000,
        transactional_id=transactional_id,
    )
    return link.send_and_wait(request).partition_responses[key, partition.partition]


def fetch(
    router: Router,
    partition: TopicPartition,
    offset: int = 0,
    *,
    version: int = 12,
    topic: TopicKey | None = None,
    limits: FetchParams = FetchParams(max_wait_ms=50),  # noqa: B008 - frozen
    max_bytes: int = 1 << 20,
    last_fetched_epoch: int = -1,
) -> FetchResponseData:
    """Fetch one partition from its leader."""
    key = partition.topic if topic is None else topic
    position = FetchPosition(
        key, partition.partition, offset, max_bytes, last_fetched_epoch=last_fetched_epoch
    )
    link = router.connection_to(LeaderOf(partition))
    return link.send_and_wait(fetch_request(version, limits, [position]))


def plain_producer(router: Router) -> BatchProducer:
    identity = init_producer_id(router)
    return BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)


def supported_versions(router: Router, versions: tuple[int, int]) -> tuple[int, int]:
    """Return these versions, or the highest that an older broker supports."""
    offered = router.connection_to(AnyBroker()).api_versions.ranges
    return min(versions[0], offered[1][1]), min(versions[1], offered[0][1])


@pytest.mark.parametrize("versions", [(10, 7), (11, 8), (12, 9), (13, 12), (16, 13)], ids=str)
def test_a_copied_topic_has_the_same_bytes(
    versions: tuple[int, int],
    source: Router,
    target: Router,
    primary: SharedCluster,
    backup: SharedCluster,
    unique_name: UniqueName,
) -> None:
    there, here = unique_name("source"), unique_name("target")
    create_topic(primary.access, there, partitions=3)
    create_topic(backup.access, here, partitions=3)
    writer = plain_producer(source)
    expected = 0
    for index in range(3):
        sequence = 0
        for codec in (
            CompressionType.NONE,
            CompressionType.LZ4,
            CompressionType.ZSTD,
            CompressionType.GZIP,
            CompressionType.SNAPPY,
        ):
            parts = produce_buffers(build_recent_batch(5 + index, codec), writer, sequence)
            assert send(source, TopicPartition(there, index), parts).base_offset == sequence
            sequence += 5 + index
        expected += sequence
    copier = WireCopier(source, target, (there, here), supported_versions(target, versions))
    copier.run(expected)
    for index in range(3):
        original = read_stored_batches(source, TopicPartition(there, index))
        assert len(original) == 5
        assert read_stored_batches(target, TopicPartition(here, index)) == original


def test_a_fetch_returns_at_least_one_complete_batch_and_the_offsets_of_the_log(
    source: Router, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(source)
    for sequence in (0, 10):
        send(source, partition, produce_buffers(build_recent_batch(10), writer, sequence))
    (got,) = fetch(source, partition, 3, max_bytes=1).partitions
    (span,) = iter_batches(got.records)
    assert read_header(got.records, span.start).base_offset == 0
    assert (got.high_watermark, got.last_stable_offset, got.log_start_offset) == (20, 20, 0)
    (beyond,) = fetch(source, partition, 21).partitions
    assert ErrorCode(beyond.error_code) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_batch_sent_again_keeps_its_offset(
    target: Router, backup: SharedCluster, topic: str
) -> None:
    create_topic(backup.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(target)
    parts = produce_buffers(build_recent_batch(4), writer, 0)
    assert [send(target, partition, parts).base_offset for _ in range(2)] == [0, 0]
    gap = send(target, partition, produce_buffers(build_recent_batch(4), writer, 400))
    assert ErrorCode(gap.error_code) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(read_stored_batches(target, partition)) == 1


def test_a_refused_batch_has_its_error_code(
    target: Router, backup: SharedCluster, topic: str
) -> None:
    configs = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    create_topic(backup.access, topic, configs=configs)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(target)
    keyless = send(target, partition, produce_buffers(build_recent_batch(2, key=None), writer, 0))
    assert ErrorCode(keyless.error_code) is ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in keyless.record_errors] == [0, 1]
    assert keyless.error_message is not None
    large = send(target, partition, produce_buffers(build_recent_batch(50), writer, 0))
    assert ErrorCode(large.error_code) is ErrorCode.MESSAGE_TOO_LARGE
    good = send(target, partition, produce_buffers(build_recent_batch(2), writer, 0))
    assert (good.error_code, good.base_offset) == (0, 0)


def test_a_topic_id_never_reaches_the_recreated_topic(
    source: Router, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(source)
    parts = produce_buffers(build_recent_batch(3), writer, 0)
    send(source, partition, parts)
    before = source.refresh([topic])
    old_id = before.topic_id(topic)
    assert isinstance(old_id, UUID)
    assert len(fetch(source, partition, version=16, topic=old_id.bytes).partitions[0].records) > 0
    with Admin(primary.access) as admin:
        assert admin.delete_topics([topic]) == {}
    create_topic(primary.access, topic)
    after = source.refresh([topic])
    assert after.topic_id(topic) not in (None, old_id)
    for version in (13, 16):
        (got,) = fetch(source, partition, version=version, topic=old_id.bytes).partitions
        assert ErrorCode(got.error_code) is ErrorCode.UNKNOWN_TOPIC_ID
    if supports_topic_ids(source.connection_to(AnyBroker()).api_versions):
        refused = send(source, partition, parts, topic=old_id.bytes)
        assert ErrorCode(refused.error_code) is ErrorCode.UNKNOWN_TOPIC_ID
    assert read_stored_batches(source, partition) == []


def test_an_aborted_transaction_is_listed_for_read_committed(
    target: Router, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    create_topic(backup.access, topic)
    partition = TopicPartition(topic, 0)
    tid = unique_name("transaction")
    version = transaction_version(target)
    identity = init_producer_id(target, transactional_id=tid)
    for number, commit in enumerate((True, False)):
        assert add_partitions_to_txn(target, tid, identity, [partition]) == {
            partition: ErrorCode.NONE
        }
        writer = BatchProducer(
            producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
        )
        parts = produce_buffers(build_recent_batch(3), writer, 0 if version >= 2 else 3 * number)
        ack = send(target, partition, parts, transactional_id=tid)
        assert (ack.error_code, ack.base_offset) == (0, 4 * number)
        (open_one,) = fetch(target, partition, limits=FetchParams(read_committed=True)).partitions
        assert open_one.last_stable_offset == 4 * number
        identity = end_txn(target, tid, identity, commit=commit, version=version)
        wait_until(lambda: _is_complete(target, tid), "the markers to be written")
    (got,) = fetch(target, partition, limits=FetchParams(read_committed=True)).partitions
    assert got.aborted_transactions == [AbortedTransaction(4, identity.producer_id)]
    assert got.last_stable_offset == got.high_watermark == 8
    (everything,) = fetch(target, partition).partitions
    assert list(everything.aborted_transactions) == []


def _is_complete(router: Router, transactional_id: str) -> bool:
    state = describe_transaction(router, transactional_id)
    assert state is not None
    return state.is_complete


def test_a_fetch_beyond_the_end_of_an_epoch_gets_the_diverging_epoch(
    source: Router, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    write_records(
        primary.access, topic, [ProducerRecord(value=b"x", partition=0, timestamp_ms=NOW_MS)]
    )
    (same,) = fetch(source, partition, 1, last_fetched_epoch=0).partitions
    assert (same.error_code, same.diverging_epoch) == (0, None)
    (ahead,) = fetch(source, partition, 5, last_fetched_epoch=0).partitions
    assert (ahead.error_code, ahead.diverging_epoch) == (0, EpochEndOffset(0, 1))
