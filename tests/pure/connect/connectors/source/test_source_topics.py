"""What the source connector creates and reports at each refresh."""

from __future__ import annotations

import time

import pytest

from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.source_topics import RETRY_CREATE_S, SourceTopics
from sparkmirror.errors import ClusterUnavailable, ConfigError, TopicRejected
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from tests.support.kafka.in_memory_cluster import InMemoryCluster

CONFIG = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "refresh.topics.interval.seconds": "600",
}


class SourceTopicsHarness:
    """Two clusters in memory, a clock, and the SourceTopics under test."""

    def __init__(self, source: InMemoryCluster, target: InMemoryCluster, **more: str) -> None:
        self.source, self.target, self.now = source, target, 0.0
        config = MirrorSourceConfig.parse(
            CONFIG | {key.replace("_", "."): value for key, value in more.items()}
        )
        self.topics = SourceTopics(config, source, target, clock=lambda: self.now)

    def known(self) -> list[str]:
        return [str(partition) for partition in self.topics.partitions]


def test_missing_remote_topics_are_created_with_the_explicit_configs() -> None:
    source, target = InMemoryCluster("A", orders=2, __hidden=1), InMemoryCluster("B", other=1)
    source.configs["orders"] = (
        ConfigEntry(name="retention.ms", value="7", source=ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigEntry(name="segment.ms", value="9", source=ConfigSource.DEFAULT_CONFIG),
    )
    harness = SourceTopicsHarness(source, target, replication_factor="-1")
    harness.topics.load()
    (created,) = target.created
    assert (created.name, created.partitions, created.replication_factor) == ("A.orders", 2, -1)
    assert created.configs == {"retention.ms": "7"}
    assert harness.known() == ["orders-0", "orders-1"]
    assert harness.topics.synced_topics() == {"orders": "A.orders"}


def test_without_changes_only_the_source_is_listed() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    harness.topics.load()
    listings = harness.target.topic_listings
    for _ in range(5):
        assert not harness.topics.refresh()
    assert harness.target.topic_listings == listings


def test_only_the_first_load_uses_listings_of_other_connectors() -> None:
    before = time.monotonic()
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    created = time.monotonic()
    harness.target.is_down = True
    with pytest.raises(ClusterUnavailable):
        harness.topics.load()
    harness.target.is_down = False
    harness.topics.load()
    for cluster in (harness.source, harness.target):
        (since,) = cluster.listed_since
        assert before <= since <= created


def test_topics_of_an_unchanged_listing_are_not_selected_again() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=3), InMemoryCluster("B"))
    harness.topics.load()
    before = harness.topics.partitions
    assert not harness.topics.refresh()
    assert harness.source.unchanged_listings == 1
    assert harness.topics.partitions == before


def test_new_partitions_count_at_once_and_lost_ones_after_two_listings() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B"))
    harness.topics.load()
    harness.source.partitions |= {"orders": 2, "late": 1}
    assert harness.topics.refresh()
    assert harness.known() == ["late-0", "orders-0", "orders-1", "pay-0"]
    assert harness.target.partitions == {"A.orders": 2, "A.pay": 1, "A.late": 1}
    del harness.source.partitions["pay"]
    assert not harness.topics.refresh()
    assert "pay-0" in harness.known()
    assert harness.topics.refresh()
    assert "pay-0" not in harness.known()
    assert "A.pay" in harness.target.partitions


def test_a_topic_missing_in_one_listing_is_kept() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B"))
    harness.topics.load()
    for _ in range(3):
        del harness.source.partitions["pay"]
        assert not harness.topics.refresh()
        harness.source.partitions["pay"] = 1
        assert not harness.topics.refresh()
    assert harness.known() == ["orders-0", "pay-0"]


def test_a_topic_that_may_not_be_described_any_more_stays_and_is_a_problem() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B"))
    harness.topics.load()
    del harness.source.partitions["pay"]
    harness.source.unauthorized_topics.add("pay")
    for _ in range(3):
        assert not harness.topics.refresh()
    assert harness.known() == ["orders-0", "pay-0"]
    assert "topic pay cannot be described: A: pay is hidden" in harness.topics.find_problem()
    harness.source.partitions["pay"] = 1
    assert not harness.topics.refresh()
    assert not harness.topics.find_problem()


def test_changes_are_not_lost_while_the_target_is_down() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    harness.topics.load()
    harness.source.partitions["late"] = 1
    harness.target.is_down = True
    for _ in range(2):
        with pytest.raises(ClusterUnavailable):
            harness.topics.refresh()
    harness.target.is_down = False
    assert harness.topics.refresh()
    assert harness.target.partitions["A.late"] == 1
    assert not harness.topics.refresh()


def test_a_deleted_remote_topic_is_created_again_after_the_interval() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1), InMemoryCluster("B"))
    harness.topics.load()
    harness.target.partitions.clear()
    assert not harness.topics.refresh()
    assert harness.target.partitions == {}
    harness.now = 601
    assert not harness.topics.refresh(), "the tasks stay as they are"
    assert harness.target.partitions == {"A.orders": 1}


def test_a_topic_with_unreadable_configs_is_tried_again_soon_and_blocks_no_other() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1, secret=1), InMemoryCluster("B"))
    harness.source.unauthorized_topics.add("secret")
    harness.topics.load()
    assert harness.target.partitions == {"A.orders": 1}
    assert harness.known() == ["orders-0", "secret-0"]
    harness.source.unauthorized_topics.clear()
    harness.topics.refresh()
    assert "A.secret" not in harness.target.partitions
    harness.now = RETRY_CREATE_S
    harness.topics.refresh()
    assert harness.target.partitions["A.secret"] == 1


def test_a_remote_topic_that_cannot_be_created_is_a_problem_until_it_exists() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A", orders=1, secret=1), InMemoryCluster("B"))
    harness.source.unauthorized_topics.add("secret")
    harness.topics.load()
    assert harness.topics.find_problem() == (
        "remote topic A.secret cannot be created or enlarged: A: secret is hidden"
    )
    harness.target.partitions["A.secret"] = 1
    harness.now = RETRY_CREATE_S
    harness.topics.refresh()
    assert harness.topics.find_problem() == ""


def test_a_source_without_a_topic_to_copy_is_a_problem_that_counts_what_keeps_topics_out() -> None:
    source = InMemoryCluster(
        "A", orders=1, secret=1, other=2, __consumer_offsets=5, **{"B.orders": 1}
    )
    harness = SourceTopicsHarness(
        source, InMemoryCluster("B"), topics="ordres,secret", topics_exclude="secret"
    )
    harness.topics.load()
    assert harness.topics.find_problem() == (
        "no topic of A matches topics=ordres,secret; topics there: 1 internal, 1 copied from the"
        " target, 1 excluded by topics.exclude, 2 not matched; correct topics and topics.exclude,"
        " create a topic there, or allow this mirror's user to describe it"
    )
    source.partitions["ordres"] = 1
    assert harness.topics.refresh()
    assert harness.topics.find_problem() == ""


def test_a_source_that_shows_no_topic_may_lack_a_right() -> None:
    harness = SourceTopicsHarness(InMemoryCluster("A"), InMemoryCluster("B"))
    harness.topics.load()
    problem = harness.topics.find_problem()
    assert problem.startswith("A shows no topic, so none matches topics=.*; create a topic there")
    assert "--operation Describe" in problem


def test_if_only_heartbeats_match_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    harness = SourceTopicsHarness(
        InMemoryCluster("A", heartbeats=1, orders=1), InMemoryCluster("B"), topics="ordres"
    )
    harness.topics.load()
    harness.topics.refresh()
    assert harness.topics.find_problem() == ""
    assert caplog.text.count("Only heartbeats of A are mirrored") == 1
    assert "none matches topics=ordres (1 are not matched" in caplog.text


def test_on_one_cluster_a_topic_is_not_copied_onto_itself() -> None:
    both = InMemoryCluster("A", orders=1)
    SourceTopicsHarness(both, both).topics.load()
    assert "A.orders" in both.partitions
    circle = SourceTopicsHarness(both, both, replication_policy_class="IdentityReplicationPolicy")
    with pytest.raises(TopicRejected, match="onto itself"):
        circle.topics.load()


STRIP = {
    "transforms": "r",
    "transforms.r.type": "RegexRouter",
    "transforms.r.regex": "A[.](.*)",
    "transforms.r.replacement": "$1",
}


def test_remote_topics_are_created_under_their_routed_names() -> None:
    source, target = InMemoryCluster("A", orders=2, heartbeats=1), InMemoryCluster("B")
    harness = SourceTopicsHarness(source, target, **STRIP)
    harness.topics.load()
    assert harness.target.partitions == {"orders": 2, "A.heartbeats": 1}
    assert harness.topics.synced_topics() == {"heartbeats": "A.heartbeats", "orders": "orders"}
    source.partitions["orders"] = 3
    assert harness.topics.refresh()
    assert harness.target.partitions["orders"] == 3
    assert not harness.topics.refresh()


def test_topics_that_are_routed_to_one_topic_are_not_copied() -> None:
    source, target = InMemoryCluster("A", orders=1, pay=1), InMemoryCluster("B")
    route = {**STRIP, "transforms.r.regex": "A[.]orders.*", "transforms.r.replacement": "all"}
    harness = SourceTopicsHarness(source, target, **route)
    harness.topics.load()
    assert harness.topics.find_problem() == ""
    source.partitions["orders-eu"] = 1
    harness.topics.refresh()
    assert harness.topics.refresh()
    assert harness.known() == ["pay-0"]
    assert harness.topics.find_problem() == (
        "topics orders and orders-eu are all routed to all, so that none of them is copied; "
        "change transforms, topics or topics.exclude"
    )
    del source.partitions["orders-eu"]
    assert harness.topics.refresh()
    assert harness.known() == ["orders-0", "pay-0"]
    assert harness.topics.find_problem() == ""


def test_a_topic_that_is_routed_onto_itself_is_rejected_on_one_cluster() -> None:
    source, target = InMemoryCluster("A", orders=1), InMemoryCluster("A", orders=1)
    with pytest.raises(TopicRejected, match="orders would be copied onto itself"):
        SourceTopicsHarness(source, target, **STRIP).topics.load()


def test_a_route_that_java_refuses_for_every_record_fails_the_connector() -> None:
    with pytest.raises(ConfigError, match="IndexOutOfBoundsException: No group 2"):
        MirrorSourceConfig.parse(CONFIG | STRIP | {"transforms.r.replacement": "$2"})
