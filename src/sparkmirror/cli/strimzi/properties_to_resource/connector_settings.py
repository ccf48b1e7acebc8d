"""What a file says about the connectors of one flow, without clusters and switches. Pure."""

from __future__ import annotations

from typing import Final

from sparkmirror.cli.strimzi.properties_to_resource.cluster_fields import CLIENT_PREFIXES
from sparkmirror.cli.strimzi.properties_to_resource.cluster_settings import WrittenSetting
from sparkmirror.cli.strimzi.resource_to_properties.mirror_maker_2_import import CONNECTOR_FIELDS
from sparkmirror.config.files.flow_config_precedence import CONFIG_PROVIDERS_PREFIX
from sparkmirror.config.files.mirror_maker_config import EMIT_HEARTBEATS, ENABLED, MirrorMakerConfig
from sparkmirror.config.files.provenance import ConfigOrigin, PrecedenceRule
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.tables.additions import SOURCE_ADDITIONS
from sparkmirror.model import SourceAndTarget

_TASKS_MAX: Final = "tasks.max"
_SWITCHES: Final = frozenset({ENABLED, EMIT_HEARTBEATS, "emit.checkpoints.enabled"})
_CLUSTER_PREFIXES: Final = ("source.cluster.", "target.cluster.")
_CONNECTORS: Final = (FlowPart.SOURCE, FlowPart.CHECKPOINT, FlowPart.HEARTBEAT)


class ConnectorSettings:
    """Selects the settings of each connector of a flow."""

    def __init__(self, config: MirrorMakerConfig, flow: SourceAndTarget) -> None:
        self._config = config
        self._flow = flow

    def of_part(self, part: FlowPart) -> dict[str, WrittenSetting]:
        """Return the settings that a connector reads, and those that no part here knows.

        A Java class that only Strimzi loads may read the latter.
        """
        connector = part.connector
        assert connector is not None
        layers = self._config.layered_connector_config(self._flow, connector)
        return {
            key: WrittenSetting(setting.value, setting.origin.key)
            for key, setting in layers.items()
            if self._is_of_connector(key, setting.origin, part)
        }

    def _is_of_connector(self, key: str, origin: ConfigOrigin, part: FlowPart) -> bool:
        if not origin.key or key in _SWITCHES or key in SOURCE_ADDITIONS.names:
            return False
        if key in CONNECTOR_FIELDS - {_TASKS_MAX} or key.startswith(CONFIG_PROVIDERS_PREFIX):
            return False
        if origin.rule is PrecedenceRule.FLOW:
            return part.reads(key) or not any(other.reads(key) for other in _CONNECTORS)
        if origin.rule is PrecedenceRule.CLUSTER:
            return part.reads(key) and self._is_of_client(key)
        return origin.rule is PrecedenceRule.TOP_LEVEL and part.reads(key)

    def _is_of_client(self, key: str) -> bool:
        """Whether a cluster has a setting for its consumer, producer or admin alone."""
        side, _, name = key.partition(".")
        alias = self._flow.source if side == "source" else self._flow.target
        return name.startswith(CLIENT_PREFIXES) and f"{alias}.{name}" in self._config.file_values
