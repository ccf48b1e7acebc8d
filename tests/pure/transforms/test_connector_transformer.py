"""The transformer of a connector's config: formats, tolerance, and what stays untouched."""

from __future__ import annotations

import pytest

from sparkmirror.config.tables.transform_additions import RECORD_FORMATS, format_key
from sparkmirror.errors import ConfigError, TransformError
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.converters.formats import record_converters
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import ConnectRecord, KafkaRecord
from sparkmirror.transforms.record_transformer import (
    DroppedRecord,
    ErrorStage,
    FailedRecord,
    Outcome,
    RecordTransformer,
)
from sparkmirror.transforms.transformation import NO_PARTS
from sparkmirror.transforms.transformation_chain import TransformationChain, TransformationStage

ENVIRONMENT = JavaEnvironment(now_ms=1_790_000_000_000)
TRANSFORMS = "org.apache.kafka.connect.transforms"
MASK = {
    "transforms": "m",
    "transforms.m.type": f"{TRANSFORMS}.MaskField$Value",
    "transforms.m.fields": "ssn",
    "transforms.m.replacement": "***",
}
JSON = {format_key("value"): "json"}


def transformed(props: dict[str, str], value: bytes | None, key: bytes | None = None) -> Outcome:
    record = KafkaRecord("orders", 3, 1_700_000_000_123, key, value, (("h", b" 1 "),))
    return connector_transformer(props, ENVIRONMENT).transform(record)


def sent(outcome: Outcome) -> KafkaRecord:
    assert isinstance(outcome, KafkaRecord)
    return outcome


def failed(outcome: Outcome) -> FailedRecord:
    assert isinstance(outcome, FailedRecord)
    return outcome


def test_fields_of_json_values_are_masked() -> None:
    outcome = sent(transformed(MASK | JSON, b'{"id": 1, "ssn": "123"}'))
    assert outcome.value == b'{"id":1,"ssn":"***"}'


def test_fields_of_json_values_with_schemas_are_masked() -> None:
    schema = b'{"type":"struct","fields":[{"type":"string","optional":false,"field":"ssn"}]}'
    props = MASK | {format_key("value"): "json-with-schema"}
    outcome = sent(transformed(props, b'{"schema":' + schema + b',"payload":{"ssn":"123"}}'))
    assert outcome.value is not None
    assert outcome.value.endswith(b',"payload":{"ssn":"***"}}')


def test_without_a_format_fields_fail_as_in_a_java_mirror() -> None:
    failure = failed(transformed(MASK, b'{"ssn":"123"}'))
    assert failure.stage is ErrorStage.TRANSFORMATION
    assert str(failure.error) == "Only Struct objects supported for [mask fields], found: [B"


def test_a_key_that_no_stage_reads_and_the_headers_keep_their_bytes() -> None:
    props = MASK | JSON | {format_key("key"): "json", format_key("header"): "json"}
    outcome = sent(transformed(props, b'{"ssn":"1"}', key=b"{ not JSON"))
    assert outcome.key == b"{ not JSON"
    assert outcome.headers == (("h", b" 1 "),)


def test_a_key_that_is_replaced_is_written_but_not_read() -> None:
    props = {
        "transforms": "k",
        "transforms.k.type": f"{TRANSFORMS}.ValueToKey",
        "transforms.k.fields": "id",
        format_key("key"): "json",
        **JSON,
    }
    assert sent(transformed(props, b'{"id":7}', key=b"{ not JSON")).key == b'{"id":7}'


def test_a_value_that_is_read_but_not_written_keeps_its_bytes() -> None:
    props = {
        "transforms": "h",
        "transforms.h.type": f"{TRANSFORMS}.HeaderFrom$Value",
        "transforms.h.fields": "id",
        "transforms.h.headers": "id",
        "transforms.h.operation": "copy",
        format_key("header"): "string",
        **JSON,
    }
    outcome = sent(transformed(props, b'{ "id" : 7.50 }'))
    assert outcome.value == b'{ "id" : 7.50 }'
    assert outcome.headers == (("h", b" 1 "), ("id", b"7.5"))


def test_a_header_that_is_inserted_has_the_format_and_others_keep_their_bytes() -> None:
    props = {
        "transforms": "i",
        "transforms.i.type": f"{TRANSFORMS}.InsertHeader",
        "transforms.i.header": "n",
        "transforms.i.value.literal": "[1,2]",
        format_key("header"): "json",
    }
    assert sent(transformed(props, b"v")).headers == (("h", b" 1 "), ("n", b"[1,2]"))


def test_a_text_is_cast() -> None:
    props = {
        "transforms": "c",
        "transforms.c.type": f"{TRANSFORMS}.Cast$Value",
        "transforms.c.spec": "float64",
        format_key("value"): "string",
    }
    assert sent(transformed(props, b"12")).value == b"12.0"


def test_a_value_that_does_not_parse_fails_with_its_stage() -> None:
    failure = failed(transformed(MASK | JSON, b"{"))
    assert failure.stage is ErrorStage.TO_CONNECT_VALUE
    assert str(failure.error).startswith("Converting byte[] to Kafka Connect data failed")


def test_a_record_that_fails_is_dropped_if_errors_are_tolerated() -> None:
    outcome = transformed(MASK | JSON | {"errors.tolerance": "all"}, b"{")
    assert isinstance(outcome, DroppedRecord)
    assert outcome.tolerated is not None
    assert outcome.tolerated.stage is ErrorStage.TO_CONNECT_VALUE


def test_a_value_nested_too_deeply_fails_and_does_not_raise() -> None:
    for depth in (300, 900, 5000):
        value = b'{"ssn":' + b"[" * depth + b"]" * depth + b"}"
        outcome = transformed(MASK | JSON, value)
        assert isinstance(outcome, FailedRecord)


@pytest.mark.parametrize(
    ("schema", "payload", "message"),
    [
        ('{"type":"bytes"}', '"h\u00e9"', "Invalid bytes field"),
        (
            '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal"}',
            '"h\u00e9"',
            "Invalid bytes for Decimal field",
        ),
        (
            '{"type":"map","keys":{"type":"array","items":{"type":"int8"}},"values":{"type":"int8"}}',
            "[[[1], 2]]",
            "Keys of maps must not be ARRAY",
        ),
    ],
)
def test_a_payload_that_does_not_fit_its_schema_fails(
    schema: str, payload: str, message: str
) -> None:
    props = MASK | {format_key("value"): "json-with-schema"}
    data = f'{{"schema":{schema},"payload":{payload}}}'.encode()
    failure = failed(transformed(props, data))
    assert failure.stage is ErrorStage.TO_CONNECT_VALUE
    assert failure.error.java_class == "org.apache.kafka.connect.errors.DataException"
    assert str(failure.error) == message


class Unexpected:
    """Raises what no transformation of Kafka raises."""

    reads = NO_PARTS
    writes = NO_PARTS
    drops = False

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        raise TypeError(f"no {record.topic}")


@pytest.mark.parametrize("is_tolerated", [False, True])
def test_an_unexpected_exception_fails_the_record_and_does_not_escape(is_tolerated: bool) -> None:
    chain = TransformationChain([TransformationStage(alias="u", transformation=Unexpected())])
    converters = record_converters({}, ENVIRONMENT)
    transformer = RecordTransformer(chain, converters, converters, tolerates_errors=is_tolerated)
    outcome = transformer.transform(KafkaRecord("orders", 0, 1, None, b"v"))
    failure = outcome.tolerated if isinstance(outcome, DroppedRecord) else outcome
    assert isinstance(outcome, DroppedRecord) is is_tolerated
    assert isinstance(failure, FailedRecord)
    assert failure.stage is ErrorStage.TRANSFORMATION
    assert str(failure.error) == "Unexpected: TypeError('no orders')"


def test_a_negative_timestamp_fails_even_if_errors_are_tolerated() -> None:
    transformer = connector_transformer({"errors.tolerance": "all"}, ENVIRONMENT)
    failure = failed(transformer.transform(KafkaRecord("orders", 0, -2, None, b"v")))
    assert failure.stage is ErrorStage.PRODUCER_RECORD
    assert str(failure.error) == "Invalid record timestamp -2"


def test_an_unknown_format_is_a_fault_of_its_key() -> None:
    with pytest.raises(ConfigError) as caught:
        connector_transformer({format_key("value"): "avro", format_key("key"): "xml"}, ENVIRONMENT)
    assert [fault.key for fault in caught.value.faults] == [format_key("key"), format_key("value")]
    assert all(", ".join(RECORD_FORMATS) in fault.message for fault in caught.value.faults)


def test_all_faults_of_a_config_are_reported() -> None:
    props = {
        "transforms": "r,m",
        "transforms.r.type": "RegexRouter",
        "transforms.r.regex": "a",
        "transforms.m.type": f"{TRANSFORMS}.MaskField$Value",
    }
    with pytest.raises(ConfigError) as caught:
        connector_transformer(props, ENVIRONMENT)
    keys = [fault.key for fault in caught.value.faults]
    assert keys == ["transforms.r.replacement", "transforms.m.fields"]


def test_a_fault_that_java_finds_late_is_raised_when_the_chain_is_made() -> None:
    props = {
        "transforms": "s",
        "transforms.s.type": f"{TRANSFORMS}.SetSchemaMetadata$Value",
    }
    with pytest.raises(TransformError, match="Neither schema name nor version configured"):
        connector_transformer(props, ENVIRONMENT)
