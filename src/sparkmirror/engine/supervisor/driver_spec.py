"""What one driver process runs: the first line of JSON on its standard input.

The spec holds client properties, and so secrets. It travels through a pipe only: other users can
read arguments, environment variables and Spark's settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from sparkmirror.copy.job import CopyJob

DEFAULT_EPOCH_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSpec:
    """One Spark application: how Spark runs it, and the jobs that it starts with."""

    jobs: tuple[CopyJob, ...] = ()
    receipts: str
    """The directory of the receipts: a path, or a URI that Spark can write to."""
    log: str
    """The file to which the driver, Spark and its workers append all their output."""
    name: str = "sparkmirror"
    """The name of the application in Spark's pages."""
    master: str = ""
    """`spark.master` as the operator set it; empty means local."""
    epoch_s: float = DEFAULT_EPOCH_S
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More Spark settings; they win over those of sparkmirror."""
    log_levels: Mapping[str, int] = field(default_factory=dict)
    """Levels to set at the start, by Python logger."""

    ready_tasks: int = 0
    """The application has slots for at least so many tasks, also without a job."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables that the driver process was started without."""

    def with_absolute_paths(self) -> Self:
        """The same spec for a process with another working directory."""
        is_path = "://" not in self.receipts
        return replace(
            self,
            receipts=str(Path(self.receipts).absolute()) if is_path else self.receipts,
            log=str(Path(self.log).absolute()),
        )

    def to_line(self) -> bytes:
        """The spec as one line."""
        value = {
            "jobs": [job.to_json() for job in self.jobs],
            "receipts": self.receipts,
            "log": self.log,
            "name": self.name,
            "master": self.master,
            "epoch_s": self.epoch_s,
            "conf": dict(self.conf),
            "log_levels": dict(self.log_levels),
            "ready_tasks": self.ready_tasks,
            "variables": dict(self.variables),
        }
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`."""
        value = json.loads(line)
        return cls(**(value | {"jobs": tuple(map(CopyJob.from_json, value["jobs"]))}))
