"""Where the keys of a dedicated file end up.

Each key of the file may land in several configs (parts of flows), under other names, as the winner
or behind one. Read off the compiled configs, which remember it. A key takes effect if it wins
somewhere under a name that the part reads, and the part is at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.dedicated import EMIT_HEARTBEATS, ENABLED, SWITCHES, Dedicated
from sparkmirror.config.layers import Layers, Origin
from sparkmirror.config.parts import Part
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

_ALWAYS_READ = SWITCHES | {"name", "connector.class"}
"""What even a connector that does nothing reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One place where a key of the file ended up."""

    flow: SourceAndTarget
    part: Part
    key: str
    """The name under which it landed."""
    is_read: bool
    is_active: bool
    """Whether the part is at work: the connectors of a flow that is not enabled are not."""
    lost_to: Origin | None

    @property
    def takes_effect(self) -> bool:
        """Whether the file's key matters because of this landing."""
        return self.is_read and self.is_active and self.lost_to is None


Landings = dict[str, list[Landing]]


def compiled(dedicated: Dedicated, flow: SourceAndTarget, part: Part) -> Layers:
    """The config of one part of a flow, as written."""
    if part.connector is None:
        return dedicated.worker(flow)
    return dedicated.connector(flow, part.connector)


def landings(dedicated: Dedicated) -> Landings:
    """Every landing of every key, for all flows that run. A key without one is not in it."""
    found: Landings = {}
    for flow in dedicated.flows():
        for part in Part:
            for key, landing in _of_part(dedicated, flow, part):
                found.setdefault(key, []).append(landing)
    return found


def _of_part(
    dedicated: Dedicated, flow: SourceAndTarget, part: Part
) -> Iterator[tuple[str, Landing]]:
    layers = compiled(dedicated, flow, part)
    works = is_at_work(dedicated, layers, part)
    for key, setting in layers.items():
        for candidate in setting.candidates:
            if candidate.origin.key:
                yield (
                    candidate.origin.key,
                    Landing(
                        flow=flow,
                        part=part,
                        key=key,
                        is_read=part.reads(key),
                        is_active=works or key in _ALWAYS_READ,
                        lost_to=None if candidate.origin is setting.origin else setting.origin,
                    ),
                )


def is_at_work(dedicated: Dedicated, layers: Layers, part: Part) -> bool:
    """Whether a part does anything. A heartbeat connector does not ask if the flow is enabled."""
    switch = EMIT_HEARTBEATS if part is Part.HEARTBEAT else ENABLED
    if part is Part.WORKER or switch not in layers:
        return True
    try:
        value = dedicated.expand({switch: layers[switch].value}).values[switch]
    except ConfigError:
        return True
    return value.strip().lower() != "false"
