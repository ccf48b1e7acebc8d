"""Topics made on a cluster as MirrorMaker 2 makes them, on clusters that are too small as well.

A topic that cannot be created as wanted (most often because there are fewer brokers than replicas)
is told of in the log. Then brokers that create topics on demand are given the chance to do so, as
MirrorMaker 2's producers give it to them, and what they made is grown and set right. What is still
missing after that is missing: the reason stays known, and partitions that wait for it say so.
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
    """See to it that one of MirrorMaker 2's own topics is there; one that is stays as it is."""
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
        log.info("Topic '%s' is taken to exist: %s", topic.name, error)
    elif topic.name not in admin.describe_topics([topic.name]):
        log.error("Unable to create topic '%s': %s", topic.name, error)
        _auto_create(admin, {topic.name: new})


def create_remote_topics(admin: Admin, topics: Sequence[NewRemoteTopic]) -> dict[str, ClusterError]:
    """Create remote topics; return why some are missing still, by name."""
    wanted = {
        new.name: NewTopic(
            name=new.name,
            partitions=new.partitions,
            replication_factor=new.replication_factor,
            configs=new.configs,
        )
        for new in topics
    }
    failed = admin.create_topics(list(wanted.values()))
    for name in wanted.keys() - failed.keys():
        count = wanted[name].partitions
        log.info("Created remote topic %s with %d partitions.", name, count)
    there = admin.describe_topics(failed.keys())
    for name, error in failed.items():
        if name not in there:
            log.warning("Could not create topic %s. %s", name, error)
    missing = {name: wanted[name] for name in failed.keys() - there.keys()}
    made = _auto_create(admin, missing)
    return {name: failed[name] for name in missing.keys() - made}


def add_remote_partitions(
    admin: Admin, topics: Sequence[NewRemotePartitions]
) -> dict[str, ClusterError]:
    """Give remote topics more partitions; return what went wrong, by name."""
    failed = admin.create_partitions({grown.name: grown.partitions for grown in topics})
    for grown in topics:
        if grown.name in failed:
            log.warning(
                "Could not create topic-partitions for %s. %s", grown.name, failed[grown.name]
            )
        else:
            log.info("Increased remote topic %s to %d partitions.", grown.name, grown.partitions)
    return failed


def _auto_create(admin: Admin, wanted: Mapping[str, NewTopic]) -> frozenset[str]:
    """Let brokers create topics on demand; return the names of those they made."""
    if not wanted:
        return frozenset()
    made = admin.request_auto_creation(wanted.keys())
    for name in sorted(made):
        log.warning(
            "The brokers of %s have created topic %s by themselves, with their own defaults: set "
            "the replication factor to what the cluster can hold",
            admin.cluster,
            name,
        )
    admin.create_partitions({name: wanted[name].partitions for name in made})
    changes = {
        name: [
            AlterConfigOp(name=key, operation=AlterConfigOpType.SET, value=value)
            for key, value in wanted[name].configs.items()
        ]
        for name in made
        if wanted[name].configs
    }
    for name, error in admin.incremental_alter_configs(changes).items():
        log.warning("Could not alter configuration of topic %s. %s", name, error)
    return made
