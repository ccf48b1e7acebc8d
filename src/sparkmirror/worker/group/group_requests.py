"""The requests of one worker to the coordinator of its group, through one connection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.errors import CallCancelled, ClusterError
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.group_membership import (
    HEARTBEAT,
    GroupMembers,
    GroupProtocol,
    JoinedGroup,
    describe_members,
    join_group,
    leave_group,
    send_heartbeat,
    sync_group,
)
from sparkmirror.worker.group import conflicting_members
from sparkmirror.worker.group.group_settings import WorkerGroupSettings

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 15.0
LEAVE_TIMEOUT_S = 3.0


class GroupRequests:
    """Asks the coordinator of a group. Every method blocks and raises ClusterError."""

    def __init__(self, router: Router, settings: WorkerGroupSettings, cluster: str) -> None:
        """`cluster` is the alias that errors name."""
        self._router = router
        self._group_id = settings.group_id
        self._cluster = cluster
        self._rebalance_s = settings.rebalance_timeout_ms / 1000
        self._protocol = GroupProtocol(
            group_id=settings.group_id,
            protocol_type=conflicting_members.PROTOCOL_TYPE,
            protocol=conflicting_members.PROTOCOL,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
        )

    def describe(self) -> GroupMembers:
        """Return the members of the group."""
        return describe_members(self._router, self._group_id, timeout_s=REQUEST_TIMEOUT_S)

    def join(
        self, member_id: str, state: bytes, on_member_id: Callable[[str], None]
    ) -> JoinedGroup | ErrorCode:
        """Join with the state of this worker. Waits for the other members."""
        return join_group(
            self._router,
            self._protocol,
            member_id,
            state,
            on_member_id=on_member_id,
            timeout_s=self._rebalance_s + REQUEST_TIMEOUT_S,
        )

    def sync(self, joined: JoinedGroup, assignments: Mapping[str, bytes]) -> bytes | ErrorCode:
        """Return the own assignment; the leader brings those of all members."""
        return sync_group(
            self._router, self._group_id, joined, assignments, timeout_s=REQUEST_TIMEOUT_S
        )

    def send_heartbeat(self, joined: JoinedGroup) -> ErrorCode:
        """Keep the session. Raises NotAuthorized if the right to the group is missing."""
        code = send_heartbeat(self._router, self._group_id, joined, timeout_s=REQUEST_TIMEOUT_S)
        self.check_right(HEARTBEAT.name, code)
        return code

    def check_right(self, api: str, code: ErrorCode) -> None:
        """Raise NotAuthorized if the coordinator answered that a right is missing."""
        if code.action is ErrorAction.NOT_AUTHORIZED:
            raise error_for_code(self._cluster, api, code, self._group_id)

    def remove(self, member_ids: Sequence[str]) -> None:
        """Remove members that killed processes have left behind."""
        leave_group(self._router, self._group_id, member_ids, timeout_s=REQUEST_TIMEOUT_S)

    def leave(self, member_id: str) -> None:
        """Leave the group; logs an error of the cluster. Raises only CallCancelled."""
        try:
            leave_group(self._router, self._group_id, [member_id], timeout_s=LEAVE_TIMEOUT_S)
        except CallCancelled:
            raise
        except ClusterError as error:
            log.warning("Group %s: the worker cannot leave: %s", self._group_id, error)
