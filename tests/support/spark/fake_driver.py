"""A driver process without Spark: `python -m tests.support.spark.fake_driver`.

The connector names of its jobs decide what it does: `well` runs and follows commands, `dies` runs
and dies at once, `stillborn` dies before it runs, `refuses` makes the driver fail without a retry,
`invalid` makes only its job fail, `mute` prints no status, `stubborn` does not end. It appends its
pid to the file `starts` beside the log.
Its statuses repeat what it was given: `slots` is the rate, `web_ui` the log levels as JSON, and
`problem` the action of a command.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverAction, DriverCommand

ENDS_JOB = (DriverAction.DRAIN_JOB, DriverAction.STOP_JOB)
ENDS_DRIVER = (DriverAction.DRAIN, DriverAction.STOP)


class FakeDriver:
    """Answers each command with a status of the job that it is about, or of all jobs."""

    def __init__(self, spec: DriverSpec) -> None:
        self._jobs = {job.name: job for job in spec.jobs}
        self._ready_tasks = spec.ready_tasks
        self._log_levels = dict(spec.log_levels)

    @property
    def scripts(self) -> set[str]:
        return {job.connector for job in self._jobs.values()}

    def start(self) -> None:
        """Say that the driver and its jobs run. It is ready for tasks if it is kept ready."""
        self._send_own_status()
        for job in list(self._jobs.values()):
            self._start_job(job)

    def run(self) -> None:
        """Follow commands until DRAIN or STOP."""
        for line in sys.stdin.buffer:
            command = DriverCommand.from_line(line)
            if command.action is DriverAction.RENEW_MEMBERSHIP:
                continue  # it comes with every status
            self._process(command)
            if command.action in ENDS_DRIVER and "stubborn" not in self.scripts:
                self._send_all(DriverPhase.STOPPED, "", {})
                return
        while "stubborn" in self.scripts:
            time.sleep(1)

    def _send_own_status(self) -> None:
        is_ready = bool(self._ready_tasks)
        send_status(DriverStatus(phase=DriverPhase.RUNNING, is_ready=is_ready))

    def _process(self, command: DriverCommand) -> None:
        if command.action is DriverAction.KEEP_READY:
            self._ready_tasks = command.ready_tasks
            self._send_own_status()
            return
        name = command.job.name if command.job else command.job_name
        if command.job:
            self._jobs[name] = command.job
        if command.action is DriverAction.START_JOB and command.job:
            self._start_job(command.job)
        elif command.action in ENDS_JOB:
            if "stubborn" not in self.scripts:
                self._send(name, DriverPhase.STOPPED, "", {})
                del self._jobs[name]
        elif name:
            self._set_rate(name, command)
            self._send(name, DriverPhase.RUNNING, command.action, {})
        else:
            self._send_all(DriverPhase.RUNNING, command.action, command.log_levels)

    def _set_rate(self, name: str, command: DriverCommand) -> None:
        if command.action is DriverAction.SET_RATE:
            job = self._jobs[name]
            settings = replace(job.settings, bytes_per_s=command.bytes_per_s)
            self._jobs[name] = replace(job, settings=settings)

    def _start_job(self, job: CopyJob) -> None:
        if job.connector == "invalid":
            self._send(job.name, DriverPhase.FAILED, "the job is invalid", {})
            del self._jobs[job.name]
        else:
            self._send(job.name, DriverPhase.RUNNING, "", self._log_levels)

    def _send_all(self, phase: DriverPhase, problem: str, levels: Mapping[str, int]) -> None:
        for name in self._jobs:
            self._send(name, phase, problem, levels)

    def _send(self, name: str, phase: DriverPhase, problem: str, levels: Mapping[str, int]) -> None:
        job = self._jobs[name]
        send_status(
            DriverStatus(
                phase=phase,
                job=name,
                slots=job.settings.bytes_per_s,
                tasks=len(job.tasks),
                problem=problem,
                web_ui=json.dumps(dict(levels)),
            )
        )


def main() -> None:
    """Read the spec, then act as the connector names say."""
    spec = DriverSpec.from_line(sys.stdin.buffer.readline())
    starts = Path(spec.log).with_name("starts")
    with starts.open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    driver = FakeDriver(spec)
    if "stillborn" in driver.scripts:
        sys.exit(1)
    if "refuses" in driver.scripts:
        send_status(DriverStatus(phase=DriverPhase.FAILED, problem="the job is invalid"))
        sys.exit(2)
    if "mute" in driver.scripts:
        time.sleep(60)
    driver.start()
    if "dies" in driver.scripts:
        os.kill(os.getpid(), signal.SIGKILL)
    driver.run()


def send_status(status: DriverStatus) -> None:
    """Print a status."""
    sys.stdout.buffer.write(status.to_line())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
