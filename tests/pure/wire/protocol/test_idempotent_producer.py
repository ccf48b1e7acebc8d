"""Appends with a producer id: a batch sent again has its sequence, a large one is divided."""

from __future__ import annotations

from contextlib import closing

import pytest

from sparkmirror.errors import RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, read_records
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.synchronous.idempotent_producer import IdempotentProducer
from sparkmirror.wire.protocol.synchronous.multi_partition_produce import append_to_partitions
from tests.support.kafka.log_brokers import PRODUCE, TOPIC, running_log_brokers

FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
IDENTITY = ProducerIdAndEpoch(4000, 2)


def records_of(*values: bytes) -> list[Record]:
    return [Record(7, 1_700_000_000_000, None, value) for value in values]


def test_a_sequence_advances_when_the_batch_is_acknowledged() -> None:
    producer = IdempotentProducer(IDENTITY, CompressionType.GZIP)
    records = records_of(b"a", b"b", b"c")
    sent = b"".join(producer.batch_buffers(FIRST, records))
    header = read_header(sent)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 2, 0)
    assert [one.value for one in read_records(header, sent)] == [b"a", b"b", b"c"]
    assert b"".join(producer.batch_buffers(FIRST, records)) == sent
    producer.on_acknowledged(FIRST, 3)
    again, other = (producer.batch_buffers(p, records) for p in (FIRST, SECOND))
    assert read_header(b"".join(again)).base_sequence == 3
    assert read_header(b"".join(other)).base_sequence == 0


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
def test_a_batch_that_the_broker_has_counts_as_appended(code: ErrorCode) -> None:
    producer = IdempotentProducer(IDENTITY)
    with running_log_brokers(1, 1) as cluster, closing(cluster.router()) as router:
        cluster.append_codes[0].extend([ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, code])
        append_to_partitions(router, {FIRST: [records_of(b"a", b"b")]}, producer=producer)
        append_to_partitions(router, {FIRST: [records_of(b"c")]}, producer=producer)
        assert len(cluster.requests_of(PRODUCE)) == 3
        assert cluster.values(0)[-1] == b"c"
    after = read_header(b"".join(producer.batch_buffers(FIRST, records_of(b"d"))))
    assert after.base_sequence == 3


def test_a_batch_that_is_too_large_is_divided_and_keeps_its_order() -> None:
    values = [b"%d" % number for number in range(5)]
    with running_log_brokers(1, 1) as cluster, closing(cluster.router()) as router:
        cluster.append_codes[0].extend([ErrorCode.MESSAGE_TOO_LARGE] * 2)
        producer = IdempotentProducer(IDENTITY)
        append_to_partitions(router, {FIRST: [records_of(*values)]}, producer=producer)
        assert cluster.values(0) == values


def test_one_record_that_is_too_large_is_an_error() -> None:
    with running_log_brokers(1, 1) as cluster, closing(cluster.router()) as router:
        cluster.append_codes[0].append(ErrorCode.MESSAGE_TOO_LARGE)
        producer = IdempotentProducer(IDENTITY)
        with pytest.raises(RequestRefused, match="MESSAGE_TOO_LARGE"):
            append_to_partitions(router, {FIRST: [records_of(b"large")]}, producer=producer)


def test_timestamps_are_not_dropped() -> None:
    with running_log_brokers(1, 1) as cluster, closing(cluster.router()) as router:
        cluster.append_codes[0].append(ErrorCode.INVALID_TIMESTAMP)
        producer = IdempotentProducer(IDENTITY)
        with pytest.raises(RequestRefused, match="INVALID_TIMESTAMP"):
            append_to_partitions(router, {FIRST: [records_of(b"a")]}, producer=producer)


def test_a_leader_that_does_not_know_a_new_topic_yet_is_asked_again() -> None:
    with running_log_brokers(1, 1) as cluster, closing(cluster.router()) as router:
        cluster.append_codes[0].extend([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2)
        producer = IdempotentProducer(IDENTITY)
        append_to_partitions(router, {FIRST: [records_of(b"a")]}, producer=producer)
        assert cluster.values(0) == [b"a"]
