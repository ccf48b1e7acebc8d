"""How a task copies: what the driver tells it in its welcome.

Plain values that travel as JSON. Client properties have Java's names, and placeholders as they were
written, which are resolved at use (`dial`). But somebody may have written a secret instead, so they
go to the driver by its standard input and to tasks over the control channel, which is sealed
(`seal`), never through Spark's configuration, and are in no repr.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import ALL_CODECS, TargetLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """Everything a task must know besides its leases."""

    source_alias: str = "source"
    target_alias: str = "target"
    source: Mapping[str, str] = field(default_factory=dict, repr=False)
    target: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_id: str = "sparkmirror"
    read_committed: bool = True
    rack: str = ""
    max_in_flight: int = 5
    """Unanswered produce requests per target broker."""
    buffer_memory_bytes: int = 64 << 20
    """Fetched and not acknowledged, at the most."""
    bytes_per_s: int = 0
    """0 means no limit."""
    report_interval_s: float = 1.0
    lease_timeout_s: float = 15.0
    """A task that hears nothing of the driver for so long stops copying."""
    drain_timeout_s: float = 5.0
    """What is not acknowledged so long after a drain began is left for the next owner."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self) | {"source": dict(self.source), "target": dict(self.target)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**value)


def target_limits_to_json(target: TargetLimits) -> dict[str, Any]:
    """The rules of a remote topic, as plain JSON values."""
    return {
        "max_message_bytes": target.max_message_bytes,
        "log_append_time": target.log_append_time,
        "codecs": sorted(int(codec) for codec in target.codecs),
    }


def target_limits_from_json(value: Mapping[str, Any]) -> TargetLimits:
    """Read what `target_to_json` wrote."""
    codecs = frozenset(CompressionType.for_id(number) for number in value["codecs"]) or ALL_CODECS
    return TargetLimits(
        max_message_bytes=value["max_message_bytes"],
        log_append_time=value["log_append_time"],
        codecs=codecs,
    )
