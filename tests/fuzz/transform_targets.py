"""Values and headers of records, as field transformations read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.data.values_parser import parse_string
from sparkmirror.transforms.data.values_text import convert_to_string
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import FailedRecord
from sparkmirror.wire.batch.checksum import assemble_batch
from sparkmirror.wire.batch.header import HEADER_BYTES, read_header
from sparkmirror.wire.batch.records import Record, build_batch
from tests.fuzz.fuzz_target import FuzzTarget, Parse, direct
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import StoredBatch
from tests.support.copy.transform_chains import DROP_AND_MASK, DROP_MARKED
from tests.support.copy.transformed_queues import FIRST, convert, converters_of

_ENVIRONMENT: Final = JavaEnvironment(now_ms=1_790_000_000_000)
_TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
_TOKENS: Final = [
    *(b"null", b"true", b"[]", b"{}", b"[" * 600, b"1e400", b"-0", b"9" * 25, b"9" * 5000),
    *(b"1e999999999", b"\\ud800", b'"a":', b"2020-01-01", b"\xff", b"0x1"),
]


class ValueRefused(Exception):
    """A record that failed, as its outcome says."""


def _transforming(value_format: str) -> Parse:
    """A parser that passes its input as a value through transformations of its fields."""
    transformer = connector_transformer(
        {
            "transforms": "c,t,f,m",
            "transforms.c.type": f"{_TRANSFORMS}.Cast$Value",
            "transforms.c.spec": "a:int8,b:float32,c:string",
            "transforms.t.type": f"{_TRANSFORMS}.TimestampConverter$Value",
            "transforms.t.field": "t",
            "transforms.t.target.type": "string",
            "transforms.t.format": "yyyy-MM-dd HH:mm:ss.SSS",
            "transforms.f.type": f"{_TRANSFORMS}.Flatten$Value",
            "transforms.m.type": f"{_TRANSFORMS}.MaskField$Value",
            "transforms.m.fields": "m",
            "sparkmirror.transform.value.format": value_format,
        },
        _ENVIRONMENT,
    )

    def transform(data: bytes) -> object:
        outcome = transformer.transform(KafkaRecord("orders", 0, 0, None, data))
        if isinstance(outcome, FailedRecord):
            raise ValueRefused(outcome.error)
        return outcome

    return transform


def _header(data: bytes) -> object:
    schema, value = parse_string(data.decode("utf-8", "replace"), _ENVIRONMENT.zone)
    return schema, convert_to_string(value, _ENVIRONMENT.zone)


def _transforming_records(transforms: Mapping[str, str]) -> Parse:
    """A parser that converts its input, the records of a batch with a correct checksum."""
    new_converter = converters_of(transforms)

    def convert_records(data: bytes) -> object:
        header = read_header(_THREE_RECORDS)
        batch = assemble_batch(header._replace(last_offset_delta=9), data)
        stored = StoredBatch(data=batch, next_offset=FIRST + 10)
        queue = PartitionQueue(make_lease(FIRST, 50))
        return convert(queue, new_converter(), [stored])

    return convert_records


_DOCUMENT: Final = (
    b'{"a":300,"b":1.5,"c":true,"t":"2023-11-14 22:13:20.123","m":"x","o":{"p":[1,{"q":null}]}}'
)
_FIELDS: Final = (
    b'{"type":"int32","optional":false,"field":"a"},{"type":"double","optional":true,"field":"b"},'
    b'{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,'
    b'"parameters":{"scale":"2"},"optional":true,"default":"AeI=","field":"c"},'
    b'{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1,'
    b'"optional":true,"field":"t"},{"type":"string","optional":true,"field":"m"}'
)

JSON_VALUES: Final = FuzzTarget(
    name="JSON values",
    seeds=[_DOCUMENT, b"[1,2.5]", b'"text"'],
    tokens=_TOKENS,
    open_parser=direct(_transforming("json")),
    errors=(ValueRefused,),
)
JSON_ENVELOPES: Final = FuzzTarget(
    name="JSON values with schemas",
    seeds=[
        b'{"schema":{"type":"struct","optional":false,"fields":['
        + _FIELDS
        + b']},"payload":{"a":1,"b":2.5,"c":"AeI=","t":1700000000123,"m":"x"}}'
    ],
    tokens=[*_TOKENS, b'"scale":"-2147483648"', b'"type":"map"', b'"optional":true'],
    open_parser=direct(_transforming("json-with-schema")),
    errors=(ValueRefused,),
)
_THREE_RECORDS: Final = build_batch(
    [
        Record(FIRST, 1, None, _DOCUMENT, ((b"pii", None), (b"kept", b"x"))),
        Record(FIRST + 1, 1, b"k" * 70, None, ((b"drop", b""),)),
        Record(FIRST + 2, 1, b"k", b'{"price":1}'),
    ]
)
_RECORD_TOKENS: Final = [
    b"\x01",
    b"\x80",
    b"\xff" * 9,
    b"\x00",
    b"\x06pii",
    b"\x08drop",
    b"\xfe\xff\x7f",
]
HEADERS_OF_RECORDS: Final = FuzzTarget(
    name="headers of records",
    seeds=[_THREE_RECORDS[HEADER_BYTES:]],
    tokens=_RECORD_TOKENS,
    open_parser=direct(_transforming_records(DROP_MARKED)),
    errors=(),
)
TRANSFORMED_RECORDS: Final = FuzzTarget(
    name="records that are transformed",
    seeds=[_THREE_RECORDS[HEADER_BYTES:]],
    tokens=_RECORD_TOKENS,
    open_parser=direct(_transforming_records(DROP_AND_MASK)),
    errors=(),
)
HEADER_LITERALS: Final = FuzzTarget(
    name="literals of headers",
    seeds=[b'{"a":[1,2.5],"b":[]}', b"[2020-01-01,2020-01-02]", b"12:34:56.789Z", b"1e3"],
    tokens=[*_TOKENS, b"[" * 3000, b"{1:" * 500],
    open_parser=direct(_header),
    errors=(),
)
