"""A task attempt inside a Spark worker: report for duty, copy until drained, hand in receipts.

Ends in an error whenever the copying did: then Spark counts the attempt as failed and starts
another one, which gets its leases from the conductor like any newcomer.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator

from pyspark import TaskContext

from sparkmirror import logs
from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.task.task import CopyTask
from sparkmirror.engine.spark.data_source import TaskInputPartition
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, TaskAttemptInfo

GC_FREEZE_CALLS = 5
_call_counter = itertools.count()


def run_spark_task(duty: TaskInputPartition) -> Iterator[ReceiptRow]:
    """Copy what is granted until the driver drains us; then tell what was copied."""
    _prepare_python_worker()
    context = TaskContext.get()
    assert context is not None, "Spark runs this"
    started_ms = _now_ms()
    # The number of the task attempt is never used twice, not even in the next epoch.
    hello = Hello(
        task=duty.task,
        attempt=context.taskAttemptId(),
        host=socket.gethostname(),
        pid=os.getpid(),
        epoch=duty.epoch,
        retry=context.attemptNumber(),
    )
    with logs.context(connector=duty.connector, task=duty.task):
        copying = CopyTask.connect(duty.endpoint.address, duty.endpoint.secret, hello)
        copying.run()
    stay = TaskAttemptInfo(
        flow=duty.flow,
        epoch=duty.epoch,
        task=duty.task,
        attempt=hello.retry,
        started_ms=started_ms,
        ended_ms=_now_ms(),
    )
    for receipt, lanes in copying.reporter.receipts.list_receipts():
        yield stay.to_row(receipt, lanes)


def _prepare_python_worker() -> None:
    """Make the worker a good place: its log lines say who speaks, its collector has little to do.

    Spark's workers collect garbage after each task, all that was ever imported included. Frozen
    objects are left alone; some modules come late, so the first few calls freeze.
    """
    call = next(_call_counter)
    if call == 0:
        logs.install(sys.stderr, logging.WARNING)
    if call < GC_FREEZE_CALLS:
        gc.freeze()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
