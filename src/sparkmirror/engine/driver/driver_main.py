"""The driver process: runs the jobs of one Spark application and prints their statuses.

    python -m sparkmirror.engine.driver.driver_main
        input    one line with the spec, then one line for each command; at its end the supervisor
                 has died, and the driver drains and ends
        output   one line with the driver's status once a second, and lines with those of its jobs

The driver, Spark's JVM and Spark's workers write everything else to the log file of the spec. The
conductors and the control server run in this Python process: while the tasks run, copying does not
wait for the JVM.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from sparkmirror import logging_context
from sparkmirror.copy.driver.conductor import Conductor
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.copy.task.transform.converter_factory import NewEvaluator
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.driver import SHUTDOWN_TIMEOUT_S, CreateConductor, Driver
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger, OffsetsTopicRunMaps
from sparkmirror.engine.spark.fork_server import start_fork_server
from sparkmirror.engine.spark.numpy_lookup import import_numpy_lookup
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import JOB_STATUS_INTERVAL_S, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand

log = logging.getLogger(__name__)


def make_conductor(job: CopyJob, new_evaluator: NewEvaluator) -> ConductorApi:
    """The conductor that copies, with its stores in the offsets topic."""
    return Conductor(
        job, OffsetsTopicLedger.for_job(job), OffsetsTopicRunMaps.for_job(job), new_evaluator
    )


def main(
    create_conductor: CreateConductor = make_conductor,
    shutdown_timeout_s: float = SHUTDOWN_TIMEOUT_S,
) -> None:
    """Run the spec on standard input. Never returns: exits the process."""
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-"))
    python = start_fork_server(directory)  # before there are threads and secrets
    import_numpy_lookup()
    lines = sys.stdin.buffer
    publish = StatusLineWriter(os.fdopen(os.dup(sys.stdout.fileno()), "wb"))
    first = lines.readline()
    if not first:
        shutil.rmtree(directory, ignore_errors=True)
        return  # the supervisor has died already
    spec = DriverSpec.from_line(first)
    os.environ.update(spec.variables)
    _redirect_output(Path(spec.log))
    logging_context.install(sys.stderr, logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging_context.set_levels(spec.log_levels)
    driver = Driver(spec, create_conductor, publish, shutdown_timeout_s, python)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: driver.submit(DriverCommand(action=DriverAction.DRAIN)))
    threading.Thread(
        target=_read_commands, args=(lines, driver), name="driver-commands", daemon=True
    ).start()
    code = driver.run()
    shutil.rmtree(directory, ignore_errors=True)
    logging.shutdown()
    # Threads of libraries, or a JVM that does not end, must not keep the driver alive.
    os._exit(code)


def _redirect_output(path: Path) -> None:
    """Append the output of this process and its children to the log."""
    with path.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


class StatusLineWriter:
    """Writes statuses, one line each; each line holds only the changes since the job's last one.

    Writes the status of a job that has not changed only every JOB_STATUS_INTERVAL_S.
    """

    def __init__(self, output: BinaryIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._written: dict[str, DriverStatus] = {}
        self._repeat_at: dict[str, float] = {}

    def __call__(self, status: DriverStatus) -> None:
        """Write a status, unless its job has not changed."""
        now, last = self._clock(), self._written.get(status.job)
        if status.job and status == last and now < self._repeat_at[status.job]:
            return
        try:
            self._output.write(status.to_line(last.snapshot if last else CopySnapshot()))
            self._output.flush()
        except BrokenPipeError:
            return  # the supervisor has died; the end of standard input drains the driver
        self._written[status.job] = status
        self._repeat_at[status.job] = now + JOB_STATUS_INTERVAL_S


def _read_commands(lines: BinaryIO, driver: Driver) -> None:
    for line in lines:
        try:
            driver.submit(DriverCommand.from_line(line))
        except (ValueError, KeyError):
            log.warning("Ignored a malformed driver command of %d bytes", len(line))
    driver.submit(DriverCommand(action=DriverAction.DRAIN))


if __name__ == "__main__":
    main()
