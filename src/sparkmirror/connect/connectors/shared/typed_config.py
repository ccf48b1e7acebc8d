"""A connector's config, parsed with its table: typed values by key.

Raises ConfigError with all errors. A class name with a colon (`module:Class`) is an operator's own
plug-in: it is accepted here and loaded later, if the operator allows its module.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.plugin_module_allowlist import PLUGIN_MODULES, PluginModuleAllowlist
from sparkmirror.errors import ConfigError


class TypedConfig:
    """A parsed config."""

    def __init__(self, table: ConfigDef, config: Mapping[str, str]) -> None:
        self._values: Mapping[str, ParsedValue] = table.parse(config, _class_name)

    def get_string(self, key: str) -> str:
        """Return a text; empty if the key is absent."""
        value = self._values[key]
        assert value is None or isinstance(value, str), key
        return value or ""

    def get_int(self, key: str) -> int:
        """Return an integer."""
        value = self._values[key]
        assert isinstance(value, int), key
        return value

    def get_boolean(self, key: str) -> bool:
        """Return a boolean."""
        value = self._values[key]
        assert isinstance(value, bool), key
        return value

    def get_list(self, key: str) -> tuple[str, ...]:
        """Return a list."""
        value = self._values[key]
        assert isinstance(value, tuple), key
        return value

    def get_interval_s(self, job: str) -> float | None:
        """Return the interval of a job in seconds; None if the job is disabled.

        Reads `job.enabled` and `job.interval.seconds`; a negative interval disables the job too.
        """
        seconds = self.get_int(f"{job}.interval.seconds")
        return float(seconds) if self.get_boolean(f"{job}.enabled") and seconds >= 0 else None


def load_plugin(
    name: str, key: str, environment: Mapping[str, str] = os.environ
) -> Callable[..., Any]:
    """Load an operator's own plug-in, given as `module:Class`.

    Raises ConfigError, without an import, unless the operator allows the module. What the module
    only imports from a module that is not allowed is refused too.
    """
    modules = PluginModuleAllowlist.from_environment(environment)
    refusal = modules.refusal(key, name)
    if refusal:
        raise ConfigError.of(key, refusal)
    module, _, member = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), member)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.of(key, f"{key}: {name} cannot be loaded: {error}") from error
    home = str(getattr(found, "__module__", ""))
    if not callable(found) or not modules.allows_module(home):
        raise ConfigError.of(
            key, f"{key}: {name} is no class or function of a module in {PLUGIN_MODULES}"
        )
    plugin: Callable[..., Any] = found
    return plugin


def _class_name(name: str) -> str | None:
    return name if ":" in name else resolve_class(name)
