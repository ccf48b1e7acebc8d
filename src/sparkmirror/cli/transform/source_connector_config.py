"""The config of the source connector whose transformations are tried."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from sparkmirror.cli.config.connector_json_validation import (
    ConnectorWorker,
    is_connector_json,
    read_connectors,
)
from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.config.definition.value_types import trim
from sparkmirror.config.files import properties
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.errors import ConfigError, PropertiesError

T = TypeVar("T")

WITHOUT_FILE: Final = {
    "name": "transform-try",
    CONNECTOR_CLASS: SOURCE_CONNECTOR,
    "source.cluster.alias": "source",
    "target.cluster.alias": "target",
}
"""The connector if no file is named."""


def source_connector_config(
    file: Path | None, flow: str, source: str, settings: Iterable[str]
) -> Mapping[str, str]:
    """Return the expanded config. Holds secrets.

    `file` is an mm2.properties or connector JSON. `flow` is needed if it has several. `source` are
    bootstrap servers instead of those of the file. `settings` are `key=value`, and win. Raises
    ConfigError and PropertiesError.
    """
    config = dict(WITHOUT_FILE) if file is None else dict(_config_of_file(file, flow))
    if source:
        config["source.cluster.bootstrap.servers"] = source
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError.of("", f"--set {setting}: write it as key=value")
        config[key.strip()] = value.strip()
    return config


def _config_of_file(path: Path, flow: str) -> Mapping[str, str]:
    data = properties.read_bytes(path)
    if is_connector_json(data):
        return _one_of(path, flow, _connectors(data))
    config = MirrorMakerConfig.open(properties.parse_properties(data, file=str(path)), os.environ)
    pairs = config.cluster_pairs if flow else config.require_flows()
    layers = {
        str(one): config.layered_connector_config(one, MirrorConnector.SOURCE) for one in pairs
    }
    return config.expand(_one_of(path, flow, layers).props).values


def _connectors(data: bytes) -> dict[str, dict[str, str]]:
    """The source connectors of a JSON file, by their flow."""
    found = {}
    for config in read_connectors(data, ConnectorWorker()):
        plugin = find_connector(trim(config.get(CONNECTOR_CLASS, "")))
        if plugin is not None and plugin.class_name == SOURCE_CONNECTOR:
            pair = (config.get(f"{side}.cluster.alias", side) for side in ("source", "target"))
            found["->".join(pair)] = config
    return found


def _one_of(path: Path, flow: str, known: Mapping[str, T]) -> T:
    names = ", ".join(known)
    if flow:
        if flow not in known:
            raise PropertiesError(str(path), None, f"{flow} is none of its flows: {names}")
        return known[flow]
    if len(known) != 1:
        text = f"has the flows {names}; choose one with --flow" if known else "has no flow"
        raise PropertiesError(str(path), None, text)
    return next(iter(known.values()))
