"""Which ACLs of source topics are copied to their remote topics, and with which rights.

A principal that may read a topic may read its remote topic. No principal gets the right to write to
a remote topic: only the mirror writes there. ACLs are only added on the target. Only literal ACLs
of replicated topics are copied; prefixed ACLs and those of groups or clusters are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparkmirror.mirror.topics.topic_selection import TopicSelection

TOPIC = "TOPIC"
LITERAL = "LITERAL"
ALLOW = "ALLOW"
ALL = "ALL"
READ = "READ"
WRITE = "WRITE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """One ACL: a principal on a host may or may not do an operation on a resource."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


def should_replicate_acl(acl: AclBinding) -> bool:
    """Return False for ALLOW WRITE. DENY WRITE is copied."""
    return not (acl.permission == ALLOW and acl.operation == WRITE)


def target_acl_binding(acl: AclBinding, selection: TopicSelection) -> AclBinding:
    """Return the ACL for the remote topic. ALLOW ALL becomes ALLOW READ."""
    allows_all = acl.permission == ALLOW and acl.operation == ALL
    return replace(
        acl,
        resource_name=selection.policy.format_remote_topic(
            selection.flow.source, acl.resource_name
        ),
        pattern_type=LITERAL,
        operation=READ if allows_all else acl.operation,
    )


def target_acl_bindings(
    acls: Iterable[AclBinding], selection: TopicSelection
) -> tuple[AclBinding, ...]:
    """Return the ACLs to add on the target, without duplicates, in the order of the source."""
    copies = [
        target_acl_binding(acl, selection)
        for acl in acls
        if acl.resource_type == TOPIC
        and acl.pattern_type == LITERAL
        and should_replicate_acl(acl)
        and selection.should_replicate_topic(acl.resource_name)
    ]
    assert all(should_replicate_acl(copy) for copy in copies)
    return tuple(dict.fromkeys(copies))
