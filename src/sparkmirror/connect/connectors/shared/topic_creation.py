"""Creates topics as MirrorMaker 2 does, also on clusters with fewer brokers than replicas.

If a topic cannot be created as configured (often because there are fewer brokers than replicas),
the error is logged. Then brokers with `auto.create.topics.enable` create it, as they do for
MirrorMaker 2's producers; its partitions and configs are corrected afterwards. If the topic is
still missing, the caller gets the error, and the partitions that wait for it report it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import ClusterError, NotAuthorized, UnsupportedByBroker
from sparkmirror.mirror.topics.internal_topics import InternalTopic
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.mirror.topics.topic_plan import NewRemotePartitions, NewRemoteTopic

log = logging.getLogger(__name__)

_COMPACT = {"cleanup.policy": "compact"}


def ensure_internal_topic(admin: Admin, topic: InternalTopic, replication_factor: int) -> None:
    """Create one of MirrorMaker 2's internal topics. An existing topic is not changed."""
    if topic.name in admin.describe_topics([topic.name]):
        return
    new = NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=replication_factor,
        configs=_COMPACT,
    )
    error = admin.create_topics([new]).get(topic.name)
    if error is None:
        log.info("Created topic '%s'", topic.name)
    elif isinstance(error, NotAuthorized | UnsupportedByBroker):
        log.info("Assuming that topic '%s' exists: %s", topic.name, error)
    elif topic.name not in admin.describe_topics([topic.name]):
        log.error("Unable to create topic '%s': %s", topic.name, error)
        _auto_create(admin, {topic.name: new})


def create_remote_topics(admin: Admin, topics: Sequence[NewRemoteTopic]) -> dict[str, ClusterError]:
    """Create remote topics; return the errors of those that do not exist, by name."""
    topics_by_name = {
        new.name: NewTopic(
            name=new.name,
            partitions=new.partitions,
            replication_factor=new.replication_factor,
            configs=new.configs,
        )
        for new in topics
    }
    failed = admin.create_topics(list(topics_by_name.values()))
    for name in topics_by_name.keys() - failed.keys():
        count = topics_by_name[name].partitions
        log.info("Created remote topic %s with %d partitions.", name, count)
    existing = admin.describe_topics(failed.keys())
    for name, error in failed.items():
        if name not in existing:
            log.warning("Could not create topic %s. %s", name, error)
    missing = {name: topics_by_name[name] for name in failed.keys() - existing.keys()}
    created = _auto_create(admin, missing)
    return {name: failed[name] for name in missing.keys() - created}


def add_remote_partitions(
    admin: Admin, topics: Sequence[NewRemotePartitions]
) -> dict[str, ClusterError]:
    """Add partitions to remote topics; return the errors, by name."""
    failed = admin.create_partitions({topic.name: topic.partitions for topic in topics})
    for topic in topics:
        if topic.name in failed:
            log.warning(
                "Could not create topic-partitions for %s. %s", topic.name, failed[topic.name]
            )
        else:
            log.info("Increased remote topic %s to %d partitions.", topic.name, topic.partitions)
    return failed


def _auto_create(admin: Admin, topics_by_name: Mapping[str, NewTopic]) -> frozenset[str]:
    """Have the brokers auto-create topics; return the names of those they created."""
    if not topics_by_name:
        return frozenset()
    created = admin.request_auto_creation(topics_by_name.keys())
    for name in sorted(created):
        log.warning(
            "The brokers of %s auto-created topic %s with their defaults: set the replication "
            "factor to what the cluster supports",
            admin.cluster,
            name,
        )
    admin.create_partitions({name: topics_by_name[name].partitions for name in created})
    changes = {
        name: [
            AlterConfigOp(name=key, operation=AlterConfigOpType.SET, value=value)
            for key, value in topics_by_name[name].configs.items()
        ]
        for name in created
        if topics_by_name[name].configs
    }
    for name, error in admin.incremental_alter_configs(changes).items():
        log.warning("Could not alter configuration of topic %s. %s", name, error)
    return created
