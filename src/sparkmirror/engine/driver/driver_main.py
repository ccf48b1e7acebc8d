"""The driver: a process of its own that runs one assignment with Spark, and says how it goes.

    python -m sparkmirror.engine.driver.driver_main
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
from sparkmirror.backoff import Backoff
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger, OffsetsTopicRunMaps
from sparkmirror.engine.driver.spark_application import SparkApplication
from sparkmirror.engine.supervisor.driver_command import DriverAction, DriverCommand
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

STATUS_INTERVAL_S = 1.0
RECEIPTS_TIMEOUT_S = 20.0
"""How long after the tasks have drained their receipts may take to land."""
SHUTDOWN_TIMEOUT_S = 20.0
EXIT_FAILED = 2


class Driver:
    """Runs one assignment. `run` belongs to the main thread, `obey` to anybody."""

    def __init__(
        self,
        assignment: DriverSpec,
        conductor: ConductorApi,
        tell: Callable[[DriverStatus], None],
        end_within_s: float = SHUTDOWN_TIMEOUT_S,
    ) -> None:
        """`end_within_s` is what Spark and its JVM are given in the end."""
        self._shutdown_timeout_s = end_within_s
        self._spec = assignment
        self._conductor = conductor
        self._publish = tell
        self._directory = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
        self._application = SparkApplication(assignment, conductor, self._directory)
        self._commands: queue.SimpleQueue[DriverCommand] = queue.SimpleQueue()
        self._phase = DriverPhase.STARTING
        self._drain_deadline = 0.0
        self._problem = ""
        self._is_retriable = False

    def submit(self, order: DriverCommand) -> None:
        """Take an order; it is carried out at once."""
        self._commands.put(order)

    def run(self) -> int:
        """Run until drained, stopped or failed; returns the exit code."""
        self._publish_status()
        threading.Thread(target=self._start_conductor, name="begin", daemon=True).start()
        self._application.start()
        try:
            while self._phase not in (DriverPhase.STOPPED, DriverPhase.FAILED):
                self._process_commands(STATUS_INTERVAL_S)
                self._refresh_phase()
                self._publish_status()
        finally:
            self._shut_down()
        return EXIT_FAILED if self._phase is DriverPhase.FAILED else 0

    # -- life ----------------------------------------------------------------------------------

    def _start_conductor(self) -> None:
        """Try until both clusters can be reached; Spark starts meanwhile."""
        backoff = Backoff(initial_s=0.5, max_s=10.0)
        while self._phase is DriverPhase.STARTING:
            try:
                self._conductor.start()
            except MirrorError as error:
                log.warning("%s", error)
                if not error.retriable:
                    self._fail(error)
                    return
                self._problem = f"waiting for cluster {error}"
                time.sleep(backoff.next_delay_s())
            except Exception as error:
                log.exception("The conductor did not start")
                self._fail(error)
                return
            else:
                self._problem = ""
                self._application.conductor_ready.set()
                return

    def _process_commands(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                order = self._commands.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                return
            match order.action:
                case DriverAction.SET_RATE:
                    self._conductor.set_rate(order.bytes_per_s)
                case DriverAction.NEXT_EPOCH:
                    self._application.end_epoch()
                case DriverAction.REPLAN:
                    self._replan(order)
                case DriverAction.DRAIN:
                    self._drain()
                case DriverAction.STOP:
                    self._phase = DriverPhase.STOPPED
                    return

    def _replan(self, order: DriverCommand) -> None:
        """Go on with another job; the number of tasks can only change with the epoch."""
        assert order.job is not None
        self._spec = replace(self._spec, job=order.job)
        self._conductor.replan(order.job)
        self._application.replan(self._spec)

    def _drain(self) -> None:
        if self._phase is DriverPhase.STARTING and not self._application.is_streaming:
            self._phase = DriverPhase.STOPPED
        elif self._phase in (DriverPhase.STARTING, DriverPhase.RUNNING):
            self._phase = DriverPhase.DRAINING
            drain_s = self._spec.job.settings.drain_timeout_s
            self._drain_deadline = time.monotonic() + drain_s + RECEIPTS_TIMEOUT_S
            self._application.stop_new_epochs()
            self._conductor.drain()

    def _refresh_phase(self) -> None:
        """Find out what has changed by itself."""
        failure = self._conductor.failure() or self._application.failure()
        if failure:
            self._fail(failure)
        elif self._phase is DriverPhase.STARTING and self._application.is_streaming:
            self._phase = DriverPhase.RUNNING
        elif self._phase is DriverPhase.DRAINING and self._is_drained():
            self._phase = DriverPhase.STOPPED

    def _is_drained(self) -> bool:
        if self._conductor.is_drained() and self._application.is_idle:
            return True
        if time.monotonic() > self._drain_deadline:
            self._problem = "not everything was drained in time; the rest is found out at the start"
            return True
        return False

    def _fail(self, error: Exception) -> None:
        """Anything but one of our own errors is a bug; another try may get round it."""
        if self._phase is DriverPhase.STOPPED:
            return  # whoever is interrupted by the end may say what he likes
        self._is_retriable = error.retriable if isinstance(error, MirrorError) else True
        self._problem = str(error) if isinstance(error, MirrorError) else repr(error)
        self._phase = DriverPhase.FAILED

    def _publish_status(self) -> None:
        self._publish(
            DriverStatus(
                phase=self._phase,
                application_id=self._application.application_id,
                web_ui=self._application.web_ui,
                slots=self._application.slots,
                tasks=len(self._spec.job.tasks),
                epoch=self._application.epoch,
                unwritten_receipts=self._application.unwritten_receipts,
                problem=self._problem or self._application.problem(),
                is_retriable=self._is_retriable,
                snapshot=self._conductor.snapshot(),
            )
        )

    def _shut_down(self) -> None:
        """Positions first, then Spark; what takes too long is left to the end of the process."""
        self._conductor.stop()
        ending = threading.Thread(target=self._application.close, name="end", daemon=True)
        ending.start()
        ending.join(timeout=self._shutdown_timeout_s)
        shutil.rmtree(self._directory, ignore_errors=True)


# -- the process -------------------------------------------------------------------------------


def make_conductor(job: CopyJob) -> ConductorApi:
    """The real one."""
    return Conductor(job, OffsetsTopicLedger.for_job(job), OffsetsTopicRunMaps.for_job(job))


def main(
    conductor: Callable[[CopyJob], ConductorApi] = make_conductor,
    end_within_s: float = SHUTDOWN_TIMEOUT_S,
) -> None:
    """Run the assignment that is on the input."""
    lines = sys.stdin.buffer
    tell = _StatusWriter(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    first = lines.readline()
    if not first:
        return  # whoever started us is gone already
    assignment = DriverSpec.from_line(first)
    _redirect_output(Path(assignment.log))
    logs.install(sys.stderr, logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        driver = Driver(assignment, conductor(assignment.job), tell, end_within_s)
    except MirrorError as error:
        log.error("%s", error)
        failed = DriverStatus(
            phase=DriverPhase.FAILED, problem=str(error), is_retriable=error.retriable
        )
        tell(failed)
        sys.exit(EXIT_FAILED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.submit(DriverCommand(action=DriverAction.DRAIN)))
    threading.Thread(
        target=_read_commands, args=(lines, driver), name="orders", daemon=True
    ).start()
    code = driver.run()
    logging.shutdown()
    # Threads of libraries, and a JVM that does not end, must not keep a finished driver alive.
    os._exit(code)


def _redirect_output(path: Path) -> None:
    """Have everything that this process and its children print added to the log."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


class _StatusWriter:
    """Writes statuses, one line each, and of each only what the line before did not say."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._last_snapshot = CopySnapshot()

    def __call__(self, status: DriverStatus) -> None:
        try:
            self._output.write(status.to_line(self._last_snapshot))
            self._output.flush()
        except BrokenPipeError:
            return  # nobody listens any more; the input has ended too, and that is acted on
        self._last_snapshot = status.snapshot


def _read_commands(lines: BinaryIO, driver: Driver) -> None:
    for line in lines:
        try:
            driver.submit(DriverCommand.from_line(line))
        except (ValueError, KeyError):
            log.warning("%r is no order", line)
    driver.submit(DriverCommand(action=DriverAction.DRAIN))


if __name__ == "__main__":
    main()
