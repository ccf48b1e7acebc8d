"""What the source connector makes of what it sees, look by look."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.source_topics import RETRY_CREATE_S, SourceTopics
from sparkmirror.errors import ClusterUnavailable, TopicRejected
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from tests.support.kafka.in_memory_cluster import InMemoryCluster

CONFIG = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "refresh.topics.interval.seconds": "600",
}


class Scene:
    """Two clusters, a clock, and who looks at them."""

    def __init__(self, source: InMemoryCluster, target: InMemoryCluster, **more: str) -> None:
        self.source, self.target, self.now = source, target, 0.0
        config = MirrorSourceConfig.parse(
            CONFIG | {key.replace("_", "."): value for key, value in more.items()}
        )
        self.topics = SourceTopics(config, source, target, clock=lambda: self.now)

    def known(self) -> list[str]:
        return [str(partition) for partition in self.topics.partitions]


def test_what_the_target_lacks_is_made_with_explicit_settings() -> None:
    source, target = InMemoryCluster("A", orders=2, __hidden=1), InMemoryCluster("B", other=1)
    source.configs["orders"] = (
        ConfigEntry(name="retention.ms", value="7", source=ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigEntry(name="segment.ms", value="9", source=ConfigSource.DEFAULT_CONFIG),
    )
    scene = Scene(source, target, replication_factor="-1")
    scene.topics.load()
    (created,) = target.created
    assert (created.name, created.partitions, created.replication_factor) == ("A.orders", 2, -1)
    assert created.configs == {"retention.ms": "7"}
    assert scene.known() == ["orders-0", "orders-1"]
    assert scene.topics.synced_topics() == {"orders": "A.orders"}


def test_while_nothing_changes_only_the_source_is_looked_at() -> None:
    scene = Scene(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    scene.topics.load()
    looks = scene.target.topic_listings
    for _ in range(5):
        assert not scene.topics.refresh()
    assert scene.target.topic_listings == looks


def test_growth_is_news_at_once_and_loss_only_when_seen_twice() -> None:
    scene = Scene(InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B"))
    scene.topics.load()
    scene.source.partitions |= {"orders": 2, "late": 1}
    assert scene.topics.refresh()
    assert scene.known() == ["late-0", "orders-0", "orders-1", "pay-0"]
    assert scene.target.partitions == {"A.orders": 2, "A.pay": 1, "A.late": 1}
    del scene.source.partitions["pay"]
    assert not scene.topics.refresh()
    assert "pay-0" in scene.known()
    assert scene.topics.refresh()
    assert "pay-0" not in scene.known()
    assert "A.pay" in scene.target.partitions


def test_a_topic_missing_for_a_moment_is_not_gone() -> None:
    scene = Scene(InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B"))
    scene.topics.load()
    for _ in range(3):
        del scene.source.partitions["pay"]
        assert not scene.topics.refresh()
        scene.source.partitions["pay"] = 1
        assert not scene.topics.refresh()
    assert scene.known() == ["orders-0", "pay-0"]


def test_news_are_not_lost_while_the_target_is_down() -> None:
    scene = Scene(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    scene.topics.load()
    scene.source.partitions["late"] = 1
    scene.target.is_down = True
    for _ in range(2):
        with pytest.raises(ClusterUnavailable):
            scene.topics.refresh()
    scene.target.is_down = False
    assert scene.topics.refresh()
    assert scene.target.partitions["A.late"] == 1
    assert not scene.topics.refresh()


def test_a_copy_that_somebody_deleted_comes_back_with_the_interval() -> None:
    scene = Scene(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    scene.topics.load()
    scene.target.partitions.clear()
    assert not scene.topics.refresh()
    assert scene.target.partitions == {}
    scene.now = 601
    assert not scene.topics.refresh(), "the tasks stay as they are"
    assert scene.target.partitions == {"A.orders": 1}


def test_a_topic_whose_settings_are_hidden_is_tried_again_soon_and_holds_up_no_other() -> None:
    scene = Scene(InMemoryCluster("A", orders=1, secret=1), InMemoryCluster("B"))
    scene.source.unauthorized_topics.add("secret")
    scene.topics.load()
    assert scene.target.partitions == {"A.orders": 1}
    assert scene.known() == ["orders-0", "secret-0"]
    scene.source.unauthorized_topics.clear()
    scene.topics.refresh()
    assert "A.secret" not in scene.target.partitions
    scene.now = RETRY_CREATE_S
    scene.topics.refresh()
    assert scene.target.partitions["A.secret"] == 1


def test_on_one_and_the_same_cluster_names_must_change() -> None:
    both = InMemoryCluster("A", orders=1)
    Scene(both, both).topics.load()
    assert "A.orders" in both.partitions
    circle = Scene(both, both, replication_policy_class="IdentityReplicationPolicy")
    with pytest.raises(TopicRejected, match="onto itself"):
        circle.topics.load()
