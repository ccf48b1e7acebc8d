"""Data with schemas, where Java's classes do what one would not expect.

The recorded cases do not have these. The expected results are those of Kafka 4.3.1's classes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkmirror.config.tables.transform_additions import format_key
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import FailedRecord, Outcome

ENVIRONMENT = JavaEnvironment(now_ms=1_790_000_000_000)
TRANSFORMS = "org.apache.kafka.connect.transforms"
DECIMAL = {
    "type": "bytes",
    "optional": False,
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2"},
}


def struct(**fields: dict[str, Any]) -> dict[str, Any]:
    described = [{**schema, "field": name} for name, schema in fields.items()]
    return {"type": "struct", "fields": described, "optional": False}


def transformed(name: str, keys: dict[str, str], schema: dict[str, Any], payload: Any) -> Outcome:
    props = {
        "transforms": "t",
        "transforms.t.type": f"{TRANSFORMS}.{name}$Value",
        **{f"transforms.t.{key}": text for key, text in keys.items()},
        format_key("value"): "json-with-schema",
    }
    value = json.dumps({"schema": schema, "payload": payload}).encode()
    return connector_transformer(props, ENVIRONMENT).transform(
        KafkaRecord("orders", 0, 0, None, value)
    )


def sent_value(outcome: Outcome) -> Any:
    assert isinstance(outcome, KafkaRecord)
    assert outcome.value is not None
    return json.loads(outcome.value)


def error_text(outcome: Outcome) -> str:
    assert isinstance(outcome, FailedRecord)
    return f"{outcome.error.java_class.rpartition('.')[2]}: {outcome.error}"


def test_a_cast_of_the_whole_keeps_the_name_of_the_schema_and_that_of_a_field_does_not() -> None:
    named = {"type": "int32", "optional": False, "name": "id", "version": 1}
    assert sent_value(transformed("Cast", {"spec": "string"}, named, 5)) == {
        "schema": {**named, "type": "string"},
        "payload": "5",
    }
    field = transformed("Cast", {"spec": "f:string"}, struct(f=named), {"f": 5})
    assert sent_value(field)["schema"] == struct(f={"type": "string", "optional": False})


@pytest.mark.parametrize(("target", "value"), [("int64", 4), ("string", "4.82"), ("boolean", True)])
def test_a_decimal_field_is_cast_as_a_number(target: str, value: Any) -> None:
    outcome = transformed("Cast", {"spec": f"f:{target}"}, struct(f=DECIMAL), {"f": "AeI="})
    assert sent_value(outcome)["payload"] == {"f": value}


def test_a_decimal_that_is_cast_as_a_whole_cannot_be_written() -> None:
    assert error_text(transformed("Cast", {"spec": "int64"}, DECIMAL, "AeI=")) == (
        "DataException: Invalid type for Decimal, expected BigDecimal but was class java.lang.Long"
    )


def test_a_field_that_is_renamed_to_the_name_of_another_field_must_exist() -> None:
    schema = struct(a={"type": "int32", "optional": False})
    outcome = transformed("ReplaceField", {"renames": "b:a"}, schema, {"a": 1})
    assert error_text(outcome) == "DataException: b is not a valid field name"


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        (
            struct(a={"type": "array", "items": {"type": "string", "optional": False}}),
            {"a": [5]},
            (
                'Invalid value: null used for required element of array field: "a", '
                "schema type: STRING"
            ),
        ),
        (
            struct(
                m={
                    "type": "map",
                    "keys": {"type": "string", "optional": False},
                    "values": {"type": "string", "optional": False},
                }
            ),
            {"m": {"k": 5}},
            'Invalid value: null used for required value of map field: "m", schema type: STRING',
        ),
        (DECIMAL, "", "Invalid bytes for Decimal field"),
        (
            {**DECIMAL, "parameters": {}},
            "AeI=",
            "Invalid bytes for Decimal field",
        ),
    ],
)
def test_a_payload_that_does_not_fit_its_schema_fails(
    schema: dict[str, Any], payload: Any, expected: str
) -> None:
    outcome = transformed("HoistField", {"field": "f"}, schema, payload)
    assert error_text(outcome) == f"DataException: {expected}"


def test_a_default_that_does_not_fit_fails() -> None:
    schema = struct(s={"type": "string", "optional": False, "default": 5})
    assert error_text(transformed("HoistField", {"field": "f"}, schema, {"s": "x"})) == (
        "SchemaBuilderException: Invalid default value"
    )
