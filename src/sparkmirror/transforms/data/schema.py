"""Connect's schemas.

A schema is a frozen value. `SchemaBuilder` of Java is `struct_schema` and `dataclasses.replace`
here. Two schemas that are equal may be two objects; caches go by the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple

from sparkmirror.transforms.data.java_exceptions import data_exception, schema_builder_exception
from sparkmirror.transforms.data.java_values import ConnectValue, Date


class SchemaType(Enum):
    """The types of Connect's data, by Java's names."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    # Every field of every record is looked up by its type; Enum's own hash is a call of Python.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of a struct."""

    name: str
    index: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a value. `value_schema` is that of the items of an array or map."""

    type: SchemaType
    optional: bool = False
    default: ConnectValue = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = field(default=None, repr=False)
    struct_fields: tuple[SchemaField, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    _by_name: dict[str, SchemaField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {each.name: each for each in self.struct_fields})

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """The fields of a struct. Raises DataException for other types, as Java does."""
        if self.type is not SchemaType.STRUCT:
            raise data_exception("Cannot list fields on non-struct type")
        return self.struct_fields

    def field(self, name: str) -> SchemaField | None:
        """The field of that name. Raises DataException if this is no struct, as Java does."""
        if self.type is not SchemaType.STRUCT:
            raise data_exception("Cannot look up fields on non-struct type")
        return self._by_name.get(name)

    def __str__(self) -> str:
        """Java's text of a schema."""
        named = f"{self.name}:" if self.name is not None else ""
        return f"Schema{{{named}{self.type.name}}}"


class SchemaAndValue(NamedTuple):
    """A value with its schema; without one, the value says itself what it is."""

    schema: Schema | None
    value: ConnectValue


NULL: Final = SchemaAndValue(None, None)

BYTES: Final = Schema(SchemaType.BYTES)
OPTIONAL_BYTES: Final = Schema(SchemaType.BYTES, optional=True)
STRING: Final = Schema(SchemaType.STRING)
OPTIONAL_STRING: Final = Schema(SchemaType.STRING, optional=True)
BOOLEAN: Final = Schema(SchemaType.BOOLEAN)
INT8: Final = Schema(SchemaType.INT8)
INT16: Final = Schema(SchemaType.INT16)
INT32: Final = Schema(SchemaType.INT32)
OPTIONAL_INT32: Final = Schema(SchemaType.INT32, optional=True)
INT64: Final = Schema(SchemaType.INT64)
OPTIONAL_INT64: Final = Schema(SchemaType.INT64, optional=True)
FLOAT32: Final = Schema(SchemaType.FLOAT32)
FLOAT64: Final = Schema(SchemaType.FLOAT64)

LOGICAL_CLASSES: Final[dict[str, type[Any]]] = {
    "org.apache.kafka.connect.data.Date": Date,
    "org.apache.kafka.connect.data.Time": Date,
    "org.apache.kafka.connect.data.Timestamp": Date,
    "org.apache.kafka.connect.data.Decimal": Decimal,
}
"""The classes of the values of logical types."""


def struct_schema(
    fields: Iterable[tuple[str | None, Schema]], basics: Schema | None = None
) -> Schema:
    """A schema of a struct: the fields, and name, version, doc and parameters of `basics`.

    Raises SchemaBuilderException for a name that occurs twice.
    """
    by_name: dict[str, SchemaField] = {}
    for name, schema in fields:
        if not name:
            raise schema_builder_exception("fieldName cannot be null.")
        if name in by_name:
            raise schema_builder_exception(
                f"Cannot create field because of field name duplication {name}"
            )
        by_name[name] = SchemaField(name, len(by_name), schema)
    return Schema(
        SchemaType.STRUCT,
        name=basics.name if basics else None,
        version=basics.version if basics else None,
        doc=basics.doc if basics else None,
        parameters=basics.parameters if basics else None,
        struct_fields=tuple(by_name.values()),
    )


def optional_if(schema: Schema, optional: bool) -> Schema:
    """The schema, made optional or required."""
    return schema if schema.optional is optional else replace(schema, optional=optional)
