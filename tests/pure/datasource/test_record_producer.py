"""The producer of tasks: one producer id for many of them, and partitions without a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.datasource.record_producer import RecordProducer
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.log_brokers import PRODUCE, TOPIC, LogBrokers, running_log_brokers


@contextmanager
def producer_of(brokers: LogBrokers) -> Iterator[RecordProducer]:
    producer = RecordProducer(
        brokers.router(), codec=CompressionType.NONE, batch_size=1000, timeout_s=30.0
    )
    try:
        yield producer
    finally:
        producer.close()


def run_task(producer: RecordProducer, *values: bytes, partition: int | None = None) -> None:
    for value in values:
        producer.send(TOPIC, partition, Record(0, 0, None, value))
    producer.flush()


def test_tasks_share_a_producer_id_and_their_sequences_go_on() -> None:
    with running_log_brokers(1, 1) as brokers, producer_of(brokers) as producer:
        run_task(producer)
        assert brokers.producer_ids == 0, "a task without rows needs none"
        brokers.append_codes[0].extend([ErrorCode.NOT_ENOUGH_REPLICAS])
        run_task(producer, b"1", b"2")
        run_task(producer, b"3")
        assert brokers.producer_ids == 1
        assert brokers.values(0) == [b"1", b"2", b"3"]
        headers = [read_header(batch) for batch in brokers.batches(0)]
    assert [(one.producer_id, one.base_sequence) for one in headers] == [(1, 0), (1, 2)]


def test_tasks_of_a_few_rows_without_a_key_do_not_all_write_to_one_partition() -> None:
    with running_log_brokers(1, 3) as brokers, producer_of(brokers) as producer:
        for number in range(3):
            run_task(producer, b"%d" % number)
        assert sorted(len(brokers.values(number)) for number in range(3)) == [1, 1, 1]


def test_rows_without_a_key_go_to_partitions_that_have_a_leader() -> None:
    """As in Java's producer: they need not wait for the others."""
    with running_log_brokers(1, 3) as brokers, producer_of(brokers) as producer:
        brokers.leaders[1] = -1
        for number in range(4):
            run_task(producer, b"%d" % number)
        assert [len(brokers.values(number)) for number in range(3)] == [2, 0, 2]


def test_a_task_sees_the_partitions_that_were_added_before_it() -> None:
    with running_log_brokers(1, 1) as brokers, producer_of(brokers) as producer:
        run_task(producer, b"1")
        brokers.add_partitions(1)
        run_task(producer, b"2", partition=1)
        assert brokers.values(1) == [b"2"]
        assert [one.partitions for one in brokers.requests_of(PRODUCE)] == [(0,), (1,)]
