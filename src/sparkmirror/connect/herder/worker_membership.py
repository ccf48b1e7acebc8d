"""Membership of a worker in its group, as the herder uses it. `worker` implements it in Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class WorkerMembership(Protocol):
    """Keeps two workers from running the same connectors."""

    def await_turn(self, on_lost: Callable[[Exception], None]) -> None:
        """Wait until no other worker is a member. `on_lost` gets the error if one takes over."""
        ...

    def leave(self) -> None:
        """Leave the group, so that another worker can start at once."""
        ...

    def problem(self) -> str:
        """Return which other worker this one waits for; empty if for none."""
        ...

    def warning(self) -> str:
        """Return why this worker would not notice another one; empty if it would."""
        ...


class NoMembership:
    """The membership of a herder without a group."""

    def await_turn(self, on_lost: Callable[[Exception], None]) -> None:
        """Return at once."""

    def leave(self) -> None:
        """No-op."""

    def problem(self) -> str:
        """Return no problem."""
        return ""

    def warning(self) -> str:
        """Return no warning."""
        return ""
