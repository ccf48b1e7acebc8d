"""The driver: a process of its own that runs one assignment with Spark, and says how it goes.

    python -m sparkmirror.engine.driver
        input    one line with the assignment, then a line for each order; its end means that nobody
                 is there any more: drain and end
        output   a line with the status once a second

Spark, its JVM and its workers write what they have to say to the log file; nothing of it reaches
the terminal. The conductor and the control server live here, in Python: as long as the tasks run,
copying does not wait for the JVM.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from sparkmirror import logs
from sparkmirror.copy.conductor import Conductor
from sparkmirror.copy.job import Job
from sparkmirror.copy.snapshot import Snapshot
from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conducting import Conducting
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.engine.order import Do, Order
from sparkmirror.engine.running import Running
from sparkmirror.engine.runs import OffsetsTopicRuns
from sparkmirror.engine.status import Phase, Status
from sparkmirror.errors import MirrorError
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

STATUS_EVERY_S = 1.0
LAND_WITHIN_S = 20.0
"""How long after the tasks have drained their receipts may take to land."""
END_WITHIN_S = 20.0
FAILED = 2


class Driver:
    """Runs one assignment. `run` belongs to the main thread, `obey` to anybody."""

    def __init__(
        self,
        assignment: Assignment,
        conductor: Conducting,
        tell: Callable[[Status], None],
        end_within_s: float = END_WITHIN_S,
    ) -> None:
        """`end_within_s` is what Spark and its JVM are given in the end."""
        self._end_within_s = end_within_s
        self._assignment = assignment
        self._conductor = conductor
        self._tell = tell
        self._directory = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
        self._running = Running(assignment, conductor, self._directory)
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._phase = Phase.STARTING
        self._drain_by = 0.0
        self._trouble = ""
        self._is_retriable = False

    def obey(self, order: Order) -> None:
        """Take an order; it is carried out at once."""
        self._orders.put(order)

    def run(self) -> int:
        """Run until drained, stopped or failed; returns the exit code."""
        self._report()
        threading.Thread(target=self._start_conductor, name="begin", daemon=True).start()
        self._running.start()
        try:
            while self._phase not in (Phase.STOPPED, Phase.FAILED):
                self._wait_for_orders(STATUS_EVERY_S)
                self._look()
                self._report()
        finally:
            self._end()
        return FAILED if self._phase is Phase.FAILED else 0

    # -- life ----------------------------------------------------------------------------------

    def _start_conductor(self) -> None:
        """Try until both clusters can be reached; Spark starts meanwhile."""
        backoff = Backoff(first_s=0.5, longest_s=10.0)
        while self._phase is Phase.STARTING:
            try:
                self._conductor.start()
            except MirrorError as error:
                log.warning("%s", error)
                if not error.retriable:
                    self._fail(error)
                    return
                self._trouble = f"waiting for cluster {error}"
                time.sleep(backoff.pause_s())
            except Exception as error:
                log.exception("The conductor did not start")
                self._fail(error)
                return
            else:
                self._trouble = ""
                self._running.conductor_is_ready.set()
                return

    def _wait_for_orders(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                order = self._orders.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                return
            match order.do:
                case Do.RATE:
                    self._conductor.set_rate(order.bytes_per_s)
                case Do.EPOCH:
                    self._running.end_epoch()
                case Do.PLAN:
                    self._replan(order)
                case Do.DRAIN:
                    self._drain()
                case Do.STOP:
                    self._phase = Phase.STOPPED
                    return

    def _replan(self, order: Order) -> None:
        """Go on with another job; the number of tasks can only change with the epoch."""
        assert order.job is not None
        self._assignment = replace(self._assignment, job=order.job)
        self._conductor.replan(order.job)
        self._running.replan(self._assignment)

    def _drain(self) -> None:
        if self._phase is Phase.STARTING and not self._running.is_streaming:
            self._phase = Phase.STOPPED
        elif self._phase in (Phase.STARTING, Phase.RUNNING):
            self._phase = Phase.DRAINING
            drain_s = self._assignment.job.settings.drain_s
            self._drain_by = time.monotonic() + drain_s + LAND_WITHIN_S
            self._running.finish()
            self._conductor.drain()

    def _look(self) -> None:
        """Find out what has changed by itself."""
        failure = self._conductor.failure() or self._running.failure()
        if failure:
            self._fail(failure)
        elif self._phase is Phase.STARTING and self._running.is_streaming:
            self._phase = Phase.RUNNING
        elif self._phase is Phase.DRAINING and self._is_drained():
            self._phase = Phase.STOPPED

    def _is_drained(self) -> bool:
        if self._conductor.is_drained() and self._running.is_resting:
            return True
        if time.monotonic() > self._drain_by:
            self._trouble = "not everything was drained in time; the rest is found out at the start"
            return True
        return False

    def _fail(self, error: Exception) -> None:
        """Anything but one of our own errors is a bug; another try may get round it."""
        if self._phase is Phase.STOPPED:
            return  # whoever is interrupted by the end may say what he likes
        self._is_retriable = error.retriable if isinstance(error, MirrorError) else True
        self._trouble = str(error) if isinstance(error, MirrorError) else repr(error)
        self._phase = Phase.FAILED

    def _report(self) -> None:
        self._tell(
            Status(
                phase=self._phase,
                application_id=self._running.application_id,
                web_ui=self._running.web_ui,
                slots=self._running.slots,
                tasks=len(self._assignment.job.tasks),
                epoch=self._running.epoch,
                unwritten=self._running.unwritten,
                trouble=self._trouble or self._running.trouble(),
                is_retriable=self._is_retriable,
                snapshot=self._conductor.snapshot(),
            )
        )

    def _end(self) -> None:
        """Positions first, then Spark; what takes too long is left to the end of the process."""
        self._conductor.stop()
        ending = threading.Thread(target=self._running.close, name="end", daemon=True)
        ending.start()
        ending.join(timeout=self._end_within_s)
        shutil.rmtree(self._directory, ignore_errors=True)


# -- the process -------------------------------------------------------------------------------


def make_conductor(job: Job) -> Conducting:
    """The real one."""
    return Conductor(job, OffsetsTopicLedger.of(job), OffsetsTopicRuns.of(job))


def main(
    conductor: Callable[[Job], Conducting] = make_conductor, end_within_s: float = END_WITHIN_S
) -> None:
    """Run the assignment that is on the input."""
    lines = sys.stdin.buffer
    tell = _Teller(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    first = lines.readline()
    if not first:
        return  # whoever started us is gone already
    assignment = Assignment.from_line(first)
    _move_output(Path(assignment.log))
    logs.install(sys.stderr, logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        driver = Driver(assignment, conductor(assignment.job), tell, end_within_s)
    except MirrorError as error:
        log.error("%s", error)
        failed = Status(phase=Phase.FAILED, trouble=str(error), is_retriable=error.retriable)
        tell(failed)
        sys.exit(FAILED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.obey(Order(do=Do.DRAIN)))
    threading.Thread(target=_listen, args=(lines, driver), name="orders", daemon=True).start()
    code = driver.run()
    logging.shutdown()
    # Threads of libraries, and a JVM that does not end, must not keep a finished driver alive.
    os._exit(code)


def _move_output(path: Path) -> None:
    """Have everything that this process and its children print added to the log."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


class _Teller:
    """Writes statuses, one line each, and of each only what the line before did not say."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._told = Snapshot()

    def __call__(self, status: Status) -> None:
        try:
            self._output.write(status.to_line(self._told))
            self._output.flush()
        except BrokenPipeError:
            return  # nobody listens any more; the input has ended too, and that is acted on
        self._told = status.snapshot


def _listen(lines: BinaryIO, driver: Driver) -> None:
    for line in lines:
        try:
            driver.obey(Order.from_line(line))
        except (ValueError, KeyError):
            log.warning("%r is no order", line)
    driver.obey(Order(do=Do.DRAIN))


if __name__ == "__main__":
    main()
