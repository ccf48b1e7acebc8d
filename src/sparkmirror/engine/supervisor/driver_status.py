"""A status: what a driver says of itself once a second, one line of JSON each.

starting ──▶ running ──▶ draining ──▶ stopped
    └───────────┴────────────┴──────▶ failed       (restarting: its supervisor tries again)
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from sparkmirror.copy.snapshot import CopySnapshot


class DriverPhase(enum.StrEnum):
    """Where a driver is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"
    RESTARTING = "restarting"
    """There is no driver just now; the next one is about to be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus:
    """How a driver is, and where its partitions stand."""

    phase: DriverPhase
    application_id: str = ""
    """Spark's name for the run; also the `run` of its receipts."""
    web_ui: str = ""
    slots: int = 0
    """How many tasks Spark can run at once, as far as it knows; 0 until it is there."""
    tasks: int = 0
    epoch: int = 0
    unwritten_receipts: int = 0
    """Receipts of epochs that are over, on their way to the directory."""
    problem: str = ""
    """What keeps it from copying, or ended it, in a sentence for the operator."""
    is_retriable: bool = False
    """Whether another try may help, once it has failed."""
    snapshot: CopySnapshot = CopySnapshot()

    def to_line(self, since: CopySnapshot | None = None) -> bytes:
        """As one line, for a reader who has a snapshot already; only what has changed is in it."""
        value = {
            one.name: getattr(self, one.name) for one in fields(self) if one.name != "snapshot"
        }
        value["snapshot"] = self.snapshot.to_json(since)
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes, since: CopySnapshot | None = None) -> Self:
        """Read what `to_line` wrote, given the same `since`."""
        value: Mapping[str, Any] = json.loads(line)
        return cls(
            **(
                dict(value)
                | {
                    "phase": DriverPhase(value["phase"]),
                    "snapshot": CopySnapshot.from_json(value["snapshot"], since),
                }
            )
        )
