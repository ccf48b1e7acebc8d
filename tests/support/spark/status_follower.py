"""Follows what a supervisor says about a flow."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import DRIVER_MODULE, DriverSupervisor
from tests.support.copy.copy_flow import CopyFlow
from tests.support.processes import all_processes


def own_driver_pid() -> int:
    """The driver that a supervisor of ours has started."""
    [driver] = [
        one for one in all_processes() if one.parent == os.getpid() and DRIVER_MODULE in one.command
    ]
    return driver.pid


class StatusFollower:
    """Keeps every status; what does not come fails with the story so far.

    Listens in a thread of its own: a supervisor tells a slow listener the latest status only, and
    some last but a moment.
    """

    def __init__(
        self, supervisor: DriverSupervisor, flow: CopyFlow, topics: Mapping[str, int], log: Path
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
        """What was said last; there must have been something."""
        with self._changed:
            return self._statuses[-1]

    def wait_for_status(
        self, reason: str, condition: Callable[[DriverStatus], bool]
    ) -> DriverStatus:
        """Listen until a status is as wanted; none since the one before is left out."""
        while (status := self._next_status()) is not None:
            if condition(status):
                return status
        said = self._log.read_text("utf-8", errors="replace")[-3000:]
        raise AssertionError(f"it ended before {reason}: {self._statuses[-3:]}\n{said}")

    def wait_until_copied(self, *numbers: int) -> DriverStatus:
        """Listen until these partitions (or all) have reached the source's end."""
        ends = {
            key: end
            for key, end in self._flow.source_end_offsets(self._topics).items()
            if not numbers or int(key.rpartition("-")[2]) in numbers
        }

        def copied(status: DriverStatus) -> bool:
            there = status.snapshot.partitions
            return all(key in there and there[key].position >= ends[key] for key in ends)

        return self.wait_for_status("everything was copied", copied)

    def wait_for_end(self) -> list[DriverStatus]:
        """Everything until it is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
            return self._statuses

    def _next_status(self) -> DriverStatus | None:
        """The next status that was not looked at, as soon as there is one; None at the end."""
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
