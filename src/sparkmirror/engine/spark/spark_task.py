"""A slot in a Spark worker: run the tasks of connectors until the epoch ends, return receipts.

The tasks copy on after the end of the epoch; see `kept_slots`. If the slot fails, Spark counts its
attempt as failed and starts another one. The driver starts the tasks of the slot in other slots
meanwhile.
"""

from __future__ import annotations

import gc
import itertools
import logging
import sys
from collections.abc import Iterator, Mapping
from functools import partial

from pyspark import TaskContext

from sparkmirror import logging_context
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.record_evaluator import RecordEvaluator
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.gateway_process import GatewayAddress
from sparkmirror.engine.spark.data_source import SlotInputPartition
from sparkmirror.engine.spark.kept_slots import KeptSlots
from sparkmirror.engine.spark.query.executor_spark import ExecutorSpark, start_spark_process
from sparkmirror.engine.spark.query.view_request import ViewRequest
from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.engine.spark.slot import copy_task_runner, slot_hello

GC_FREEZE_CALLS = 5
_kept_slots = KeptSlots()
_executor_spark = ExecutorSpark(start_spark_process)
_call_counter = itertools.count()


def run_spark_task(partition: SlotInputPartition) -> Iterator[ReceiptRow]:
    """Run the tasks that the driver starts in this slot until it ends the epoch.

    Yields the receipts then.
    """
    _prepare_python_worker(partition.log_levels)
    context = TaskContext.get()
    assert context is not None, "Spark runs this"
    hello = slot_hello(partition.slot, context.taskAttemptId(), partition.epoch)
    new_evaluator = partial(_new_evaluator, partition.endpoint)
    run_task = copy_task_runner(partition.endpoint, new_evaluator)
    yield from _kept_slots.run(partition.endpoint, hello, run_task)


def _new_evaluator(endpoint: ControlEndpoint, settings: CopySettings) -> RecordEvaluator:
    """Make the evaluator of a task whose connector has a query. Raises DriverLost.

    On the driver's computer its JVM has the query; elsewhere a JVM of this process.
    """
    request = ViewRequest(
        settings=endpoint.query_settings, transforms=settings.transforms, chain=settings.chain
    )
    if not endpoint.gateway_port:
        _executor_spark.prepare(request)
    # Imported here because few connectors have a query, and the import is slow.
    from sparkmirror.engine.spark.query.query_analysis import slot_evaluator

    if endpoint.gateway_port:
        address = GatewayAddress(endpoint.gateway_port, endpoint.gateway_secret)
    else:
        address = _executor_spark.await_view(request)
    return slot_evaluator(address, settings)


def _prepare_python_worker(log_levels: Mapping[str, int]) -> None:
    """Set up logging and the garbage collector; Spark reuses a worker for many tasks.

    Spark's workers collect garbage after each task, over all imported modules. The collector skips
    frozen objects. Some modules are imported late, so the first few calls freeze; but not while
    tasks copy, because garbage among their objects would never be collected.
    """
    call = next(_call_counter)
    if call == 0:
        logging_context.install(sys.stderr, logging.WARNING)
    logging_context.set_levels(log_levels)
    if call < GC_FREEZE_CALLS and not _kept_slots.has_running_slot:
        gc.freeze()
