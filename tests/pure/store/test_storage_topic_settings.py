"""The three internal topics of a worker config."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.store.storage_topic_settings import StorageKind, StorageTopics

NAMES = {
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
}


def test_default_sizes_are_those_of_connect() -> None:
    topics = StorageTopics.from_worker_config(NAMES)
    sizes = {
        topic.name: (topic.partitions, topic.replication_factor)
        for topic in (topics.configs, topics.offsets, topics.statuses)
    }
    assert sizes == {
        "connect-configs": (1, 3),
        "connect-offsets": (25, 3),
        "connect-status": (5, 3),
    }
    assert topics.offsets.configs() == {"cleanup.policy": "compact"}


def test_sizes_and_topic_configs_can_be_set() -> None:
    worker = {
        **NAMES,
        "offset.storage.partitions": "7",
        "offset.storage.replication.factor": "-1",
        "offset.storage.segment.bytes": "1000000",
        "status.storage.min.insync.replicas": "2",
    }
    topics = StorageTopics.from_worker_config(worker)
    assert (topics.offsets.partitions, topics.offsets.replication_factor) == (7, -1)
    assert topics.offsets.configs() == {"cleanup.policy": "compact", "segment.bytes": "1000000"}
    assert topics.statuses.extra_configs == {"min.insync.replicas": "2"}
    assert topics.configs.extra_configs == {}


def test_compaction_and_one_partition_of_configs_cannot_be_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = {
        **NAMES,
        "config.storage.partitions": "3",
        "status.storage.cleanup.policy": "delete",
    }
    topics = StorageTopics.from_worker_config(worker)
    assert topics.configs.partitions == 1
    assert topics.configs.configs() == {"cleanup.policy": "compact"}
    assert topics.statuses.configs() == {"cleanup.policy": "compact"}
    partitions, policy = [record.getMessage() for record in caplog.records]
    assert partitions.startswith("Ignoring 'config.storage.partitions=3' setting, since config")
    assert policy.startswith("Ignoring 'status.storage.cleanup.policy=delete' setting, since")


def test_every_missing_topic_name_is_listed() -> None:
    with pytest.raises(ConfigError) as raised:
        StorageTopics.from_worker_config({})
    assert {fault.key for fault in raised.value.faults} == {kind.topic_key for kind in StorageKind}
