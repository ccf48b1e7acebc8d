"""Connect's topics are created as Connect creates them, and refused with Connect's messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import ClusterError, ConfigError, TopicRejected
from sparkmirror.mirror.topics.topic_configs import ConfigSource
from sparkmirror.store.storage_topic_settings import StorageKind, StorageTopic
from sparkmirror.store.topic_setup import create_or_verify_topic
from tests.support.kafka.clusters import SharedCluster


@pytest.fixture
def admin(backup: SharedCluster) -> Iterator[Admin]:
    with Admin(backup.access) as opened:
        yield opened


def storage_topic(
    topic: str,
    kind: StorageKind = StorageKind.STATUSES,
    *,
    partitions: int = 5,
    replicas: int = 1,
) -> StorageTopic:
    return StorageTopic(
        kind=kind,
        name=topic,
        partitions=partitions,
        replication_factor=replicas,
        extra_configs={"segment.bytes": "2000000"},
    )


def explicit_configs(admin: Admin, topic: str) -> dict[str, str | None]:
    found = admin.describe_configs([topic])[topic]
    assert not isinstance(found, ClusterError)
    return {
        entry.name: entry.value
        for entry in found
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }


def test_missing_topic_is_created_compacted_and_then_not_changed(admin: Admin, topic: str) -> None:
    create_or_verify_topic(admin, storage_topic(topic))
    create_or_verify_topic(admin, storage_topic(topic, partitions=7))
    assert len(admin.describe_topic(topic).partitions) == 5
    assert explicit_configs(admin, topic) == {
        "cleanup.policy": "compact",
        "segment.bytes": "2000000",
    }


def test_configs_in_several_partitions_are_refused(admin: Admin, topic: str) -> None:
    admin.create_topic(NewTopic(name=topic, partitions=3, configs={"cleanup.policy": "compact"}))
    with pytest.raises(ConfigError) as refused:
        create_or_verify_topic(admin, storage_topic(topic, StorageKind.CONFIGS, partitions=1))
    assert str(refused.value) == (
        f"Topic '{topic}' supplied via the 'config.storage.topic' property is required to have a"
        " single partition in order to guarantee consistency of connector configurations, but found"
        " 3 partitions."
    )
    create_or_verify_topic(admin, storage_topic(topic, StorageKind.OFFSETS))


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_topic_that_is_not_compacted_is_refused(admin: Admin, topic: str, policy: str) -> None:
    admin.create_topic(NewTopic(name=topic, partitions=1, configs={"cleanup.policy": policy}))
    with pytest.raises(ConfigError) as refused:
        create_or_verify_topic(admin, storage_topic(topic, StorageKind.OFFSETS))
    assert str(refused.value) == (
        f"Topic '{topic}' supplied via the 'offset.storage.topic' property is required to have"
        " 'cleanup.policy=compact' to guarantee consistency and durability of source connector"
        f" offsets, but found the topic currently has 'cleanup.policy={policy}'. Continuing would"
        " likely result in eventually losing source connector offsets and problems restarting this"
        " Connect cluster in the future. Change the 'offset.storage.topic' property in the Connect"
        " worker configurations to use a topic with 'cleanup.policy=compact'."
    )


def test_more_replicas_than_brokers_are_refused_after_a_wait(
    admin: Admin, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError) as refused:
        create_or_verify_topic(
            admin, storage_topic(topic, StorageKind.CONFIGS, replicas=3), broker_wait_s=0.2
        )
    assert str(refused.value).startswith("Timeout expired while trying to create topic(s): ")
    assert "set config.storage.replication.factor to 1, or start more" in str(refused.value)
    assert "needs 3 brokers for its replicas, but there are 1. Waiting" in caplog.text
    assert admin.describe_topics([topic]) == {}


def test_unknown_topic_config_is_rejected(admin: Admin, topic: str) -> None:
    topic_with_unknown_config = StorageTopic(
        kind=StorageKind.CONFIGS,
        name=topic,
        partitions=1,
        replication_factor=1,
        extra_configs={"no.such.setting": "1"},
    )
    with pytest.raises(TopicRejected, match=r"no\.such\.setting"):
        create_or_verify_topic(admin, topic_with_unknown_config)
