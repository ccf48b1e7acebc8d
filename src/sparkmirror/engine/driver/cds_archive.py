"""The class archive: makes Spark start in half the time, once it was built.

    python -m sparkmirror.engine.driver.cds_archive            if there is none yet
    python -m sparkmirror.engine.driver.cds_archive --again    anew

A JVM that finds its classes in an archive maps them instead of unpacking, parsing and verifying
them one by one. The archive is built by a rehearsal: Spark is started, runs one epoch in which
there is nothing to copy, and leaves the classes it has used on disk when it ends. It belongs to the
very jars and the very Java; a JVM that does not recognise it starts without it. 180 MB.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from sparkmirror.engine.driver.spark_conf import DRIVER_JAVA_OPTIONS
from sparkmirror.engine.driver.spark_home import SparkHome, linked_spark_home
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import java_variables

REBUILD_OPTION = "--again"
NOOP_DRIVER_MODULE = "sparkmirror.engine.driver.noop_driver_main"
ARCHIVE_EPOCH_S = 10.0
"""Long enough for everything that Spark does beside the tasks."""
ARCHIVE_DUMP_TIMEOUT_S = 300.0


def build_archive() -> Path:
    """Build the archive, or build it anew; returns where it is. Takes half a minute."""
    home = linked_spark_home(os.environ)
    if home is None:
        raise DriverLost(
            "there is no place for a class archive: install pyspark, unset SPARK_HOME, and set"
            " SPARKMIRROR_CACHE to a directory that can be written to"
        )
    with tempfile.TemporaryDirectory(prefix="sparkmirror-") as directory:
        log = Path(directory) / "log"
        draft = home.cds_archive.with_suffix(f".{os.getpid()}")
        began = time.monotonic()
        last = _run_noop_driver(home, draft, Path(directory), log)
        if time.monotonic() - began > ARCHIVE_DUMP_TIMEOUT_S:
            draft.unlink(missing_ok=True)  # it may be half of one
        if not draft.is_file():
            said = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
            raise DriverLost(f"no class archive was left: {last.problem or ' '.join(said)}")
        draft.replace(home.cds_archive)
    return home.cds_archive


def _run_noop_driver(home: SparkHome, draft: Path, directory: Path, log: Path) -> DriverStatus:
    home.cds_archive.unlink(missing_ok=True)
    assignment = DriverSpec(
        job=job_without_partitions(1),
        receipts=str(directory / "receipts"),
        log=str(log),
        epoch_s=ARCHIVE_EPOCH_S,
        conf={DRIVER_JAVA_OPTIONS: f'"-XX:ArchiveClassesAtExit={draft}"'},
    )
    with DriverSupervisor(assignment, module=NOOP_DRIVER_MODULE) as supervisor:
        for status in supervisor.statuses():
            if status.epoch > 1 or status.problem:
                supervisor.drain(within_s=ARCHIVE_DUMP_TIMEOUT_S)
        return supervisor.status


def main(arguments: list[str]) -> None:
    """Print the path of the archive; build it first if there is none."""
    os.environ.update(java_variables(os.environ))
    home = linked_spark_home(os.environ)
    is_there = home is not None and home.cds_archive.is_file()
    archive = (
        home.cds_archive
        if home and is_there and REBUILD_OPTION not in arguments
        else build_archive()
    )
    sys.stdout.write(f"{archive}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
