"""Creates topics as MirrorMaker 2 does, also on clusters with fewer brokers than replicas.

A failed creation of an internal topic is tried again after RETRY_INTERVAL_S.

If a topic cannot be created as configured (often because there are fewer brokers than replicas),
the error is logged. Then brokers with `auto.create.topics.enable` create it, as they do for
MirrorMaker 2's producers; its partitions and configs are corrected afterwards. If the topic is
still missing, the caller gets the error, and the partitions that wait for it report it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import (
    ClusterError,
    NotAuthorized,
    TooFewBrokers,
    TopicExists,
    TopicRejected,
    UnsupportedByBroker,
)
from sparkmirror.mirror.topics.internal_topics import InternalTopic
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from sparkmirror.mirror.topics.topic_plan import NewRemotePartitions, NewRemoteTopic

log = logging.getLogger(__name__)

MAX_RECORDS_PER_REQUEST = 5000
"""A controller refuses a request for which it must write more than 10,000 records: one for each
partition, each topic and each config of a topic."""
RETRY_INTERVAL_S = 60.0
"""The pause between two tries to create an internal topic."""
_COMPACT = {"cleanup.policy": "compact"}


class InternalTopicCreation:
    """Creates one of MirrorMaker 2's internal topics. Belongs to one thread."""

    def __init__(
        self,
        admin: Admin,
        topic: InternalTopic,
        replication_factor: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._topic = topic
        self._replication_factor = replication_factor
        self._clock = clock
        self._exists = False
        self._next_try_at = float("-inf")
        self.problem = ""
        """Why the topic is missing, as text for operators; empty if it exists."""

    def ensure(self) -> None:
        """Create the topic if it is missing, unless the last try failed a moment ago."""
        if not self._exists and self._clock() >= self._next_try_at:
            error = ensure_internal_topic(self._admin, self._topic, self._replication_factor)
            self._exists = error is None
            what = "cannot be found or created"
            self.problem = f"internal topic {self._topic.name} {what}: {error}" if error else ""
            self._next_try_at = self._clock() + RETRY_INTERVAL_S


def ensure_internal_topic(
    admin: Admin, topic: InternalTopic, replication_factor: int
) -> ClusterError | None:
    """Create one of MirrorMaker 2's internal topics. An existing topic is not changed.

    Returns the error if the topic is missing, or hidden from this user, who cannot use it then.
    """
    if topic.name in admin.describe_topics([topic.name]):
        return None
    new = NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=replication_factor,
        configs=_COMPACT,
    )
    failed, unconfirmed = admin.create_topics([new])
    error = _create_without_configs(admin, {topic.name: new}, failed).get(topic.name)
    if error is None:
        if topic.name not in unconfirmed:
            log.info("Created topic '%s'", topic.name)
        return None
    if isinstance(error, UnsupportedByBroker):
        log.info("Assuming that topic '%s' exists: %s", topic.name, error)
        return None
    if isinstance(error, NotAuthorized):
        return error
    if topic.name in admin.describe_topics([topic.name]):
        return None
    log.error("Unable to create topic '%s': %s", topic.name, error)
    return None if topic.name in _auto_create(admin, {topic.name: new}) else error


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
    failed: dict[str, ClusterError] = {}
    unconfirmed: set[str] = set()
    records = {name: 1 + new.partitions + len(new.configs) for name, new in topics_by_name.items()}
    for request in split_by_size(records):
        result = admin.create_topics([topics_by_name[name] for name in request])
        failed |= result.failed
        unconfirmed |= result.unconfirmed
    failed = _create_without_configs(admin, topics_by_name, failed)
    for name in topics_by_name.keys() - failed.keys() - unconfirmed:
        count = topics_by_name[name].partitions
        log.info("Created remote topic %s with %d partitions.", name, count)
    existing = admin.describe_topics(failed.keys())
    for name, error in failed.items():
        if name not in existing:
            log.warning("Could not create topic %s. %s", name, error)
    missing = {name: topics_by_name[name] for name in failed.keys() - existing.keys()}
    created = _auto_create(admin, missing)
    return {name: failed[name] for name in missing.keys() - created}


def _create_without_configs(
    admin: Admin, topics_by_name: Mapping[str, NewTopic], failed: Mapping[str, ClusterError]
) -> dict[str, ClusterError]:
    """Create rejected topics without their configs, if the cluster lets no client set configs.

    Returns the errors that are left, by name. Apache Kafka lets clients set configs: there a
    rejected config is a mistake. Another service need not say that it rejects a topic because of
    its configs.
    """
    rejected = [
        name
        for name, error in failed.items()
        if topics_by_name[name].configs
        and isinstance(error, TopicRejected)
        and not isinstance(error, (TopicExists, TooFewBrokers))
    ]
    if not rejected or admin.can_alter_configs():
        return dict(failed)
    for name in rejected:
        log.warning("%s. Topic %s is created without configs", failed[name], name)
    again = admin.create_topics([replace(topics_by_name[name], configs={}) for name in rejected])
    return {name: error for name, error in failed.items() if name not in rejected} | again.failed


def split_by_size(records: Mapping[str, int]) -> list[list[str]]:
    """Return topics in groups that need at most MAX_RECORDS_PER_REQUEST records. Pure.

    A topic that needs more is a group of its own.
    """
    groups: list[list[str]] = []
    left = 0
    for name, count in records.items():
        if count > left:
            groups.append([])
            left = MAX_RECORDS_PER_REQUEST
        groups[-1].append(name)
        left -= count
    return groups


def add_remote_partitions(
    admin: Admin, topics: Sequence[NewRemotePartitions]
) -> dict[str, ClusterError]:
    """Add partitions to remote topics; return the errors, by name."""
    partitions = {topic.name: topic.partitions for topic in topics}
    failed: dict[str, ClusterError] = {}
    for request in split_by_size(partitions):
        failed |= admin.create_partitions({name: partitions[name] for name in request})
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
    configs = {
        name: topics_by_name[name].configs for name in created if topics_by_name[name].configs
    }
    try:
        unset = _set_configs(admin, configs)
    except UnsupportedByBroker as unsupported:
        unset = dict.fromkeys(configs, unsupported)
    for name, error in unset.items():
        log.warning("Could not alter configuration of topic %s. %s", name, error)
    return created


def _set_configs(admin: Admin, configs: Mapping[str, Mapping[str, str]]) -> dict[str, ClusterError]:
    """Set configs of topics that have none yet. Returns the errors by topic."""
    changes = {
        topic: [
            AlterConfigOp(name=key, operation=AlterConfigOpType.SET, value=value)
            for key, value in settings.items()
        ]
        for topic, settings in configs.items()
    }
    try:
        return admin.incremental_alter_configs(changes)
    except UnsupportedByBroker:
        # Brokers before 2.3 accept only the complete configs of a topic. These are complete.
        return admin.alter_configs(configs)
