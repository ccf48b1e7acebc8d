"""How a task copies: the settings that the driver sends in its welcome.

Plain values that travel as JSON. Client properties have Java's names. Placeholders stay as they
were written and are resolved at use (`client_config_resolver`). An operator may have written a
secret instead of a placeholder. So client properties go to the driver by its standard input and to
tasks over the encrypted control connection (`control.encryption`), never through Spark's
configuration, and no repr shows them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from sparkmirror.config.tables.transform_additions import QUERY_KEYS
from sparkmirror.errors import ClusterError, MirrorError
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import ALL_CODECS, TargetLimits

CHAIN_VERSION = 1
"""Rises with every change of the program that makes a transformation write other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySettings:
    """Everything a task needs besides its leases."""

    source_alias: str = "source"
    target_alias: str = "target"
    source: Mapping[str, str] = field(default_factory=dict, repr=False)
    target: Mapping[str, str] = field(default_factory=dict, repr=False)
    connector: str = ""
    """The name of the connector, for what is said about records that fail."""
    client_id: str = "sparkmirror"
    read_committed: bool = True
    rack: str = ""
    max_in_flight: int = 5
    """Unanswered produce requests per target broker."""
    buffer_memory_bytes: int = 64 << 20
    """Maximum number of bytes that are fetched and not acknowledged."""
    bytes_per_s: int = 0
    """The rate limit of one task; 0 means no limit."""
    fetch_timeout_s: float = 10.0
    """A source broker that does not answer a fetch for so long loses its connection."""
    produce_timeout_s: float = 15.0
    """A target broker that does not answer a produce request for so long loses its connection,
    unless `request.timeout.ms` of the target's producer says otherwise."""
    report_interval_s: float = 1.0
    lease_timeout_s: float = 15.0
    """A task whose reports the driver does not acknowledge for so long stops copying."""
    drain_timeout_s: float = 5.0
    """Batches not acknowledged so long after a drain began are left for the next owner."""
    transforms: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The connector's keys about transformations; empty if no record is changed or dropped."""
    transforms_zone: str = "UTC"
    """The time zone in which transformations read and write dates."""
    internal_topics: tuple[str, ...] = ()
    """The worker's topics, which no query may send records to; empty without transformations."""

    @property
    def chain(self) -> str:
        """The fingerprint of what transformations do to records; empty without any.

        Two chains with the same fingerprint make the same of a record. What is done about failed
        records is not part of it: none of them is copied in any case. Transformations beside a
        query are not part of it either: they only name topics.
        """
        if not self.transforms:
            return ""
        ignored: tuple[str, ...] = ("errors.", "sparkmirror.errors.")
        if not QUERY_KEYS.isdisjoint(self.transforms):
            ignored = (*ignored, "transforms", "predicates")
        keys = {key: value for key, value in self.transforms.items() if not key.startswith(ignored)}
        text = json.dumps([CHAIN_VERSION, self.transforms_zone, sorted(keys.items())])
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self) | {
            "source": dict(self.source),
            "target": dict(self.target),
            "transforms": dict(self.transforms),
            "internal_topics": list(self.internal_topics),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**{**value, "internal_topics": tuple(value.get("internal_topics", ()))})


def cluster_side(error: MirrorError, settings: CopySettings) -> str:
    """Return `source` or `target` for an error of one of the two clusters, else an empty text."""
    sides = {settings.source_alias: "source", settings.target_alias: "target"}
    return sides.get(error.cluster, "") if isinstance(error, ClusterError) else ""


def with_side(error: MirrorError, settings: CopySettings) -> str:
    """Return the text of an error, behind the side of its cluster: `target: backup: ...`."""
    side = cluster_side(error, settings)
    return f"{side}: {error}" if side else str(error)


def rate_per_task(bytes_per_s: int, tasks: int) -> int:
    """Return each task's share of a common rate limit; 0 means no limit."""
    return max(bytes_per_s // max(tasks, 1), 1) if bytes_per_s else 0


def target_limits_to_json(target: TargetLimits) -> dict[str, Any]:
    """Return the limits of a remote topic as plain JSON values."""
    return {
        "max_message_bytes": target.max_message_bytes,
        "max_produce_bytes": target.max_produce_bytes,
        "log_append_time": target.log_append_time,
        "codecs": sorted(int(codec) for codec in target.codecs),
        "fallback_codec": int(target.fallback_codec),
    }


def target_limits_from_json(value: Mapping[str, Any]) -> TargetLimits:
    """Read what `target_limits_to_json` wrote."""
    codecs = frozenset(CompressionType.for_id(number) for number in value["codecs"]) or ALL_CODECS
    return TargetLimits(
        max_message_bytes=value["max_message_bytes"],
        max_produce_bytes=value["max_produce_bytes"],
        log_append_time=value["log_append_time"],
        codecs=codecs,
        fallback_codec=CompressionType.for_id(value["fallback_codec"]),
    )
