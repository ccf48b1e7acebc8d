"""The connected task attempts: one per task, a later attempt replaces an earlier one.

Knows no partitions and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkmirror.copy.control.messages import AbortTask, ControlMessage, Drain, Hello
from sparkmirror.copy.transactional_producer_config import TransactionalProducer

SendMessage = Callable[[ControlMessage], None]


@dataclass(slots=True, eq=False)
class TaskAttempt:
    """A connected task attempt."""

    hello: Hello
    send: SendMessage
    last_message_at: float
    is_draining: bool = False
    transactional_producer: TransactionalProducer | None = None
    """Commits its transactions in exactly-once mode; None before the first and after a failure."""

    def drain(self) -> None:
        """Ask the attempt for all leases; it gets no more."""
        self.is_draining = True
        self.send(Drain())

    def abort(self, reason: str) -> None:
        """Tell the attempt, if it still runs, that it owns no lease any more."""
        self.is_draining = True
        self.send(AbortTask(reason=reason))


class TaskAttempts:
    """One attempt per task."""

    def __init__(self) -> None:
        self._by_task: dict[int, TaskAttempt] = {}

    def __iter__(self) -> Iterator[TaskAttempt]:
        return iter(list(self._by_task.values()))

    def find(self, hello: Hello) -> TaskAttempt | None:
        """Return the attempt that sent this hello; None if it was removed or replaced."""
        attempt = self._by_task.get(hello.task)
        return attempt if attempt and attempt.hello == hello else None

    def current_for(self, hello: Hello) -> TaskAttempt | None:
        """Return the connected attempt of the same task."""
        return self._by_task.get(hello.task)

    def add(self, attempt: TaskAttempt) -> None:
        """Add an attempt; it replaces an earlier attempt of its task."""
        self._by_task[attempt.hello.task] = attempt

    def remove(self, hello: Hello) -> None:
        """Remove an attempt, unless another one has replaced it."""
        if self.find(hello):
            del self._by_task[hello.task]

    def active(self) -> list[TaskAttempt]:
        """Return the attempts that may get leases."""
        return [attempt for attempt in self if not attempt.is_draining]

    def oldest_message_at(self) -> float:
        """Return when the attempt that has been silent for longest sent its last message.

        Without an attempt that is infinite.
        """
        return min((attempt.last_message_at for attempt in self), default=math.inf)

    def silent_since(self, moment: float) -> list[TaskAttempt]:
        """Return the attempts whose last message came before a moment."""
        return [attempt for attempt in self if attempt.last_message_at < moment]
