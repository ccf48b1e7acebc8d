"""What is logged and written about records that failed."""

from __future__ import annotations

from sparkmirror.errors import TransformError
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.configuration.error_settings import FailedRecordsTopic
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.failed_records import (
    LOG_INTERVAL_S,
    ErrorLogLimit,
    ExecutingClasses,
    RecordOrigin,
    failed_record,
    log_text,
)
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord

MASK = {
    "transforms": "m",
    "transforms.m.type": " org.apache.kafka.connect.transforms.MaskField$Value",
    "transforms.m.fields": "ssn",
}
JSON = {"sparkmirror.transform.value.format": "json"}
ORDERS = TopicPartition("orders", 3)
ORIGIN = RecordOrigin(connector="c", task=1, partition=ORDERS, offset=41, timestamp_ms=99)
RECORD = KafkaRecord("A.orders", 3, 99, b"k", b"secret", (("h", None),))


def failure(props: dict[str, str]) -> FailedRecord:
    outcome = connector_transformer(props, JavaEnvironment(now_ms=0)).transform(RECORD)
    assert isinstance(outcome, FailedRecord)
    return outcome


def text(props: dict[str, str], *, names_record: bool = False) -> str:
    classes = ExecutingClasses.from_config(props)
    return log_text(ORIGIN, failure(props), classes, names_record=names_record)


def test_a_log_line_has_connects_text_and_the_error() -> None:
    assert text(MASK) == (
        "Error encountered in task c-1. Executing stage 'TRANSFORMATION' with class "
        "'org.apache.kafka.connect.transforms.MaskField$Value'. "
        "org.apache.kafka.connect.errors.DataException: Only Struct objects supported for "
        "[mask fields], found: [B"
    )


def test_a_log_line_names_the_record_if_asked_and_never_its_content() -> None:
    named = text(MASK, names_record=True)
    assert (
        ", where consumed record is {topic='orders', partition=3, offset=41, timestamp=99}. "
        in named
    )
    assert "secret" not in named


def test_a_value_that_does_not_parse_names_the_converter_and_the_cause() -> None:
    line = text(MASK | JSON)
    assert "Executing stage 'TO_CONNECT_VALUE' with class 'org.apache.kafka.connect.json." in line
    assert " Caused by: " in line


def test_every_stage_has_a_class() -> None:
    classes = ExecutingClasses.from_config(MASK | JSON)
    error = TransformError("e", "m")
    names = {stage: classes.failing_class(FailedRecord(stage, error)) for stage in ErrorStage}
    assert names.pop(ErrorStage.TRANSFORMATION) == "null"
    assert all(name.startswith("org.apache.kafka.") for name in names.values())


def test_dead_letters_are_the_records_as_read() -> None:
    plain = FailedRecordsTopic(name="dead", replication_factor=1, has_context_headers=False)
    classes = ExecutingClasses.from_config(MASK)
    assert failed_record(RECORD, ORIGIN, failure(MASK), classes, plain) == RECORD._replace(
        topic="dead", partition=None
    )


def test_context_headers_say_where_a_dead_letter_comes_from_and_why() -> None:
    asked = FailedRecordsTopic(name="dead", replication_factor=1, has_context_headers=True)
    written = failed_record(
        RECORD, ORIGIN, failure(MASK), ExecutingClasses.from_config(MASK), asked
    )
    assert written.headers == (
        ("h", None),
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"41"),
        ("__connect.errors.connector.name", b"c"),
        ("__connect.errors.task.id", b"1"),
        ("__connect.errors.stage", b"TRANSFORMATION"),
        ("__connect.errors.class.name", b"org.apache.kafka.connect.transforms.MaskField$Value"),
        ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        (
            "__connect.errors.exception.message",
            b"Only Struct objects supported for [mask fields], found: [B",
        ),
    )


def test_a_partition_is_logged_once_in_a_second_with_the_number_of_the_others() -> None:
    now = 100.0
    limit = ErrorLogLimit(clock=lambda: now)
    assert [limit.admit(ORDERS) for _ in range(3)] == [0, None, None]
    assert limit.admit(TopicPartition("orders", 4)) == 0
    now += LOG_INTERVAL_S
    assert limit.admit(ORDERS) == 2
    assert limit.admit(ORDERS) is None
    limit.forget(ORDERS)
    assert limit.admit(ORDERS) == 0
