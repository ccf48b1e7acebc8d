"""Collects the statuses of a supervisor."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.idle_driver import DRIVER_MODULE
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from tests.support.copy.copy_flow import CopyFlow
from tests.support.processes import all_processes


def own_driver_pid() -> int:
    """The driver process of a supervisor in this process."""
    [driver] = [
        one for one in all_processes() if one.parent == os.getpid() and DRIVER_MODULE in one.command
    ]
    return driver.pid


class StatusFollower:
    """Collects every status; a wait that ends without success fails with the last ones.

    Reads in a thread of its own: a slow reader gets only the latest status, and some statuses are
    short-lived.
    """

    def __init__(
        self, supervisor: SingleJobSupervisor, flow: CopyFlow, topics: Mapping[str, int], log: Path
    ) -> None:
        self._statuses: list[DriverStatus] = []
        self._examined = 0
        self._supervisor = supervisor
        self._flow = flow
        self._topics = topics
        self._log = log
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read_statuses, name="follower", daemon=True).start()

    @property
    def latest(self) -> DriverStatus:
        """The last status; there must be one."""
        with self._changed:
            return self._statuses[-1]

    def wait_for_status(
        self, reason: str, condition: Callable[[DriverStatus], bool]
    ) -> DriverStatus:
        """Wait for a status that meets the condition; examines every status since the last call."""
        while (status := self._next_status()) is not None:
            if condition(status):
                return status
        log = self._log.read_text("utf-8", errors="replace")[-3000:]
        raise AssertionError(f"it ended before {reason}: {self._statuses[-3:]}\n{log}")

    def wait_until_copied(self, *numbers: int) -> DriverStatus:
        """Wait until these partitions (or all) have reached the end of the source."""
        ends = {
            key: end
            for key, end in self._flow.source_end_offsets(self._topics).items()
            if not numbers or int(key.rpartition("-")[2]) in numbers
        }

        def copied(status: DriverStatus) -> bool:
            views = status.snapshot.partitions
            return all(key in views and views[key].position >= ends[key] for key in ends)

        return self.wait_for_status("everything was copied", copied)

    def wait_for_end(self) -> list[DriverStatus]:
        """Wait for the end of the supervisor; returns all statuses."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
            return self._statuses

    def _next_status(self) -> DriverStatus | None:
        """The next status that was not examined; waits for it. None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._examined < len(self._statuses))
            if self._examined == len(self._statuses):
                return None
            self._examined += 1
            return self._statuses[self._examined - 1]

    def _read_statuses(self) -> None:
        for status in self._supervisor.statuses():
            with self._changed:
                self._statuses.append(status)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
