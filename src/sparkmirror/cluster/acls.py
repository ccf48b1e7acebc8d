"""ACLs on the topics of one cluster: described and created, never deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.acls import TOPIC, AclBinding
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Controller, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

DESCRIBE_ACLS = Api(DescribeAclsRequest, DescribeAclsResponse, range(1, 4))
CREATE_ACLS = Api(CreateAclsRequest, CreateAclsResponse, range(1, 4))
_ANY = 1


class _ResourceType(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class _PatternType(IntEnum):
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What an ACL allows, with Kafka's codes."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class _Permission(IntEnum):
    DENY = 2
    ALLOW = 3


def describe_topic_acls(
    router: Router, *, timeout_s: float = CALL_TIMEOUT_S
) -> tuple[AclBinding, ...] | None:
    """Return all ACLs on topics; None if the cluster has no authorizer."""
    answer = router.call(
        DESCRIBE_ACLS,
        lambda: DescribeAclsRequest(
            resource_type_filter=int(_ResourceType.TOPIC),
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        ),
        AnyBroker(),
        codes=lambda answer: (answer.error_code,),
        timeout_s=timeout_s,
    )
    code = ErrorCode(answer.error_code)
    if code is ErrorCode.SECURITY_DISABLED:
        return None
    if code is not ErrorCode.NONE:
        raise error_for_code(router.client.cluster, DESCRIBE_ACLS.name, code, answer.error_message)
    return tuple(_read_bindings(answer))


def create_acls(
    router: Router, acls: Sequence[AclBinding], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[AclBinding, ClusterError]:
    """Create ACLs. Returns the errors by ACL. An ACL that exists is no error."""
    if not acls:
        return {}
    answer = router.call(
        CREATE_ACLS,
        lambda: CreateAclsRequest(creations=[_creation(acl) for acl in acls]),
        Controller(),
        codes=lambda answer: [result.error_code for result in answer.results],
        timeout_s=timeout_s,
    )
    cluster = router.client.cluster
    return {
        acl: error_for_code(
            cluster, CREATE_ACLS.name, ErrorCode(result.error_code), result.error_message
        )
        for acl, result in zip(acls, answer.results, strict=True)
        if result.error_code
    }


def _read_bindings(answer: DescribeAclsResponse) -> Iterator[AclBinding]:
    """Read ACLs; skip those with a pattern, operation or permission unknown to this version."""
    for resource in answer.resources:
        for rule in resource.acls:
            try:
                pattern = _PatternType(resource.pattern_type)
                operation = AclOperation(rule.operation)
                permission = _Permission(rule.permission_type)
            except ValueError:
                continue
            yield AclBinding(
                resource_type=TOPIC,
                resource_name=resource.resource_name,
                pattern_type=pattern.name,
                principal=rule.principal,
                host=rule.host,
                operation=operation.name,
                permission=permission.name,
            )


def _creation(acl: AclBinding) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=int(_ResourceType[acl.resource_type]),
        resource_name=acl.resource_name,
        resource_pattern_type=int(_PatternType[acl.pattern_type]),
        principal=acl.principal,
        host=acl.host,
        operation=int(AclOperation[acl.operation]),
        permission_type=int(_Permission[acl.permission]),
    )
