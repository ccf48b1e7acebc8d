"""What the engine needs of a conductor (`copy.conductor`); another one may be put in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sparkmirror.copy.counterfoils import Unclaimed
from sparkmirror.copy.job import Job
from sparkmirror.copy.messages import Hello, Message
from sparkmirror.copy.snapshot import Snapshot


class Conducting(Protocol):
    """Decides what the tasks do. Every method but `start` and `stop` returns at once."""

    def start(self) -> None:
        """Begin. Raises a MirrorError; may be called again if that one is retriable."""
        ...

    def joined(self, hello: Hello, send: Callable[[Message], None]) -> None:
        """A task attempt has come; what it is to hear goes through `send`."""
        ...

    def said(self, hello: Hello, message: Message) -> None:
        """A task attempt has said something."""
        ...

    def left(self, hello: Hello) -> None:
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

    def replan(self, job: Job) -> None:
        """Go on with another job of the same connector: partitions come, go and change tasks."""
        ...

    def snapshot(self) -> Snapshot:
        """Where everything stands."""
        ...

    def close_books(self, epoch: int, *, landed: bool) -> list[Unclaimed]:
        """An epoch is over, and its receipts have landed or not; returns what it still owes."""
        ...

    def failure(self) -> Exception | None:
        """Why it has ended by itself, if it has."""
        ...

    def stop(self) -> None:
        """End, and remember what is known."""
        ...
