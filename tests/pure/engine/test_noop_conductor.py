"""The conductor without partitions, with which the class archive of Spark is built."""

from __future__ import annotations

from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.spark.receipt_rows import COLUMN_NAMES, missing_receipt_row


def test_a_receipt_of_each_epoch_is_missing_so_that_spark_loads_what_writes_it() -> None:
    conductor = NoopConductor(job_without_partitions(1), misses_receipts=True)
    for epoch in (1, 2):
        [missing] = conductor.close_epoch(epoch, ())
        row = dict(zip(COLUMN_NAMES, missing_receipt_row("A->B", missing), strict=True))
        assert (row["epoch"], row["records"], row["outcome"]) == (epoch, 0, "lost")


def test_no_receipt_is_missing_by_default() -> None:
    assert NoopConductor(job_without_partitions(1)).close_epoch(1, ()) == []
