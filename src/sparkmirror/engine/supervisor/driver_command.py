"""Commands to a running driver process, one line of JSON each on its standard input."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sparkmirror.copy.job import CopyJob


class DriverAction(enum.StrEnum):
    """What the driver is to do."""

    DRAIN = "drain"
    """Finish the work in flight, give every lease back, write the receipts, end."""
    STOP = "stop"
    """End now. The next driver finds out how far each partition was copied."""
    SET_RATE = "rate"
    """Limit each task to so many bytes per second; 0 means no limit."""
    NEXT_EPOCH = "epoch"
    """End this epoch: every task gives its leases back and starts again."""
    REPLAN = "plan"
    """Continue with another job of the same connector; a job without tasks pauses the driver."""
    SET_LOG_LEVELS = "log-levels"
    """Set Python loggers, in the driver at once and in its tasks from the next epoch on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCommand:
    """One command."""

    action: DriverAction
    bytes_per_s: int = 0
    """The limit of SET_RATE."""
    job: CopyJob | None = None
    """The job of REPLAN. It may hold secrets: send it to the driver only, never log it."""
    log_levels: Mapping[str, int] = field(default_factory=dict)
    """The levels of SET_LOG_LEVELS, by Python logger."""

    def to_line(self) -> bytes:
        """The command as one line."""
        value: dict[str, Any] = {"action": self.action.value, "bytes_per_s": self.bytes_per_s}
        if self.job is not None:
            value["job"] = self.job.to_json()
        if self.log_levels:
            value["log_levels"] = dict(self.log_levels)
        return json.dumps(value).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`. Raises ValueError or KeyError."""
        value = json.loads(line)
        return cls(
            action=DriverAction(value["action"]),
            bytes_per_s=int(value.get("bytes_per_s", 0)),
            job=CopyJob.from_json(value["job"]) if "job" in value else None,
            log_levels=value.get("log_levels", {}),
        )
