"""A slot: one Spark task that runs the tasks of many connectors, each in a thread of its own.

The driver says over the slot's control connection which tasks to start. Each task has a control
connection of its own to its conductor and copies until it is drained. A task that fails is reported
to the driver and ends alone. When the driver drains the slot, the slot waits for its tasks and then
returns the receipts of all tasks that were drained.

No pyspark: `spark_task` runs the slot in a Spark worker.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

from sparkmirror import logging_context
from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    Hello,
    SlotHello,
    StartTask,
    TaskEnded,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task.task import CopyTask
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator, no_evaluator
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, TaskAttemptInfo
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

WAIT_S = 60.0
"""The slot waits for events only; this is how often it looks around without any."""

RunTask = Callable[[StartTask], list[ReceiptRow]]


def slot_hello(slot: int, attempt: int, epoch: int) -> SlotHello:
    """Return the hello of a slot in this process."""
    return SlotHello(
        slot=slot, attempt=attempt, host=socket.gethostname(), pid=os.getpid(), epoch=epoch
    )


class Slot:
    """Runs tasks until it is drained. `run` blocks; it owns the control connection."""

    def __init__(self, endpoint: ControlEndpoint, hello: SlotHello, run_task: RunTask) -> None:
        """Connect to the driver. `run_task` runs one attempt and returns its receipts."""
        self._run_task = run_task
        self._rows: list[ReceiptRow] = []
        self._running = 0
        self._is_draining = False
        self._lost: MirrorError | None = None
        self._loop = EventLoop()
        self._connection = ControlConnection.connect(
            endpoint.address, endpoint.protocol, endpoint.secret, self._on_message
        )
        self._loop.register(self._connection, self._on_connection_lost)
        self._connection.send(hello)

    def run(self) -> list[ReceiptRow]:
        """Run tasks until the driver drains the slot; returns the receipts.

        Raises ControlConnectionLost if the driver is lost. Its tasks end by themselves then: their
        own connections are lost too, or their leases are not renewed. The slot waits for them.
        """
        try:
            while self._running or not (self._is_draining or self._lost):
                self._loop.run_once(WAIT_S)
            if self._lost:
                raise self._lost
            self._connection.close_gracefully()
            return self._rows
        finally:
            self._loop.unregister(self._connection)
            self._connection.close()
            self._loop.close()

    def _on_connection_lost(self, error: MirrorError) -> None:
        self._lost = error

    def _on_message(self, message: ControlMessage) -> None:
        match message:
            case StartTask():
                self._start(message)
            case Drain():
                self._is_draining = True
            case _:
                log.warning("Ignored unexpected message from driver: %s", type(message).__name__)

    def _start(self, start: StartTask) -> None:
        self._running += 1
        threading.Thread(
            target=self._run_thread,
            args=(start,),
            name=f"{start.job}-{start.task}",
            daemon=True,
        ).start()

    def _run_thread(self, start: StartTask) -> None:
        rows: list[ReceiptRow] = []
        error = ""
        with logging_context.context(connector=start.job, task=start.task):
            try:
                rows = self._run_task(start)
            except MirrorError as failure:
                log.warning("The task ends: %s", failure)
                error = str(failure)
            except Exception as failure:  # a bug must not end the other tasks of the slot
                log.exception("The task has failed")
                error = repr(failure)
        self._loop.call_soon(partial(self._on_task_ended, start, rows, error))

    def _on_task_ended(self, start: StartTask, rows: list[ReceiptRow], error: str) -> None:
        self._running -= 1
        self._rows += rows
        if self._lost is None:
            ended = TaskEnded(job=start.job, task=start.task, attempt=start.attempt, error=error)
            self._loop.run_guarded(self._connection, partial(self._connection.send, ended))


def copy_task_runner(
    endpoint: ControlEndpoint, epoch: int, new_evaluator: NewEvaluator = no_evaluator
) -> RunTask:
    """Return a function that runs one attempt of a copy task of this epoch."""

    def run(start: StartTask) -> list[ReceiptRow]:
        started_ms = _now_ms()
        hello = Hello(
            task=start.task,
            attempt=start.attempt,
            host=socket.gethostname(),
            pid=os.getpid(),
            epoch=epoch,
            retry=start.retry,
            job=start.job,
        )
        copy_task = CopyTask.connect(
            endpoint.address, endpoint.protocol, endpoint.secret, hello, new_evaluator
        )
        copy_task.run()
        attempt = TaskAttemptInfo(
            flow=start.flow,
            epoch=epoch,
            task=start.task,
            attempt=start.retry,
            attempt_number=start.attempt,
            started_ms=started_ms,
            ended_ms=_now_ms(),
        )
        return attempt.to_rows(copy_task.reporter.receipts.list_receipts())

    return run


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
