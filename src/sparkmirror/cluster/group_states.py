"""How a consumer group is doing, asked of its coordinator: one group, one question.

Classic groups answer DescribeGroups, groups of the new protocol (KIP-848) ConsumerGroupDescribe.
Both answers begin alike, and only their beginning is read: what members say of themselves is in a
form that depends on who they are, and of no interest here.

    throttle time, [ error code, (error message,) group id, state, ... ]
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.wire.codes import Code
from sparkmirror.wire.fields import (
    INT16,
    INT32,
    NO_TAGS,
    compact_string,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    string,
    uvarint,
)
from sparkmirror.wire.messages import Api
from sparkmirror.wire.place import refusal
from sparkmirror.wire.routing import (
    CALL_TIMEOUT_S,
    CoordinatorKind,
    CoordinatorOf,
    Router,
)

EMPTY = "Empty"
"""The state of a group that has offsets and no members."""
_DEAD = "Dead"
"""What a coordinator that knows no such group calls it, unless it has a code for that."""
_NO_OPERATIONS = b"\x00"
_WITH_OPERATIONS = 3
_FLEXIBLE = 5
_WITH_MESSAGE = 6


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """A DescribeGroups request for one group. Nobody's rights are asked for."""

    group: str
    API_KEY = 15

    def encode(self, version: int | None = None) -> bytes:
        """Write the body."""
        assert version is not None
        if self.flexible_version_q(version):
            return uvarint(2) + compact_string(self.group) + _NO_OPERATIONS + NO_TAGS
        operations = _NO_OPERATIONS if version >= _WITH_OPERATIONS else b""
        return INT32.pack(1) + string(self.group) + operations

    @classmethod
    def flexible_version_q(cls, version: int) -> bool:
        """Tell whether a version speaks the flexible dialect."""
        return version >= _FLEXIBLE


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest:
    """A ConsumerGroupDescribe request for one group."""

    group: str
    API_KEY = 69

    def encode(self, version: int | None = None) -> bytes:
        """Write the body, which is the same in all versions."""
        del version
        return uvarint(2) + compact_string(self.group) + _NO_OPERATIONS + NO_TAGS

    @classmethod
    def flexible_version_q(cls, version: int) -> bool:
        """Tell that every version speaks the flexible dialect."""
        return version >= 0


@dataclass(frozen=True, slots=True)
class _Described:
    """The beginning of what an answer says of the group."""

    code: int
    state: str


class DescribeGroupsResponse(_Described):
    """A DescribeGroups answer."""

    @classmethod
    def decode(cls, data: memoryview, version: int | None = None) -> _Described:
        """Read the body."""
        assert version is not None
        return _read(data, flexible=version >= _FLEXIBLE, has_message=version >= _WITH_MESSAGE)


class ConsumerGroupDescribeResponse(_Described):
    """A ConsumerGroupDescribe answer."""

    @classmethod
    def decode(cls, data: memoryview, version: int | None = None) -> _Described:
        """Read the body."""
        del version
        return _read(data, flexible=True, has_message=True)


DESCRIBE_GROUPS = Api(DescribeGroupsRequest, DescribeGroupsResponse, range(1, 7))
CONSUMER_GROUP_DESCRIBE = Api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, range(2))


def group_state(router: Router, group: str, *, timeout_s: float = CALL_TIMEOUT_S) -> str | None:
    """Ask in which state a group is, in Kafka's words; None if there is no such group."""
    to = CoordinatorOf(CoordinatorKind.GROUP, group)
    answer: _Described = router.call(
        DESCRIBE_GROUPS,
        lambda: DescribeGroupsRequest(group),
        to,
        codes=lambda answer: (answer.code,),
        timeout_s=timeout_s,
    )
    if _is_absent(answer) and _knows_new_protocol(router, to, timeout_s):
        answer = router.call(
            CONSUMER_GROUP_DESCRIBE,
            lambda: ConsumerGroupDescribeRequest(group),
            to,
            codes=lambda answer: (answer.code,),
            timeout_s=timeout_s,
        )
    if _is_absent(answer):
        return None
    if answer.code:
        raise refusal(router.client.cluster, DESCRIBE_GROUPS.name, Code(answer.code), group)
    return answer.state


def _is_absent(answer: _Described) -> bool:
    return answer.code == Code.GROUP_ID_NOT_FOUND or (not answer.code and answer.state == _DEAD)


def _knows_new_protocol(router: Router, to: CoordinatorOf, timeout_s: float) -> bool:
    link = router.connection_to(to, timeout_s=timeout_s)
    return link.versions.offers(ConsumerGroupDescribeRequest.API_KEY)


def _read(data: memoryview, *, flexible: bool, has_message: bool) -> _Described:
    text = read_compact_string if flexible else read_string
    count, at = (read_compact_count if flexible else read_count)(data, INT32.size)
    if count != 1:
        raise ValueError(f"{count} groups in the answer to a question about one")
    (code,) = INT16.unpack_from(data, at)
    at += INT16.size
    if has_message:
        _, at = text(data, at)
    _, at = text(data, at)
    state, _ = text(data, at)
    return _Described(code, state or "")
