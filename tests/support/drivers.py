"""A driver process under observation: everything it says is kept."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.order import Order
from sparkmirror.engine.process import DriverProcess
from sparkmirror.engine.status import Status
from tests.support.processes import Seen, of_session
from tests.support.waiting import wait_until

JVM = "org.apache.spark.deploy.SparkSubmit"
WORKER = "daemon pyspark.worker"


class WatchedDriver:
    """Starts a driver and listens to it."""

    def __init__(self, assignment: Assignment, module: str, temporary: Path) -> None:
        self.statuses: list[Status] = []
        self._looked_at = 0
        self.process = DriverProcess(module, temporary, Path(assignment.log))
        self.process.say(assignment.to_line())
        self._log = Path(assignment.log)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Its number, and that of its session."""
        return self.process.pid

    def wait(
        self, reason: str, condition: Callable[[Status], bool], timeout_s: float = 400
    ) -> Status:
        """Wait for a status as wanted, and return it; ends early when the driver does.

        Every status since the one that was returned last is looked at: none is too short-lived.
        """

        def is_so() -> bool:
            has_ended = self._ended.is_set()
            while self._looked_at < len(self.statuses):
                if condition(self.statuses[self._looked_at]):
                    return True
                self._looked_at += 1
            assert not has_ended, f"it ended before: {self.story()}"
            return False

        wait_until(is_so, reason, timeout_s)
        return self.statuses[self._looked_at]

    def say(self, order: Order) -> None:
        """Give it an order, as its supervisor would."""
        self.process.say(order.to_line())

    def wait_for_its_end(self, timeout_s: float = 120) -> int:
        """Wait until it has ended by itself; returns its exit code."""
        wait_until(self._ended.is_set, "the driver to end", timeout_s)
        return self.process.end(30)

    def close(self) -> None:
        """Kill what is left of it."""
        self.process.kill()
        self._thread.join(timeout=30)
        self.process.end(10)

    def left(self, within_s: float = 30) -> list[Seen]:
        """Who is still there when those who notice the end by themselves have had time to."""
        deadline = time.monotonic() + within_s
        while (there := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return there

    def processes(self, *parts: str) -> list[Seen]:
        """What runs on its behalf."""
        return of_session(self.pid, *parts)

    def send(self, number: signal.Signals) -> None:
        """Signal the driver alone."""
        os.kill(self.pid, number)

    def story(self) -> str:
        """For the message of a failed test."""
        said = [(s.phase, s.epoch, s.trouble) for s in self.statuses]
        return f"{said[-5:]}\n{self._log.read_text('utf-8', errors='replace')[-3000:]}"

    def _listen(self) -> None:
        for line in self.process.lines(lambda _: 60.0):
            seen = self.statuses[-1].snapshot if self.statuses else None
            self.statuses.append(Status.from_line(line, seen))
        self._ended.set()
