"""Checks that concern several keys of a connector's config.

A check gets all properties and the values of the tables, and yields faults of single keys. It never
raises. A fault of a key that is in no table gets a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.config.definition.config_def import ConfigValue
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    DEFAULT_CONFIG_FILTER,
    DEFAULT_GROUP_FILTER,
    DEFAULT_TOPIC_FILTER,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definition.value_types import (
    ParsedValue,
    Props,
    invalid_value_message,
    split_list,
    trim,
)
from sparkmirror.errors import ConfigFault, JavaRegexError
from sparkmirror.javaregex.pattern import compile_pattern_list

_ENABLED: Final = "enabled"
_EXACTLY_ONCE: Final = "exactly.once.support"
_BOUNDARY: Final = "transaction.boundary"
_EMIT_SYNCS: Final = "emit.offset-syncs.enabled"
_EMIT_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_SYNC_KEYS: Final = ("offset-syncs-", "offset-syncs.topic.")


def add_faults(
    values: Mapping[str, ConfigValue], faults: Iterable[ConfigFault]
) -> dict[str, ConfigValue]:
    """Add each fault to the value of its key."""
    result = dict(values)
    for fault in faults:
        value = result.get(fault.key) or ConfigValue(name=fault.key)
        result[fault.key] = replace(value, errors=(*value.errors, fault.message))
    return result


def worker_faults(
    class_name: str, values: Mapping[str, ConfigValue], *, exactly_once: bool
) -> Iterator[ConfigFault]:
    """Yield faults of what the worker does not support for this connector."""
    if _is_valid_and_equals(values, _EXACTLY_ONCE, "required"):
        if not exactly_once:
            yield ConfigFault(
                _EXACTLY_ONCE, "This worker does not have exactly-once source support enabled."
            )
        if class_name != SOURCE_CONNECTOR:
            yield ConfigFault(
                _EXACTLY_ONCE,
                "The connector does not implement the API required for preflight validation of "
                "exactly-once source support. Please consult the documentation for the connector "
                "to determine whether it supports exactly-once semantics, and then consider "
                'reconfiguring the connector to use the value "requested" for this property '
                "(which will disable this preflight check and allow the connector to be created).",
            )
    if _is_valid_and_equals(values, _BOUNDARY, "connector"):
        yield ConfigFault(
            _BOUNDARY,
            "The connector does not support connector-defined transaction boundaries with the "
            "given configuration. Please reconfigure it to use a different transaction boundary "
            "definition.",
        )


def connector_faults(
    class_name: str, props: Props, values: Mapping[str, ConfigValue]
) -> Iterator[ConfigFault]:
    """Yield the faults that the connector itself finds."""
    if class_name == SOURCE_CONNECTOR:
        yield from _source_faults(props)
    if class_name == CHECKPOINT_CONNECTOR:
        yield from _checkpoint_faults(props)
    for patterns in _PATTERN_KEYS:
        if class_name in patterns.read_by:
            yield from patterns.faults(props, values)


def _source_faults(props: Props) -> Iterator[ConfigFault]:
    required = trim(props.get(_EXACTLY_ONCE) or "").lower() == "required"
    if required and not _reads_committed(props):
        yield ConfigFault(
            _EXACTLY_ONCE,
            "MirrorSourceConnector can only provide exactly-once guarantees when its source "
            "consumer is configured with isolation.level set to 'read_committed'; otherwise, "
            "records from aborted and uncommitted transactions will be replicated from the source "
            "cluster to the target cluster.",
        )
    # Only `false` in lower case is refused, as in Java.
    if props.get(_EMIT_SYNCS) == "false" and any(key.startswith(_SYNC_KEYS) for key in props):
        yield ConfigFault(
            _EMIT_SYNCS,
            f"MirrorSourceConnector can't setup offset-syncs feature while {_EMIT_SYNCS} set to "
            "false",
        )


def _checkpoint_faults(props: Props) -> Iterator[ConfigFault]:
    if _is_false(props, _ENABLED):
        return
    if _is_false(props, _EMIT_CHECKPOINTS):
        yield ConfigFault(
            _EMIT_CHECKPOINTS,
            f"MirrorCheckpointConnector can't run with {_EMIT_CHECKPOINTS} set to false",
        )
    if _is_false(props, _EMIT_SYNCS):
        yield ConfigFault(_EMIT_SYNCS, "MirrorCheckpointConnector can't run without offset syncs")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PatternKeys:
    """Keys with patterns, if the default filter reads them.

    In Java a malformed pattern fails the start of the connector. Here it is an error of the key.
    """

    keys: tuple[str, ...]
    filter_key: str
    filter_class: str
    read_by: tuple[str, ...]

    def faults(self, props: Props, values: Mapping[str, ConfigValue]) -> Iterator[ConfigFault]:
        if values[self.filter_key].value != self.filter_class:
            return
        for key in self.keys:
            items = _patterns(key, props, values)
            try:
                compile_pattern_list(items)
            except JavaRegexError as error:
                yield ConfigFault(
                    key,
                    invalid_value_message(key, ",".join(items), f"{error}{_hint(items, error)}"),
                )


_PATTERN_KEYS: Final = (
    _PatternKeys(
        keys=("topics", "topics.exclude"),
        filter_key="topic.filter.class",
        filter_class=DEFAULT_TOPIC_FILTER,
        read_by=(SOURCE_CONNECTOR, CHECKPOINT_CONNECTOR),
    ),
    _PatternKeys(
        keys=("config.properties.exclude",),
        filter_key="config.property.filter.class",
        filter_class=DEFAULT_CONFIG_FILTER,
        read_by=(SOURCE_CONNECTOR,),
    ),
    _PatternKeys(
        keys=("groups", "groups.exclude"),
        filter_key="group.filter.class",
        filter_class=DEFAULT_GROUP_FILTER,
        read_by=(CHECKPOINT_CONNECTOR,),
    ),
)


def _patterns(key: str, props: Props, values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    """The patterns of a key. The checkpoint connector's filter reads keys that are not declared."""
    if key not in values:
        return split_list(props.get(key) or "")
    value: ParsedValue = values[key].value
    return value if isinstance(value, tuple) else ()


def _hint(items: tuple[str, ...], error: JavaRegexError) -> str:
    """A hint for the two most frequent mistakes: shell patterns, and commas in a pattern."""
    item = _pattern_at(items, error.position)
    if item.startswith("*"):
        return "; for any text write .* instead of *"
    if item.count("{") != item.count("}"):
        return "; a comma always starts the next pattern, so {n,m} cannot be written in a list"
    return ""


def _pattern_at(items: tuple[str, ...], position: int) -> str:
    """The item at a position of the joined pattern."""
    end = 0
    for item in items:
        end += len(item) + len("|")
        if position < end:
            return item
    return items[-1]


def _is_valid_and_equals(values: Mapping[str, ConfigValue], name: str, word: str) -> bool:
    """Whether a key has no errors and this value, in upper or lower case."""
    value = values[name]
    return not value.errors and str(value.value).lower() == word


def _is_false(props: Props, name: str) -> bool:
    return trim(props.get(name) or "").lower() == "false"


def _reads_committed(props: Props) -> bool:
    """Whether the source consumer reads committed records only. Its own prefix wins."""
    general = props.get("consumer.isolation.level")
    return props.get("source.consumer.isolation.level", general) == "read_committed"
