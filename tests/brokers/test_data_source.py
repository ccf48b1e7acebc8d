"""The data source on real brokers, without a Spark session: compared with librdkafka."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow
import pytest
from confluent_kafka import Producer
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkmirror.cluster.admin import Admin
from sparkmirror.datasource.client_pool import ROUTERS, new_router
from sparkmirror.datasource.kafka_readers import new_planner, read_range
from sparkmirror.datasource.kafka_rows import HEADERS, ArrowBatch, SinkColumns
from sparkmirror.datasource.kafka_writers import PRODUCERS, write_batches
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.datasource.options import SinkOptions, SourceOptions
from sparkmirror.datasource.range_reader import LeaderLog, RangeReader
from sparkmirror.datasource.source_planner import SourcePlanner
from sparkmirror.datasource.stream_offsets import NOTHING_READ, StreamOffsets
from sparkmirror.errors import RecordsLost, RequestError, TopicMissing
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.producer_ids import describe_producers
from tests.support.kafka.admin_operations import delete_records
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.bulk_reader import ConsumedRecord, read_partitions
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic

pa: Any = pyarrow
_Producer: Any = Producer
PARTITIONS = 3
COLUMNS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
    ]
)
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(autouse=True, scope="module")
def closed_clients() -> Iterator[None]:
    """Close the clients that tests leave to later tasks."""
    yield
    ROUTERS.close()
    PRODUCERS.close()


def source_options(cluster: SharedCluster, topic: str, **options: str) -> SourceOptions:
    servers = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}
    named = {name.replace("_", "."): value for name, value in options.items()}
    return SourceOptions.for_batch(servers | {"includeHeaders": "true"} | named)


def stream_options(cluster: SharedCluster, topic: str, **options: str) -> SourceOptions:
    servers = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}
    return SourceOptions.for_stream(servers | options)


@contextmanager
def planner_of(options: SourceOptions) -> Iterator[SourcePlanner]:
    with closing(new_router(options.client)) as router:
        yield new_planner(options, router)


def ranges_of(options: SourceOptions) -> list[OffsetRange]:
    with planner_of(options) as planner:
        return planner.batch_ranges()


def read_rows(options: SourceOptions) -> list[dict[str, Any]]:
    ranges = ranges_of(options)
    return [
        row for one in ranges for batch in read_range(options, one) for row in batch.to_pylist()
    ]


def as_consumed(row: dict[str, Any]) -> ConsumedRecord:
    """Return a row as librdkafka returns the record. It counts timestamp types from 1."""
    headers = row["headers"] and [(pair["key"], pair["value"]) for pair in row["headers"]]
    time_ms = round(row["timestamp"].timestamp() * 1000)
    content = ((row["timestampType"] + 1, time_ms), row["key"], row["value"], headers)
    return ConsumedRecord(row["partition"], row["offset"], content)


def write_all_kinds(cluster: SharedCluster, topic: str, unique: str) -> None:
    """Write batches of all codecs, headers, an aborted and a committed transaction."""
    first, second, _ = (TopicPartition(topic, number) for number in range(PARTITIONS))
    at = now_ms()
    odd = [
        Record(0, at, None, None, ((b"a", b"1"), (b"a", None), (b"b", b""))),
        Record(0, at - 5000, b"", b"", ()),
        Record(0, at + 1, b"k", b"\xff" * 3, ((b"c", b"\0"),)),
    ]
    with closing(BatchWriter(cluster.access)) as writer:
        for codec in CompressionType:
            writer.write_batch(first, odd + numbered_records(range(20)), codec)
        for commits in (True, False, True):
            transaction = writer.begin_transaction(unique)
            transaction.write_batch(second, numbered_records(range(5)))
            transaction.commit() if commits else transaction.abort()


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_rows_are_what_another_client_reads(primary: SharedCluster, topic: str, level: str) -> None:
    create_topic(primary.access, topic, PARTITIONS)
    write_all_kinds(primary, topic, topic)
    settings = {"bootstrap.servers": primary.bootstrap, "isolation.level": level}
    expected = read_partitions(topic, PARTITIONS, settings)
    options = source_options(primary, topic, kafka_isolation_level=level)
    assert [as_consumed(row) for row in read_rows(options)] == expected
    divided = source_options(
        primary,
        topic,
        kafka_isolation_level=level,
        minPartitions="7",
        kafka_max_partition_fetch_bytes="300",
    )
    assert len(ranges_of(divided)) >= 7
    assert [as_consumed(row) for row in read_rows(divided)] == expected


def test_the_times_at_which_a_broker_appended_are_rows_too(
    primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, configs={"message.timestamp.type": "LogAppendTime"})
    with closing(BatchWriter(primary.access)) as writer:
        writer.write_batch(TopicPartition(topic, 0), numbered_records(range(3), timestamp=1000))
    rows = read_rows(source_options(primary, topic))
    expected = read_partitions(topic, 1, {"bootstrap.servers": primary.bootstrap})
    assert [as_consumed(row) for row in rows] == expected
    assert {row["timestampType"] for row in rows} == {1}


def test_deleted_records_are_an_error_unless_the_loss_is_accepted(
    primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    partition = TopicPartition(topic, 0)
    with closing(BatchWriter(primary.access)) as writer:
        writer.write_batches(partition, numbered_records(range(30)), batch=10)
    options = stream_options(primary, topic, startingOffsets="earliest")
    with planner_of(options) as planner:
        end = planner.latest_offsets(NOTHING_READ, 5)
        [planned] = planner.ranges(NOTHING_READ, end)
        assert planned == OffsetRange(partition, 0, 5)
        delete_records(primary.access, partition, 12)
        with pytest.raises(RecordsLost, match="begins at offset 12, but offset 5 was next"):
            planner.ranges(end, planner.latest_offsets(end, None))
    with closing(new_router(options.client)) as router:

        def read(start: int, end: int, *, fail: bool = True, stalled_s: float = 0.5) -> list[int]:
            reader = RangeReader(
                OffsetRange(partition, start, end),
                LeaderLog(router, partition),
                fail_on_data_loss=fail,
                stalled_s=stalled_s,
            )
            return [record.offset for batch in reader.read() for record in batch.records]

        with pytest.raises(RecordsLost, match="begins at offset 12, but 0 was next"):
            read(0, 30)
        assert read(0, 30, fail=False) == list(range(12, 30))
        with pytest.raises(RecordsLost, match="its log has become shorter"):
            read(40, 50)
        with pytest.raises(RecordsLost, match="ends at offset 30, but"):
            read(30, 31)
        with Admin(primary.access) as admin:
            assert admin.delete_topics([topic]) == {}
        with pytest.raises(RecordsLost, match="does not exist any more; 20 was next"):
            read(20, 30)


def test_partitions_and_topics_that_appear_or_are_created_again_are_found(
    primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic)
    options = stream_options(primary, topic)
    with planner_of(options) as planner:
        start = planner.latest_offsets(NOTHING_READ, None)
        assert offsets_of(start) == {TopicPartition(topic, 0): 0}
        with Admin(primary.access) as admin:
            assert admin.create_partitions({topic: 2}) == {}
        with closing(BatchWriter(primary.access)) as writer:
            writer.write_batch(TopicPartition(topic, 1), numbered_records(range(4)))
    with planner_of(options) as planner:
        end = planner.latest_offsets(start, None)
        assert planner.ranges(start, end) == [OffsetRange(TopicPartition(topic, 1), 0, 4)]
        with Admin(primary.access) as admin:
            assert admin.delete_topics([topic]) == {}
        with pytest.raises(RecordsLost, match="does not exist any more"):
            planner.latest_offsets(end, None)
        with pytest.raises(TopicMissing, match=topic):
            planner.latest_offsets(NOTHING_READ, None)
    create_topic(primary.access, topic, 2)
    with closing(BatchWriter(primary.access)) as writer:
        writer.write_batch(TopicPartition(topic, 1), numbered_records(range(9)))
    with (
        planner_of(options) as planner,
        pytest.raises(RecordsLost, match=f"{topic}-1 was deleted and created again"),
    ):
        planner.latest_offsets(end, None)
    with planner_of(stream_options(primary, topic, failOnDataLoss="false")) as planner:
        again = planner.latest_offsets(end, None)
        assert planner.ranges(end, again) == [OffsetRange(TopicPartition(topic, 1), 0, 9)]


def offsets_of(offset: dict[str, Any]) -> dict[TopicPartition, int]:
    found = StreamOffsets.from_json(offset)
    assert found is not None
    return found.offsets


def test_a_batch_reads_the_records_between_two_times(primary: SharedCluster, topic: str) -> None:
    create_topic(primary.access, topic)
    at = now_ms() - 100_000
    with closing(BatchWriter(primary.access)) as writer:
        for number in range(10):
            records = numbered_records([number], timestamp=at + number * 1000)
            writer.write_batch(TopicPartition(topic, 0), records)
    times = {"startingTimestamp": str(at + 2500), "endingTimestamp": str(at + 7000)}
    assert [row["offset"] for row in read_rows(source_options(primary, topic, **times))] == [
        *range(3, 7)
    ]


def arrow_rows(rows: Sequence[tuple[Any, ...]]) -> ArrowBatch:
    topics, partitions, times, keys, values, headers = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers, ARROW_HEADERS),
        }
    )


def write_rows(cluster: SharedCluster, rows: Sequence[tuple[Any, ...]], **options: str) -> None:
    named = {name.replace("_", "."): value for name, value in options.items()}
    sink = SinkOptions.from_options({"kafka.bootstrap.servers": cluster.bootstrap} | named)
    columns = SinkColumns.from_schema(COLUMNS, sink.topic)
    half = len(rows) // 2
    batches = [arrow_rows(part) for part in (rows[:half], rows[half:]) if part]
    assert write_batches(sink, columns, iter(batches)).count == len(rows)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_another_client_reads_what_rows_said(
    primary: SharedCluster, topic: str, codec: str
) -> None:
    """Batches are larger than the topic allows, so they are divided; order is kept."""
    create_topic(primary.access, topic, PARTITIONS, configs={"max.message.bytes": "2000"})
    at = now_ms() - 100_000
    rows: list[tuple[Any, ...]] = [
        (
            topic,
            number % PARTITIONS,
            (at - number) * 1000,
            None if number % 5 == 0 else b"k%d" % number,
            None if number % 7 == 0 else (b"%d" % number) * 50,
            [{"key": "h", "value": b"%d" % number}, {"key": "h", "value": None}] * (number % 2),
        )
        for number in range(400)
    ]
    write_rows(primary, rows, kafka_compression_type=codec)
    found = read_partitions(topic, PARTITIONS, {"bootstrap.servers": primary.bootstrap})
    expected = [
        (row[1], ((1, row[2] // 1000), row[3], row[4], as_headers(row[5])))
        for row in sorted(rows, key=lambda row: row[1])
    ]
    assert [(one.partition, one.content) for one in found] == expected


def as_headers(pairs: list[dict[str, Any]]) -> list[tuple[str, bytes | None]] | None:
    return [(pair["key"], pair["value"]) for pair in pairs] or None


def partitions_by_key(cluster: SharedCluster, topic: str) -> dict[object, int]:
    found = read_partitions(topic, PARTITIONS, {"bootstrap.servers": cluster.bootstrap})
    return {one.content[1]: one.partition for one in found}


def test_a_key_chooses_the_partition_as_in_java(
    primary: SharedCluster, unique_name: UniqueName
) -> None:
    """librdkafka has the partitioner of Java's producer."""
    ours, theirs = unique_name("ours"), unique_name("theirs")
    keys = [b"key-%d" % number for number in range(30)]
    for topic in (ours, theirs):
        create_topic(primary.access, topic, PARTITIONS)
    write_rows(primary, [(None, None, None, key, b"v", None) for key in keys], topic=ours)
    producer = _Producer({"bootstrap.servers": primary.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, key=key, value=b"v")
    assert producer.flush(60) == 0
    assert partitions_by_key(primary, ours) == partitions_by_key(primary, theirs)


def test_rows_without_a_key_take_turns_and_have_the_time_of_writing(
    primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, PARTITIONS)
    before = now_ms()
    rows = [(None, None, None, None, b"%d" % number * 20, None) for number in range(100)]
    write_rows(primary, rows, topic=topic, kafka_batch_size="500")
    read = read_rows(source_options(primary, topic))
    assert {row["partition"] for row in read} == set(range(PARTITIONS))
    assert sorted(row["value"] for row in read) == sorted(row[4] for row in rows)
    assert all(before <= row["timestamp"].timestamp() * 1000 <= now_ms() for row in read)


def test_tasks_write_with_one_producer_id_also_to_a_topic_that_is_created_again(
    primary: SharedCluster, topic: str
) -> None:
    """The topic that is created again knows no sequence of the producer."""
    PRODUCERS.close()
    create_topic(primary.access, topic)
    for number in range(3):
        write_rows(primary, [(topic, 0, None, None, b"%d" % number, None)])
    with closing(primary.access.new_router()) as router:
        (found,) = describe_producers(router, [TopicPartition(topic, 0)]).values()
    assert found.value is not None
    [producer] = found.value.values()
    assert producer.last_sequence == 2
    with Admin(primary.access) as admin:
        assert admin.delete_topics([topic]) == {}
    create_topic(primary.access, topic)
    write_rows(primary, [(topic, 0, None, None, b"again", None)])
    assert [row["value"] for row in read_rows(source_options(primary, topic))] == [b"again"]


def test_what_brokers_or_topics_refuse_is_named(primary: SharedCluster, topic: str) -> None:
    with pytest.raises(TopicMissing, match=f"{topic}; create the topic"):
        write_rows(primary, [(None, None, None, None, b"v", None)], topic=topic)
    create_topic(primary.access, topic, configs={"max.message.bytes": "1000"})
    with pytest.raises(RequestError, match="has partition 1, but topic .* has 1 partitions"):
        write_rows(primary, [(topic, 1, None, None, b"v", None)])
    with pytest.raises(RequestError, match=r"larger than max\.message\.bytes of the topic"):
        write_rows(primary, [(topic, 0, None, None, b"v" * 2000, None)])
