"""The Python modules that a worker may load plug-ins from: policies, filters, functions.

Configs of connectors arrive over REST, and an import runs the code of a module. So a worker loads
plug-ins only from modules that its operator names, as Connect loads classes only from `plugin.path`
and the class path:

- `sparkmirror.plugin.modules` in the worker's file or mm2.properties lists modules. An entry stands
  for the module and all modules below it.
- A module of a `module:Class` or `module:function` that the file itself contains needs no entry.

The commands hand the list on in the environment variable SPARKMIRROR_PLUGIN_MODULES.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

PLUGIN_MODULES: Final = "sparkmirror.plugin.modules"
PLUGIN_CLASS_KEYS: Final = (
    "replication.policy.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
)
TRANSFORM_FUNCTION: Final = "sparkmirror.transform"
"""The key of a function of DataFrames, `module:function`."""
_KEYS: Final = (*PLUGIN_CLASS_KEYS, TRANSFORM_FUNCTION)
_VARIABLE: Final = "SPARKMIRROR_PLUGIN_MODULES"
_PYTHON_CLASS: Final = re.compile(r"\w+(?:\.\w+)*:\w+")


def is_python_class(name: str) -> bool:
    """Whether the name has the form `module:Class`, which is also that of a function."""
    return _PYTHON_CLASS.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class PluginModuleAllowlist:
    """The modules of one worker. Without names no plug-in is loaded."""

    names: frozenset[str] = frozenset()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the list of a file, and the modules that its policies and filters name."""
        named = {
            value.strip().partition(":")[0]
            for key, value in properties.items()
            if _is_plugin_key(key) and is_python_class(value.strip())
        }
        return cls(_items(properties.get(PLUGIN_MODULES, "")) | named)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the list that `with_plugin_modules` added."""
        return cls(_items(environment.get(_VARIABLE, "")))

    def refusal(self, key: str, class_name: str) -> str:
        """Return why the worker does not load a `module:Class`; empty if it may."""
        module = class_name.partition(":")[0]
        if self.allows_module(module):
            return ""
        return (
            f"Invalid value {class_name} for configuration {key}: this worker loads no plug-in of"
            f" the module {module}; the operator adds {PLUGIN_MODULES}={module} to its file"
        )

    def allows_module(self, module: str) -> bool:
        """Whether the list has the module, or a package above it."""
        return any(module == name or module.startswith(f"{name}.") for name in self.names)


NO_PLUGIN_MODULES: Final = PluginModuleAllowlist()


def with_plugin_modules(
    properties: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with the modules of a file added."""
    named = PluginModuleAllowlist.from_properties(properties).names
    listed = named | PluginModuleAllowlist.from_environment(environment).names
    return {**environment, **({_VARIABLE: ",".join(sorted(listed))} if listed else {})}


def plugin_modules_variable(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable with the list of a process, for its executors on other hosts."""
    return {_VARIABLE: environment[_VARIABLE]} if environment.get(_VARIABLE) else {}


def _is_plugin_key(key: str) -> bool:
    return any(key == name or key.endswith(f".{name}") for name in _KEYS)


def _items(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))
