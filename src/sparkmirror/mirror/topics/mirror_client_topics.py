"""The upstream clusters that a cluster's topic names show.

MirrorMaker 2's client library has the same functions, for failover code and operators. They use
topic names only, so a cluster without heartbeats is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy

UNREACHABLE = -1


def heartbeat_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return the heartbeats topics of this cluster and of others."""
    return frozenset(topic for topic in topics if policy.is_heartbeats_topic(topic))


def checkpoint_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return the checkpoints topics."""
    return frozenset(topic for topic in topics if policy.is_checkpoints_topic(topic))


def remote_topics(
    policy: ReplicationPolicy, topics: Iterable[str], source: str | None = None
) -> frozenset[str]:
    """Return the remote topics; with `source`, those copied directly from it."""
    return frozenset(
        topic
        for topic in topics
        if not policy.is_internal_topic(topic)
        and policy.topic_source(topic) is not None
        and source in (None, policy.topic_source(topic))
    )


def upstream_clusters(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """Return the aliases of all clusters whose heartbeats arrive, over any number of hops."""
    return frozenset(
        source
        for topic in heartbeat_topics(policy, topics)
        for source in _sources_of(policy, topic)
    )


def replication_hops(policy: ReplicationPolicy, topics: Iterable[str], upstream: str) -> int:
    """Return the lowest number of hops from `upstream`; -1 if its heartbeats do not arrive."""
    hops = [count_hops(policy, topic, upstream) for topic in heartbeat_topics(policy, topics)]
    return min((count for count in hops if count != UNREACHABLE), default=UNREACHABLE)


def count_hops(policy: ReplicationPolicy, topic: str, upstream: str) -> int:
    """Return the number of hops of a topic from `upstream`; -1 if it was not there."""
    for hops, source in enumerate(_sources_of(policy, topic), start=1):
        if source == upstream:
            return hops
    return UNREACHABLE


def _sources_of(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Yield the sources of a name, nearest first, up to a source that occurs again."""
    seen: set[str] = set()
    name: str | None = topic
    while name is not None:
        source = policy.topic_source(name)
        if source is None or source in seen:
            return
        yield source
        seen.add(source)
        name = policy.upstream_topic(name)
