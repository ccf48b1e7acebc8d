"""Membership of a worker in its group, as the herder uses it. `worker` implements it in Kafka."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState


class WorkerRebalanceListener(Protocol):
    """What the herder does when its share changes. One thread calls it, one method at a time."""

    def is_prepared(self) -> bool:
        """Prepare for tasks that other members run; return whether this worker may join them.

        The member asks again until then. Does not block.
        """
        ...

    def on_assigned(self, assignment: Assignment) -> None:
        """Run the own share of the assignment, and nothing else. Does not block for long."""
        ...

    def on_revoked(self, connectors: Collection[str], tasks: Collection[ConnectorTaskId]) -> None:
        """Return when these have stopped, or after the time that a stop may take.

        Follows `on_assigned` with an assignment that does not have them any more.
        """
        ...

    def on_lost(self) -> None:
        """Stop everything: other workers may run it by now. Blocks like `on_revoked`."""
        ...

    def on_failed(self, error: Exception) -> None:
        """End this worker: it must not be a member of its group."""
        ...


class WorkerGroupMember(Protocol):
    """One member of a worker group."""

    def start(
        self,
        listener: WorkerRebalanceListener,
        get_state: Callable[[], WorkerState],
        get_configured: Callable[[int], ConfiguredWork],
    ) -> None:
        """Join the group in a thread. `on_assigned` follows.

        The member calls `get_state` before each join. While it leads the group, it calls
        `get_configured` with the config offset that other members have read: the work is at least
        as new as that.
        """
        ...

    def request_rejoin(self, reason: str) -> None:
        """Join again soon: the connectors or tasks of the config topic have changed."""
        ...

    def leave(self) -> None:
        """Leave the group, so that other workers take over at once."""
        ...

    def assignment(self) -> Assignment | None:
        """Return the last assignment; None before the first, and after the membership was lost.

        While a rebalance is under way it is the one before.
        """
        ...

    def problem(self) -> str:
        """Return why this worker may not run yet; empty if it may."""
        ...

    def warning(self) -> str:
        """Return why this worker is no member although it runs; empty if it is one."""
        ...

    def valid_until(self) -> float:
        """Return until when no other worker gets this one's share, by the monotonic clock."""
        ...
