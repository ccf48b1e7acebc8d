"""The class archive: makes Spark start in half the time, once it was built.

    python -m sparkmirror.engine.archive            if there is none yet
    python -m sparkmirror.engine.archive --again    anew

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

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conf import JAVA_OPTIONS
from sparkmirror.engine.home import Home, quick_home
from sparkmirror.engine.rehearsal import rehearsed_job
from sparkmirror.engine.status import Status
from sparkmirror.engine.supervisor import Supervisor
from sparkmirror.errors import DriverLost

AGAIN = "--again"
REHEARSAL = "sparkmirror.engine.rehearsing"
EPOCH_S = 10.0
"""Long enough for everything that Spark does beside the tasks."""
DUMP_WITHIN_S = 300.0


def build() -> Path:
    """Build the archive, or build it anew; returns where it is. Takes half a minute."""
    home = quick_home(os.environ)
    if home is None:
        raise DriverLost(
            "there is no place for a class archive: install pyspark, unset SPARK_HOME, and set"
            " SPARKMIRROR_CACHE to a directory that can be written to"
        )
    with tempfile.TemporaryDirectory(prefix="sparkmirror-") as directory:
        log = Path(directory) / "log"
        draft = home.archive.with_suffix(f".{os.getpid()}")
        began = time.monotonic()
        last = _rehearse(home, draft, Path(directory), log)
        if time.monotonic() - began > DUMP_WITHIN_S:
            draft.unlink(missing_ok=True)  # it may be half of one
        if not draft.is_file():
            said = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
            raise DriverLost(f"no class archive was left: {last.trouble or ' '.join(said)}")
        draft.replace(home.archive)
    return home.archive


def _rehearse(home: Home, draft: Path, directory: Path, log: Path) -> Status:
    home.archive.unlink(missing_ok=True)
    assignment = Assignment(
        job=rehearsed_job(1),
        receipts=str(directory / "receipts"),
        log=str(log),
        epoch_s=EPOCH_S,
        conf={JAVA_OPTIONS: f'"-XX:ArchiveClassesAtExit={draft}"'},
    )
    with Supervisor(assignment, module=REHEARSAL) as supervisor:
        for status in supervisor.statuses():
            if status.epoch > 1 or status.trouble:
                supervisor.drain(within_s=DUMP_WITHIN_S)
        return supervisor.status


def main(arguments: list[str]) -> None:
    """Have an archive, and say where it is."""
    home = quick_home(os.environ)
    is_there = home is not None and home.archive.is_file()
    archive = home.archive if home and is_there and AGAIN not in arguments else build()
    sys.stdout.write(f"{archive}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
