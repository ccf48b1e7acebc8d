"""The statuses that a driver prints, one line of JSON each: its own, and one for each job.

A driver prints its own status once a second. It prints the status of a job when it has changed, and
otherwise every few seconds.

starting ──▶ running ──▶ draining ──▶ stopped
    └───────────┴────────────┴──────▶ failed      (restarting: the supervisor starts another one)
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from sparkmirror.copy.snapshot import CopySnapshot

JOB_STATUS_INTERVAL_S = 3.0
"""How often an unchanged status of a job is repeated."""
SILENT_S = 5.0
"""A driver that has sent no status for so long has a problem, and the lag is unknown."""


class DriverPhase(enum.StrEnum):
    """The phase of a driver."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"
    RESTARTING = "restarting"
    """No driver runs now, or no conductor for the job; the next one starts after a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatus:
    """The state of a driver, or of one of its jobs and of the job's partitions."""

    phase: DriverPhase
    job: str = ""
    """The name of the job; empty for the driver itself."""
    application_id: str = ""
    """Spark's application id; also the `run` column of the receipts."""
    web_ui: str = ""
    slots: int = 0
    """How many slots Spark can run at once; 0 until Spark has started."""
    is_ready: bool = False
    """For the driver itself: whether its slots are connected, so that a task starts at once."""
    tasks: int = 0
    """How many tasks the job has in this driver; 0 if it is paused."""
    epoch: int = 0
    unwritten_receipts: int = 0
    """Receipts of finished epochs that are not written to the directory yet."""
    problem: str = ""
    """Why it does not copy, or why it failed: a sentence for the operator."""
    is_retriable: bool = False
    """Whether another driver, or another conductor, may succeed after this one failed."""
    snapshot: CopySnapshot = CopySnapshot()

    def to_line(self, since: CopySnapshot | None = None) -> bytes:
        """The status as one line; of the snapshot only the changes since `since`."""
        value = {
            member.name: getattr(self, member.name)
            for member in fields(self)
            if member.name != "snapshot"
        }
        value["snapshot"] = self.snapshot.to_json(since)
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes, since: Mapping[str, CopySnapshot] | None = None) -> Self:
        """Read a line of `to_line`, given the snapshot that it was written with, by job."""
        value: Mapping[str, Any] = json.loads(line)
        before = (since or {}).get(value["job"])
        return cls(
            **(
                dict(value)
                | {
                    "phase": DriverPhase(value["phase"]),
                    "snapshot": CopySnapshot.from_json(value["snapshot"], before),
                }
            )
        )
