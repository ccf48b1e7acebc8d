"""What a cluster begins with: users who can log in, topics, and records in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.records import produce
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.lab.spec import TopicSpec


def make_users(access: Access, users: Mapping[str, str]) -> None:
    """Let users log in with SCRAM. Their PLAIN passwords are in the brokers' files already."""
    with Admin(access) as admin:
        admin.set_scram_passwords(users)


def make_topics(access: Access, topics: Sequence[TopicSpec], tell: Callable[[str], None]) -> None:
    """Create topics and write their first records."""
    if not topics:
        return
    tell(f"creating {len(topics)} topics")
    with Admin(access) as admin:
        failed = admin.create_topics([_new_topic(topic) for topic in topics])
    for error in failed.values():
        raise error
    for topic in topics:
        if topic.records:
            tell(f"writing {len(topic.records)} records to {topic.name}")
            produce(access, topic.name, topic.records)


def _new_topic(topic: TopicSpec) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
    )
