"""Follows what a supervisor says about a flow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.engine.status import Status
from sparkmirror.engine.supervisor import DRIVER, Supervisor
from tests.support.flows import Flow
from tests.support.processes import all_processes


def driver_of_this_process() -> int:
    """The driver that a supervisor of ours has started."""
    [driver] = [
        one for one in all_processes() if one.parent == os.getpid() and DRIVER in one.command
    ]
    return driver.pid


class Follower:
    """Keeps every status; what does not come fails with the story so far."""

    def __init__(
        self, supervisor: Supervisor, flow: Flow, topics: Mapping[str, int], log: Path
    ) -> None:
        self.seen: list[Status] = []
        self._statuses = supervisor.statuses()
        self._flow = flow
        self._topics = topics
        self._log = log

    def until(self, reason: str, condition: Callable[[Status], bool]) -> Status:
        """Listen until a status is as wanted."""
        for status in self._statuses:
            self.seen.append(status)
            if condition(status):
                return status
        said = self._log.read_text("utf-8", errors="replace")[-3000:]
        raise AssertionError(f"it ended before {reason}: {self.seen[-3:]}\n{said}")

    def until_copied(self, *numbers: int) -> Status:
        """Listen until these partitions (or all) have reached the source's end."""
        ends = {
            key: end
            for key, end in self._flow.ends(self._topics).items()
            if not numbers or int(key.rpartition("-")[2]) in numbers
        }

        def copied(status: Status) -> bool:
            there = status.snapshot.partitions
            return all(key in there and there[key].position >= ends[key] for key in ends)

        return self.until("everything was copied", copied)

    def rest(self) -> list[Status]:
        """Everything until it is over."""
        self.seen += self._statuses
        return self.seen
