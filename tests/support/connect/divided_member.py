"""A leader of two workers: the other one runs every connector and its task 0, this one the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.sole_member import sole_assignment
from sparkmirror.connect.distributed.worker_group_member import WorkerRebalanceListener
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState

OTHER = "other:8083"


class DividedMember:
    """A WorkerGroupMember that assigns at once, in the thread that asks for it."""

    def __init__(self) -> None:
        self._assignment: Assignment | None = None
        self._assign: Callable[[], None] = lambda: None

    def start(
        self,
        listener: WorkerRebalanceListener,
        get_state: Callable[[], WorkerState],
        get_configured: Callable[[int], ConfiguredWork],
    ) -> None:
        def assign() -> None:
            whole = sole_assignment(get_state(), get_configured(-1), self._assignment)
            self._assignment = _divide(whole)
            listener.on_assigned(self._assignment)

        self._assign = assign
        assign()

    def request_rejoin(self, reason: str) -> None:
        del reason
        self._assign()

    def leave(self) -> None:
        """No-op."""

    def assignment(self) -> Assignment | None:
        return self._assignment

    def problem(self) -> str:
        return ""

    def warning(self) -> str:
        return ""

    def valid_until(self) -> float:
        return float("inf")


def _divide(whole: Assignment) -> Assignment:
    own = whole.own_share
    first = frozenset(ConnectorTaskId(connector=name, task=0) for name in own.connectors)
    other = MemberShare(
        worker_id=OTHER,
        url=f"http://{OTHER}",
        connectors=own.connectors,
        tasks=own.tasks & first,
    )
    rest = replace(own, connectors=frozenset(), tasks=own.tasks - first)
    return replace(whole, shares={whole.member_id: rest, OTHER: other})
