"""A slot: runs the tasks of many connectors for Spark tasks, each in a thread of its own.

The driver says over the slot's control connection which tasks to start. Each task has a control
connection of its own to its conductor and copies until it is drained. A task that fails is reported
to the driver and ends alone.

When the driver ends the epoch, every task divides its receipts, and the slot returns those of the
epoch; its tasks copy on. The Spark task of the next epoch adopts the slot (`kept_slots`). When the
driver drains or releases the slot, the slot waits for its tasks, returns the receipts that are
left, and ends.

No pyspark: `spark_task` runs the slot in a Spark worker.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from sparkmirror import logging_context
from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EndEpoch,
    Hello,
    ReleaseSlot,
    SlotHello,
    StartTask,
    TaskEnded,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.copy.task.task import CopyTask
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator, no_evaluator
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, TaskAttemptInfo
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

WAIT_S = 60.0
"""The slot waits for events only; this is how often it looks around without any."""

ReturnRows = Callable[[int, list[ReceiptRow]], None]
"""Takes the rows of a task attempt in one epoch, from any thread."""
RunTask = Callable[[StartTask, int, ReturnRows], None]
"""Runs a task attempt that starts in an epoch; blocks until it ends."""


def slot_hello(slot: int, attempt: int, epoch: int) -> SlotHello:
    """Return the hello of a slot in this process."""
    return SlotHello(
        slot=slot, attempt=attempt, host=socket.gethostname(), pid=os.getpid(), epoch=epoch
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfEpoch:
    """What a Spark task gets of its slot."""

    rows: list[ReceiptRow] = field(default_factory=list)
    is_kept: bool = False
    """Whether the tasks of the slot copy on."""
    is_released: bool = False
    """Whether the slot ended before its Spark task could adopt it."""
    error: Exception | None = None


class Slot:
    """Runs tasks in threads, until it is drained. A thread of its own has the connection."""

    def __init__(self, endpoint: ControlEndpoint, hello: SlotHello, run_task: RunTask) -> None:
        """Connect to the driver, and start the thread."""
        self.epoch = hello.epoch
        """The epoch of the Spark task that had the slot last; of that task's thread."""
        self._run_task = run_task
        self._start_epoch = hello.epoch
        """The epoch in which tasks start; of the slot's thread."""
        self._rows: dict[int, list[ReceiptRow]] = defaultdict(list)
        self._ended_epochs: dict[int, int] = {}
        """The running attempts, with the epoch up to which each has divided its receipts."""
        self._ending_epoch: int | None = None
        self._is_draining = self._is_released = False
        self._lost: Exception | None = None
        self._ends: SimpleQueue[EndOfEpoch] = SimpleQueue()
        self._lock = threading.Lock()
        """Protects `_is_over`: after it nothing may wake the loop."""
        self._is_over = False
        self._loop = EventLoop()
        self._connection = ControlConnection.connect(
            endpoint.address, endpoint.protocol, endpoint.secret, self._on_message
        )
        self._loop.register(self._connection, self._on_connection_lost)
        self._connection.send(hello)
        threading.Thread(target=self._run, name="slot", daemon=True).start()

    # -- the thread of the Spark task ------------------------------------------------------------

    def adopt(self, hello: SlotHello) -> bool:
        """Continue in the next epoch, for another Spark task. Returns whether it may have the slot.

        The driver may have released the slot: then `await_end_of_epoch` says so, and returns the
        receipts that are left. They are of this epoch: a later one may not return them any more.
        """
        with self._lock:
            if self._lost or hello.epoch != self.epoch + 1:
                return False
            if not self._is_over:
                self._loop.call_soon(partial(self._on_adopted, hello))
        self.epoch = hello.epoch
        return True

    @property
    def is_over(self) -> bool:
        """Whether all its tasks have ended, and none starts any more."""
        with self._lock:
            return self._is_over

    def await_end_of_epoch(self) -> EndOfEpoch:
        """Wait until the driver ends the epoch, or drains or releases the slot.

        Raises ControlConnectionLost if the driver is lost. The tasks end by themselves then: their
        own connections are lost too, or their leases are not renewed. The slot waits for them.
        """
        end = self._ends.get()
        if end.error:
            raise end.error
        return end

    # -- the slot's thread -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._ended_epochs or not (self._is_draining or self._lost):
                self._loop.run_once(WAIT_S)
                self._return_epoch()
            if self._lost is None:
                self._connection.close_gracefully()
        except Exception as error:  # the Spark task must fail, not wait
            log.exception("The slot has failed")
            self._lost = error
        finally:
            with self._lock:
                self._is_over = True
                self._loop.unregister(self._connection)
                self._connection.close()
                self._loop.close()
            rows = [row for rows in self._rows.values() for row in rows]
            self._ends.put(EndOfEpoch(rows=rows, is_released=self._is_released, error=self._lost))

    def _return_epoch(self) -> None:
        """Return the receipts of the epoch that ends, when every task has divided its own."""
        epoch = self._ending_epoch
        if epoch is None or self._lost or min(self._ended_epochs.values(), default=epoch) < epoch:
            return
        self._ending_epoch = None
        # A task that has ended since may have left receipts of the next epoch.
        self._ends.put(EndOfEpoch(rows=self._rows.pop(epoch, []), is_kept=True))

    def _on_adopted(self, hello: SlotHello) -> None:
        self._start_epoch = hello.epoch
        self._send(hello)

    def _on_connection_lost(self, error: MirrorError) -> None:
        self._lost = error

    def _on_message(self, message: ControlMessage) -> None:
        match message:
            case StartTask():
                self._start(message)
            case EndEpoch():
                self._ending_epoch = message.epoch
            case ReleaseSlot():
                self._is_draining = self._is_released = True
            case Drain():
                self._is_draining = True
            case _:
                log.warning("Ignored unexpected message from driver: %s", type(message).__name__)

    def _start(self, start: StartTask) -> None:
        self._ended_epochs[start.attempt] = self._start_epoch - 1
        threading.Thread(
            target=self._run_thread,
            args=(start, self._start_epoch),
            name=f"{start.job}-{start.task}",
            daemon=True,
        ).start()

    def _run_thread(self, start: StartTask, epoch: int) -> None:
        error = ""
        with logging_context.context(connector=start.job, task=start.task):
            try:
                self._run_task(start, epoch, partial(self._return_rows, start))
            except MirrorError as failure:
                log.warning("The task ends: %s", failure)
                error = str(failure)
            except Exception as failure:  # a bug must not end the other tasks of the slot
                log.exception("The task has failed")
                error = repr(failure)
        self._loop.call_soon(partial(self._on_task_ended, start, error))

    def _return_rows(self, start: StartTask, epoch: int, rows: list[ReceiptRow]) -> None:
        self._loop.call_soon(partial(self._on_rows, start, epoch, rows))

    def _on_rows(self, start: StartTask, epoch: int, rows: list[ReceiptRow]) -> None:
        self._rows[epoch] += rows
        self._ended_epochs[start.attempt] = epoch

    def _on_task_ended(self, start: StartTask, error: str) -> None:
        del self._ended_epochs[start.attempt]
        self._send(TaskEnded(job=start.job, task=start.task, attempt=start.attempt, error=error))

    def _send(self, message: ControlMessage) -> None:
        if self._lost is None:
            self._loop.run_guarded(self._connection, partial(self._connection.send, message))


def copy_task_runner(
    endpoint: ControlEndpoint, new_evaluator: NewEvaluator = no_evaluator
) -> RunTask:
    """Return a function that runs one attempt of a copy task."""

    def run(start: StartTask, epoch: int, return_rows: ReturnRows) -> None:
        rows = _AttemptRows(start, epoch, return_rows)
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
            endpoint.address, endpoint.protocol, endpoint.secret, hello, new_evaluator, rows.add
        )
        copy_task.run()
        rows.add(rows.epoch, copy_task.reporter.receipts)

    return run


class _AttemptRows:
    """Makes the rows of one attempt, epoch by epoch. Belongs to the thread of the task."""

    def __init__(self, start: StartTask, epoch: int, return_rows: ReturnRows) -> None:
        self.epoch = epoch
        """The epoch that the attempt copies in."""
        self._start = start
        self._retry = start.retry
        self._return_rows = return_rows
        self._started_ms = _now_ms()

    def add(self, epoch: int, receipts: ReceiptCollector) -> None:
        """Return the rows of an epoch; the attempt is in the next one from now on."""
        attempt = TaskAttemptInfo(
            flow=self._start.flow,
            epoch=epoch,
            task=self._start.task,
            attempt=self._retry,
            attempt_number=self._start.attempt,
            started_ms=self._started_ms,
            ended_ms=_now_ms(),
        )
        self.epoch, self._retry, self._started_ms = epoch + 1, 0, attempt.ended_ms
        self._return_rows(epoch, attempt.to_rows(receipts.list_receipts()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
