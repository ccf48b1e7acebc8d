"""`kafka-acls.sh` lines that grant rights. Pure."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator

from sparkmirror.cli.check.needed_rights import NeededRight, Resource, ResourceType
from sparkmirror.cluster.acls import AclOperation

MAX_NAMES = 20
"""The most topics or groups of one line."""


def kafka_acls_lines(
    bootstrap_servers: str, principal: str, rights: Iterable[NeededRight]
) -> list[str]:
    """Return the lines that grant these rights: one for all names that need the same operations."""
    by_resource: dict[Resource, set[AclOperation]] = defaultdict(set)
    for right in rights:
        by_resource[right.resource].add(right.operation)
    grouped: dict[tuple[ResourceType, bool, tuple[AclOperation, ...]], list[Resource]] = {}
    for resource in sorted(by_resource):
        operations = tuple(sorted(by_resource[resource]))
        grouped.setdefault((resource.kind, resource.is_prefix, operations), []).append(resource)
    start = [
        *("kafka-acls.sh", "--bootstrap-server", bootstrap_servers),
        *("--command-config", "admin.properties", "--add", "--allow-principal", principal),
    ]
    return [
        shlex.join([*start, *_operations(operations), *_resources(names, is_prefix=is_prefix)])
        for (_, is_prefix, operations), resources in grouped.items()
        for names in _chunks(resources)
    ]


def operation_name(operation: AclOperation) -> str:
    """Return the operation as Kafka's tools write it: `DescribeConfigs`."""
    return operation.name.title().replace("_", "")


def _operations(operations: Iterable[AclOperation]) -> Iterator[str]:
    for operation in operations:
        yield from ("--operation", operation_name(operation))


def _resources(resources: Iterable[Resource], *, is_prefix: bool) -> Iterator[str]:
    if is_prefix:
        yield from ("--resource-pattern-type", "prefixed")
    for resource in resources:
        yield f"--{resource.kind}"
        if resource.kind is not ResourceType.CLUSTER:
            yield resource.name


def _chunks(resources: list[Resource]) -> Iterator[list[Resource]]:
    for start in range(0, len(resources), MAX_NAMES):
        yield resources[start : start + MAX_NAMES]
