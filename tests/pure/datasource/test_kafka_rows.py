"""Records as Arrow rows and rows as records: nothing changes on the way."""

from __future__ import annotations

import time
from typing import Any

import pyarrow
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkmirror.datasource.kafka import KafkaDataSource
from sparkmirror.datasource.kafka_readers import ARROW_BYTES, group_batches
from sparkmirror.datasource.kafka_rows import (
    HEADERS,
    OutgoingRecord,
    SinkColumns,
    source_schema,
    to_arrow,
)
from sparkmirror.datasource.range_reader import FetchedBatch
from sparkmirror.errors import ConfigError, RecordError, RequestError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record

pa: Any = pyarrow
VALUE: dict[str, DataType] = {"value": BinaryType()}
PARTITION = TopicPartition("orders", 7)
RECORDS = [
    Record(4, 1_700_000_000_123, b"k", b"v", ((b"a", b"1"), (b"a", None), (b"", b""))),
    Record(6, -1, None, None),
    Record(9, 0, b"", b"\xff\0", ((b"b", b"2"),)),
]
BATCHES = [FetchedBatch(0, RECORDS[:1]), FetchedBatch(1, RECORDS[1:])]
ALL_COLUMNS = source_schema(include_headers=True)


def sink(topic: str | None = "t", **columns: DataType) -> SinkColumns:
    schema = StructType([StructField(name, data_type) for name, data_type in columns.items()])
    return SinkColumns.from_schema(schema, topic)


@pytest.mark.parametrize("include_headers", [False, True])
def test_rows_have_the_types_that_spark_expects(include_headers: bool) -> None:
    batch = to_arrow(PARTITION, BATCHES, include_headers=include_headers)
    expected = source_schema(include_headers=include_headers)
    assert to_arrow_schema(expected, timezone="UTC").equals(batch.schema)


def test_a_row_has_everything_of_a_record() -> None:
    rows = to_arrow(PARTITION, BATCHES, include_headers=True).to_pylist()
    assert [row["offset"] for row in rows] == [4, 6, 9]
    assert [row["timestampType"] for row in rows] == [0, 1, 1]
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 7)}
    assert [row["timestamp"].timestamp() for row in rows] == [1_700_000_000.123, -0.001, 0.0]
    assert rows[0]["headers"][1] == {"key": "a", "value": None}
    assert rows[1]["headers"] is None


def test_rows_of_the_source_become_the_same_records() -> None:
    batch = to_arrow(PARTITION, BATCHES, include_headers=True)
    columns = SinkColumns.from_schema(ALL_COLUMNS, None)
    assert list(columns.records(batch)) == [
        OutgoingRecord("orders", 7, record._replace(offset=0)) for record in RECORDS
    ]


def test_rows_of_a_large_batch_become_records_in_order() -> None:
    batch = pa.RecordBatch.from_pydict({"value": [b"%d" % number for number in range(1203)]})
    records = sink(value=BinaryType()).records(batch)
    assert [one.record.value for one in records] == [b"%d" % number for number in range(1203)]


def test_headers_count_for_the_size_of_an_arrow_batch() -> None:
    large = Record(0, 0, None, None, ((b"h", b"x" * ARROW_BYTES),))
    batches = [FetchedBatch(0, [large])] * 3
    assert [len(group) for group in group_batches(batches)] == [1, 1, 1]


def test_columns_that_a_user_sets_are_refused_when_the_query_is_planned() -> None:
    options = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t"}
    source = KafkaDataSource(options)
    other = StructType([StructField("value", StringType())])
    for make in (source.reader, source.streamReader):
        make(source.schema())
        with pytest.raises(ConfigError, match="has columns of its own; remove schema"):
            make(other)


def test_a_timestamp_beyond_sparks_is_an_error() -> None:
    batches = [FetchedBatch(0, [Record(5, 1 << 62, None, b"v")])]
    with pytest.raises(RecordError, match="orders-7 has the timestamp .* at offset 5"):
        to_arrow(PARTITION, batches, include_headers=False)


def test_only_a_value_is_needed_and_text_is_written_as_utf8() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["grün", None]})
    before = int(time.time() * 1000)
    first, second = sink(value=StringType()).records(batch)
    assert (first.topic, first.partition, first.record.key) == ("t", None, None)
    assert first.record.value == "grün".encode()
    assert before <= first.record.timestamp <= int(time.time() * 1000)
    assert second.record.value is None


def test_the_option_wins_over_the_column_topic() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", None], "value": [b"1", b"2"]})
    columns = [StructField("topic", StringType()), StructField("value", BinaryType())]
    with_option = SinkColumns.from_schema(StructType(columns), "t")
    assert [one.topic for one in with_option.records(batch)] == ["t", "t"]
    rows = SinkColumns.from_schema(StructType(columns), None).records(batch)
    assert next(rows).topic == "a"
    with pytest.raises(RequestError, match="a row has no topic"):
        next(rows)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"key": BinaryType()}, "needs a column value"),
        ({"value": IntegerType()}, "column value is int; cast it to binary or string"),
        (VALUE | {"header": BinaryType()}, "column header has no place in a record"),
        (VALUE | {"Value": BinaryType()}, "there are two columns value"),
        (VALUE | {"partition": LongType()}, "column partition is bigint; cast it to int"),
        (VALUE | {"timestamp": LongType()}, "cast it to timestamp"),
        (
            VALUE | {"headers": MapType(StringType(), BinaryType())},
            "cast it to array<struct<key:string",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, DataType], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        sink("t", **columns)


def test_rows_without_a_topic_are_refused_when_the_query_is_planned() -> None:
    with pytest.raises(ConfigError, match="rows have no topic: set the option topic"):
        sink(None, value=BinaryType())


def test_values_that_kafka_refuses_are_named() -> None:
    early = pa.RecordBatch.from_pydict(
        {"value": [b"1"], "timestamp": pa.array([-2_000_000], pa.timestamp("us", tz="UTC"))}
    )
    with pytest.raises(RequestError, match="timestamp before 1970"):
        list(sink(value=BinaryType(), timestamp=TimestampType()).records(early))
    headers = pa.array(
        [[{"key": None, "value": b"1"}]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    unnamed = pa.RecordBatch.from_pydict({"value": pa.array([b"1"]), "headers": headers})
    with pytest.raises(RequestError, match="a header without a key"):
        list(sink(value=BinaryType(), headers=HEADERS).records(unnamed))
