"""The plug-ins a worker offers: connectors, transformations, predicates, converters.

Knows for each its Java name, its kind and its table. What a plug-in does is elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sparkmirror.config.classes import (
    CHECKPOINT_CONNECTOR,
    CONVERTERS,
    HEADER_CONVERTERS,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
    known_class,
)
from sparkmirror.config.definition import ConfigDef
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.converters import CONVERTER_TABLES
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.config.tables.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES
from sparkmirror.config.versions import PLUGIN_VERSION


class PluginKind(Enum):
    """What a plug-in is, in the word that the REST API uses."""

    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One plug-in, and the table of what it reads."""

    class_name: str
    kind: PluginKind
    table: ConfigDef

    def __str__(self) -> str:
        """Describe it as Connect does in its messages."""
        return (
            f"PluginDesc{{klass=class {self.class_name}, name='{self.class_name}', "
            f"version='{PLUGIN_VERSION}', encodedVersion={PLUGIN_VERSION}, "
            f"type={self.kind.value}, typeName='{self.kind.value}', location='classpath'}}"
        )


def _plugins(kind: PluginKind, tables: dict[str, ConfigDef]) -> tuple[Plugin, ...]:
    return tuple(Plugin(class_name=name, kind=kind, table=table) for name, table in tables.items())


CONNECTOR_PLUGINS: Final = _plugins(
    PluginKind.SOURCE,
    {
        CHECKPOINT_CONNECTOR: CHECKPOINT,
        HEARTBEAT_CONNECTOR: HEARTBEAT,
        SOURCE_CONNECTOR: SOURCE,
    },
)

PLUGINS: Final = (
    *CONNECTOR_PLUGINS,
    *_plugins(PluginKind.TRANSFORMATION, TRANSFORMATION_TABLES),
    *_plugins(PluginKind.PREDICATE, PREDICATE_TABLES),
    *_plugins(PluginKind.CONVERTER, {name: CONVERTER_TABLES[name] for name in CONVERTERS}),
    *_plugins(
        PluginKind.HEADER_CONVERTER, {name: CONVERTER_TABLES[name] for name in HEADER_CONVERTERS}
    ),
)
"""In the order in which GET /connector-plugins lists them."""


def find_plugin(name: str) -> Plugin | None:
    """Find a plug-in by its full name, its simple name or its alias."""
    full_name = known_class(name)
    return next((plugin for plugin in PLUGINS if plugin.class_name == full_name), None)


def find_connector(name: str) -> Plugin | None:
    """Find a connector by its full name, its simple name or its alias."""
    plugin = find_plugin(name)
    return plugin if plugin in CONNECTOR_PLUGINS else None
