"""The five types of TimestampConverter: each to a time in milliseconds, and back."""

from __future__ import annotations

from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import (
    connect_exception,
    data_exception,
    null_pointer_exception,
)
from sparkmirror.transforms.data.java_values import ConnectValue, Date, class_name, saturate
from sparkmirror.transforms.data.logical_types import DATE, MS_PER_DAY, TIME, TIMESTAMP
from sparkmirror.transforms.data.schema import INT64, STRING, Schema, SchemaType
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat

TYPE_SCHEMAS: Final = {
    "string": STRING,
    "unix": INT64,
    "Date": DATE,
    "Time": TIME,
    "Timestamp": TIMESTAMP,
}

_LOGICAL_TYPES: Final = {DATE.name: "Date", TIME.name: "Time", TIMESTAMP.name: "Timestamp"}
_PER_MS: Final = {"microseconds": 1000, "nanoseconds": 1_000_000}


def timestamp_type_from_schema(schema: Schema) -> str:
    """The type of the times that have this schema. Raises ConnectException."""
    if schema.name in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[schema.name]
    if schema.type is SchemaType.STRING:
        return "string"
    if schema.type is SchemaType.INT64:
        return "unix"
    raise connect_exception(f"Schema {schema} does not correspond to a known timestamp type format")


def timestamp_type_of_value(value: ConnectValue) -> str:
    """The type of a time without a schema. Raises DataException."""
    if isinstance(value, Date):
        return "Timestamp"
    if type(value) is int:
        return "unix"
    if isinstance(value, str):
        return "string"
    raise data_exception(
        f"TimestampConverter does not support class {class_name(value)} objects as timestamps"
    )


class TimestampTranslator:
    """Translates times with a format for texts and a precision for Unix times."""

    def __init__(self, date_format: SimpleDateFormat | None, unix_precision: str) -> None:
        self._format = date_format
        self._precision = unix_precision

    def to_raw(self, value: ConnectValue, found: str) -> int:
        """The milliseconds of a time of the type `found`. Raises DataException."""
        if found == "string":
            return self._from_text(value)
        if found == "unix":
            return self._from_unix(value)
        if not isinstance(value, Date):
            raise data_exception(
                f"Expected {found} to be a java.util.Date, but found class {class_name(value)}"
            )
        return value.time_ms

    def to_type(self, time_ms: int, target: str) -> ConnectValue:
        """The time as the target type."""
        match target:
            case "string":
                return self._required_format("format(Date)").format(time_ms)
            case "unix":
                return self._to_unix(time_ms)
            case "Date":
                return Date(time_ms - time_ms % MS_PER_DAY)
            case "Time":
                return Date(time_ms % MS_PER_DAY)
            case _:
                return Date(time_ms)

    def _from_text(self, value: ConnectValue) -> int:
        if not isinstance(value, str):
            raise data_exception(
                f"Expected string timestamp to be a String, but found class {class_name(value)}"
            )
        date_format = self._required_format("parse(String)")
        try:
            return date_format.parse(value)
        except TransformError as error:
            raise data_exception(
                f"Could not parse timestamp: value ({value}) does not match pattern "
                f"({date_format.pattern})",
                error,
            ) from error

    def _required_format(self, method: str) -> SimpleDateFormat:
        if self._format is None:
            raise null_pointer_exception(
                f'Cannot invoke "java.text.SimpleDateFormat.{method}" because "config.format" is '
                "null"
            )
        return self._format

    def _from_unix(self, value: ConnectValue) -> int:
        if type(value) is not int:
            raise data_exception(
                f"Expected Unix timestamp to be a Long, but found class {class_name(value)}"
            )
        if self._precision == "seconds":
            return saturate(value * 1000, 64)
        return _truncated_division(value, _PER_MS.get(self._precision, 1))

    def _to_unix(self, time_ms: int) -> int:
        if self._precision == "seconds":
            return _truncated_division(time_ms, 1000)
        return saturate(time_ms * _PER_MS.get(self._precision, 1), 64)


def _truncated_division(number: int, divisor: int) -> int:
    """The quotient without its fraction, toward zero, as Java divides."""
    quotient = abs(number) // divisor
    return -quotient if number < 0 else quotient
