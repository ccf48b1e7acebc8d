"""What is logged and written about records that failed."""

from __future__ import annotations

from sparkmirror.copy.task.transform.failed_record_texts import (
    MAX_LOGGED_BYTES,
    ExecutingClasses,
    RecordOrigin,
    context_headers,
    log_text,
)
from sparkmirror.errors import TransformError
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord
from sparkmirror.wire.batch.records import Record

MASK = {
    "transforms": "m",
    "transforms.m.type": " org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.m.fields": "ssn",
}
JSON = {"sparkmirror.transform.value.format": "json"}
ORIGIN = RecordOrigin(connector="c", task=1, partition=TopicPartition("orders", 3))
RECORD = Record(41, 99, b"k", b"secret\n", ((b"h", None),))


def failure(props: dict[str, str]) -> FailedRecord:
    record = KafkaRecord("A.orders", 3, 99, b"k", b"secret", ())
    outcome = connector_transformer(props, JavaEnvironment(now_ms=0)).transform(record)
    assert isinstance(outcome, FailedRecord)
    return outcome


def text(props: dict[str, str], record: Record = RECORD, *, with_contents: bool = False) -> str:
    classes = ExecutingClasses.from_config(props)
    return log_text(ORIGIN, record, failure(props), classes, with_contents=with_contents)


def test_a_log_line_has_connects_text_the_record_and_the_error() -> None:
    assert text(MASK) == (
        "Error encountered in task c-1. Executing stage 'TRANSFORMATION' with class "
        "'org.apache.kafka.connect.transforms.MaskField$Value' (transforms.m), where source record "
        "is {topic='orders', partition=3, offset=41, timestamp=99}. "
        "org.apache.kafka.connect.errors.DataException: Only Struct objects supported for "
        "[mask fields], found: [B"
    )


def test_contents_are_logged_only_if_asked_in_one_line_and_cut() -> None:
    assert "secret" not in text(MASK | JSON)
    assert "Caused by" not in text(MASK | JSON)
    asked = text(MASK | JSON, with_contents=True)
    assert r"key='k', value='secret\n', headers={'h': null}}. " in asked
    assert " Caused by: " in asked
    assert "\n" not in asked
    long = RECORD._replace(value=b"x" * (MAX_LOGGED_BYTES + 1))
    shown = text(MASK, long, with_contents=True)
    assert f"{'x' * MAX_LOGGED_BYTES}'... (1001 bytes)" in shown


def test_a_value_that_does_not_parse_names_the_converter() -> None:
    line = text(MASK | JSON)
    assert "Executing stage 'TO_CONNECT_VALUE' with class 'org.apache.kafka.connect.json." in line


def test_every_stage_has_a_class() -> None:
    classes = ExecutingClasses.from_config(MASK | JSON)
    error = TransformError("e", "m")
    names = {stage: classes.failing_class(FailedRecord(stage, error)) for stage in ErrorStage}
    assert names.pop(ErrorStage.TRANSFORMATION) == "null"
    assert all(name.startswith("org.apache.kafka.") for name in names.values())


def test_context_headers_have_connects_names() -> None:
    error = (
        b"org.apache.kafka.connect.errors.DataException: Only Struct objects supported for "
        b"[mask fields], found: [B"
    )
    written = context_headers(ORIGIN, 41, failure(MASK), ExecutingClasses.from_config(MASK))
    assert dict(written) == {
        b"__connect.errors.topic": b"orders",
        b"__connect.errors.partition": b"3",
        b"__connect.errors.offset": b"41",
        b"__connect.errors.connector.name": b"c",
        b"__connect.errors.task.id": b"1",
        b"__connect.errors.stage": b"TRANSFORMATION",
        b"__connect.errors.class.name": b"org.apache.kafka.connect.transforms.MaskField$Value",
        b"__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        b"__connect.errors.exception.message": error.partition(b": ")[2],
        b"__connect.errors.exception.stacktrace": error,
    }
