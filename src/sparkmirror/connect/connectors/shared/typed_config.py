"""A connector's config read through its table: values of known types, by key.

Raises ConfigError with every fault at once. Class names that hold a colon (`module:Class`) are
people's own plug-ins and are let through; whether they exist is found out when they are loaded.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.errors import ConfigError


class TypedConfig:
    """What a table makes of a config."""

    def __init__(self, table: ConfigDef, config: Mapping[str, str]) -> None:
        self._values: Mapping[str, ParsedValue] = table.parse(config, _class_name)

    def get_string(self, key: str) -> str:
        """Read a text; an absent one is empty."""
        value = self._values[key]
        assert value is None or isinstance(value, str), key
        return value or ""

    def get_int(self, key: str) -> int:
        """Read a whole number."""
        value = self._values[key]
        assert isinstance(value, int), key
        return value

    def get_boolean(self, key: str) -> bool:
        """Read yes or no."""
        value = self._values[key]
        assert isinstance(value, bool), key
        return value

    def get_list(self, key: str) -> tuple[str, ...]:
        """Read a list."""
        value = self._values[key]
        assert isinstance(value, tuple), key
        return value

    def get_interval_s(self, job: str) -> float | None:
        """Read how often a job is done, in seconds; None if it is never done again.

        `job.enabled` and `job.interval.seconds` belong together; a negative interval means never.
        """
        seconds = self.get_int(f"{job}.interval.seconds")
        return float(seconds) if self.get_boolean(f"{job}.enabled") and seconds >= 0 else None


def load_plugin(name: str, key: str) -> Any:
    """Load a plug-in of people's own, written `module:Class`."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.of(key, f"{key}: {name} cannot be loaded: {error}") from error


def _class_name(name: str) -> str | None:
    return name if ":" in name else resolve_class(name)
