"""An assignment: what one driver process is to do, in one line of JSON on its input.

Client properties, and so secrets, travel in it: through a pipe, never through arguments,
environment variables or Spark's settings, all of which other people can read.
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
    """A job, and how Spark is to run it."""

    job: CopyJob
    receipts: str
    """The directory that receipts are added to: a path or a URI that Spark can write to."""
    log: str
    """The file that everything Spark and its workers have to say is added to."""
    master: str = ""
    """`spark.master` as the user gave it; nothing means: on this computer, a slot per task."""
    epoch_s: float = DEFAULT_EPOCH_S
    conf: Mapping[str, str] = field(default_factory=dict)
    """More settings for Spark; they win over ours."""

    @property
    def flow(self) -> str:
        """The flow it belongs to, as MirrorMaker 2 writes it."""
        settings = self.job.settings
        return f"{settings.source_alias}->{settings.target_alias}"

    def with_absolute_paths(self) -> Self:
        """The same for a process that runs in another directory."""
        is_path = "://" not in self.receipts
        return replace(
            self,
            receipts=str(Path(self.receipts).absolute()) if is_path else self.receipts,
            log=str(Path(self.log).absolute()),
        )

    def to_line(self) -> bytes:
        """As one line."""
        value = {
            "job": self.job.to_json(),
            "receipts": self.receipts,
            "log": self.log,
            "master": self.master,
            "epoch_s": self.epoch_s,
            "conf": dict(self.conf),
        }
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read what `to_line` wrote."""
        value = json.loads(line)
        return cls(**(value | {"job": CopyJob.from_json(value["job"])}))
