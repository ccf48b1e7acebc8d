"""A task attempt in a Spark worker: connect to the driver, copy until drained, return receipts.

If the copy task fails, the attempt raises its error. Spark then counts the attempt as failed and
starts another one, which gets new leases from the conductor.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping

from pyspark import TaskContext

from sparkmirror import logs
from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.task.task import CopyTask
from sparkmirror.engine.spark.data_source import TaskInputPartition
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, TaskAttemptInfo

GC_FREEZE_CALLS = 5
_call_counter = itertools.count()


def run_spark_task(partition: TaskInputPartition) -> Iterator[ReceiptRow]:
    """Copy the granted partitions until the driver drains the task; then yield the receipts."""
    _prepare_python_worker(partition.log_levels)
    context = TaskContext.get()
    assert context is not None, "Spark runs this"
    started_ms = _now_ms()
    # Spark never uses the id of a task attempt twice, not even in another epoch.
    hello = Hello(
        task=partition.task,
        attempt=context.taskAttemptId(),
        host=socket.gethostname(),
        pid=os.getpid(),
        epoch=partition.epoch,
        retry=context.attemptNumber(),
    )
    with logs.context(connector=partition.connector, task=partition.task):
        endpoint = partition.endpoint
        copy_task = CopyTask.connect(endpoint.address, endpoint.protocol, endpoint.secret, hello)
        copy_task.run()
    attempt = TaskAttemptInfo(
        flow=partition.flow,
        epoch=partition.epoch,
        task=partition.task,
        attempt=hello.retry,
        started_ms=started_ms,
        ended_ms=_now_ms(),
    )
    for receipt, lanes in copy_task.reporter.receipts.list_receipts():
        yield attempt.to_row(receipt, lanes)


def _prepare_python_worker(log_levels: Mapping[str, int]) -> None:
    """Set up logging and the garbage collector; Spark reuses a worker for many tasks.

    Spark's workers collect garbage after each task, over all imported modules. The collector skips
    frozen objects. Some modules are imported late, so the first few calls freeze.
    """
    call = next(_call_counter)
    if call == 0:
        logs.install(sys.stderr, logging.WARNING)
    logs.set_levels(log_levels)
    if call < GC_FREEZE_CALLS:
        gc.freeze()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
