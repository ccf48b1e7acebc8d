"""Connect's logical types: Date, Time, Timestamp and Decimal on top of numbers and bytes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception, number_format_exception
from sparkmirror.transforms.data.java_numbers import parse_integer
from sparkmirror.transforms.data.java_values import ConnectValue, Date, Integer, wrap
from sparkmirror.transforms.data.schema import Schema, SchemaType

MS_PER_DAY: Final = 86_400_000

DATE: Final = Schema(SchemaType.INT32, name="org.apache.kafka.connect.data.Date", version=1)
TIME: Final = Schema(SchemaType.INT32, name="org.apache.kafka.connect.data.Time", version=1)
TIMESTAMP: Final = Schema(
    SchemaType.INT64, name="org.apache.kafka.connect.data.Timestamp", version=1
)
DECIMAL_NAME: Final = "org.apache.kafka.connect.data.Decimal"

LOGICAL_NAMES: Final = frozenset({DATE.name, TIME.name, TIMESTAMP.name, DECIMAL_NAME})


def decimal_schema(scale: int) -> Schema:
    """The schema of decimals with so many digits behind the point."""
    return Schema(SchemaType.BYTES, name=DECIMAL_NAME, version=1, parameters={"scale": str(scale)})


def optional_logical(schema: Schema) -> Schema:
    """The optional variant of a logical type."""
    return replace(schema, optional=True)


def date_from_logical(value: Date) -> Integer:
    """The days since 1970. Raises DataException if the date has a time of day."""
    if value.time_ms % MS_PER_DAY:
        raise data_exception(
            "Kafka Connect Date type should not have any time fields set to non-zero values."
        )
    return Integer(wrap(value.time_ms // MS_PER_DAY, 32))


def time_from_logical(value: Date) -> Integer:
    """The milliseconds of a day. Raises DataException if the time has a date."""
    if not 0 <= value.time_ms <= MS_PER_DAY:
        raise data_exception(
            "Kafka Connect Time type should not have any date fields set to non-zero values."
        )
    return Integer(value.time_ms)


def encode_logical_type(schema: Schema, value: ConnectValue) -> ConnectValue:
    """The number below a date, time or timestamp; any other value as it is."""
    if schema.name == DATE.name:
        return date_from_logical(value)
    if schema.name == TIME.name:
        return time_from_logical(value)
    if schema.name == TIMESTAMP.name:
        return int(value.time_ms)
    return value


def decimal_from_bytes(schema: Schema, data: bytes) -> Decimal:
    """The decimal whose unscaled value the bytes hold, with the scale of the schema.

    Raises DataException if the schema has no scale, and NumberFormatException without bytes.
    """
    if not data:
        raise number_format_exception("Zero length BigInteger")
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -decimal_scale(schema)))


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    """The unscaled value of a decimal, as Java's BigInteger writes it.

    Raises DataException if the decimal has another scale than the schema.
    """
    exponent = int(value.as_tuple().exponent)
    if -exponent != decimal_scale(schema):
        raise data_exception(
            f"Decimal value has mismatching scale for given Decimal schema. Schema has scale "
            f"{decimal_scale(schema)}, value has scale {-exponent}."
        )
    sign, digits, _ = value.as_tuple()
    unscaled = int(Decimal((sign, digits, 0)))
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def decimal_scale(schema: Schema) -> int:
    """The scale that a schema of decimals names. Raises DataException if it names none."""
    scale = (schema.parameters or {}).get("scale")
    if scale is None:
        raise data_exception("Invalid Decimal schema: scale parameter not found.")
    try:
        return parse_integer(scale, 32)
    except TransformError as error:
        raise data_exception("Invalid scale parameter found in Decimal schema: ", error) from error
