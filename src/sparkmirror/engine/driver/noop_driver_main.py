"""A driver process without Kafka: `python -m sparkmirror.engine.driver.noop_driver_main`.

`engine.driver.cds_archive` runs it to find out which classes Spark loads.
"""

from __future__ import annotations

from functools import partial

from sparkmirror.engine.driver.cds_archive import ARCHIVE_DUMP_TIMEOUT_S
from sparkmirror.engine.driver.driver_main import main
from sparkmirror.engine.noop_conductor import NoopConductor

if __name__ == "__main__":
    # The JVM writes the class archive when it ends, which is slow on a busy computer.
    conductor = partial(NoopConductor, hold_tasks=True, misses_receipts=True)
    main(conductor, ARCHIVE_DUMP_TIMEOUT_S)
