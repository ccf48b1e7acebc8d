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
    """Finish the work in flight of all jobs, write the receipts, end."""
    STOP = "stop"
    """End now. The next driver finds out how far each partition was copied."""
    START_JOB = "start-job"
    """Run one more job."""
    REPLAN = "plan"
    """Continue a job with other tasks or partitions; a job without tasks is paused."""
    RESTART_TASKS = "restart-tasks"
    """Have tasks of a job give their leases back and start again."""
    DRAIN_JOB = "drain-job"
    """Finish the work in flight of a job, give every lease back, end the job."""
    STOP_JOB = "stop-job"
    """End a job now."""
    SET_RATE = "rate"
    """Limit each task of a job to so many bytes per second; 0 means no limit."""
    RENEW_MEMBERSHIP = "membership"
    """The worker of these jobs is a member of its group until `valid_until`."""
    KEEP_READY = "keep-ready"
    """Have slots connected for at least so many tasks, also without a job."""
    NEXT_EPOCH = "epoch"
    """End this epoch: every task of every job gives its leases back and starts again."""
    SET_LOG_LEVELS = "log-levels"
    """Set Python loggers, in the driver at once and in its slots from the next epoch on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCommand:
    """One command."""

    action: DriverAction
    job_name: str = ""
    """The job that the command is about."""
    job_names: tuple[str, ...] = ()
    """The jobs of RENEW_MEMBERSHIP."""
    bytes_per_s: int = 0
    """The limit of SET_RATE."""
    tasks: tuple[int, ...] = ()
    """The tasks of RESTART_TASKS."""
    job: CopyJob | None = None
    """The job of START_JOB and REPLAN. It may hold secrets: send it to the driver only, never
    log it."""
    log_levels: Mapping[str, int] = field(default_factory=dict)
    """The levels of SET_LOG_LEVELS, by Python logger."""
    valid_until: float = 0.0
    """The end of RENEW_MEMBERSHIP, by the monotonic clock of the machine."""
    is_alone: bool = False
    """For RENEW_MEMBERSHIP: whether the group has no other member."""
    ready_tasks: int = 0
    """The tasks of KEEP_READY."""

    def to_line(self) -> bytes:
        """The command as one line."""
        value: dict[str, Any] = {
            "action": self.action.value,
            "job_name": self.job_name,
            "bytes_per_s": self.bytes_per_s,
            "tasks": list(self.tasks),
        }
        if self.job is not None:
            value["job"] = self.job.to_json()
        if self.log_levels:
            value["log_levels"] = dict(self.log_levels)
        if self.action is DriverAction.RENEW_MEMBERSHIP:
            value |= {
                "job_names": self.job_names,
                "valid_until": self.valid_until,
                "is_alone": self.is_alone,
            }
        if self.action is DriverAction.KEEP_READY:
            value["ready_tasks"] = self.ready_tasks
        return json.dumps(value).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`. Raises ValueError or KeyError."""
        value = json.loads(line)
        return cls(
            action=DriverAction(value["action"]),
            job_name=value.get("job_name", ""),
            job_names=tuple(value.get("job_names", ())),
            bytes_per_s=int(value.get("bytes_per_s", 0)),
            tasks=tuple(value.get("tasks", ())),
            job=CopyJob.from_json(value["job"]) if "job" in value else None,
            log_levels=value.get("log_levels", {}),
            valid_until=float(value.get("valid_until", 0.0)),
            is_alone=bool(value.get("is_alone", False)),
            ready_tasks=int(value.get("ready_tasks", 0)),
        )
