"""The exception for an error code in a response."""

from __future__ import annotations

from typing import Final

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RequestRefused,
    TopicMissing,
    UnsupportedByBroker,
)
from sparkmirror.wire.net.endpoint_errors import CHECK_BROKER
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode

_RESOURCES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ("the topic", "--topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ("the group", "--group"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ("the cluster", "--cluster"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "the transactional id",
        "--transactional-id",
    ),
}
_OPERATIONS: Final = {
    "Metadata": "Describe",
    "Fetch": "Read",
    "Produce": "Write",
    "ListOffsets": "Describe",
    "OffsetForLeaderEpoch": "Describe",
    "ListGroups": "Describe",
    "DescribeGroups": "Describe",
    "ConsumerGroupDescribe": "Describe",
    "FindCoordinator": "Describe",
    "OffsetFetch": "Describe",
    "OffsetCommit": "Read",
    "JoinGroup": "Read",
    "SyncGroup": "Read",
    "Heartbeat": "Read",
    "LeaveGroup": "Read",
    "CreateTopics": "Create",
    "CreatePartitions": "Alter",
    "DeleteTopics": "Delete",
    "DescribeConfigs": "DescribeConfigs",
    "AlterConfigs": "AlterConfigs",
    "IncrementalAlterConfigs": "AlterConfigs",
    "DescribeAcls": "Describe",
    "CreateAcls": "Alter",
    "DescribeCluster": "Describe",
    "AddPartitionsToTxn": "Write",
    "EndTxn": "Write",
    "TxnOffsetCommit": "Write",
}
"""The right that each API needs on the resource that its error code names."""


def _missing_right(api: str, code: ErrorCode) -> str:
    """Return what to grant, with the options of kafka-acls where they are known."""
    resource = _RESOURCES.get(code)
    operation = _OPERATIONS.get(api)
    if api == "InitProducerId":
        is_cluster = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        operation = "IdempotentWrite" if is_cluster else "Write"
    if resource is None or operation is None:
        return "grant the right it needs"
    what, option = resource
    return f"grant {operation} on {what} (kafka-acls --add --operation {operation} {option})"


def error_for_code(
    cluster: str, api: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Return the exception for an error code of a response. RequestRefused keeps the code."""
    what = f"{api} answered {code}" + (f": {message}" if message else "")
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return NotAuthorized(cluster, f"{what}; {_missing_right(api, code)}")
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return TopicMissing(cluster, f"{what}; create the topic, or allow this user to describe it")
    if code is ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedByBroker(cluster, what)  # a service may list an API and refuse it
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ClusterTimeout(cluster, f"{what}; {CHECK_BROKER}")
    if code.is_retriable:
        return ClusterUnavailable(cluster, f"{what}; try again in a while")
    if code.action is ErrorAction.FENCED:
        what += "; another producer has taken over, so this one must stop"
    return RequestRefused(cluster, what, code=code.value)
