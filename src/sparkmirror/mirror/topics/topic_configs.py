"""The topic configs with which a remote topic is created, and their changes later.

All three functions use the same filter:

    creation_configs       the configs of a new remote topic: explicit configs of the source
    sync_operations        what MirrorMaker 2 sends every time, changed or not
    effective_operations   the sync operations that change the target

A config at its default is deleted on the target and not copied, so that the target's default
applies, unless the filter selects the source's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.mirror.topics.filters import ConfigPropertyFilter


class ConfigSource(StrEnum):
    """Where the value of a topic config comes from."""

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
    """One topic config as a broker describes it. A sensitive config has no value."""

    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool = False
    read_only: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the config is set neither on the topic nor on a broker."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOpType(StrEnum):
    """The operations on a topic config."""

    SET = "SET"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigOp:
    """One change of one topic config. DELETE has no value."""

    name: str
    operation: AlterConfigOpType
    value: str | None = None

    def __post_init__(self) -> None:
        assert (self.operation is AlterConfigOpType.SET) == (self.value is not None)


def _is_copied(entry: ConfigEntry, config_filter: ConfigPropertyFilter) -> bool:
    """Return False for read-only and sensitive configs and for static configs of the broker."""
    return (
        not entry.read_only
        and not entry.sensitive
        and entry.source is not ConfigSource.STATIC_BROKER_CONFIG
        and entry.value is not None
        and config_filter.should_replicate_config_property(entry.name)
    )


def _is_left_to_target(entry: ConfigEntry, config_filter: ConfigPropertyFilter) -> bool:
    return entry.is_default and not config_filter.should_replicate_source_default(entry.name)


def creation_configs(
    entries: Iterable[ConfigEntry], config_filter: ConfigPropertyFilter
) -> dict[str, str]:
    """Return the configs with which the remote topic is created."""
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and _is_copied(entry, config_filter)
        and not _is_left_to_target(entry, config_filter)
    }


def sync_operations(
    entries: Iterable[ConfigEntry], config_filter: ConfigPropertyFilter
) -> tuple[AlterConfigOp, ...]:
    """Return one operation for every config that is copied, as MirrorMaker 2 sends them."""
    return tuple(
        AlterConfigOp(name=entry.name, operation=AlterConfigOpType.DELETE)
        if _is_left_to_target(entry, config_filter)
        else AlterConfigOp(name=entry.name, operation=AlterConfigOpType.SET, value=entry.value)
        for entry in entries
        if _is_copied(entry, config_filter)
    )


def effective_operations(
    operations: Iterable[AlterConfigOp], target: Iterable[ConfigEntry]
) -> tuple[AlterConfigOp, ...]:
    """Return the operations that change the configs set on the remote topic itself.

    A value that is equal to the target's default is still set, because that default may change.
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
