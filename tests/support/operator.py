"""What an operator does to a running cluster, through kafka-python's own admin client.

A second opinion on what our facade does, and hands for what it has no need of.
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

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.client import connect
from sparkmirror.model import TopicPartition
from sparkmirror.wire.messages import Api
from tests.support.raw_copy import first_connection
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

PREFERRED = 0


@contextmanager
def _client(access: Access) -> Iterator[Any]:
    client = connect(_Client, access, 30.0)
    try:
        yield client
    finally:
        client.close()


def set_topic(access: Access, topic: str, settings: Mapping[str, str]) -> None:
    """Change settings of a topic."""
    with _client(access) as client:
        client.alter_configs([_Resource(ConfigResourceType.TOPIC, topic, dict(settings))])


def delete_records(access: Access, partition: TopicPartition, before: int) -> None:
    """Delete everything below an offset, as retention would."""
    with _client(access) as client:
        client.delete_records({_Partition(*partition): before})


def set_quota(access: Access, client_id: str, key: str, value: float) -> None:
    """Limit a client."""
    entry = AlterClientQuotasRequest.EntryData(
        entity=[_Entity(entity_type="client-id", entity_name=client_id)],
        ops=[_Op(key=key, value=value, remove=False)],
    )
    link = first_connection(access)
    try:
        answer = link.call(_QUOTAS, AlterClientQuotasRequest(entries=[entry], validate_only=False))
        assert not answer.entries[0].error_code, answer.entries[0].error_message
    finally:
        link.close()


def elect_preferred(access: Access, topic: str) -> None:
    """Have the preferred replicas lead again, as far as they can now; look what became of it."""
    with _client(access) as client:
        client.elect_leaders(PREFERRED, [topic], raise_errors=False)


def allow(
    access: Access, user: str, kind: ResourceType, name: str, *operations: ACLOperation
) -> None:
    """Grant rights on one resource; returns when the broker goes by them."""
    with _client(access) as client:
        client.create_acls([_rule(user, kind, name, operation) for operation in operations])
        wanted = _Filter(
            principal=f"User:{user}",
            host="*",
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=_Pattern(kind, name),
        )

        def are_known() -> bool:
            rules, _ = client.describe_acls(wanted)
            return {rule.operation for rule in rules} >= set(operations)

        wait_until(are_known, f"the rights of {user} on {name}")


def _rule(user: str, kind: ResourceType, name: str, operation: ACLOperation) -> Any:
    return _Acl(
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=_Pattern(kind, name),
    )
