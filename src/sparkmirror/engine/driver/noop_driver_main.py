"""A driver process without Kafka: `python -m sparkmirror.engine.driver.noop_driver_main`.

`engine.driver.cds_archive` runs it to find out which classes Spark loads.
"""

from __future__ import annotations

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator
from sparkmirror.engine.driver.cds_archive import ARCHIVE_DUMP_TIMEOUT_S
from sparkmirror.engine.driver.driver_main import main
from sparkmirror.engine.noop_conductor import NoopConductor


def _noop_conductor(job: CopyJob, new_evaluator: NewEvaluator) -> NoopConductor:
    del new_evaluator
    return NoopConductor(job, hold_tasks=True, misses_receipts=True)


if __name__ == "__main__":
    # The JVM writes the class archive when it ends, which is slow on a busy computer.
    main(_noop_conductor, ARCHIVE_DUMP_TIMEOUT_S)
