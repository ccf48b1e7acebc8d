"""Changes that an operator makes to a running cluster, with kafka-python's admin client.

For calls that `cluster.admin` lacks, and as a check by another client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient
from kafka import TopicPartition as LibraryPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
)
from kafka.protocol.admin import AlterClientQuotasRequest, AlterClientQuotasResponse

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.config_resources import INCREMENTAL_ALTER_CONFIGS
from sparkmirror.model import TopicPartition
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.kafka_python_messages import IncrementalAlterConfigsRequest
from tests.support.kafka.wire_copier import connect_first_broker
from tests.support.waiting import wait_until

_Client: Any = KafkaAdminClient
_Partition: Any = LibraryPartition
_Resource: Any = ConfigResource
_Acl: Any = ACL
_Filter: Any = ACLFilter
_Pattern: Any = ResourcePattern
_Entity: Any = AlterClientQuotasRequest.EntryData.EntityData
_Op: Any = AlterClientQuotasRequest.EntryData.OpData
_QUOTAS = Api(AlterClientQuotasRequest, AlterClientQuotasResponse, (0, 1))
_LoggerResource: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
_LoggerConfig: Any = _LoggerResource.AlterableConfig
_BROKER_LOGGER = 8
_SET = 0

PREFERRED = 0


def _library_keywords(security: ClientSecurity) -> dict[str, object]:
    """Return the keywords of kafka-python's clients."""
    keywords: dict[str, object] = {"security_protocol": security.protocol}
    if security.ssl_context is not None:
        keywords["ssl_context"] = security.ssl_context
    if isinstance(security.login, PasswordLogin):
        keywords["sasl_mechanism"] = security.login.mechanism
        keywords["sasl_plain_username"] = security.login.username
        keywords["sasl_plain_password"] = security.login.password.value
    return keywords


@contextmanager
def _admin_client(access: ClusterAccess) -> Iterator[Any]:
    client = _Client(
        bootstrap_servers=[str(address) for address in access.bootstrap_servers],
        bootstrap_timeout_ms=30_000,
        **_library_keywords(access.security.current()),
    )
    try:
        yield client
    finally:
        client.close()


def set_topic_config(access: ClusterAccess, topic: str, settings: Mapping[str, str]) -> None:
    """Change configs of a topic."""
    with _admin_client(access) as client:
        client.alter_configs([_Resource(ConfigResourceType.TOPIC, topic, dict(settings))])


def delete_records(access: ClusterAccess, partition: TopicPartition, before: int) -> None:
    """Delete the records before an offset, as retention does."""
    with _admin_client(access) as client:
        client.delete_records({_Partition(*partition): before})


def set_client_quota(access: ClusterAccess, client_id: str, key: str, value: float) -> None:
    """Set a quota of a client."""
    entry = AlterClientQuotasRequest.EntryData(
        entity=[_Entity(entity_type="client-id", entity_name=client_id)],
        ops=[_Op(key=key, value=value, remove=False)],
    )
    link = connect_first_broker(access)
    try:
        answer = link.call(_QUOTAS, AlterClientQuotasRequest(entries=[entry], validate_only=False))
        assert not answer.entries[0].error_code, answer.entries[0].error_message
    finally:
        link.close()


def set_broker_log_level(access: ClusterAccess, broker: int, logger: str, level: str) -> None:
    """Change the level of a logger of a broker, until the broker restarts."""
    change = _LoggerConfig(name=logger, config_operation=_SET, value=level)
    resource = _LoggerResource(
        resource_type=_BROKER_LOGGER, resource_name=str(broker), configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    link = connect_first_broker(access)
    try:
        answer = link.call(INCREMENTAL_ALTER_CONFIGS, request)
        assert not answer.responses[0].error_code, answer.responses[0].error_message
    finally:
        link.close()


def elect_preferred_leaders(access: ClusterAccess, topic: str) -> None:
    """Elect the preferred replicas as leaders, if they are available. Ignore errors."""
    with _admin_client(access) as client:
        client.elect_leaders(PREFERRED, [topic], raise_errors=False)


def grant_acls(
    access: ClusterAccess, user: str, kind: ResourceType, name: str, *operations: ACLOperation
) -> None:
    """Grant operations on one resource; returns when the broker lists the ACLs."""
    with _admin_client(access) as client:
        client.create_acls([_acl(user, kind, name, operation) for operation in operations])
        wanted = _filter(user, kind, name, ACLPermissionType.ALLOW)

        def are_known() -> bool:
            rules, _ = client.describe_acls(wanted)
            return {rule.operation for rule in rules} >= set(operations)

        wait_until(are_known, f"the rights of {user} on {name}")


def _acl(
    user: str,
    kind: ResourceType,
    name: str,
    operation: ACLOperation,
    permission: ACLPermissionType = ACLPermissionType.ALLOW,
) -> Any:
    return _Acl(
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=permission,
        resource_pattern=_Pattern(kind, name),
    )


def _filter(user: str, kind: ResourceType, name: str, permission: ACLPermissionType) -> Any:
    return _Filter(
        principal=f"User:{user}",
        host="*",
        operation=ACLOperation.ANY,
        permission_type=permission,
        resource_pattern=_Pattern(kind, name),
    )


@contextmanager
def denied(
    access: ClusterAccess, user: str, kind: ResourceType, name: str, *operations: ACLOperation
) -> Iterator[None]:
    """Deny a user operations on one resource in the block."""
    rules = [_acl(user, kind, name, operation, ACLPermissionType.DENY) for operation in operations]
    with _admin_client(access) as client:
        client.create_acls(rules)
    try:
        yield
    finally:
        with _admin_client(access) as client:
            client.delete_acls([_filter(user, kind, name, ACLPermissionType.DENY)])
