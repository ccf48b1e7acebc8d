"""A driver process with one job; keeps all statuses of the job."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkmirror.engine.driver.jvm_command import GATEWAY_CLASS
from sparkmirror.engine.supervisor.driver_process import DriverProcess
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.driver_stdin_commands import DriverCommand
from tests.support.processes import RunningProcess, session_processes
from tests.support.waiting import wait_until

JVM = GATEWAY_CLASS
PYTHON_WORKER = "daemon pyspark.worker"


class ObservedDriver:
    """Starts a driver and collects the statuses of its job."""

    def __init__(self, spec: DriverSpec, module: str, temporary: Path) -> None:
        self.statuses: list[DriverStatus] = []
        self._examined = 0
        self.process = DriverProcess(module, temporary, Path(spec.log))
        self.process.write_line(spec.to_line())
        self._log = Path(spec.log)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read_statuses, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its session."""
        return self.process.pid

    def wait_for_status(
        self, reason: str, condition: Callable[[DriverStatus], bool], timeout_s: float = 400
    ) -> DriverStatus:
        """Wait for a status that meets the condition; fails when the driver ends before.

        Examines every status since the last one that was returned.
        """

        def is_reached() -> bool:
            has_ended = self._ended.is_set()
            while self._examined < len(self.statuses):
                if condition(self.statuses[self._examined]):
                    return True
                self._examined += 1
            assert not has_ended, f"it ended before: {self.describe()}"
            return False

        wait_until(is_reached, reason, timeout_s)
        return self.statuses[self._examined]

    def send_command(self, command: DriverCommand) -> None:
        """Send a command, as a supervisor does."""
        self.process.write_line(command.to_line())

    def wait_for_exit(self, timeout_s: float = 120) -> int:
        """Wait until it has ended by itself; returns its exit code."""
        wait_until(self._ended.is_set, "the driver to end", timeout_s)
        return self.process.shut_down(30)

    def close(self) -> None:
        """Kill what is left of it."""
        self.process.kill()
        self._thread.join(timeout=30)
        self.process.shut_down(10)

    def remaining_processes(self, within_s: float = 30) -> list[RunningProcess]:
        """The processes that are still there after a time in which they may end by themselves."""
        deadline = time.monotonic() + within_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def processes(self, *parts: str) -> list[RunningProcess]:
        """The processes of its session."""
        return session_processes(self.pid, *parts)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the driver process only."""
        os.kill(self.pid, number)

    def describe(self) -> str:
        """For the message of a failed test."""
        last = [(s.phase, s.epoch, s.problem) for s in self.statuses[-5:]]
        return f"{last}\n{self._log.read_text('utf-8', errors='replace')[-3000:]}"

    def _read_statuses(self) -> None:
        for line in self.process.read_lines(lambda _: 60.0):
            seen = {one.job: one.snapshot for one in self.statuses[-1:]}
            status = DriverStatus.from_line(line, seen)
            if status.job:
                self.statuses.append(status)
        self._ended.set()
