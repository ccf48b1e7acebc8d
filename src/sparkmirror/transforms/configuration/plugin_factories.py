"""The classes of `org.apache.kafka.connect.transforms`, made from the values of their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sparkmirror.config.definition.java_classes import PREDICATES, TRANSFORMATIONS
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.drop_headers import DropHeaders
from sparkmirror.transforms.fields.cast import Cast
from sparkmirror.transforms.fields.extract_field import ExtractField
from sparkmirror.transforms.fields.flatten import Flatten
from sparkmirror.transforms.fields.header_from import HeaderFrom
from sparkmirror.transforms.fields.hoist_field import HoistField
from sparkmirror.transforms.fields.insert_field import InsertedFields, InsertField
from sparkmirror.transforms.fields.mask_field import MaskField
from sparkmirror.transforms.fields.replace_field import ReplaceField
from sparkmirror.transforms.fields.set_schema_metadata import SetSchemaMetadata
from sparkmirror.transforms.fields.timestamp_converter import TimestampConverter
from sparkmirror.transforms.fields.value_to_key import ValueToKey
from sparkmirror.transforms.filter import Filter
from sparkmirror.transforms.insert_header import InsertHeader
from sparkmirror.transforms.predicates.has_header_key import HasHeaderKey
from sparkmirror.transforms.predicates.record_is_tombstone import RecordIsTombstone
from sparkmirror.transforms.predicates.topic_name_matches import TopicNameMatches
from sparkmirror.transforms.regex_router import RegexRouter
from sparkmirror.transforms.timestamp_router import TimestampRouter
from sparkmirror.transforms.transformation import Predicate, RecordPart, Transformation

Values: TypeAlias = Mapping[str, Any]
"""The parsed values of a plug-in's keys, without their prefix."""
_KEEP_DEFAULTS: Final = "replace.null.with.default"

_Factory: TypeAlias = Callable[[RecordPart, Values, JavaEnvironment], Transformation]


def _cast(part: RecordPart, values: Values, environment: JavaEnvironment) -> Transformation:
    return Cast(
        part, values["spec"], environment, replace_null_with_default=values[_KEEP_DEFAULTS]
    )


def _extract_field(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    return ExtractField(
        part,
        values["field"],
        values["field.syntax.version"],
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


def _header_from(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    return HeaderFrom(
        part,
        values["fields"],
        values["headers"],
        values["operation"],
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


def _insert_field(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    fields = InsertedFields(
        topic=values["topic.field"],
        partition=values["partition.field"],
        offset=values["offset.field"],
        timestamp=values["timestamp.field"],
        static=values["static.field"],
        static_value=values["static.value"],
    )
    return InsertField(part, fields, replace_null_with_default=values[_KEEP_DEFAULTS])


def _mask_field(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    return MaskField(
        part,
        values["fields"],
        values["replacement"],
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


def _replace_field(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    return ReplaceField(
        part,
        values["exclude"],
        values["include"],
        values["renames"],
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


def _set_schema_metadata(part: RecordPart, values: Values, _: JavaEnvironment) -> Transformation:
    return SetSchemaMetadata(
        part,
        values["schema.name"],
        values["schema.version"],
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


def _timestamp_converter(
    part: RecordPart, values: Values, environment: JavaEnvironment
) -> Transformation:
    return TimestampConverter(
        part,
        values["field"],
        values["target.type"],
        values["format"],
        values["unix.precision"],
        environment,
        replace_null_with_default=values[_KEEP_DEFAULTS],
    )


_TRANSFORMATIONS: Final[dict[str, _Factory]] = {
    "Cast": _cast,
    "DropHeaders": lambda part, values, _: DropHeaders(values["headers"]),
    "ExtractField": _extract_field,
    "Filter": lambda part, values, _: Filter(),
    "Flatten": lambda part, values, _: Flatten(part, values["delimiter"]),
    "HeaderFrom": _header_from,
    "HoistField": lambda part, values, _: HoistField(part, values["field"]),
    "InsertField": _insert_field,
    "InsertHeader": lambda part, values, environment: InsertHeader(
        values["header"], values["value.literal"], environment
    ),
    "MaskField": _mask_field,
    "RegexRouter": lambda part, values, _: RegexRouter(values["regex"], values["replacement"]),
    "ReplaceField": _replace_field,
    "SetSchemaMetadata": _set_schema_metadata,
    "TimestampConverter": _timestamp_converter,
    "TimestampRouter": lambda part, values, _: TimestampRouter(
        values["topic.format"], values["timestamp.format"]
    ),
    "ValueToKey": lambda part, values, _: ValueToKey(
        values["fields"], replace_null_with_default=values[_KEEP_DEFAULTS]
    ),
}

_PREDICATES: Final[dict[str, Callable[[Values], Predicate]]] = {
    "HasHeaderKey": lambda values: HasHeaderKey(values["name"]),
    "RecordIsTombstone": lambda values: RecordIsTombstone(),
    "TopicNameMatches": lambda values: TopicNameMatches(values["pattern"]),
}


def make_transformation(
    class_name: str, values: Mapping[str, ParsedValue], environment: JavaEnvironment
) -> Transformation:
    """The configured transformation of a Java class. Raises TransformError (ConfigException)."""
    assert class_name in TRANSFORMATIONS, class_name
    simple_name, _, variant = class_name.rpartition(".")[2].partition("$")
    part = RecordPart.KEY if variant == "Key" else RecordPart.VALUE
    return _TRANSFORMATIONS[simple_name](part, values, environment)


def make_predicate(class_name: str, values: Mapping[str, ParsedValue]) -> Predicate:
    """The configured predicate of a Java class."""
    assert class_name in PREDICATES, class_name
    return _PREDICATES[class_name.rpartition(".")[2]](values)
