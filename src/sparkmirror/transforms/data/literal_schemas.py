"""The one schema that all items of a literal list or map have, and items made to fit it."""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Float,
    Integer,
    Short,
    to_float32,
    widen,
)
from sparkmirror.transforms.data.schema import (
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    Schema,
    SchemaType,
)

_WIDTHS: Final = (INT8, INT16, INT32, INT64, FLOAT32, FLOAT64)
"""The numbers, from the narrowest to the widest."""
_CLASSES: Final[dict[SchemaType, Any]] = {
    SchemaType.INT8: Byte,
    SchemaType.INT16: Short,
    SchemaType.INT32: Integer,
    SchemaType.INT64: int,
    SchemaType.FLOAT32: lambda value: to_float32(float(value)),
    SchemaType.FLOAT64: lambda value: widen(value) if isinstance(value, Float) else float(value),
}


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
        if self.schema is None:
            self.schema = latest
            return
        self.schema = _common(self.schema, latest)
        self._mixed = self.schema is None


def _common(one: Schema, other: Schema) -> Schema | None:
    if one == other:
        return one
    if one in _WIDTHS and other in _WIDTHS:
        return _WIDTHS[max(_WIDTHS.index(one), _WIDTHS.index(other))]
    return None


def align(schema: Schema | None, value: ConnectValue) -> ConnectValue:
    """The value as the schema's type of number; other values as they are."""
    if schema is None or value is None or schema.name is not None:
        return value
    convert = _CLASSES.get(schema.type)
    return convert(value) if convert else value
