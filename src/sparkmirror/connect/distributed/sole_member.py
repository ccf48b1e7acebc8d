"""The membership of a herder without a group: it runs everything."""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.cooperative_assignor import (
    AssignorMemory,
    IncrementalCooperativeAssignor,
)
from sparkmirror.connect.distributed.worker_group_member import WorkerRebalanceListener
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState

SOLE_MEMBER_ID = "sole-member"


def sole_assignment(
    state: WorkerState,
    configured: ConfiguredWork,
    before: Assignment | None,
    member_id: str = SOLE_MEMBER_ID,
) -> Assignment:
    """Return the assignment of a worker that runs everything."""
    result = IncrementalCooperativeAssignor(0).assign(
        {member_id: state}, configured, AssignorMemory(), 0
    )
    return Assignment(
        generation=max(configured.last_generation, before.generation if before else 0) + 1,
        member_id=member_id,
        leader_id=member_id,
        config_offset=configured.config_offset,
        shares=result.shares,
        task_counts=configured.task_counts,
    )


class SoleMember:
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
        """Assign everything."""

        def assign() -> None:
            self._assignment = sole_assignment(get_state(), get_configured(-1), self._assignment)
            listener.on_assigned(self._assignment)

        self._assign = assign
        assign()

    def request_rejoin(self, reason: str) -> None:
        """Assign everything again."""
        del reason
        self._assign()

    def leave(self) -> None:
        """No-op."""

    def assignment(self) -> Assignment | None:
        """Return the last assignment."""
        return self._assignment

    def problem(self) -> str:
        """Return no problem."""
        return ""

    def warning(self) -> str:
        """Return no warning."""
        return ""

    def valid_until(self) -> float:
        """Return infinity: there is no other worker."""
        return float("inf")
