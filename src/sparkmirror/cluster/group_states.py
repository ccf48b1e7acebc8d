"""The state of a consumer group, from its coordinator.

DescribeGroups describes classic groups, ConsumerGroupDescribe groups of the new protocol (KIP-848).
Both responses begin alike. Only that part is read: the rest depends on the protocol of the members.

    throttle time, [ error code, (error message,) group id, state, ... ]
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.backoff import seconds_left
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, CoordinatorOf, CoordinatorType, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.primitive_types import (
    EMPTY_TAG_BUFFER,
    INT16,
    INT32,
    encode_compact_string,
    encode_string,
    encode_uvarint,
    read_array_length,
    read_compact_array_length,
    read_compact_string,
    read_string,
)

EMPTY_STATE = "Empty"
"""The state of a group that has offsets and no members."""
_DEAD_STATE = "Dead"
"""The state of a group that does not exist, on brokers without an error code for it."""
_NO_OPERATIONS = b"\x00"
_FIRST_WITH_OPERATIONS = 3
_FIRST_FLEXIBLE = 5
_FIRST_WITH_MESSAGE = 6


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """A DescribeGroups request for one group, without authorized operations."""

    group: str
    API_KEY = 15

    def encode(self, version: int | None = None) -> bytes:
        """Encode the body."""
        assert version is not None
        if self.flexible_version_q(version):
            return (
                encode_uvarint(2)
                + encode_compact_string(self.group)
                + _NO_OPERATIONS
                + EMPTY_TAG_BUFFER
            )
        operations = _NO_OPERATIONS if version >= _FIRST_WITH_OPERATIONS else b""
        return INT32.pack(1) + encode_string(self.group) + operations

    @classmethod
    def flexible_version_q(cls, version: int) -> bool:
        """Whether a version is flexible (KIP-482)."""
        return version >= _FIRST_FLEXIBLE


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest:
    """A ConsumerGroupDescribe request for one group."""

    group: str
    API_KEY = 69

    def encode(self, version: int | None = None) -> bytes:
        """Encode the body, which is the same in all versions."""
        del version
        return (
            encode_uvarint(2)
            + encode_compact_string(self.group)
            + _NO_OPERATIONS
            + EMPTY_TAG_BUFFER
        )

    @classmethod
    def flexible_version_q(cls, version: int) -> bool:
        """Every version is flexible (KIP-482)."""
        return version >= 0


@dataclass(frozen=True, slots=True)
class _DescribedGroup:
    """The first fields of a described group."""

    error_code: int
    state: str


class DescribeGroupsResponse(_DescribedGroup):
    """A DescribeGroups response."""

    @classmethod
    def decode(cls, data: memoryview, version: int | None = None) -> _DescribedGroup:
        """Decode the body."""
        assert version is not None
        return _read(
            data, flexible=version >= _FIRST_FLEXIBLE, has_message=version >= _FIRST_WITH_MESSAGE
        )


class ConsumerGroupDescribeResponse(_DescribedGroup):
    """A ConsumerGroupDescribe response."""

    @classmethod
    def decode(cls, data: memoryview, version: int | None = None) -> _DescribedGroup:
        """Decode the body."""
        del version
        return _read(data, flexible=True, has_message=True)


DESCRIBE_GROUPS = Api(DescribeGroupsRequest, DescribeGroupsResponse, range(1, 7))
CONSUMER_GROUP_DESCRIBE = Api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, range(2))


def describe_group_state(
    router: Router, group: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> str | None:
    """Return the state of a group in Kafka's words; None if the group does not exist."""
    deadline = time.monotonic() + timeout_s
    to = CoordinatorOf(CoordinatorType.GROUP, group)
    answer: _DescribedGroup = router.call(
        DESCRIBE_GROUPS,
        lambda: DescribeGroupsRequest(group),
        to,
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    if _is_absent(answer) and _supports_consumer_protocol(router, to, seconds_left(deadline)):
        answer = router.call(
            CONSUMER_GROUP_DESCRIBE,
            lambda: ConsumerGroupDescribeRequest(group),
            to,
            codes=lambda answer: (answer.error_code,),
            timeout_s=seconds_left(deadline),
        )
        # Kafka 3.8 and 3.9 list this API also while the new protocol is off. Then the broker has
        # only classic groups, and its first response holds.
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            return None
    if _is_absent(answer):
        return None
    if answer.error_code:
        raise error_for_code(
            router.client.cluster, DESCRIBE_GROUPS.name, ErrorCode(answer.error_code), group
        )
    return answer.state


def _is_absent(answer: _DescribedGroup) -> bool:
    return answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (
        not answer.error_code and answer.state == _DEAD_STATE
    )


def _supports_consumer_protocol(router: Router, to: CoordinatorOf, timeout_s: float) -> bool:
    connection = router.connection_to(to, timeout_s=timeout_s)
    return connection.api_versions.supports(ConsumerGroupDescribeRequest.API_KEY)


def _read(data: memoryview, *, flexible: bool, has_message: bool) -> _DescribedGroup:
    text = read_compact_string if flexible else read_string
    count, at = (read_compact_array_length if flexible else read_array_length)(data, INT32.size)
    if count != 1:
        raise ValueError(f"{count} groups in the response to a request for one")
    (code,) = INT16.unpack_from(data, at)
    at += INT16.size
    if has_message:
        _, at = text(data, at)
    _, at = text(data, at)
    state, _ = text(data, at)
    return _DescribedGroup(code, state or "")
