"""The driver process: runs one driver spec with Spark and prints its status.

    python -m sparkmirror.engine.driver.driver_main
        input    one line with the spec, then one line for each command; at its end the supervisor
                 has died, and the driver drains and ends
        output   one line with the status, once a second

The driver, Spark's JVM and Spark's workers write everything else to the log file of the spec. The
conductor and the control server run in this Python process: while the tasks run, copying does not
wait for the JVM.
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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from sparkmirror import logs
from sparkmirror.backoff import Backoff
from sparkmirror.copy.causes import without_known
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.settings import cluster_side
from sparkmirror.copy.snapshot import SPARK_STARTS, CopySnapshot
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
"""How long the receipts may take to be written after the tasks have drained."""
SHUTDOWN_TIMEOUT_S = 20.0
EXIT_FAILED = 2


class Driver:
    """Runs one spec. The main thread calls `run`; any thread may call `submit`."""

    def __init__(
        self,
        spec: DriverSpec,
        conductor: ConductorApi,
        publish: Callable[[DriverStatus], None],
        shutdown_timeout_s: float = SHUTDOWN_TIMEOUT_S,
    ) -> None:
        """Spark and its JVM get `shutdown_timeout_s` to end."""
        self._shutdown_timeout_s = shutdown_timeout_s
        self._spec = spec
        self._conductor = conductor
        self._publish = publish
        self._directory = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
        self._application = SparkApplication(spec, conductor, self._directory)
        self._commands: queue.SimpleQueue[DriverCommand] = queue.SimpleQueue()
        self._phase = DriverPhase.STARTING
        self._drain_deadline = 0.0
        self._problem = ""
        self._is_retriable = False

    def submit(self, command: DriverCommand) -> None:
        """Queue a command for the main thread."""
        self._commands.put(command)

    def run(self) -> int:
        """Run until drained, stopped or failed; returns the exit code."""
        self._publish_status()
        threading.Thread(target=self._start_conductor, name="conductor-start", daemon=True).start()
        self._application.start()
        try:
            while self._phase not in (DriverPhase.STOPPED, DriverPhase.FAILED):
                self._process_commands(STATUS_INTERVAL_S)
                self._refresh_phase()
                self._publish_status()
        finally:
            self._shut_down()
        return EXIT_FAILED if self._phase is DriverPhase.FAILED else 0

    # -- phases ---------------------------------------------------------------------------------

    def _start_conductor(self) -> None:
        """Try until both clusters are reachable. Runs in its own thread while Spark starts."""
        backoff = Backoff(initial_s=0.5, max_s=2.0)
        while self._phase is DriverPhase.STARTING:
            try:
                self._conductor.start()
            except MirrorError as error:
                log.warning("Connector %s did not start: %s", self._spec.job.connector, error)
                if not error.retriable:
                    self._fail(error)
                    return
                self._problem = waiting_text(error, self._spec.job)
                time.sleep(backoff.next_delay_s())
            except Exception as error:
                log.exception("Connector %s did not start", self._spec.job.connector)
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
                command = self._commands.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                return
            match command.action:
                case DriverAction.SET_RATE:
                    self._conductor.set_rate(command.bytes_per_s)
                case DriverAction.NEXT_EPOCH:
                    self._application.end_epoch()
                case DriverAction.REPLAN:
                    self._replan(command)
                case DriverAction.SET_LOG_LEVELS:
                    self._set_log_levels(command.log_levels)
                case DriverAction.DRAIN:
                    self._drain()
                case DriverAction.STOP:
                    self._phase = DriverPhase.STOPPED
                    return

    def _replan(self, command: DriverCommand) -> None:
        """Continue with another job. Only a new epoch changes the number of Spark tasks."""
        assert command.job is not None
        self._spec = replace(self._spec, job=command.job)
        self._conductor.replan(command.job)
        self._application.replan(self._spec)

    def _set_log_levels(self, levels: Mapping[str, int]) -> None:
        logs.set_levels(levels)
        self._spec = replace(self._spec, log_levels={**self._spec.log_levels, **levels})
        self._application.set_log_levels(levels)
        log.info("Log levels set: %s", dict(levels))

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
        """Move to the next phase if the conductor or Spark has reached it."""
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
            self._problem = "not everything was drained in time; the next driver takes over"
            return True
        return False

    def _fail(self, error: Exception) -> None:
        """End with FAILED. An error that is no MirrorError is a bug; another driver may succeed."""
        if self._phase is DriverPhase.STOPPED:
            return  # the shutdown itself makes calls fail
        self._is_retriable = error.retriable if isinstance(error, MirrorError) else True
        self._problem = str(error) if isinstance(error, MirrorError) else repr(error)
        self._phase = DriverPhase.FAILED

    def _publish_status(self) -> None:
        snapshot = self._conductor.snapshot()
        problem = self._problem or self._application.problem()
        if self._phase in (DriverPhase.STARTING, DriverPhase.FAILED):
            cause = self._problem or self._application.start_problem()
            snapshot = snapshot.while_stalled(cause or SPARK_STARTS)
        else:
            if problem and (waiting := self._application.tasks_without_slot()):
                snapshot = snapshot.while_waiting_for_slots(waiting, problem)
            reasons = {view.reason for view in snapshot.partitions.values()}
            others = without_known(self._conductor.problems(), reasons | {problem})
            problem = "; ".join(filter(None, [problem, *others]))
        self._publish(
            DriverStatus(
                phase=self._phase,
                application_id=self._application.application_id,
                web_ui=self._application.web_ui,
                slots=self._application.slots,
                tasks=len(self._spec.job.tasks),
                epoch=self._application.epoch,
                unwritten_receipts=self._application.unwritten_receipts,
                problem=problem,
                is_retriable=self._is_retriable,
                snapshot=snapshot,
            )
        )

    def _shut_down(self) -> None:
        """Stop the conductor, which writes positions; then Spark, for a limited time."""
        self._conductor.stop()
        closing = threading.Thread(target=self._application.close, name="spark-close", daemon=True)
        closing.start()
        closing.join(timeout=self._shutdown_timeout_s)
        shutil.rmtree(self._directory, ignore_errors=True)


# -- the process -------------------------------------------------------------------------------


def waiting_text(error: MirrorError, job: CopyJob) -> str:
    """Say for which cluster the driver waits, and why."""
    side = cluster_side(error, job.settings)
    return f"waiting for {side} cluster {error}" if side else f"waiting: {error}"


def make_conductor(job: CopyJob) -> ConductorApi:
    """The conductor that copies, with its stores in the offsets topic."""
    return Conductor(job, OffsetsTopicLedger.for_job(job), OffsetsTopicRunMaps.for_job(job))


def main(
    create_conductor: Callable[[CopyJob], ConductorApi] = make_conductor,
    shutdown_timeout_s: float = SHUTDOWN_TIMEOUT_S,
) -> None:
    """Run the spec on standard input. Never returns: exits the process."""
    lines = sys.stdin.buffer
    publish = _StatusWriter(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    first = lines.readline()
    if not first:
        return  # the supervisor has died already
    spec = DriverSpec.from_line(first)
    _redirect_output(Path(spec.log))
    logs.install(sys.stderr, logging.INFO, logs.connector_prefix(spec.job.connector))
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logs.set_levels(spec.log_levels)
    try:
        driver = Driver(spec, create_conductor(spec.job), publish, shutdown_timeout_s)
    except MirrorError as error:
        log.error("Connector %s cannot run: %s", spec.job.connector, error)
        failed = DriverStatus(
            phase=DriverPhase.FAILED, problem=str(error), is_retriable=error.retriable
        )
        publish(failed)
        sys.exit(EXIT_FAILED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.submit(DriverCommand(action=DriverAction.DRAIN)))
    threading.Thread(
        target=_read_commands, args=(lines, driver), name="driver-commands", daemon=True
    ).start()
    code = driver.run()
    logging.shutdown()
    # Threads of libraries, or a JVM that does not end, must not keep the driver alive.
    os._exit(code)


def _redirect_output(path: Path) -> None:
    """Append the output of this process and its children to the log."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


class _StatusWriter:
    """Writes statuses, one line each; each line holds only the changes since the last one."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._last_snapshot = CopySnapshot()

    def __call__(self, status: DriverStatus) -> None:
        try:
            self._output.write(status.to_line(self._last_snapshot))
            self._output.flush()
        except BrokenPipeError:
            return  # the supervisor has died; the end of standard input drains the driver
        self._last_snapshot = status.snapshot


def _read_commands(lines: BinaryIO, driver: Driver) -> None:
    for line in lines:
        try:
            driver.submit(DriverCommand.from_line(line))
        except (ValueError, KeyError):
            log.warning("Ignored malformed driver command: %r", line)
    driver.submit(DriverCommand(action=DriverAction.DRAIN))


if __name__ == "__main__":
    main()
