"""Placeholders of connector configs, resolved at the moment of use and kept nowhere.

What is stored, shown and compared is always the raw text. What was fetched is held only by whoever
runs with it, together with the list of what must not be seen in a trace of his.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.config import jaas
from sparkmirror.config.plugins import find_connector
from sparkmirror.config.redaction import is_secret
from sparkmirror.config.retired import modernise
from sparkmirror.config.validation import CONNECTOR_CLASS
from sparkmirror.config.value import trim
from sparkmirror.config.variables import Provider, expand, restore, variables_in
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.connect_configs import Properties
from sparkmirror.mirror.java_maps import in_hash_order

TASK_CLASS = "task.class"

_SHORTEST_SECRET = 4
"""Anything shorter would make holes in ordinary words, and keeps nobody out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A config for use. Holds secrets: keep it in memory."""

    values: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    """Texts that must not be seen."""
    ttl_ms: int | None = None
    """After so long something may have changed; None: never."""


class Expander:
    """Resolves placeholders with the worker's providers."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers

    def expand(self, raw: Properties) -> Expanded:
        """Fetch what the placeholders stand for. ConfigError if a provider cannot be read."""
        said = _said(raw)
        # Each placeholder is also fetched on its own: a trace may quote a part of a value.
        parts = {str(part): str(part) for value in said.values() for part in variables_in(value)}
        expansion = expand(said | parts, self._providers)
        return Expanded(
            values={key: expansion.values[key] for key in said},
            secrets=frozenset(_secrets(said | parts, expansion.values)),
            ttl_ms=min(expansion.ttls_ms.values(), default=None),
        )


def stored_tasks(connector: Properties, tasks: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Task configs as Connect stores them: with their class, and the connector's placeholders."""
    raw = _said(connector)
    plugin = find_connector(trim(raw.get(CONNECTOR_CLASS, "")))
    name = "" if plugin is None else f"{plugin.class_name.removesuffix('Connector')}Task"
    return [in_hash_order({**restore(raw, task), TASK_CLASS: name}) for task in tasks]


def _said(raw: Properties) -> dict[str, str]:
    """What was said, in today's words."""
    return modernise({key: value for key, value in raw.items() if value is not None}).props


def _secrets(raw: Mapping[str, str], expanded: Mapping[str, str]) -> Iterator[str]:
    for key, value in expanded.items():
        if raw[key] == value and not is_secret(key):
            continue
        for secret in (value, *_jaas_secrets(key, value)):
            if len(secret) >= _SHORTEST_SECRET:
                yield secret


def _jaas_secrets(key: str, value: str) -> Iterator[str]:
    if not key.endswith(jaas.KEY):
        return
    try:
        module, _ = jaas.login_module(value)
    except ConfigError:
        return
    for name, option in module.options.items():
        if name not in jaas.HARMLESS_OPTIONS:
            yield option
