"""Which settings a remote topic is created with, and which are changed later.

Three questions about the settings of one source topic, all answered through the same filter:

    creation_configs   what the new remote topic starts with: explicit settings of the source
    sync_operations    what MirrorMaker 2 sends every time, changed or not
    alterations        the part of that which changes anything, seen the target's settings

A setting at its default is deleted on the target rather than copied, so that the target's own
default holds, unless the filter asks for the source's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.mirror.topics.filters import ConfigPropertyFilter


class ConfigSource(StrEnum):
    """Where a topic's setting comes from, in Kafka's words."""

    DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"
    DYNAMIC_BROKER_LOGGER_CONFIG = "DYNAMIC_BROKER_LOGGER_CONFIG"
    DYNAMIC_BROKER_CONFIG = "DYNAMIC_BROKER_CONFIG"
    DYNAMIC_DEFAULT_BROKER_CONFIG = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    DYNAMIC_CLIENT_METRICS_CONFIG = "DYNAMIC_CLIENT_METRICS_CONFIG"
    DYNAMIC_GROUP_CONFIG = "DYNAMIC_GROUP_CONFIG"
    STATIC_BROKER_CONFIG = "STATIC_BROKER_CONFIG"
    DEFAULT_CONFIG = "DEFAULT_CONFIG"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One setting of one topic as a broker describes it. A sensitive one has no value."""

    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool = False
    read_only: bool = False

    @property
    def is_default(self) -> bool:
        """Say whether nobody set it, neither on the topic nor on any broker."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOpType(StrEnum):
    """What may be done to a setting."""

    SET = "SET"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigOp:
    """One change to one setting. DELETE carries no value."""

    name: str
    operation: AlterConfigOpType
    value: str | None = None

    def __post_init__(self) -> None:
        assert (self.operation is AlterConfigOpType.SET) == (self.value is not None)


def _is_copied(entry: ConfigEntry, wanted: ConfigPropertyFilter) -> bool:
    """Leave out what cannot be written, what is secret, and what the source's brokers impose."""
    return (
        not entry.read_only
        and not entry.sensitive
        and entry.source is not ConfigSource.STATIC_BROKER_CONFIG
        and entry.value is not None
        and wanted.should_replicate_config_property(entry.name)
    )


def _is_left_to_target(entry: ConfigEntry, wanted: ConfigPropertyFilter) -> bool:
    return entry.is_default and not wanted.should_replicate_source_default(entry.name)


def creation_configs(
    entries: Iterable[ConfigEntry], wanted: ConfigPropertyFilter
) -> dict[str, str]:
    """Give the settings that the remote topic of a source topic is created with."""
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and _is_copied(entry, wanted)
        and not _is_left_to_target(entry, wanted)
    }


def sync_operations(
    entries: Iterable[ConfigEntry], wanted: ConfigPropertyFilter
) -> tuple[AlterConfigOp, ...]:
    """Give one operation for every setting that may be copied, as MirrorMaker 2 sends them."""
    return tuple(
        AlterConfigOp(name=entry.name, operation=AlterConfigOpType.DELETE)
        if _is_left_to_target(entry, wanted)
        else AlterConfigOp(name=entry.name, operation=AlterConfigOpType.SET, value=entry.value)
        for entry in entries
        if _is_copied(entry, wanted)
    )


def effective_operations(
    operations: Iterable[AlterConfigOp], target: Iterable[ConfigEntry]
) -> tuple[AlterConfigOp, ...]:
    """Keep the operations that change what is set on the remote topic itself.

    A value that the target merely happens to have by default is still set: its default may change
    without the source's doing so.
    """
    present: Mapping[str, str | None] = {
        entry.name: entry.value
        for entry in target
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }
    return tuple(
        operation
        for operation in operations
        if (operation.name in present or operation.operation is AlterConfigOpType.SET)
        and operation.value != present.get(operation.name)
    )
