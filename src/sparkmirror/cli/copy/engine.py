"""Which engine runs a copy, and where it leaves what it writes."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sparkmirror.cli.copy.run import Engine
from sparkmirror.copy.job import CopyJob
from sparkmirror.directories import state_directory
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.errors import DriverLost

_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """Where a job runs and writes."""

    receipts: str
    log: str
    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def resolve(
        cls,
        job: CopyJob,
        receipts: str | None,
        master: str,
        conf: Mapping[str, str],
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Choose a directory of the user's for what was not said."""
        settings = job.settings
        name = f"{settings.source_alias}-{settings.target_alias}-{job.connector}"
        directory = state_directory(os.environ if environ is None else environ)
        directory = directory / "copies" / _UNSAFE_CHARACTERS.sub("_", name)
        return cls(
            receipts=receipts or str(directory / "receipts"),
            log=str(directory / "spark.log"),
            master=master,
            conf=conf,
        )


EngineFactory = Callable[[CopyJob, LaunchOptions], Engine]
"""Makes the engine of a job."""


def spark_engine(job: CopyJob, where: LaunchOptions) -> Engine:
    """Spark, in a process beside this one, started again when it dies."""
    if importlib.util.find_spec("pyspark") is None:
        raise DriverLost("pyspark is not installed: pip install 'sparkmirror[spark]'")
    # What the supervisor warns of is in its statuses too, and shown from there.
    logging.getLogger("sparkmirror.engine").setLevel(logging.ERROR)
    Path(where.log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return DriverSupervisor(
        DriverSpec(
            job=job,
            receipts=where.receipts,
            log=where.log,
            master=where.master,
            conf=where.conf,
        )
    )
