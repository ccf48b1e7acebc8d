"""Fetch and Produce on real brokers: what arrives is what was there, in every version we speak."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.record import NewRecord
from sparkmirror.cluster.records import produce as write_records
from sparkmirror.model import TopicPartition
from sparkmirror.wire.aborted import AbortedTransaction
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.codes import Code
from sparkmirror.wire.fetch import EpochEnd, FetchAnswer, FetchLimits, Position, fetch_request
from sparkmirror.wire.forward import Producer
from sparkmirror.wire.header import Data, batches, read_header
from sparkmirror.wire.produce import (
    Acknowledgement,
    OutgoingBatch,
    produce_request,
    produce_version,
    takes_ids,
)
from sparkmirror.wire.producers import init_producer_id
from sparkmirror.wire.routing import AnyBroker, LeaderOf, Router
from sparkmirror.wire.topickey import TopicKey
from sparkmirror.wire.transactions import (
    add_partitions,
    describe_transaction,
    end_transaction,
    transaction_version,
)
from tests.support.batches import NOW
from tests.support.clusters import Reachable, UniqueName, create_topic
from tests.support.raw_copy import RawCopy, batch_of, log_of, router_of, sealed
from tests.support.waiting import wait_until


@pytest.fixture
def source(primary: Reachable) -> Iterator[Router]:
    router = router_of(primary.access)
    yield router
    router.close()


@pytest.fixture
def target(backup: Reachable) -> Iterator[Router]:
    router = router_of(backup.access)
    yield router
    router.close()


def send(
    router: Router,
    partition: TopicPartition,
    buffers: tuple[Data, ...],
    *,
    topic: UUID | None = None,
    transactional_id: str | None = None,
) -> Acknowledgement:
    """Produce one batch and return what the leader says of it."""
    key: TopicKey = partition.topic if topic is None else topic
    link = router.connection_to(LeaderOf(partition))
    request = produce_request(
        produce_version(link.versions, by_id=topic is not None),
        [OutgoingBatch(key, partition.partition, buffers)],
        timeout_ms=5000,
        transactional_id=transactional_id,
    )
    return link.wait_for(request).acknowledgements[key, partition.partition]


def fetch(
    router: Router,
    partition: TopicPartition,
    offset: int = 0,
    *,
    version: int = 12,
    topic: TopicKey | None = None,
    limits: FetchLimits = FetchLimits(max_wait_ms=50),  # noqa: B008 - frozen
    max_bytes: int = 1 << 20,
    last_fetched_epoch: int = -1,
) -> FetchAnswer:
    """Fetch one partition from its leader."""
    key = partition.topic if topic is None else topic
    position = Position(
        key, partition.partition, offset, max_bytes, last_fetched_epoch=last_fetched_epoch
    )
    link = router.connection_to(LeaderOf(partition))
    return link.wait_for(fetch_request(version, limits, [position]))


def plain_producer(router: Router) -> Producer:
    identity = init_producer_id(router)
    return Producer(producer_id=identity.producer_id, epoch=identity.epoch)


def spoken(router: Router, versions: tuple[int, int]) -> tuple[int, int]:
    """The versions wanted, or the nearest that an older broker knows."""
    offered = router.connection_to(AnyBroker()).versions.ranges
    return min(versions[0], offered[1][1]), min(versions[1], offered[0][1])


@pytest.mark.parametrize("versions", [(10, 7), (11, 8), (12, 9), (13, 12), (16, 13)], ids=str)
def test_a_copied_topic_is_the_same_byte_for_byte(
    versions: tuple[int, int],
    source: Router,
    target: Router,
    primary: Reachable,
    backup: Reachable,
    unique_name: UniqueName,
) -> None:
    there, here = unique_name("source"), unique_name("target")
    create_topic(primary.access, there, partitions=3)
    create_topic(backup.access, here, partitions=3)
    writer = plain_producer(source)
    expected = 0
    for index in range(3):
        sequence = 0
        for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.GZIP, Codec.SNAPPY):
            parts = sealed(batch_of(5 + index, codec), writer, sequence)
            assert send(source, TopicPartition(there, index), parts).base_offset == sequence
            sequence += 5 + index
        expected += sequence
    copier = RawCopy(source, target, (there, here), spoken(target, versions))
    copier.run(expected)
    for index in range(3):
        original = log_of(source, TopicPartition(there, index))
        assert len(original) == 5
        assert log_of(target, TopicPartition(here, index)) == original


def test_the_first_batch_comes_whole_and_positions_are_told(
    source: Router, primary: Reachable, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(source)
    for sequence in (0, 10):
        send(source, partition, sealed(batch_of(10), writer, sequence))
    (got,) = fetch(source, partition, 3, max_bytes=1).partitions
    (span,) = batches(got.records)
    assert read_header(got.records, span.start).base_offset == 0
    assert (got.high_watermark, got.last_stable_offset, got.log_start_offset) == (20, 20, 0)
    (beyond,) = fetch(source, partition, 21).partitions
    assert Code(beyond.error) is Code.OFFSET_OUT_OF_RANGE


def test_a_batch_sent_again_keeps_its_offset(target: Router, backup: Reachable, topic: str) -> None:
    create_topic(backup.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(target)
    parts = sealed(batch_of(4), writer, 0)
    assert [send(target, partition, parts).base_offset for _ in range(2)] == [0, 0]
    gap = send(target, partition, sealed(batch_of(4), writer, 400))
    assert Code(gap.error) is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(log_of(target, partition)) == 1


def test_refused_batches_say_why(target: Router, backup: Reachable, topic: str) -> None:
    settings = {"cleanup.policy": "compact", "max.message.bytes": "2000"}
    create_topic(backup.access, topic, configs=settings)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(target)
    keyless = send(target, partition, sealed(batch_of(2, key=None), writer, 0))
    assert Code(keyless.error) is Code.INVALID_RECORD
    assert [record.place for record in keyless.refused] == [0, 1]
    assert keyless.message is not None
    large = send(target, partition, sealed(batch_of(50), writer, 0))
    assert Code(large.error) is Code.MESSAGE_TOO_LARGE
    good = send(target, partition, sealed(batch_of(2), writer, 0))
    assert (good.error, good.base_offset) == (0, 0)


def test_an_id_never_reaches_the_topic_that_took_the_name(
    source: Router, primary: Reachable, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    writer = plain_producer(source)
    parts = sealed(batch_of(3), writer, 0)
    send(source, partition, parts)
    before = source.refresh([topic])
    old_id = before.topic_id(topic)
    assert isinstance(old_id, UUID)
    assert len(fetch(source, partition, version=16, topic=old_id).partitions[0].records) > 0
    with Admin(primary.access) as admin:
        assert admin.delete_topics([topic]) == {}
    create_topic(primary.access, topic)
    after = source.refresh([topic])
    assert after.recreated_since(before) == {topic}
    assert after.name_of(old_id) is None
    for version in (13, 16):
        (got,) = fetch(source, partition, version=version, topic=old_id).partitions
        assert Code(got.error) is Code.UNKNOWN_TOPIC_ID
    if takes_ids(source.connection_to(AnyBroker()).versions):
        refused = send(source, partition, parts, topic=old_id)
        assert Code(refused.error) is Code.UNKNOWN_TOPIC_ID
    assert log_of(source, partition) == []


def test_an_aborted_transaction_is_listed_for_read_committed(
    target: Router, backup: Reachable, topic: str, unique_name: UniqueName
) -> None:
    create_topic(backup.access, topic)
    partition = TopicPartition(topic, 0)
    tid = unique_name("transaction")
    version = transaction_version(target)
    identity = init_producer_id(target, transactional_id=tid)
    for number, commit in enumerate((True, False)):
        assert add_partitions(target, tid, identity, [partition]) == {partition: Code.NONE}
        writer = Producer(
            producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
        )
        parts = sealed(batch_of(3), writer, 0 if version >= 2 else 3 * number)
        ack = send(target, partition, parts, transactional_id=tid)
        assert (ack.error, ack.base_offset) == (0, 4 * number)
        (open_one,) = fetch(target, partition, limits=FetchLimits(read_committed=True)).partitions
        assert open_one.last_stable_offset == 4 * number
        identity = end_transaction(target, tid, identity, commit=commit, version=version)
        wait_until(lambda: _is_over(target, tid), "the markers to be written")
    (got,) = fetch(target, partition, limits=FetchLimits(read_committed=True)).partitions
    assert got.aborted == [AbortedTransaction(4, identity.producer_id)]
    assert got.last_stable_offset == got.high_watermark == 8
    (everything,) = fetch(target, partition).partitions
    assert list(everything.aborted) == []


def _is_over(router: Router, transactional_id: str) -> bool:
    state = describe_transaction(router, transactional_id)
    assert state is not None
    return state.is_over


def test_reading_beyond_the_end_of_an_epoch_is_told_where_it_ends(
    source: Router, primary: Reachable, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    write_records(primary.access, topic, [NewRecord(value=b"x", partition=0, timestamp_ms=NOW)])
    (same,) = fetch(source, partition, 1, last_fetched_epoch=0).partitions
    assert (same.error, same.diverging) == (0, None)
    (ahead,) = fetch(source, partition, 5, last_fetched_epoch=0).partitions
    assert (ahead.error, ahead.diverging) == (0, EpochEnd(0, 1))
