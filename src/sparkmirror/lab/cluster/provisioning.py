"""Creates the users, topics and first records of a new cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import produce_records
from sparkmirror.lab.cluster.cluster_spec import TopicSpec


def create_users(access: ClusterAccess, users: Mapping[str, str]) -> None:
    """Create SCRAM credentials. The brokers' files hold the PLAIN passwords."""
    with Admin(access) as admin:
        admin.alter_user_scram_credentials(users)


def create_topics(
    access: ClusterAccess, topics: Sequence[TopicSpec], progress: Callable[[str], None]
) -> None:
    """Create topics and write their first records."""
    if not topics:
        return
    progress(f"creating {len(topics)} topics")
    with Admin(access) as admin:
        result = admin.create_topics([_new_topic(topic) for topic in topics])
    for error in result.failed.values():
        raise error
    for topic in topics:
        if topic.records:
            progress(f"writing {len(topic.records)} records to {topic.name}")
            produce_records(access, topic.name, topic.records)


def _new_topic(topic: TopicSpec) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
    )
