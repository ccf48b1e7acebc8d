"""The engine that runs a copy, and where it writes receipts and logs."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sparkmirror.cli.copy.copy_run import Engine
from sparkmirror.copy.job import CopyJob
from sparkmirror.directories import state_directory
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.errors import DriverLost

_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """Spark master and configuration of a job, and where it writes."""

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
        """Use the user's state directory where the operator named no other."""
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
"""Creates the engine of a job."""


def spark_engine(job: CopyJob, launch: LaunchOptions) -> Engine:
    """Return the supervisor of a Spark driver process. Raises DriverLost without pyspark."""
    if importlib.util.find_spec("pyspark") is None:
        raise DriverLost("pyspark is not installed: pip install 'sparkmirror[spark]'")
    # The statuses contain the supervisor's warnings too; the screen shows them.
    logging.getLogger("sparkmirror.engine").setLevel(logging.ERROR)
    Path(launch.log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SingleJobSupervisor(
        DriverSpec(
            jobs=(job,),
            name=f"sparkmirror {job.flow}",
            receipts=launch.receipts,
            log=launch.log,
            master=launch.master,
            conf=launch.conf,
        )
    )
