"""The task attempts that are connected: who they are, when they were last heard, who has gone.

A task has one attempt at a time; whoever comes later replaces whoever was there. Knows nothing of
partitions and decides nothing: the conductor does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkmirror.copy.messages import Dismiss, Drain, Hello, Message
from sparkmirror.copy.term import Term

Send = Callable[[Message], None]


@dataclass(slots=True, eq=False)
class Attempt:
    """A task attempt that is connected."""

    hello: Hello
    send: Send
    heard_at: float
    is_leaving: bool = False
    term: Term | None = None
    """Under which it commits, in exactly-once mode; None until it has one, and after it failed."""

    def drain(self) -> None:
        """Ask for everything back; it gets nothing more."""
        self.is_leaving = True
        self.send(Drain())

    def dismiss(self, why: str) -> None:
        """Tell it, should it still be there, that nothing it had is its own any more."""
        self.is_leaving = True
        self.send(Dismiss(why=why))


class Attempts:
    """One attempt per task."""

    def __init__(self) -> None:
        self._by_task: dict[int, Attempt] = {}

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._by_task.values()))

    def of(self, hello: Hello) -> Attempt | None:
        """The attempt that said this hello, unless it was given up or replaced."""
        attempt = self._by_task.get(hello.task)
        return attempt if attempt and attempt.hello == hello else None

    def before(self, hello: Hello) -> Attempt | None:
        """Whoever is there already for the task of a newcomer."""
        return self._by_task.get(hello.task)

    def add(self, attempt: Attempt) -> None:
        """Let a newcomer in."""
        self._by_task[attempt.hello.task] = attempt

    def remove(self, hello: Hello) -> None:
        """See an attempt off."""
        if self.of(hello):
            del self._by_task[hello.task]

    def staying(self) -> list[Attempt]:
        """Those that may get leases."""
        return [attempt for attempt in self if not attempt.is_leaving]

    def silent_since(self, moment: float) -> list[Attempt]:
        """Those that were last heard before a moment."""
        return [attempt for attempt in self if attempt.heard_at < moment]
