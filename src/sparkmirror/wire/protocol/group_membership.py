"""Membership in a group of the classic protocol: join, sync, heartbeat, leave, describe.

A member joins twice: the first answer only gives it an id. The leader gets what every member said
when it joined. It sends the assignments of all members with SyncGroup; the others wait for theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, CoordinatorOf, CoordinatorType, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

JOIN_GROUP = Api(JoinGroupRequest, JoinGroupResponse, range(4, 6))
SYNC_GROUP = Api(SyncGroupRequest, SyncGroupResponse, range(3, 4))
HEARTBEAT = Api(HeartbeatRequest, HeartbeatResponse, range(3, 4))
LEAVE_GROUP = Api(LeaveGroupRequest, LeaveGroupResponse, range(3, 4))
DESCRIBE_MEMBERS = Api(DescribeGroupsRequest, DescribeGroupsResponse, range(2, 5))
NEW_MEMBER = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProtocol:
    """How a member joins. A group accepts only members of its protocol type and protocol."""

    group_id: str
    protocol_type: str
    protocol: str
    session_timeout_ms: int
    rebalance_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedGroup:
    """A member's place in one generation of its group."""

    member_id: str
    generation: int
    leader: str
    metadata: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """What each member said when it joined, by member id. Only the leader gets it."""

    @property
    def is_leader(self) -> bool:
        """Whether the member leads the group."""
        return self.member_id == self.leader


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member as its coordinator knows it."""

    member_id: str
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembers:
    """The members of a group, and the type and name of its protocol, empty without members."""

    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]


def describe_members(
    router: Router, group_id: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> GroupMembers:
    """Return the members of a group. A group that does not exist has none. Raises ClusterError."""
    answer = router.call(
        DESCRIBE_MEMBERS,
        lambda: DescribeGroupsRequest(groups=[group_id]),
        _coordinator(group_id),
        codes=lambda answer: [group.error_code for group in answer.groups],
        timeout_s=timeout_s,
    )
    (group,) = answer.groups
    if group.error_code and group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        raise error_for_code(
            router.client.cluster, DESCRIBE_MEMBERS.name, ErrorCode(group.error_code), group_id
        )
    return GroupMembers(
        protocol_type=group.protocol_type,
        protocol=group.protocol_data,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                client_id=member.client_id,
                client_host=member.client_host.lstrip("/"),
            )
            for member in group.members
        ),
    )


def join_group(
    router: Router,
    protocol: GroupProtocol,
    member_id: str = NEW_MEMBER,
    metadata: bytes = b"",
    *,
    on_member_id: Callable[[str], None] = lambda _member_id: None,
    timeout_s: float = CALL_TIMEOUT_S,
) -> JoinedGroup | ErrorCode:
    """Join a group, or join it again. `sync_group` must follow.

    Blocks until all members have joined. `on_member_id` gets the id that the coordinator gives to a
    new member before it waits for the others. Returns the member's place, or the code of a refusal
    that the caller decides about.
    """
    answer = _send_join(router, protocol, member_id, metadata, timeout_s)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        on_member_id(answer.member_id)
        answer = _send_join(router, protocol, answer.member_id, metadata, timeout_s)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return JoinedGroup(
        member_id=answer.member_id,
        generation=answer.generation_id,
        leader=answer.leader,
        metadata={member.member_id: bytes(member.metadata) for member in answer.members},
    )


def sync_group(
    router: Router,
    group_id: str,
    joined: JoinedGroup,
    assignments: Mapping[str, bytes],
    *,
    timeout_s: float = CALL_TIMEOUT_S,
) -> bytes | ErrorCode:
    """Send the assignments of all members as the leader, none otherwise; return the own one.

    Blocks until the leader has sent them. Returns the code of a refusal that the caller decides
    about.
    """
    answer = router.call(
        SYNC_GROUP,
        lambda: SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation,
            member_id=joined.member_id,
            group_instance_id=None,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        ),
        _coordinator(group_id),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    return ErrorCode(answer.error_code) if answer.error_code else bytes(answer.assignment)


def _send_join(
    router: Router, protocol: GroupProtocol, member_id: str, metadata: bytes, timeout_s: float
) -> JoinGroupResponse:
    return router.call(
        JOIN_GROUP,
        lambda: JoinGroupRequest(
            group_id=protocol.group_id,
            session_timeout_ms=protocol.session_timeout_ms,
            rebalance_timeout_ms=protocol.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=None,
            protocol_type=protocol.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=protocol.protocol, metadata=metadata)
            ],
        ),
        _coordinator(protocol.group_id),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )


def send_heartbeat(
    router: Router, group_id: str, joined: JoinedGroup, *, timeout_s: float = CALL_TIMEOUT_S
) -> ErrorCode:
    """Keep the membership; return the code of the coordinator."""
    answer = router.call(
        HEARTBEAT,
        lambda: HeartbeatRequest(
            group_id=group_id,
            generation_id=joined.generation,
            member_id=joined.member_id,
            group_instance_id=None,
        ),
        _coordinator(group_id),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    return ErrorCode(answer.error_code)


def leave_group(
    router: Router, group_id: str, member_ids: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> None:
    """Remove members from a group. Raises ClusterError; a member that is gone is no error."""
    answer = router.call(
        LEAVE_GROUP,
        lambda: LeaveGroupRequest(
            group_id=group_id,
            members=[
                LeaveGroupRequest.MemberIdentity(member_id=member, group_instance_id=None)
                for member in member_ids
            ],
        ),
        _coordinator(group_id),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    if answer.error_code and answer.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
        raise error_for_code(
            router.client.cluster, LEAVE_GROUP.name, ErrorCode(answer.error_code), group_id
        )


def _coordinator(group_id: str) -> CoordinatorOf:
    return CoordinatorOf(CoordinatorType.GROUP, group_id)
