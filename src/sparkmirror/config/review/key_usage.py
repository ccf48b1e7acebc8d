"""Where the keys of a dedicated file end up.

Each key of the file may land in several configs (parts of flows), under other names, as the winner
or behind one. Read off the compiled configs, which remember it. A key takes effect if it wins
somewhere under a name that the part reads, and the part is at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.files.flow_parts import FlowPart
from sparkmirror.config.files.mirror_maker_config import (
    EMIT_HEARTBEATS,
    ENABLED,
    FLOW_SWITCHES,
    MirrorMakerConfig,
)
from sparkmirror.config.files.provenance import ConfigOrigin, LayeredConfig
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

_ALWAYS_READ = FLOW_SWITCHES | {"name", "connector.class"}
"""What even a connector that does nothing reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """One place where a key of the file ended up."""

    flow: SourceAndTarget
    part: FlowPart
    key: str
    """The name under which it landed."""
    is_read: bool
    is_active: bool
    """Whether the part is at work: the connectors of a flow that is not enabled are not."""
    overridden_by: ConfigOrigin | None

    @property
    def takes_effect(self) -> bool:
        """Whether the file's key matters because of this landing."""
        return self.is_read and self.is_active and self.overridden_by is None


KeyUses = dict[str, list[KeyUse]]


def compiled_config(
    dedicated: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> LayeredConfig:
    """The config of one part of a flow, as written."""
    if part.connector is None:
        return dedicated.layered_worker_config(flow)
    return dedicated.layered_connector_config(flow, part.connector)


def key_uses(dedicated: MirrorMakerConfig) -> KeyUses:
    """Every landing of every key, for all flows that run. A key without one is not in it."""
    found: KeyUses = {}
    for flow in dedicated.flows():
        for part in FlowPart:
            for key, landing in _part_key_uses(dedicated, flow, part):
                found.setdefault(key, []).append(landing)
    return found


def _part_key_uses(
    dedicated: MirrorMakerConfig, flow: SourceAndTarget, part: FlowPart
) -> Iterator[tuple[str, KeyUse]]:
    layers = compiled_config(dedicated, flow, part)
    works = is_part_enabled(dedicated, layers, part)
    for key, setting in layers.items():
        for candidate in setting.candidates:
            if candidate.origin.key:
                yield (
                    candidate.origin.key,
                    KeyUse(
                        flow=flow,
                        part=part,
                        key=key,
                        is_read=part.reads(key),
                        is_active=works or key in _ALWAYS_READ,
                        overridden_by=None
                        if candidate.origin is setting.origin
                        else setting.origin,
                    ),
                )


def is_part_enabled(dedicated: MirrorMakerConfig, layers: LayeredConfig, part: FlowPart) -> bool:
    """Whether a part does anything. A heartbeat connector does not ask if the flow is enabled."""
    switch = EMIT_HEARTBEATS if part is FlowPart.HEARTBEAT else ENABLED
    if part is FlowPart.WORKER or switch not in layers:
        return True
    try:
        value = dedicated.expand({switch: layers[switch].value}).values[switch]
    except ConfigError:
        return True
    return value.strip().lower() != "false"
