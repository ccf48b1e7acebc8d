"""What Java's transformations, predicates and converters did with 2806 records, case by case."""

from __future__ import annotations

import json
import re
from datetime import UTC, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sparkmirror.errors import ConfigError, TransformError
from sparkmirror.transforms.configuration.connector_transformer import tolerates_errors
from sparkmirror.transforms.configuration.transformation_stages import (
    transformation_chain,
    validate_transformations,
)
from sparkmirror.transforms.converters.byte_array_converter import ByteArrayConverter
from sparkmirror.transforms.converters.converter import Converter
from sparkmirror.transforms.converters.formats import MIRROR_BYTES, RecordConverters
from sparkmirror.transforms.converters.json_converter import (
    PlainJsonConverter,
    SchemaJsonConverter,
)
from sparkmirror.transforms.converters.simple_header_converter import SimpleHeaderConverter
from sparkmirror.transforms.converters.string_converter import StringConverter
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import (
    DroppedRecord,
    FailedRecord,
    Outcome,
    RecordTransformer,
)
from tests.support.golden import from_base64, golden_lines

RECORDED_AT_MS = 1_790_000_000_000
JACKSON = "com.fasterxml.jackson."
NULL_POINTER = "java.lang.NullPointerException"
CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"

REGEX_TEXT = "the error says what to write instead, in our words"
UNDEFINED_PREDICATE = "validation reports a predicate that is not declared; Java's task fails"
OTHER_RELEASE = "one version of each plug-in exists here, that of Kafka 4.3.0"
FLOAT_DIGITS = "the shortest digits of a float, as Java 19 and later write; Java 17 writes more"
DIFFERENT = {
    "A-Config-1a9a1dce": OTHER_RELEASE,
    "A-Config-2fc22fd6": UNDEFINED_PREDICATE,
    "A-Config-452b7b9a": "blanks around the alias of a predicate are ignored; Java's task fails",
    "A-Config-852666e8": OTHER_RELEASE,
    "A-Config-9984fcd2": REGEX_TEXT,
    "A-Config-bc120c23": UNDEFINED_PREDICATE,
    "A-Config-e3d0a732": REGEX_TEXT,
    "A-Config-eb0062dd": OTHER_RELEASE,
    "A-Config-f87bf92d": "short names of nested classes (Cast$Value) are accepted, too",
    "A-RegexRouter-536c37e4": "a look-behind of any length is refused",
    "A-RegexRouter-5c256c02": "the flag (?U) is refused",
    "A-RegexRouter-7df59a15": REGEX_TEXT,
    "A-RegexRouter-ea5c7f8a": "Java's second text for a missing regex is a NullPointerException's",
    "A-RegexRouter-ece0dcdf": REGEX_TEXT,
    "A-TopicNameMatches-1fc8b84f": REGEX_TEXT,
    "A-TopicNameMatches-7695826b": REGEX_TEXT,
    "A-TopicNameMatches-b1daff80": REGEX_TEXT,
    "B-Cast-8e66dde1": FLOAT_DIGITS,
    "B-Cast-eac89b90": FLOAT_DIGITS,
}
"""Cases with another outcome than Java's, and why. The list may only become shorter."""


@cache
def cases() -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in golden_lines("transforms/transforms.jsonl")}


def environment_of(case: dict[str, Any]) -> JavaEnvironment:
    name = case.get("timezone", "UTC")
    zone: tzinfo = UTC if name == "UTC" else ZoneInfo(name)
    return JavaEnvironment(now_ms=RECORDED_AT_MS, zone=zone)


def converter_of(case: dict[str, Any], part: str, environment: JavaEnvironment) -> Converter:
    converters = case["converters"]
    match converters[f"{part}.converter"].rpartition(".")[2]:
        case "JsonConverter":
            if converters[f"{part}.converter.schemas.enable"] == "true":
                return SchemaJsonConverter()
            return PlainJsonConverter()
        case "StringConverter":
            return StringConverter(environment.zone)
        case "SimpleHeaderConverter":
            return SimpleHeaderConverter(environment.zone)
        case "ByteArrayConverter":
            return ByteArrayConverter()
    raise AssertionError(converters)


def transformer_of(case: dict[str, Any]) -> RecordTransformer:
    """The transformer of a case, which converts all parts as Java does."""
    environment = environment_of(case)
    target = RecordConverters(
        key=converter_of(case, "key", environment),
        value=converter_of(case, "value", environment),
        header=converter_of(case, "header", environment),
    )
    return RecordTransformer(
        transformation_chain(case["config"], environment),
        MIRROR_BYTES if case["layer"] == "A" else target,
        target,
        tolerates_errors=tolerates_errors(case["config"]),
        convert_all=True,
    )


def kafka_record(record: dict[str, Any]) -> KafkaRecord:
    return KafkaRecord(
        topic=record["topic"],
        partition=record["partition"],
        timestamp=record["timestamp"],
        key=from_base64(record["key_base64"]),
        value=from_base64(record["value_base64"]),
        headers=tuple((name, from_base64(data)) for name, data in record["headers"]),
    )


def comparable(data: bytes | None, converter: str) -> Any:
    """Bytes as they can be compared: JSON as values, identity hashes masked."""
    if data is None:
        return None
    if converter.endswith("JsonConverter"):
        return json.loads(data)
    return re.sub(rb"\[B@[0-9a-f]+", b"[B@*", data)


def without_identity(text: str) -> str:
    return re.sub(r"@[0-9a-f]+\b", "@*", text)


def shown_record(record: KafkaRecord, converters: dict[str, str]) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": comparable(record.key, converters["key.converter"]),
        "value": comparable(record.value, converters["value.converter"]),
        "headers": [
            (name, comparable(data, converters["header.converter"]))
            for name, data in record.headers
        ],
    }


def shown_error(error: TransformError) -> dict[str, Any]:
    shown: dict[str, Any] = {"class": error.java_class, "message": without_identity(str(error))}
    if error.java_cause is not None:
        shown["cause"] = shown_error(error.java_cause)
    return comparable_error(shown)


def comparable_error(error: dict[str, Any]) -> dict[str, Any]:
    """An error without the texts of Jackson and of NullPointerException."""
    shown = dict(error)
    cause = shown.get("cause")
    if shown["class"] == NULL_POINTER:
        shown.pop("message", None)
    elif shown["class"].endswith("SerializationException"):
        shown.pop("message", None)
        shown.pop("cause", None)
    elif cause is not None:
        shown["cause"] = comparable_error(cause)
    return shown


def shown_failure(failed: FailedRecord) -> dict[str, Any]:
    return {**shown_error(failed.error), "stage": failed.stage.value}


def shown_outcome(outcome: Outcome, converters: dict[str, str]) -> dict[str, Any]:
    match outcome:
        case KafkaRecord():
            return shown_record(outcome, converters)
        case DroppedRecord(tolerated=None):
            return {"dropped": True}
        case DroppedRecord(tolerated=failed) if failed is not None:
            return {"dropped": True, "tolerated": shown_failure(failed)}
        case FailedRecord():
            return {"error": shown_failure(outcome)}
    raise AssertionError(outcome)


def expected_outcome(result: dict[str, Any], converters: dict[str, str]) -> dict[str, Any]:
    if "error" in result:
        return {"error": comparable_error(result["error"])}
    if "tolerated" in result:
        return {"dropped": True, "tolerated": comparable_error(result["tolerated"])}
    if "dropped" in result:
        return result
    return shown_record(kafka_record(result), converters)


def configure_error(case: dict[str, Any]) -> dict[str, Any] | None:
    """The error of the config, as recorded: the first fault of validation, or of the stages."""
    try:
        transformation_chain(case["config"], environment_of(case))
    except ConfigError as error:
        return {
            "class": CONFIG_EXCEPTION,
            "message": error.faults[0].message,
            "stage": "config",
        }
    except TransformError as error:
        return {**shown_error(error), "stage": "stages"}
    return None


def validation_of(case: dict[str, Any]) -> list[list[Any]]:
    values = validate_transformations(case["config"])
    return [[name, [*values[name].errors]] for name in sorted(values) if values[name].errors]


def check_case(case: dict[str, Any]) -> None:
    assert validation_of(case) == case.get("validation", [])
    assert configure_error(case) == case.get("configure_error")
    if "result" not in case:
        return
    transformer = transformer_of(case)
    for record, result in zip(case["records"], case["result"], strict=True):
        outcome = transformer.transform(kafka_record(record))
        shown = shown_outcome(outcome, case["converters"])
        assert shown == expected_outcome(result, case["converters"]), record


@pytest.mark.parametrize("case_id", [each for each in cases() if each not in DIFFERENT])
def test_recorded_case_has_the_outcome_of_java(case_id: str) -> None:
    check_case(cases()[case_id])


@pytest.mark.parametrize("case_id", sorted(DIFFERENT))
def test_a_case_that_is_listed_as_different_is_different(case_id: str) -> None:
    with pytest.raises(AssertionError):
        check_case(cases()[case_id])
