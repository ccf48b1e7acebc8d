"""The class data sharing (CDS) archive of the driver's JVM: Spark starts in half the time with it.

    python -m sparkmirror.engine.driver.cds_archive            build it if there is none
    python -m sparkmirror.engine.driver.cds_archive --again    build it in any case

The JVM maps archived classes into memory instead of unpacking, parsing and verifying them. To build
the archive, this module runs a driver without Kafka for one epoch, which writes a receipt. Its JVM
dumps all loaded classes when it ends. The archive (180 MB) is valid for exactly these jars and this
Java; another JVM ignores it and starts without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from sparkmirror.engine.driver.fast_start_spark_home import SparkHome, linked_spark_home
from sparkmirror.engine.driver.spark_conf import DRIVER_JAVA_OPTIONS
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import java_variables

REBUILD_OPTION = "--again"
NOOP_DRIVER_MODULE = "sparkmirror.engine.driver.noop_driver_main"
ARCHIVE_EPOCH_S = 10.0
"""Long enough for Spark to load what it needs between epochs, too."""
ARCHIVE_DUMP_TIMEOUT_S = 300.0
ARCHIVE_TIMEOUT_S = 600.0
"""A busy computer may take minutes. After half of this time Spark has to have started."""


def build_archive() -> Path:
    """Build the archive; returns its path. Takes half a minute. Raises DriverLost."""
    home = linked_spark_home(os.environ)
    if home is None:
        raise DriverLost(
            "no directory for a class archive: install pyspark, unset SPARK_HOME, and set"
            " SPARKMIRROR_CACHE to a directory that this user can write to"
        )
    with tempfile.TemporaryDirectory(prefix="sparkmirror-") as directory:
        log = Path(directory) / "log"
        draft = home.cds_archive.with_suffix(f".{os.getpid()}")
        began = time.monotonic()
        last = _run_noop_driver(home, draft, Path(directory), log)
        if not has_loaded_all(last) or time.monotonic() - began > ARCHIVE_TIMEOUT_S:
            draft.unlink(missing_ok=True)  # it may be incomplete
        if not draft.is_file():
            last_line = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
            raise DriverLost(
                f"the JVM wrote no class archive: {last.problem or ' '.join(last_line)}"
            )
        draft.replace(home.cds_archive)
    return home.cds_archive


def _run_noop_driver(home: SparkHome, draft: Path, directory: Path, log: Path) -> DriverStatus:
    home.cds_archive.unlink(missing_ok=True)
    spec = DriverSpec(
        jobs=(job_without_partitions(1),),
        receipts=str(directory / "receipts"),
        log=str(log),
        epoch_s=ARCHIVE_EPOCH_S,
        conf={DRIVER_JAVA_OPTIONS: f'"-XX:ArchiveClassesAtExit={draft}"'},
    )
    deadline = time.monotonic() + ARCHIVE_TIMEOUT_S / 2
    with SingleJobSupervisor(spec, module=NOOP_DRIVER_MODULE) as supervisor:
        for status in supervisor.statuses():
            if has_loaded_all(status) or has_failed(status) or time.monotonic() > deadline:
                supervisor.drain(within_s=ARCHIVE_DUMP_TIMEOUT_S)
        return supervisor.status


def has_loaded_all(status: DriverStatus) -> bool:
    """Whether the JVM has loaded what it needs: an epoch has ended and the next one runs."""
    return status.epoch > 1


def has_failed(status: DriverStatus) -> bool:
    """Whether the driver has ended. It is only slow if it has another problem."""
    return status.phase is DriverPhase.RESTARTING


def main(arguments: list[str]) -> None:
    """Print the path of the archive; build it first if there is none."""
    os.environ.update(java_variables(os.environ))
    home = linked_spark_home(os.environ)
    exists = home is not None and home.cds_archive.is_file()
    archive = (
        home.cds_archive if home and exists and REBUILD_OPTION not in arguments else build_archive()
    )
    sys.stdout.write(f"{archive}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
