"""Follows what a supervisor says about a flow."""

from __future__ import annotations

import os
import threading
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
    """Keeps every status; what does not come fails with the story so far.

    Listens in a thread of its own: a supervisor tells a slow listener the latest status only, and
    some last but a moment.
    """

    def __init__(
        self, supervisor: Supervisor, flow: Flow, topics: Mapping[str, int], log: Path
    ) -> None:
        self._seen: list[Status] = []
        self._looked_at = 0
        self._supervisor = supervisor
        self._flow = flow
        self._topics = topics
        self._log = log
        self._news = threading.Condition()
        self._is_over = False
        threading.Thread(target=self._listen, name="follower", daemon=True).start()

    @property
    def latest(self) -> Status:
        """What was said last; there must have been something."""
        with self._news:
            return self._seen[-1]

    def until(self, reason: str, condition: Callable[[Status], bool]) -> Status:
        """Listen until a status is as wanted; none since the one before is left out."""
        while (status := self._next()) is not None:
            if condition(status):
                return status
        said = self._log.read_text("utf-8", errors="replace")[-3000:]
        raise AssertionError(f"it ended before {reason}: {self._seen[-3:]}\n{said}")

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
        with self._news:
            self._news.wait_for(lambda: self._is_over)
            return self._seen

    def _next(self) -> Status | None:
        """The next status that was not looked at, as soon as there is one; None at the end."""
        with self._news:
            self._news.wait_for(lambda: self._is_over or self._looked_at < len(self._seen))
            if self._looked_at == len(self._seen):
                return None
            self._looked_at += 1
            return self._seen[self._looked_at - 1]

    def _listen(self) -> None:
        for status in self._supervisor.statuses():
            with self._news:
                self._seen.append(status)
                self._news.notify_all()
        with self._news:
            self._is_over = True
            self._news.notify_all()
