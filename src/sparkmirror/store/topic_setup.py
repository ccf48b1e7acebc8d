"""Creates or verifies one of Connect's internal topics.

A missing topic is created with compaction. An existing topic is verified: brokers delete records
that workers need from a topic with another cleanup policy, and configs in several partitions have
no order. A service that is not Apache Kafka may not let clients compact a topic: that is a warning.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic, TopicDescription, await_new_topic
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ConfigError,
    NotAuthorized,
    TooFewBrokers,
    TopicExists,
    TopicMissing,
    TopicRejected,
    UnsupportedByBroker,
)
from sparkmirror.store.storage_topic_settings import (
    CLEANUP_POLICY,
    COMPACT,
    StorageKind,
    StorageTopic,
)
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S

log = logging.getLogger(__name__)

BROKER_WAIT_S = 60.0
"""How long to wait until the cluster has as many brokers as the topic has replicas."""
POLL_INTERVAL_S = 0.5


def create_or_verify_topic(
    admin: Admin,
    topic: StorageTopic,
    broker_wait_s: float = BROKER_WAIT_S,
    new_topic_wait_s: float = NEW_TOPIC_WAIT_S,
) -> None:
    """Create the topic if it is missing, else verify it. Blocks.

    Raises ConfigError if the topic is unfit, TopicRejected if the brokers refuse to create it, and
    ClusterTimeout, which is retriable, if the cluster has the topic but its brokers do not know it.
    """
    found = admin.describe_topics([topic.name]).get(topic.name)
    if found is None:
        found = _create_topic(admin, topic, broker_wait_s, new_topic_wait_s)
    if found is None:
        return
    _verify_partitions(topic, found)
    _verify_cleanup_policy(admin, topic)


def _create_topic(
    admin: Admin, topic: StorageTopic, broker_wait_s: float, new_topic_wait_s: float
) -> TopicDescription | None:
    """Create the topic. Return its description if another worker may have just created it."""
    new = NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs(),
    )
    try:
        try:
            is_created = _create_with_configs_or_without(admin, new)
        except TooFewBrokers:
            _wait_for_brokers(admin, topic, broker_wait_s)
            is_created = _create_with_configs_or_without(admin, new)
    except NotAuthorized as error:
        log.warning(
            "Not authorized to create topic '%s': %s. Assuming that it exists", topic.name, error
        )
        return None
    except TopicExists:
        return _await_existing_topic(admin, topic, new_topic_wait_s)
    except TopicRejected as rejected:
        try:
            return await_new_topic(lambda: admin.describe_topic(topic.name), new_topic_wait_s)
        except (TopicMissing, NotAuthorized):
            raise rejected from None
    if not is_created:
        return _await_existing_topic(admin, topic, new_topic_wait_s)
    log.info(
        "Created topic %s for %s, with %d partitions",
        topic.name,
        topic.kind.purpose,
        topic.partitions,
    )
    return None


def _create_with_configs_or_without(admin: Admin, new: NewTopic) -> bool:
    """Create a topic; without its configs if the cluster rejects it and can alter no configs.

    Such a service need not say that it rejects the topic because of the configs.
    """
    try:
        return admin.create_topic(new)
    except (TopicExists, TooFewBrokers):
        raise
    except TopicRejected as error:
        if admin.can_alter_configs():
            raise
        log.warning(
            "%s. Topic %s is created without %s=%s: old records of it stay, or are deleted as the"
            " service decides",
            error,
            new.name,
            CLEANUP_POLICY,
            COMPACT,
        )
        return admin.create_topic(replace(new, configs={}))


def _await_existing_topic(admin: Admin, topic: StorageTopic, wait_s: float) -> TopicDescription:
    """Return the description of a topic that another client, or a lost request, has created."""
    try:
        return await_new_topic(lambda: admin.describe_topic(topic.name), wait_s)
    except TopicMissing as missing:
        raise ClusterTimeout(
            missing.cluster,
            f"topic {topic.name} exists, but the brokers do not list it after {wait_s:g} s; the"
            " worker asks again",
        ) from None


def _wait_for_brokers(admin: Admin, topic: StorageTopic, timeout_s: float) -> None:
    """Wait until there are as many brokers as replicas: the cluster may be starting.

    Only after a refusal: Event Hubs is one broker to its clients and has replicas all the same.
    """
    deadline = time.monotonic() + timeout_s
    replicas, logged = topic.replication_factor, False
    while (brokers := _count_brokers(admin)) < replicas:
        key = f"{topic.kind.prefix}replication.factor"
        if time.monotonic() > deadline:
            raise ConfigError.of(
                key,
                f"Timeout expired while trying to create topic(s): {topic.name} needs {replicas}"
                f" brokers, but there are {brokers}; set {key} to {brokers}, or start more",
            )
        if not logged:
            logged = True
            log.warning(
                "Topic %s needs %d brokers for its replicas, but there are %d. Waiting up to %d s"
                " for more; if there will be none, set %s to %d",
                topic.name,
                replicas,
                brokers,
                timeout_s,
                key,
                brokers,
            )
        time.sleep(POLL_INTERVAL_S)


def _count_brokers(admin: Admin) -> int:
    return sum(not broker.fenced for broker in admin.describe_cluster().brokers)


def _verify_partitions(topic: StorageTopic, found: TopicDescription) -> None:
    count = len(found.partitions)
    if topic.kind is StorageKind.CONFIGS and count > 1:
        key = topic.kind.topic_key
        raise ConfigError.of(
            key,
            f"Topic '{topic.name}' supplied via the '{key}' property is required to have a single"
            " partition in order to guarantee consistency of connector configurations, but found"
            f" {count} partitions.",
        )


def _verify_cleanup_policy(admin: Admin, topic: StorageTopic) -> None:
    try:
        settings = admin.describe_configs([topic.name])[topic.name]
    except UnsupportedByBroker as error:
        log.warning(
            "Could not verify that topic %s is compacted: %s. Brokers delete records that the"
            " worker needs if it is not; check it in the console of the service",
            topic.name,
            error,
        )
        return
    if isinstance(settings, ClusterError):
        log.info("Could not verify that %s is compacted: %s", topic.name, settings)
        return
    policy = next(
        (entry.value or "" for entry in settings if entry.name == CLEANUP_POLICY), COMPACT
    )
    if {word.strip() for word in policy.split(",")} == {COMPACT}:
        return
    key, purpose = topic.kind.topic_key, topic.kind.purpose
    if not admin.can_alter_configs():
        log.warning(
            "Topic %s has %s=%s and its cluster lets no client change that: %s may be lost when"
            " the cluster deletes old records. Set compaction, or a long retention, in the console"
            " of the service",
            topic.name,
            CLEANUP_POLICY,
            policy,
            purpose,
        )
        return
    required = f"'{CLEANUP_POLICY}={COMPACT}'"
    raise ConfigError.of(
        key,
        f"Topic '{topic.name}' supplied via the '{key}' property is required to have {required} to"
        f" guarantee consistency and durability of {purpose}, but found the topic currently has"
        f" '{CLEANUP_POLICY}={policy}'. Continuing would likely result in eventually losing"
        f" {purpose} and problems restarting this Connect cluster in the future. Change the"
        f" '{key}' property in the Connect worker configurations to use a topic with {required}.",
    )
