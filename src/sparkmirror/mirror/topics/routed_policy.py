"""A replication policy whose remote topics a route renames, and topics that a route merges.

Heartbeats topics keep the name that the policy gives them: by this name clients find which
clusters a cluster is mirrored from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy


@dataclass(frozen=True, slots=True)
class RoutedPolicy(ReplicationPolicy):
    """The policy of a flow, with the route of its transformations behind it.

    A route cannot be reversed: the names of remote topics are understood as the policy's.
    """

    policy: ReplicationPolicy
    route: Callable[[str], str]

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the topic to which the route sends records of the policy's remote topic."""
        remote = self.policy.format_remote_topic(source_alias, topic)
        return remote if self.policy.is_heartbeats_topic(topic) else self.route(remote)

    def topic_source(self, topic: str) -> str | None:
        """Return what the policy returns."""
        return self.policy.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Return what the policy returns."""
        return self.policy.upstream_topic(topic)

    def original_topic(self, topic: str) -> str:
        """Return what the policy returns."""
        return self.policy.original_topic(topic)

    def heartbeats_topic(self) -> str:
        """Return what the policy returns."""
        return self.policy.heartbeats_topic()

    def offset_syncs_topic(self, alias: str) -> str:
        """Return what the policy returns."""
        return self.policy.offset_syncs_topic(alias)

    def checkpoints_topic(self, alias: str) -> str:
        """Return what the policy returns."""
        return self.policy.checkpoints_topic(alias)

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return what the policy returns."""
        return self.policy.is_heartbeats_topic(topic)

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return what the policy returns."""
        return self.policy.is_checkpoints_topic(topic)

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return what the policy returns."""
        return self.policy.is_mm2_internal_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return what the policy returns."""
        return self.policy.is_internal_topic(topic)


def unrouted_policy(policy: ReplicationPolicy) -> ReplicationPolicy:
    """Return the policy without the route."""
    return policy.policy if isinstance(policy, RoutedPolicy) else policy


def merged_topics(
    policy: ReplicationPolicy, source_alias: str, topics: Iterable[str]
) -> Mapping[str, tuple[str, ...]]:
    """Return the remote topics to which a route sends several topics of the source, with those."""
    if not isinstance(policy, RoutedPolicy):
        return {}
    by_remote: dict[str, list[str]] = {}
    for topic in sorted(set(topics)):
        by_remote.setdefault(policy.format_remote_topic(source_alias, topic), []).append(topic)
    return {remote: tuple(merged) for remote, merged in by_remote.items() if len(merged) > 1}
