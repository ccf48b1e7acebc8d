"""The uses of the keys of a config file.

A key of the file may reach several configs (parts of flows), under other names, and win there or be
overridden. The compiled configs have kept all this. A key takes effect if it wins in the config of
an enabled part, under a name that the part reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.definition.enrichment import undeclared_keys
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.files.mirror_maker_config import (
    EMIT_HEARTBEATS,
    ENABLED,
    FLOW_SWITCHES,
    MirrorMakerConfig,
)
from sparkmirror.config.files.provenance import ConfigOrigin, LayeredConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

EMIT_CHECKPOINTS = "emit.checkpoints.enabled"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
_SWITCHES = {
    FlowPart.WORKER: (),
    FlowPart.SOURCE: (ENABLED,),
    FlowPart.CHECKPOINT: (ENABLED, EMIT_CHECKPOINTS, EMIT_OFFSET_SYNCS),
    FlowPart.HEARTBEAT: (EMIT_HEARTBEATS,),
}
"""The keys of which each must not be false. Checkpoints are computed from offset syncs."""
_ALWAYS_READ = FLOW_SWITCHES | {"name", "connector.class", EMIT_CHECKPOINTS, EMIT_OFFSET_SYNCS}
"""Keys that even a disabled connector reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """The use of a key of the file in the config of one part."""

    flow: SourceAndTarget
    part: FlowPart
    key: str
    """Its name in that config."""
    is_read: bool
    is_active: bool
    """Whether the part is enabled."""
    overridden_by: ConfigOrigin | None

    @property
    def takes_effect(self) -> bool:
        """Whether the key of the file has an effect through this use."""
        return self.is_read and self.is_active and self.overridden_by is None


KeyUses = dict[str, list[KeyUse]]


def compiled_config(
    config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> LayeredConfig:
    """The config of one part of a flow, as written."""
    if part.connector is None:
        return config.layered_worker_config(flow)
    return config.layered_connector_config(flow, part.connector)


def key_uses(config: MirrorMakerConfig) -> KeyUses:
    """The uses of each key, in all flows that run. A key without a use is not in the result."""
    uses: KeyUses = {}
    for flow in config.flows():
        for part in FlowPart:
            for key, use in _part_key_uses(config, flow, part):
                uses.setdefault(key, []).append(use)
    return uses


def _part_key_uses(
    config: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> Iterator[tuple[str, KeyUse]]:
    layers = compiled_config(config, flow, part)
    is_enabled = is_part_enabled(config, layers, part)
    undeclared = undeclared_keys(layers.props, resolve_class)
    for key, setting in layers.items():
        for candidate in setting.candidates:
            if candidate.origin.key:
                yield (
                    candidate.origin.key,
                    KeyUse(
                        flow=flow,
                        part=part,
                        key=key,
                        is_read=part.reads(key) and key not in undeclared,
                        is_active=is_enabled or key in _ALWAYS_READ,
                        overridden_by=None
                        if candidate.origin is setting.origin
                        else setting.origin,
                    ),
                )


def is_part_enabled(config: MirrorMakerConfig, layers: LayeredConfig, part: FlowPart) -> bool:
    """Whether a part is enabled. A heartbeat connector does not depend on the flow's `enabled`."""
    return not disabling_key(config, layers, part)


def disabling_key(config: MirrorMakerConfig, layers: LayeredConfig, part: FlowPart) -> str:
    """Return the switch that disables a part; empty if the part is enabled."""
    return next((key for key in _SWITCHES[part] if _is_false(config, layers, key)), "")


def _is_false(config: MirrorMakerConfig, layers: LayeredConfig, key: str) -> bool:
    if key not in layers:
        return False
    try:
        value = config.expand({key: layers[key].value}).values[key]
    except ConfigError:
        return False
    return value.strip().lower() == "false"
