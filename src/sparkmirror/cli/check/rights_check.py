"""Asks a cluster which of the needed rights the principal of a client has. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.cli.check.needed_rights import (
    CREATE,
    PROBE_SUFFIX,
    NeededRight,
    Resource,
    ResourceType,
)
from sparkmirror.cluster.authorized_operations import (
    Operations,
    cluster_operations,
    group_operations,
    may_create_topics,
    topic_operations,
    transactional_id_operations,
)
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.net.routing import Router


@dataclass(frozen=True, slots=True)
class RightCheck:
    """A needed right, and whether the principal has it; None if the broker does not tell."""

    right: NeededRight
    is_granted: bool | None


def check_rights(router: Router, rights: Iterable[NeededRight]) -> list[RightCheck]:
    """Return the checks in the order of resources and operations. Raises ClusterError."""
    needed = sorted(dict.fromkeys(rights))
    granted = _GrantedOperations(router, needed)
    return [RightCheck(right, granted.has(right)) for right in needed]


class _GrantedOperations:
    """The brokers' answers about the resources of some rights."""

    def __init__(self, router: Router, rights: Iterable[NeededRight]) -> None:
        self._router = router
        resources = {right.resource for right in rights}
        topics = {r.name for r in resources if r.kind is ResourceType.TOPIC}
        try:
            self._topics = topic_operations(router, topics)
        except UnsupportedByBroker:
            self._topics = {}
        # A hidden topic may or may not exist.
        unseen = {name for name, operations in self._topics.items() if not operations}
        self._creatable = may_create_topics(router, unseen)
        self._others = {
            resource: self._operations(resource)
            for resource in sorted(resources)
            if resource.kind is not ResourceType.TOPIC
        }

    def has(self, right: NeededRight) -> bool | None:
        """Whether a right is granted; None if the broker does not tell."""
        resource = right.resource
        if resource.kind is not ResourceType.TOPIC:
            operations = self._others[resource]
            return None if operations is None else right.operation in operations
        if resource.name not in self._topics:
            return None
        if right.operation is CREATE:
            # A topic that exists need not be created.
            return self._creatable.get(resource.name, True)
        found = self._topics[resource.name]
        return None if found is None else right.operation in found

    def _operations(self, resource: Resource) -> Operations | None:
        try:
            match resource.kind:
                case ResourceType.GROUP:
                    return group_operations(self._router, resource.name)
                case ResourceType.TRANSACTIONAL_ID:
                    unused = f"{resource.name}{PROBE_SUFFIX}"
                    name = unused if resource.is_prefix else resource.name
                    return transactional_id_operations(self._router, name)
                case _:
                    return cluster_operations(self._router)
        except UnsupportedByBroker:
            return None
