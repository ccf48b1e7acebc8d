"""The columns of the data source, and Arrow batches from and to records.

    source   key value topic partition offset timestamp timestampType [headers]   as Spark's own
    sink     value [key] [topic] [partition] [timestamp] [headers]; offset and timestampType of a
             source are ignored: the broker of the topic gives both

Kafka counts milliseconds. A record without a timestamp (-1) is one millisecond before 1970, as in
Spark's own source; written again it has no timestamp. Names of headers that are not UTF-8 get
replacement characters, because Spark's strings are UTF-8.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import pyarrow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparkmirror.datasource.options import FORMAT, TOPIC
from sparkmirror.datasource.range_reader import FetchedBatch
from sparkmirror.errors import ConfigError, ConfigFault, RecordError, RequestError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.message_format_v1 import NO_TIMESTAMP
from sparkmirror.wire.batch.records import Record, RecordHeader

pa: Any = pyarrow
"""pyarrow has no types."""
ArrowBatch: TypeAlias = Any
"""A pyarrow.RecordBatch."""

HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_SOURCE_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
_ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_ARROW_TIMESTAMP = pa.timestamp("us", tz="UTC")
_MAX_TIMESTAMP = (1 << 63) // 1000 - 1
_US = 1000
_ROWS_AT_ONCE = 500
"""Rows exist a second time, as Python objects: few of them, because they may be large."""
_VALUE = "value"
_SINK_TYPES = {
    "key": ("binary", "string"),
    _VALUE: ("binary", "string"),
    TOPIC: ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    "headers": (HEADERS.simpleString(),),
}
_IGNORED_COLUMNS = ("offset", "timestamptype")


def source_schema(*, include_headers: bool) -> StructType:
    """Return the columns of the source."""
    types = _SOURCE_TYPES | ({"headers": HEADERS} if include_headers else {})
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


def to_arrow(
    partition: TopicPartition, batches: Sequence[FetchedBatch], *, include_headers: bool
) -> ArrowBatch:
    """Return records of a partition as rows of the source. Raises RecordError."""
    records = [record for batch in batches for record in batch.records]
    types = [batch.timestamp_type for batch in batches for _ in batch.records]
    count = len(records)
    columns = {
        "key": pa.array([record.key for record in records], pa.binary()),
        _VALUE: pa.array([record.value for record in records], pa.binary()),
        TOPIC: pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        "partition": pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        "offset": pa.array([record.offset for record in records], pa.int64()),
        "timestamp": pa.array(_microseconds(partition, records), pa.int64()).cast(_ARROW_TIMESTAMP),
        "timestampType": pa.array(types, pa.int32()),
    }
    if include_headers:
        columns["headers"] = pa.array(
            [_header_rows(record.headers) for record in records], _ARROW_HEADERS
        )
    return pa.RecordBatch.from_pydict(columns)


def _microseconds(partition: TopicPartition, records: Sequence[Record]) -> list[int]:
    for record in records:
        if abs(record.timestamp) > _MAX_TIMESTAMP:
            raise RecordError(
                f"{partition} has the timestamp {record.timestamp} at offset {record.offset}, which"
                " Spark's timestamps cannot hold; start behind that offset"
            )
    return [record.timestamp * _US for record in records]


def _header_rows(headers: Sequence[RecordHeader]) -> list[dict[str, object]] | None:
    """Return null for a record without headers, as Spark's own source does."""
    if not headers:
        return None
    return [{"key": name.decode(errors="replace"), "value": value} for name, value in headers]


class OutgoingRecord(NamedTuple):
    """A row as a record, and where it goes. Without a partition, the producer chooses."""

    topic: str
    partition: int | None
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkColumns:
    """Where the columns of a DataFrame are that a record is made of."""

    topic: str | None
    """The option `topic`. It wins over the column."""
    indexes: dict[str, int]

    @classmethod
    def from_schema(cls, schema: StructType, topic: str | None) -> Self:
        """Check names and types of columns. Raises ConfigError with all faults."""
        indexes: dict[str, int] = {}
        faults: list[ConfigFault] = []
        for index, column in enumerate(schema.fields):
            name, found = column.name.lower(), column.dataType.simpleString()
            if name in _IGNORED_COLUMNS:
                continue
            allowed = _SINK_TYPES.get(name)
            if allowed is None:
                text = f"column {column.name} has no place in a record; drop it, or rename it"
                text = f"{text} to one of {', '.join(_SINK_TYPES)}"
                faults.append(ConfigFault(column.name, text))
            elif found not in allowed:
                text = f"column {column.name} is {found}; cast it to {' or '.join(allowed)}"
                faults.append(ConfigFault(column.name, text))
            if name in indexes:
                text = f"there are two columns {name}, whatever their case; drop one of them"
                faults.append(ConfigFault(column.name, text))
            indexes[name] = index
        if _VALUE not in indexes:
            faults.append(ConfigFault(_VALUE, f"{FORMAT} needs a column {_VALUE}; add one"))
        if TOPIC not in indexes and topic is None:
            text = f"rows have no topic: set the option {TOPIC}, or add a column {TOPIC}"
            faults.append(ConfigFault(TOPIC, text))
        if faults:
            raise ConfigError(faults)
        return cls(topic=topic, indexes=indexes)

    def records(self, batch: ArrowBatch) -> Iterator[OutgoingRecord]:
        """Yield the rows of an Arrow batch as records. Raises RequestError.

        A row without a timestamp gets the time of writing.
        """
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield from self._records(batch.slice(start, _ROWS_AT_ONCE))

    def _records(self, batch: ArrowBatch) -> Iterator[OutgoingRecord]:
        now_ms = int(time.time() * 1000)
        count = batch.num_rows
        keys, values = self._bytes(batch, "key"), self._bytes(batch, _VALUE)
        timestamps = self._timestamps(batch)
        headers = self._values(batch, "headers")
        partitions = self._values(batch, "partition")
        topics = [self.topic] * count if self.topic is not None else self._values(batch, TOPIC)
        for topic, partition, timestamp, key, value, pairs in zip(
            topics, partitions, timestamps, keys, values, headers, strict=True
        ):
            if not topic:
                raise RequestError(f"a row has no topic; fill it, or set the option {TOPIC}")
            record = Record(
                offset=0,
                timestamp=now_ms if timestamp is None else _checked_timestamp(timestamp),
                key=key,
                value=value,
                headers=_record_headers(pairs) if pairs else (),
            )
            yield OutgoingRecord(topic, partition, record)

    def _values(self, batch: ArrowBatch, name: str) -> list[Any]:
        if name not in self.indexes:
            return [None] * batch.num_rows
        return list(batch.column(self.indexes[name]).to_pylist())

    def _bytes(self, batch: ArrowBatch, name: str) -> list[bytes | None]:
        if name not in self.indexes:
            return [None] * batch.num_rows
        return list(batch.column(self.indexes[name]).cast(pa.binary()).to_pylist())

    def _timestamps(self, batch: ArrowBatch) -> list[int | None]:
        """Return milliseconds."""
        if "timestamp" not in self.indexes:
            return [None] * batch.num_rows
        column = batch.column(self.indexes["timestamp"]).cast(pa.int64())
        return [None if us is None else us // _US for us in column.to_pylist()]


def _checked_timestamp(timestamp: int) -> int:
    if timestamp < NO_TIMESTAMP:
        raise RequestError(
            f"a row has a timestamp before 1970 ({timestamp} ms), which Kafka refuses; write"
            " another one, or null for the time of writing"
        )
    return timestamp


def _record_headers(pairs: Sequence[dict[str, Any] | None]) -> tuple[RecordHeader, ...]:
    headers = []
    for pair in pairs:
        if pair is None or pair["key"] is None:
            raise RequestError("a row has a header without a key; give each header a key")
        headers.append((str(pair["key"]).encode(), pair["value"]))
    return tuple(headers)
