"""The classes of `org.apache.kafka.connect.transforms`, made from the values of their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

PluginValues: TypeAlias = Mapping[str, Any]
"""The parsed values of a plug-in's keys, without their prefix."""
_KEEP_DEFAULTS: Final = "replace.null.with.default"


@dataclass(frozen=True, slots=True)
class _PluginConfig:
    """What a transformation is made from. `part` is that of its variant, `$Key` or `$Value`."""

    part: RecordPart
    values: PluginValues
    environment: JavaEnvironment


_Factory: TypeAlias = Callable[[_PluginConfig], Transformation]


def _cast(config: _PluginConfig) -> Transformation:
    return Cast(
        config.part,
        config.values["spec"],
        config.environment,
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _extract_field(config: _PluginConfig) -> Transformation:
    return ExtractField(
        config.part,
        config.values["field"],
        config.values["field.syntax.version"],
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _header_from(config: _PluginConfig) -> Transformation:
    return HeaderFrom(
        config.part,
        config.values["fields"],
        config.values["headers"],
        config.values["operation"],
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _insert_field(config: _PluginConfig) -> Transformation:
    fields = InsertedFields(
        topic=config.values["topic.field"],
        partition=config.values["partition.field"],
        offset=config.values["offset.field"],
        timestamp=config.values["timestamp.field"],
        static=config.values["static.field"],
        static_value=config.values["static.value"],
    )
    return InsertField(config.part, fields, replace_null_with_default=config.values[_KEEP_DEFAULTS])


def _mask_field(config: _PluginConfig) -> Transformation:
    return MaskField(
        config.part,
        config.values["fields"],
        config.values["replacement"],
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _replace_field(config: _PluginConfig) -> Transformation:
    return ReplaceField(
        config.part,
        config.values["exclude"],
        config.values["include"],
        config.values["renames"],
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _set_schema_metadata(config: _PluginConfig) -> Transformation:
    return SetSchemaMetadata(
        config.part,
        config.values["schema.name"],
        config.values["schema.version"],
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


def _timestamp_converter(config: _PluginConfig) -> Transformation:
    return TimestampConverter(
        config.part,
        config.values["field"],
        config.values["target.type"],
        config.values["format"],
        config.values["unix.precision"],
        config.environment,
        replace_null_with_default=config.values[_KEEP_DEFAULTS],
    )


_TRANSFORMATIONS: Final[dict[str, _Factory]] = {
    "Cast": _cast,
    "DropHeaders": lambda config: DropHeaders(config.values["headers"]),
    "ExtractField": _extract_field,
    "Filter": lambda _: Filter(),
    "Flatten": lambda config: Flatten(config.part, config.values["delimiter"]),
    "HeaderFrom": _header_from,
    "HoistField": lambda config: HoistField(config.part, config.values["field"]),
    "InsertField": _insert_field,
    "InsertHeader": lambda config: InsertHeader(
        config.values["header"], config.values["value.literal"], config.environment
    ),
    "MaskField": _mask_field,
    "RegexRouter": lambda config: RegexRouter(config.values["regex"], config.values["replacement"]),
    "ReplaceField": _replace_field,
    "SetSchemaMetadata": _set_schema_metadata,
    "TimestampConverter": _timestamp_converter,
    "TimestampRouter": lambda config: TimestampRouter(
        config.values["topic.format"], config.values["timestamp.format"]
    ),
    "ValueToKey": lambda config: ValueToKey(
        config.values["fields"], replace_null_with_default=config.values[_KEEP_DEFAULTS]
    ),
}

_PREDICATES: Final[dict[str, Callable[[PluginValues], Predicate]]] = {
    "HasHeaderKey": lambda values: HasHeaderKey(values["name"]),
    "RecordIsTombstone": lambda _: RecordIsTombstone(),
    "TopicNameMatches": lambda values: TopicNameMatches(values["pattern"]),
}


def make_transformation(
    class_name: str, values: Mapping[str, ParsedValue], environment: JavaEnvironment
) -> Transformation:
    """The configured transformation of a Java class. Raises TransformError (ConfigException)."""
    assert class_name in TRANSFORMATIONS, class_name
    simple_name, _, variant = class_name.rpartition(".")[2].partition("$")
    part = RecordPart.KEY if variant == "Key" else RecordPart.VALUE
    return _TRANSFORMATIONS[simple_name](_PluginConfig(part, values, environment))


def make_predicate(class_name: str, values: Mapping[str, ParsedValue]) -> Predicate:
    """The configured predicate of a Java class."""
    assert class_name in PREDICATES, class_name
    return _PREDICATES[class_name.rpartition(".")[2]](values)
