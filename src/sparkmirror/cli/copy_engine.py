"""Which engine runs a copy, and where it leaves what it writes."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sparkmirror.cli.copy_run import Engine
from sparkmirror.copy.job import Job
from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.status import Status
from sparkmirror.engine.supervisor import Supervisor
from sparkmirror.errors import DriverLost
from sparkmirror.lab.java import find_java

STOPPED_WITHIN_S = 5.0

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a job runs and writes."""

    receipts: str
    log: str
    master: str = ""

    @classmethod
    def of(
        cls, job: Job, receipts: str | None, master: str, environ: Mapping[str, str] | None = None
    ) -> Self:
        """Choose a directory of the user's for what was not said."""
        settings = job.settings
        name = f"{settings.source_alias}-{settings.target_alias}-{job.connector}"
        directory = _state_directory(os.environ if environ is None else environ)
        directory = directory / "copies" / _UNSAFE.sub("_", name)
        return cls(
            receipts=receipts or str(directory / "receipts"),
            log=str(directory / "spark.log"),
            master=master,
        )


EngineFactory = Callable[[Job, Where], Engine]
"""Makes the engine of a job."""


class SparkEngine:
    """Spark, in a process beside this one, started again when it dies."""

    def __init__(self, assignment: Assignment) -> None:
        self._supervisor = Supervisor(assignment)

    def start(self) -> None:
        """Begin; returns at once."""
        self._supervisor.start()

    def statuses(self) -> Iterator[Status]:
        """Say how it goes, about once a second, until it is over."""
        return self._supervisor.statuses()

    def drain(self) -> None:
        """Finish what is under way, then end; returns at once, the statuses tell when it is so."""
        threading.Thread(target=self._supervisor.drain, name="drain", daemon=True).start()

    def stop(self) -> None:
        """End now; who is in a hurry does not wait long for others."""
        self._supervisor.stop(STOPPED_WITHIN_S)


def spark_engine(job: Job, where: Where) -> Engine:
    """Make the engine; what it needs and does not find is told at once."""
    if importlib.util.find_spec("pyspark") is None:
        raise DriverLost("pyspark is not installed: pip install 'sparkmirror[spark]'")
    find_java()
    # What the supervisor warns of is in its statuses too, and shown from there.
    logging.getLogger("sparkmirror.engine").setLevel(logging.ERROR)
    Path(where.log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SparkEngine(
        Assignment(job=job, receipts=where.receipts, log=where.log, master=where.master)
    )


def _state_directory(environ: Mapping[str, str]) -> Path:
    if environ.get("XDG_STATE_HOME"):
        return Path(environ["XDG_STATE_HOME"]) / "sparkmirror"
    return Path.home() / ".local" / "state" / "sparkmirror"
