"""Connect's `Values.parseString`: what a literal text is: a number, a date, a list, a map, a text.

Headers are read with it (SimpleHeaderConverter), and the literal of InsertHeader.
"""

from __future__ import annotations

import re
from datetime import tzinfo
from decimal import Decimal
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_numbers import parse_big_decimal
from sparkmirror.transforms.data.java_values import (
    FLOAT_MAX,
    Byte,
    ConnectValue,
    Date,
    Integer,
    Short,
    to_float32,
)
from sparkmirror.transforms.data.literal_schemas import CommonSchema, align
from sparkmirror.transforms.data.logical_types import DATE, TIME, TIMESTAMP, decimal_schema
from sparkmirror.transforms.data.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    Schema,
    SchemaAndValue,
    SchemaType,
)
from sparkmirror.transforms.data.token_reader import TokenReader
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat

_MAX_NESTING: Final = 200
_DOUBLE_MAX: Final = Decimal(1.7976931348623157e308)
_TEMPORAL: Final = {
    10: (re.compile(r"\d{4}-\d{2}-\d{2}"), "yyyy-MM-dd", DATE),
    13: (re.compile(r"\d{2}:\d{2}:\d{2}\.\d{3}Z"), "HH:mm:ss.SSS'Z'", TIME),
    24: (
        re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z"),
        "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
        TIMESTAMP,
    ),
}
"""By their lengths: how dates, times and timestamps are written."""


def parse_string(text: str, zone: tzinfo) -> SchemaAndValue:
    """The value that a text stands for, with its schema. Dates are read in the time zone."""
    if not text:
        return SchemaAndValue(STRING, text)
    return _ValueParser(text, zone).parse(depth=0) or NULL


class _ValueParser:
    """One pass over one text."""

    def __init__(self, text: str, zone: tzinfo) -> None:
        self._text = text
        self._zone = zone
        self._tokens = TokenReader(text)

    def parse(self, depth: int) -> SchemaAndValue | None:
        """The next value; None for null. Raises DataException inside lists and maps only."""
        tokens = self._tokens
        if not tokens.has_next():
            return None
        if depth and tokens.can_consume('"'):
            return self._quoted_string()
        if tokens.can_consume("null"):
            return None
        for literal, value in (("true", True), ("false", False)):
            if tokens.can_consume(literal):
                return SchemaAndValue(BOOLEAN, value)
        container = self._container(depth)
        if container is not None:
            return container
        token = tokens.next()
        while not token.strip() and tokens.has_next():
            token = tokens.next()
        if not token.strip():
            return SchemaAndValue(STRING, token)
        return self._token(token.strip(), depth)

    def _container(self, depth: int) -> SchemaAndValue | None:
        """The next value if it is a valid list or map."""
        start = self._tokens.mark()
        try:
            if self._tokens.can_consume("["):
                return self._array(_deeper(depth))
            if self._tokens.can_consume("{"):
                return self._map(_deeper(depth))
        except TransformError:
            self._tokens.rewind_to(start)
        return None

    def _token(self, token: str, depth: int) -> SchemaAndValue:
        first_is_digit = token[0].isdecimal()
        if first_is_digit:
            # A colon is a token, so that a time or a timestamp has five of them.
            position = self._tokens.mark()
            rest = self._tokens.next_tokens(4)
            temporal = self._temporal(token + rest) if rest is not None else None
            if temporal is None:
                self._tokens.rewind_to(position)
                temporal = self._temporal(token)
            if temporal is not None:
                return temporal
        if first_is_digit or token[0] in "+-":
            try:
                return _number(parse_big_decimal(token))
            except TransformError:
                pass  # It is a text that begins like a number.
        if depth:
            raise data_exception("Failed to parse embedded value")
        return SchemaAndValue(STRING, self._text)

    def _quoted_string(self) -> SchemaAndValue:
        content = ""
        while self._tokens.has_next():
            if self._tokens.can_consume('"', ignore_blanks=False):
                break
            content += self._tokens.next()
        return self._temporal(content) or SchemaAndValue(STRING, content)

    def _temporal(self, token: str) -> SchemaAndValue | None:
        form = _TEMPORAL.get(len(token))
        if form is None or not form[0].fullmatch(token):
            return None
        return SchemaAndValue(form[2], Date(SimpleDateFormat(form[1], self._zone).parse(token)))

    def _array(self, depth: int) -> SchemaAndValue:
        items: list[ConnectValue] = []
        common = CommonSchema()
        while self._tokens.has_next():
            if self._tokens.can_consume("]"):
                schema = Schema(SchemaType.ARRAY, value_schema=common.schema)
                return SchemaAndValue(schema, [align(common.schema, item) for item in items])
            if self._tokens.can_consume(","):
                raise data_exception(f"Unable to parse an empty array element: {self._text}")
            item = self.parse(depth)
            common.merge(item.schema if item else None)
            items.append(item.value if item else None)
            position = self._tokens.mark()
            if self._tokens.can_consume("]"):
                self._tokens.rewind_to(position)
            elif not self._tokens.can_consume(","):
                raise data_exception(f"Array elements missing ',' delimiter: {self._text}")
        raise data_exception(f"Array is missing terminating ']': {self._text}")

    def _map(self, depth: int) -> SchemaAndValue:
        entries: dict[ConnectValue, ConnectValue] = {}
        keys, values = CommonSchema(), CommonSchema()
        while self._tokens.has_next():
            if self._tokens.can_consume("}"):
                schema = Schema(
                    SchemaType.MAP,
                    key_schema=keys.schema,
                    value_schema=values.schema if keys.schema else None,
                )
                aligned = {
                    align(keys.schema, key): align(schema.value_schema, value)
                    for key, value in entries.items()
                }
                return SchemaAndValue(schema, aligned)
            if self._tokens.can_consume(","):
                raise data_exception(
                    f"Unable to parse a map entry with no key or value: {self._text}"
                )
            key = self.parse(depth)
            if key is None or key.value is None:
                raise data_exception(f"Map entry may not have a null key: {self._text}")
            if not self._tokens.can_consume(":"):
                raise data_exception(f"Map entry is missing ':': {self._text}")
            value = self.parse(depth)
            entries[_hashable(key.value)] = value.value if value else None
            self._tokens.can_consume(",")
            keys.merge(key.schema)
            values.merge(value.schema if value else None)
        raise data_exception(f"Map is missing terminating '}}': {self._text}")


def _deeper(depth: int) -> int:
    if depth > _MAX_NESTING:
        raise data_exception("Failed to parse embedded value")
    return depth + 1


def _hashable(key: ConnectValue) -> ConnectValue:
    if isinstance(key, list | dict):
        raise data_exception("Failed to parse embedded value")
    return key


def _number(decimal: Decimal) -> SchemaAndValue:
    """The smallest type that holds a number."""
    if decimal == decimal.to_integral_value() and decimal.copy_abs() <= 1 << 63:
        number = int(decimal)
        if -(1 << 63) <= number < 1 << 63:
            return _integer(number)
    if decimal.as_tuple().exponent != 0:
        if decimal.copy_abs() <= Decimal(FLOAT_MAX):
            return SchemaAndValue(FLOAT32, to_float32(float(decimal)))
        if decimal.copy_abs() <= _DOUBLE_MAX:
            return SchemaAndValue(FLOAT64, float(decimal))
    return SchemaAndValue(decimal_schema(-int(decimal.as_tuple().exponent)), decimal)


def _integer(number: int) -> SchemaAndValue:
    if -(1 << 7) <= number < 1 << 7:
        return SchemaAndValue(INT8, Byte(number))
    if -(1 << 15) <= number < 1 << 15:
        return SchemaAndValue(INT16, Short(number))
    if -(1 << 31) <= number < 1 << 31:
        return SchemaAndValue(INT32, Integer(number))
    return SchemaAndValue(INT64, number)
