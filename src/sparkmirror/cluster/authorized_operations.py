"""What the principal of a client may do: the brokers' own answers. Changes nothing.

Brokers list the operations on topics, groups and the cluster (KIP-430, Kafka 2.3), but not those on
transactional ids and on topics that do not exist. There a request without an effect is sent, and
the error code is the answer: EndTxn with a producer id that does not exist, and CreateTopics that
only validates.
"""

from __future__ import annotations

from collections.abc import Collection

from sparkmirror.cluster.acls import AclOperation
from sparkmirror.errors import NotAuthorized
from sparkmirror.wire.net.routing import (
    CALL_TIMEOUT_S,
    AnyBroker,
    Controller,
    CoordinatorOf,
    CoordinatorType,
    Router,
)
from sparkmirror.wire.protocol.apis import END_TXN, METADATA, Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    EndTxnRequest,
    MetadataRequest,
)

Operations = frozenset[AclOperation]

NO_OPERATIONS: Operations = frozenset()
_METADATA_VERSIONS = range(8, 14)
_CREATE_TOPICS = Api(CreateTopicsRequest, CreateTopicsResponse, range(4, 8))
_DESCRIBE_CLUSTER = Api(DescribeClusterRequest, DescribeClusterResponse, range(3))
_DESCRIBE_GROUPS = Api(DescribeGroupsRequest, DescribeGroupsResponse, range(3, 6))
"""Version 6 has no operations for a group that does not exist."""
_UNKNOWN_PRODUCER_ID = (1 << 62) + 1


def topic_operations(
    router: Router, names: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, Operations | None]:
    """Return the operations on each topic; None for a topic that does not exist.

    Raises UnsupportedByBroker before Kafka 2.3.
    """
    if not names:
        return {}
    answer = router.call(
        METADATA,
        lambda: MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(names)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        AnyBroker(),
        codes=lambda answer: (answer.error_code or 0,),
        versions=_METADATA_VERSIONS,
        timeout_s=timeout_s,
    )
    found: dict[str, Operations | None] = {}
    for topic in answer.topics:
        code = ErrorCode(topic.error_code)
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found[topic.name or ""] = None
        elif code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            found[topic.name or ""] = NO_OPERATIONS
        else:
            found[topic.name or ""] = read_operations(topic.authorized_operations)
    return found


def may_create_topics(
    router: Router, names: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, bool]:
    """Return whether the principal may create each topic. Creates none."""
    if not names:
        return {}
    answer = router.call(
        _CREATE_TOPICS,
        lambda: CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=-1, replication_factor=-1, assignments=[], configs=[]
                )
                for name in sorted(names)
            ],
            timeout_ms=int(timeout_s * 1000),
            validate_only=True,
        ),
        Controller(),
        codes=lambda answer: [topic.error_code for topic in answer.topics],
        timeout_s=timeout_s,
    )
    refused = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    return {topic.name: ErrorCode(topic.error_code) not in refused for topic in answer.topics}


def group_operations(
    router: Router, group: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> Operations:
    """Return the operations on a group, whether it exists or not."""
    try:
        answer = router.call(
            _DESCRIBE_GROUPS,
            lambda: DescribeGroupsRequest(groups=[group], include_authorized_operations=True),
            CoordinatorOf(CoordinatorType.GROUP, group),
            codes=lambda answer: [one.error_code for one in answer.groups],
            timeout_s=timeout_s,
        )
    except NotAuthorized:
        return NO_OPERATIONS
    (described,) = answer.groups
    if described.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return NO_OPERATIONS
    return read_operations(described.authorized_operations)


def cluster_operations(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> Operations:
    """Return the operations on the cluster. Raises UnsupportedByBroker before Kafka 2.8."""
    answer = router.call(
        _DESCRIBE_CLUSTER,
        lambda: DescribeClusterRequest(include_cluster_authorized_operations=True),
        AnyBroker(),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    return read_operations(answer.authorized_operations)


def transactional_id_operations(
    router: Router, transactional_id: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> Operations:
    """Return which of Describe and Write are allowed on a transactional id that no producer uses.

    The id must be unused: the request names a producer id that does not exist.
    """
    to = CoordinatorOf(CoordinatorType.TRANSACTION, transactional_id)
    try:
        answer = router.call(
            END_TXN,
            lambda: EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=_UNKNOWN_PRODUCER_ID,
                producer_epoch=0,
                committed=False,
            ),
            to,
            codes=lambda answer: (answer.error_code,),
            timeout_s=timeout_s,
        )
    except NotAuthorized:
        return NO_OPERATIONS
    code = ErrorCode(answer.error_code)
    if code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return frozenset({AclOperation.DESCRIBE})
    if code in (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_EPOCH):
        return frozenset({AclOperation.DESCRIBE, AclOperation.WRITE})
    raise error_for_code(router.cluster, END_TXN.name, code)


def read_operations(codes: Collection[int]) -> Operations:
    """Return the operations with these codes. Codes of later Kafka releases are left out."""
    return frozenset(operation for operation in AclOperation if operation in codes)
