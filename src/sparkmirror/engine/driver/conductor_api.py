"""The methods of a conductor that the driver calls (`copy.driver.conductor` implements them)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sparkmirror.copy.control.messages import ControlMessage, Hello
from sparkmirror.copy.driver.pending_receipts import MissingReceipt
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot


class ConductorApi(Protocol):
    """Decides what the tasks do. Every method but `start` and `stop` returns at once."""

    def start(self) -> None:
        """Begin. Raises a MirrorError; may be called again if that one is retriable."""
        ...

    def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
        """A task attempt has come; what it is to hear goes through `send`."""
        ...

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """A task attempt has said something."""
        ...

    def on_task_left(self, hello: Hello) -> None:
        """A task attempt is gone, however it went."""
        ...

    def end_epoch(self) -> None:
        """Have the tasks that are there give everything back. May be called again."""
        ...

    def drain(self) -> None:
        """Have every task give everything back, for good."""
        ...

    def is_drained(self) -> bool:
        """Whether `drain` was asked for and nothing is leased any more."""
        ...

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task; 0 lifts the limit."""
        ...

    def replan(self, job: CopyJob) -> None:
        """Go on with another job of the same connector: partitions come, go and change tasks."""
        ...

    def snapshot(self) -> CopySnapshot:
        """Where everything stands."""
        ...

    def close_epoch(self, epoch: int, *, landed: bool) -> list[MissingReceipt]:
        """An epoch is over, and its receipts have landed or not; returns what it still owes."""
        ...

    def failure(self) -> Exception | None:
        """Why it has ended by itself, if it has."""
        ...

    def stop(self) -> None:
        """End, and remember what is known."""
        ...
