"""What the driver calls on a conductor (`copy.driver.conductor` implements it)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from sparkmirror.copy.control.messages import ControlMessage, Hello
from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.snapshot import CopySnapshot


class ConductorApi(Protocol):
    """Decides which task copies what. All methods but `start` and `stop` return at once."""

    def start(self) -> None:
        """Start. Raises MirrorError; the caller may try again if it is retriable."""
        ...

    def on_task_joined(self, hello: Hello, send: Callable[[ControlMessage], None]) -> None:
        """A task attempt has connected; `send` sends messages to it."""
        ...

    def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
        """A task attempt has sent a message."""
        ...

    def on_task_left(self, hello: Hello) -> None:
        """The connection of a task attempt is closed."""
        ...

    def end_epoch(self) -> None:
        """Have the connected tasks give all leases back. May be called again."""
        ...

    def drain_tasks(self, tasks: Collection[int]) -> None:
        """Have the connected attempts of these tasks give all leases back."""
        ...

    def drain(self) -> None:
        """Have every task give all leases back, and grant none from now on."""
        ...

    def is_drained(self) -> bool:
        """Whether `drain` was called and no partition is leased any more."""
        ...

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task to so many bytes per second; 0 means no limit."""
        ...

    def replan(self, job: CopyJob) -> None:
        """Continue with another job of the same connector, without a new epoch."""
        ...

    def renew_membership(self, valid_until: float, *, is_alone: bool) -> None:
        """The worker is a member of its group until then, by the monotonic clock."""
        ...

    def snapshot(self) -> CopySnapshot:
        """The state of all partitions."""
        ...

    def problems(self) -> Sequence[str]:
        """What does not work and ends nothing. A text may contain the reason of a partition."""
        ...

    def close_epoch(self, epoch: int, returned: Collection[AttemptEpoch]) -> list[MissingReceipt]:
        """End an epoch; returns the receipts of all attempts but the `returned` ones."""
        ...

    def failure(self) -> Exception | None:
        """Why it has stopped by itself, if it has."""
        ...

    def cancel(self) -> None:
        """Give up: end all calls to clusters and write nothing more. `stop` follows."""
        ...

    def stop(self) -> None:
        """Stop, and write the last positions to the offsets topic."""
        ...
