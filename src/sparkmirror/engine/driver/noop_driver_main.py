"""A driver process that rehearses: `python -m sparkmirror.engine.driver.noop_driver_main`."""

from __future__ import annotations

from functools import partial

from sparkmirror.engine.driver.cds_archive import ARCHIVE_DUMP_TIMEOUT_S
from sparkmirror.engine.driver.driver_main import main
from sparkmirror.engine.noop_conductor import NoopConductor

if __name__ == "__main__":
    # The JVM leaves a class archive when it ends, which takes its time on a busy computer.
    main(partial(NoopConductor, hold_tasks=True), ARCHIVE_DUMP_TIMEOUT_S)
