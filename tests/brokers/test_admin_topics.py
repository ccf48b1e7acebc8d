"""The admin client adds partitions and describes topic configs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import ClusterError, TopicMissing
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from tests.support.kafka.clusters import SharedCluster, UniqueName


@pytest.fixture
def admin(primary: SharedCluster) -> Iterator[Admin]:
    with Admin(primary.access) as made:
        yield made


def _configs_by_name(found: tuple[ConfigEntry, ...] | ClusterError) -> dict[str, ConfigEntry]:
    assert not isinstance(found, ClusterError)
    return {entry.name: entry for entry in found}


def test_partitions_are_added_and_never_removed(admin: Admin, topic: str) -> None:
    admin.create_topic(NewTopic(name=topic, partitions=2))
    assert admin.create_partitions({topic: 5}) == {}
    assert len(admin.describe_topics([topic])[topic].partitions) == 5
    assert admin.describe_topics([topic])[topic].has_leaders
    assert admin.create_partitions({topic: 3}) == {}
    assert len(admin.describe_topics([topic])[topic].partitions) == 5


def test_each_topic_that_gets_no_partitions_has_its_error(
    admin: Admin, unique_name: UniqueName
) -> None:
    good, missing = unique_name("good"), unique_name("missing")
    admin.create_topic(NewTopic(name=good, partitions=1))
    failed = admin.create_partitions({good: 2, missing: 2})
    assert {name: type(error) for name, error in failed.items()} == {missing: TopicMissing}
    assert len(admin.describe_topics([good])[good].partitions) == 2


def test_configs_have_their_source(admin: Admin, topic: str) -> None:
    configs = {"retention.ms": "1000", "cleanup.policy": "compact"}
    admin.create_topic(NewTopic(name=topic, partitions=1, configs=configs))
    found = _configs_by_name(admin.describe_configs([topic])[topic])
    assert (found["retention.ms"].value, found["retention.ms"].source) == (
        "1000",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    assert found["compression.type"].is_default


def test_configs_of_a_missing_topic_are_an_error(admin: Admin, unique_name: UniqueName) -> None:
    good, missing = unique_name("good"), unique_name("missing")
    admin.create_topic(NewTopic(name=good, partitions=1))
    found = admin.describe_configs([good, missing])
    assert _configs_by_name(found[good])
    assert isinstance(found[missing], TopicMissing)
    assert admin.describe_configs([]) == {}
