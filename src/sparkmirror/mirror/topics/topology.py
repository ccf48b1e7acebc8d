"""What a cluster's topic names tell about where its data comes from.

These are the questions MirrorMaker 2's client library answers from a list of topics, for failover
code and for operators. Only names are looked at; a cluster that has never sent heartbeats is not
seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy

UNREACHABLE = -1


def heartbeat_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Keep heartbeats: the cluster's own, and copies of others'."""
    return frozenset(topic for topic in topics if policy.is_heartbeats_topic(topic))


def checkpoint_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Keep the topics with checkpoints of upstream groups."""
    return frozenset(topic for topic in topics if policy.is_checkpoints_topic(topic))


def remote_topics(
    policy: ReplicationPolicy, topics: Iterable[str], source: str | None = None
) -> frozenset[str]:
    """Keep copies; with `source`, those that came from it directly."""
    return frozenset(
        topic
        for topic in topics
        if not policy.is_internal_topic(topic)
        and policy.topic_source(topic) is not None
        and source in (None, policy.topic_source(topic))
    )


def upstream_clusters(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Name all clusters whose heartbeats arrive, over however many hops."""
    return frozenset(
        source
        for topic in heartbeat_topics(policy, topics)
        for source in _sources_of(policy, topic)
    )


def replication_hops(policy: ReplicationPolicy, topics: Iterable[str], upstream: str) -> int:
    """Count the hops of the shortest way from `upstream`; -1 if none is known."""
    hops = [count_hops(policy, topic, upstream) for topic in heartbeat_topics(policy, topics)]
    return min((count for count in hops if count != UNREACHABLE), default=UNREACHABLE)


def count_hops(policy: ReplicationPolicy, topic: str, upstream: str) -> int:
    """Count the hops a topic has made since it left `upstream`; -1 if it never was there."""
    for hops, source in enumerate(_sources_of(policy, topic), start=1):
        if source == upstream:
            return hops
    return UNREACHABLE


def _sources_of(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Follow a name upstream, nearest cluster first; stop where a cluster comes up again."""
    seen: set[str] = set()
    name: str | None = topic
    while name is not None:
        source = policy.topic_source(name)
        if source is None or source in seen:
            return
        yield source
        seen.add(source)
        name = policy.upstream_topic(name)
