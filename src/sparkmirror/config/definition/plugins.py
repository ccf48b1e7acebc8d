"""The plug-ins a worker offers: connectors, transformations, predicates, converters.

Each has its Java name, its type and its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    CONVERTERS,
    HEADER_CONVERTERS,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
    resolve_class,
)
from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.plugins.converters import CONVERTER_TABLES
from sparkmirror.config.tables.plugins.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.config.tables.source import SOURCE


class PluginType(Enum):
    """The type of a plug-in, as the REST API names it."""

    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDesc:
    """One plug-in, and its table."""

    class_name: str
    type: PluginType
    config_def: ConfigDef

    def __str__(self) -> str:
        """Describe it as Connect does in its messages."""
        return (
            f"PluginDesc{{klass=class {self.class_name}, name='{self.class_name}', "
            f"version='{PLUGIN_VERSION}', encodedVersion={PLUGIN_VERSION}, "
            f"type={self.type.value}, typeName='{self.type.value}', location='classpath'}}"
        )


def _plugins(plugin_type: PluginType, tables: dict[str, ConfigDef]) -> tuple[PluginDesc, ...]:
    return tuple(
        PluginDesc(class_name=name, type=plugin_type, config_def=table)
        for name, table in tables.items()
    )


CONNECTOR_PLUGINS: Final = _plugins(
    PluginType.SOURCE,
    {
        CHECKPOINT_CONNECTOR: CHECKPOINT,
        HEARTBEAT_CONNECTOR: HEARTBEAT,
        SOURCE_CONNECTOR: SOURCE,
    },
)

PLUGINS: Final = (
    *CONNECTOR_PLUGINS,
    *_plugins(PluginType.TRANSFORMATION, TRANSFORMATION_TABLES),
    *_plugins(PluginType.PREDICATE, PREDICATE_TABLES),
    *_plugins(PluginType.CONVERTER, {name: CONVERTER_TABLES[name] for name in CONVERTERS}),
    *_plugins(
        PluginType.HEADER_CONVERTER, {name: CONVERTER_TABLES[name] for name in HEADER_CONVERTERS}
    ),
)
"""In the order in which GET /connector-plugins lists them."""


def find_plugin(name: str) -> PluginDesc | None:
    """Find a plug-in by its full name, its simple name or its alias."""
    full_name = resolve_class(name)
    return next((plugin for plugin in PLUGINS if plugin.class_name == full_name), None)


def find_connector(name: str) -> PluginDesc | None:
    """Find a connector by its full name, its simple name or its alias."""
    plugin = find_plugin(name)
    return plugin if plugin in CONNECTOR_PLUGINS else None
