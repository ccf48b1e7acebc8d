"""What the leader of a worker group does in a rebalance: divides the work among the members."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.connect_protocol import decode_state, encode_assignment
from sparkmirror.connect.distributed.cooperative_assignor import (
    AssignorMemory,
    IncrementalCooperativeAssignor,
)
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState
from sparkmirror.wire.protocol.group_membership import JoinedGroup


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


class LeaderAssignments:
    """The leader's part. Remembers what is held for lost members."""

    def __init__(
        self, max_delay_ms: int, *, is_exclusive: bool, now_ms: Callable[[], int] = _now_ms
    ) -> None:
        """`is_exclusive`: the leader runs everything; other members wait until it has left."""
        self._assignor = IncrementalCooperativeAssignor(max_delay_ms)
        self._is_exclusive = is_exclusive
        self._now_ms = now_ms
        self._memory = AssignorMemory()

    def follow(self, assignment: Assignment) -> None:
        """Remember what another leader has assigned: this worker may be the next leader."""
        self._memory = AssignorMemory(shares=tuple(assignment.shares.values()))

    def assign(
        self,
        joined: JoinedGroup,
        get_configured: Callable[[int], ConfiguredWork],
        before: Assignment | None,
    ) -> Mapping[str, bytes]:
        """Return the assignment of each member. Raises NewerWorker or RecordError.

        A member of a version without shares gets no work: it leaves by itself.
        """
        assert joined.is_leader
        decoded = {member: decode_state(data) for member, data in joined.metadata.items()}
        states = {member: state for member, state in decoded.items() if state is not None}
        configured = get_configured(max(state.config_offset for state in states.values()))
        working = {joined.member_id: states[joined.member_id]} if self._is_exclusive else states
        result = self._assignor.assign(working, configured, self._memory, self._now_ms())
        self._memory = result.memory
        shares = {**_empty_shares(states), **result.shares}
        return {
            member: encode_assignment(
                Assignment(
                    generation=next_generation(configured, before),
                    member_id=member,
                    leader_id=joined.member_id,
                    config_offset=configured.config_offset,
                    shares=shares,
                    task_counts=configured.task_counts,
                    revoked_connectors=result.revoked_connectors.get(member, frozenset()),
                    revoked_tasks=result.revoked_tasks.get(member, frozenset()),
                    delay_ms=result.delay_ms,
                )
            )
            for member in states
        }


def next_generation(configured: ConfiguredWork, before: Assignment | None) -> int:
    """Return a generation above all that this worker knows of."""
    return max(configured.last_generation, before.generation if before else 0) + 1


def _empty_shares(states: Mapping[str, WorkerState]) -> dict[str, MemberShare]:
    return {
        member: MemberShare(worker_id=state.worker_id, url=state.url)
        for member, state in states.items()
    }
