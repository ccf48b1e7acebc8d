"""A Spark task prepares its process and runs a slot; Spark and the driver are replaced."""

from __future__ import annotations

import gc
import itertools
import threading
from collections import Counter

import pytest
from pyspark import TaskContext

from sparkmirror import logging_context
from sparkmirror.copy.control.handshake import preferred_protocol
from sparkmirror.copy.control.messages import EpochAssignment, RequestEpoch
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.spark import spark_task
from sparkmirror.engine.spark.data_source import SlotInputPartition
from sparkmirror.engine.spark.kept_slots import KeptSlots
from tests.support.copy.control_client import ControlClient
from tests.support.waiting import wait_until


class SparkTaskContext:
    """What Spark says about the running Spark task."""

    def __init__(self) -> None:
        self._attempts = itertools.count(1)

    def taskAttemptId(self) -> int:  # noqa: N802 - the name is Spark's
        return next(self._attempts)


def run_to_its_end(partition: SlotInputPartition) -> None:
    list(spark_task.run_spark_task(partition))


def test_the_garbage_of_tasks_that_copy_is_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would never be collected."""
    frozen: Counter[int] = Counter()
    context, epoch = SparkTaskContext(), 0
    monkeypatch.setattr(gc, "freeze", lambda: frozen.update([epoch]))
    monkeypatch.setattr(logging_context, "install", lambda *_: None)
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    monkeypatch.setattr(spark_task, "_call_counter", itertools.count())
    monkeypatch.setattr(spark_task, "_kept_slots", KeptSlots())
    conductor = NoopConductor(job_without_partitions(1), hold_tasks=True)
    server = ControlServer(
        epoch_s=600.0, protocol=preferred_protocol(), bind="127.0.0.1", keeps_slots=True
    )
    server.set_job("", conductor, [0])
    server.start()
    try:
        with ControlClient(server.endpoint) as planner:
            for epoch in (1, 2, 3):
                planner.send(RequestEpoch(finished_epoch=epoch - 1))
                assignment = planner.receive(EpochAssignment)
                partition = SlotInputPartition(assignment, 0, server.endpoint)
                run = threading.Thread(target=run_to_its_end, args=(partition,))
                run.start()
                wait_until(lambda: conductor.counts["joined"] == 1, "the task")
                if epoch > 1:
                    wait_until(lambda: server.is_ready, "the slot to be adopted")
                server.end_epoch()
                run.join(timeout=20)
                assert not run.is_alive()
    finally:
        server.close()
    assert frozen == {1: 1}
