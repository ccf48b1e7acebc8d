"""Orders: what the driver process can be told while it runs, one line of JSON each."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, Self

from sparkmirror.copy.job import CopyJob


class DriverAction(enum.StrEnum):
    """What is to be done."""

    DRAIN = "drain"
    """Finish what is under way, give every lease back, let the receipts land, and end."""
    STOP = "stop"
    """End now. Whoever comes next has to find out where the partitions stand."""
    SET_RATE = "rate"
    """From now on at most so many bytes a second for each task; 0 means no limit."""
    NEXT_EPOCH = "epoch"
    """Begin the next epoch now: every task gives everything back and starts anew."""
    REPLAN = "plan"
    """Go on with another job of the same connector; one without tasks means: hold still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCommand:
    """One order."""

    action: DriverAction
    bytes_per_s: int = 0
    job: CopyJob | None = None
    """The job of a plan. Secrets may be in it: say it to the driver alone."""

    def to_line(self) -> bytes:
        """As one line."""
        value: dict[str, Any] = {"do": self.action.value, "bytes_per_s": self.bytes_per_s}
        if self.job is not None:
            value["job"] = self.job.to_json()
        return json.dumps(value).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read what `to_line` wrote."""
        value = json.loads(line)
        return cls(
            action=DriverAction(value["do"]),
            bytes_per_s=int(value.get("bytes_per_s", 0)),
            job=CopyJob.from_json(value["job"]) if "job" in value else None,
        )
