"""The one schema that all items of a literal list or map have, and items made to fit it."""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Float,
    Integer,
    Short,
    to_float32,
    widen,
)
from sparkmirror.transforms.data.logical_types import DATE, MS_PER_DAY, TIME, TIMESTAMP
from sparkmirror.transforms.data.schema import Schema, SchemaType

_WIDTHS: Final = (
    *(SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64),
    *(SchemaType.FLOAT32, SchemaType.FLOAT64),
)
"""The numbers, from the narrowest to the widest. Dates are numbers, too."""
_CLASSES: Final[dict[SchemaType, Any]] = {
    SchemaType.INT8: Byte,
    SchemaType.INT16: Short,
    SchemaType.INT32: Integer,
    SchemaType.INT64: int,
    SchemaType.FLOAT32: lambda value: to_float32(float(value)),
    SchemaType.FLOAT64: lambda value: widen(value) if isinstance(value, Float) else float(value),
}
_UNITS_MS: Final = {DATE.name: MS_PER_DAY, TIME.name: 1, TIMESTAMP.name: 1}


class CommonSchema:
    """The schema that fits all items so far; `schema` is None if there is none."""

    __slots__ = ("_mixed", "schema")

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._mixed = False

    def merge(self, latest: Schema | None) -> None:
        """Take the schema of another item into account. Nulls have none."""
        if latest is None or self._mixed:
            return
        self.schema = latest if self.schema is None else _common(self.schema, latest)
        self._mixed = self.schema is None


def _common(previous: Schema, latest: Schema) -> Schema | None:
    """The latest of two schemas of the same type, the wider one of two numbers."""
    if previous.type is latest.type:
        return latest
    if previous.type in _WIDTHS and latest.type in _WIDTHS:
        is_wider = _WIDTHS.index(latest.type) > _WIDTHS.index(previous.type)
        return latest if is_wider else previous
    return None


def align(schema: Schema | None, value: ConnectValue) -> ConnectValue:
    """The value as the schema's type of number or date; other values as they are.

    Raises DataException for null, and for a date among other numbers.
    """
    if schema is None:
        return value
    if value is None:
        raise data_exception("A list or map with a common schema has no nulls")
    if schema.name in _UNITS_MS:
        return value if isinstance(value, Date) else Date(int(value) * _UNITS_MS[schema.name])
    if isinstance(value, Date):
        raise data_exception("A date is no other number")
    convert = _CLASSES.get(schema.type)
    return convert(value) if convert else value
