"""Replaces the placeholders of connector configs when a connector or task starts.

Only the raw text is stored, shown and compared. The connector or task that runs holds the fetched
values, with the list of texts that its traces must not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.config.files.deprecated_keys import migrate_deprecated_keys
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.redaction import is_secret
from sparkmirror.config.secrets.variables import (
    ConfigProvider,
    expand_variables,
    find_variables,
    restore_variables,
)
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order

TASK_CLASS = "task.class"

_MIN_SECRET_LENGTH = 4
"""Hiding shorter values would damage ordinary words, and they protect nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformedConfig:
    """A config for use. Holds secrets: keep it in memory."""

    values: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    """Texts that logs and statuses must not show."""
    ttl_ms: int | None = None
    """The values expire after this time; None: they do not."""
    has_variables: bool = False
    """Whether values come from config providers. They may change at any time."""
    unresolved: frozenset[str] = frozenset()
    """The keys with placeholders that no provider has a value for. They stay as text."""

    def is_changed_by(self, later: TransformedConfig) -> bool:
        """Whether a later transformation of the same config has other values that can be used."""
        return later.values != self.values and later.unresolved <= self.unresolved


class ConfigTransformer:
    """Replaces placeholders with the worker's config providers."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = providers

    def transform(self, raw: ConfigProperties) -> TransformedConfig:
        """Replace the placeholders. May block in a provider; raises ConfigError if one fails."""
        current = _with_current_keys(raw)
        # Each placeholder is also fetched alone: a trace may quote a part of a value.
        parts = {
            str(part): str(part) for value in current.values() for part in find_variables(value)
        }
        expansion = expand_variables(current | parts, self._providers)
        return TransformedConfig(
            values={key: expansion.values[key] for key in current},
            secrets=frozenset(_secrets(current | parts, expansion.values)),
            ttl_ms=min(expansion.ttls_ms.values(), default=None),
            has_variables=bool(parts),
            unresolved=frozenset(notice.key for notice in expansion.unresolved) & current.keys(),
        )


def task_configs_to_store(
    connector: ConfigProperties, tasks: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """Return task configs as Connect stores them: with task.class and the raw placeholders."""
    raw = _with_current_keys(connector)
    plugin = find_connector(trim(raw.get(CONNECTOR_CLASS, "")))
    name = "" if plugin is None else f"{plugin.class_name.removesuffix('Connector')}Task"
    return [in_hash_map_order({**restore_variables(raw, task), TASK_CLASS: name}) for task in tasks]


def _with_current_keys(raw: ConfigProperties) -> dict[str, str]:
    """Return the config with deprecated keys replaced by their current names."""
    return migrate_deprecated_keys(
        {key: value for key, value in raw.items() if value is not None}
    ).props


def _secrets(raw: Mapping[str, str], expanded: Mapping[str, str]) -> Iterator[str]:
    for key, value in expanded.items():
        if raw[key] == value and not is_secret(key):
            continue
        for secret in (value, *_jaas_secrets(key, value)):
            if len(secret) >= _MIN_SECRET_LENGTH:
                yield secret


def _jaas_secrets(key: str, value: str) -> Iterator[str]:
    if not key.endswith(jaas.SASL_JAAS_CONFIG):
        return
    try:
        module, _ = jaas.parse_login_module(value)
    except ConfigError:
        return
    for name, option in module.options.items():
        if name not in jaas.PUBLIC_OPTIONS:
            yield option
