"""The task attempts that are connected: who they are, when they were last heard, who has gone.

A task has one attempt at a time; whoever comes later replaces whoever was there. Knows nothing of
partitions and decides nothing: the conductor does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkmirror.copy.control.messages import AbortTask, ControlMessage, Drain, Hello
from sparkmirror.copy.transactional_producer import TransactionalProducer

SendMessage = Callable[[ControlMessage], None]


@dataclass(slots=True, eq=False)
class TaskAttempt:
    """A task attempt that is connected."""

    hello: Hello
    send: SendMessage
    last_message_at: float
    is_draining: bool = False
    transactional_producer: TransactionalProducer | None = None
    """Under which it commits, in exactly-once mode; None until it has one, and after it failed."""

    def drain(self) -> None:
        """Ask for everything back; it gets nothing more."""
        self.is_draining = True
        self.send(Drain())

    def abort(self, why: str) -> None:
        """Tell it, should it still be there, that nothing it had is its own any more."""
        self.is_draining = True
        self.send(AbortTask(reason=why))


class TaskAttempts:
    """One attempt per task."""

    def __init__(self) -> None:
        self._by_task: dict[int, TaskAttempt] = {}

    def __iter__(self) -> Iterator[TaskAttempt]:
        return iter(list(self._by_task.values()))

    def find(self, hello: Hello) -> TaskAttempt | None:
        """The attempt that said this hello, unless it was given up or replaced."""
        attempt = self._by_task.get(hello.task)
        return attempt if attempt and attempt.hello == hello else None

    def current_for(self, hello: Hello) -> TaskAttempt | None:
        """Whoever is there already for the task of a newcomer."""
        return self._by_task.get(hello.task)

    def add(self, attempt: TaskAttempt) -> None:
        """Let a newcomer in."""
        self._by_task[attempt.hello.task] = attempt

    def remove(self, hello: Hello) -> None:
        """See an attempt off."""
        if self.find(hello):
            del self._by_task[hello.task]

    def active(self) -> list[TaskAttempt]:
        """Those that may get leases."""
        return [attempt for attempt in self if not attempt.is_draining]

    def silent_since(self, moment: float) -> list[TaskAttempt]:
        """Those that were last heard before a moment."""
        return [attempt for attempt in self if attempt.last_message_at < moment]
