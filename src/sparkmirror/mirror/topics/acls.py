"""Which access rules of source topics are copied to their remote topics, and how weakened.

Whoever may read a topic may read its copy; nobody is given the right to write to a copy, for its
only writer is the mirror. Rules are only ever added on the target. Copied are literal rules on
topics that are replicated; prefixed rules and those on groups, clusters and the like are not.
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
    """One access rule, in Kafka's words: who, from where, may or may not do what to what."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


def should_replicate_acl(acl: AclBinding) -> bool:
    """Refuse the right to write; a ban on writing is copied."""
    return not (acl.permission == ALLOW and acl.operation == WRITE)


def target_acl_binding(acl: AclBinding, selection: TopicSelection) -> AclBinding:
    """Rewrite a rule for the remote topic: a right to everything becomes a right to read."""
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
    """Give the rules to add on the target, each once, in the order of the source's."""
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
