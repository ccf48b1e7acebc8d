"""Topics that a cluster refuses, creates by itself, or has after a lost response."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.topic_changes import TopicChangesResult
from sparkmirror.connect.connectors.shared.topic_creation import (
    MAX_RECORDS_PER_REQUEST,
    RETRY_INTERVAL_S,
    InternalTopicCreation,
    create_remote_topics,
    ensure_internal_topic,
    split_by_size,
)
from sparkmirror.errors import (
    ClusterError,
    TooFewBrokers,
    TopicConfigRejected,
    TopicExists,
    TopicRejected,
    UnsupportedByBroker,
)
from sparkmirror.mirror.topics.internal_topics import InternalTopic
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic
from tests.support.kafka.in_memory_cluster import InMemoryCluster

HEARTBEATS = InternalTopic(name="heartbeats", cluster="B", partitions=1)
REMOTE = NewRemoteTopic(
    source_topic="orders",
    name="A.orders",
    partitions=3,
    replication_factor=3,
    configs={"retention.ms": "1000"},
)


class RefusingCluster(InMemoryCluster):
    """A cluster that refuses to create topics. Its brokers may create them on demand."""

    def __init__(self, *, auto_creates: bool = False) -> None:
        super().__init__("B")
        self.auto_creates = auto_creates
        self.refusals = 0
        self.set_configs: dict[str, Mapping[str, str]] = {}

    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        self.refusals += 1
        error = TopicRejected(self.cluster, "INVALID_REPLICATION_FACTOR")
        return TopicChangesResult({topic.name: error for topic in topics}, frozenset())

    def request_auto_creation(self, names: Collection[str]) -> frozenset[str]:
        if not self.auto_creates:
            return frozenset()
        self.partitions |= dict.fromkeys(names, 1)
        return frozenset(names)

    def incremental_alter_configs(
        self, changes: Mapping[str, Sequence[AlterConfigOp]]
    ) -> dict[str, ClusterError]:
        raise UnsupportedByBroker(self.cluster, "before Kafka 2.3")

    def alter_configs(self, configs: Mapping[str, Mapping[str, str]]) -> dict[str, ClusterError]:
        self.set_configs |= configs
        return {}


class ClusterThatLosesResponses(InMemoryCluster):
    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        super().create_topics(topics)
        return TopicChangesResult({}, frozenset(topic.name for topic in topics))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def refusing() -> Iterator[RefusingCluster]:
    with RefusingCluster() as cluster:
        yield cluster


def test_a_refused_internal_topic_is_created_with_a_later_try(refusing: RefusingCluster) -> None:
    clock = Clock()
    creation = InternalTopicCreation(refusing, HEARTBEATS, 3, clock)
    creation.ensure()
    creation.ensure()
    assert refusing.refusals == 1
    clock.now_s = RETRY_INTERVAL_S
    creation.ensure()
    assert refusing.refusals == 2
    assert creation.problem.startswith("internal topic heartbeats cannot be found or created: ")
    refusing.auto_creates = True
    clock.now_s = 2 * RETRY_INTERVAL_S
    creation.ensure()
    assert refusing.refusals == 3
    assert creation.problem == ""
    clock.now_s = 3 * RETRY_INTERVAL_S
    listings = refusing.topic_listings
    creation.ensure()
    assert (refusing.refusals, refusing.topic_listings) == (3, listings)


def test_an_auto_created_topic_gets_its_configs_on_brokers_before_2_3() -> None:
    with RefusingCluster(auto_creates=True) as cluster:
        assert create_remote_topics(cluster, [REMOTE]) == {}
        assert ensure_internal_topic(cluster, HEARTBEATS, 3) is None
    assert cluster.partitions == {"A.orders": 3, "heartbeats": 1}
    assert cluster.set_configs == {
        "A.orders": {"retention.ms": "1000"},
        "heartbeats": {"cleanup.policy": "compact"},
    }


def test_a_topic_that_nothing_creates_is_reported(refusing: RefusingCluster) -> None:
    assert create_remote_topics(refusing, [REMOTE]).keys() == {"A.orders"}
    assert ensure_internal_topic(refusing, HEARTBEATS, 3) is not None


@pytest.mark.parametrize(
    ("cluster_class", "is_logged"), [(InMemoryCluster, True), (ClusterThatLosesResponses, False)]
)
def test_a_topic_is_logged_as_created_only_if_that_is_known(
    cluster_class: type[InMemoryCluster], is_logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with cluster_class("B") as cluster:
        assert create_remote_topics(cluster, [REMOTE]) == {}
        assert ensure_internal_topic(cluster, HEARTBEATS, 3) is None
    assert ("Created remote topic A.orders" in caplog.text) == is_logged
    assert ("Created topic 'heartbeats'" in caplog.text) == is_logged


class LimitedCluster(InMemoryCluster):
    """A cluster whose controller writes at most `MAX_RECORDS_PER_REQUEST` records for a request."""

    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        records = sum(1 + topic.partitions + len(topic.configs) for topic in topics)
        assert records <= MAX_RECORDS_PER_REQUEST
        return super().create_topics(topics)


def test_ten_thousand_partitions_are_created_by_several_requests() -> None:
    cluster = LimitedCluster("B")
    wide = [
        replace(REMOTE, source_topic=f"wide-{n}", name=f"A.wide-{n}", partitions=100)
        for n in range(100)
    ]
    assert create_remote_topics(cluster, wide) == {}
    assert cluster.partitions == {topic.name: 100 for topic in wide}


@pytest.mark.parametrize(
    ("records", "groups"),
    [
        ({}, []),
        ({"a": 1, "b": 4999}, [["a", "b"]]),
        ({"a": 2, "b": 4999, "c": 1}, [["a"], ["b", "c"]]),
        ({"a": 1, "b": 9000, "c": 1}, [["a"], ["b"], ["c"]]),
    ],
)
def test_topics_are_grouped_by_the_records_that_they_need(
    records: Mapping[str, int], groups: list[list[str]]
) -> None:
    assert split_by_size(records) == groups


class ServiceWithoutConfigs(InMemoryCluster):
    """Rejects topics with configs."""

    alters_configs = False
    rejection: type[TopicRejected] = TopicConfigRejected

    def can_alter_configs(self) -> bool:
        return self.alters_configs

    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        error = self.rejection(self.cluster, "the topic is rejected")
        super().create_topics([topic for topic in topics if not topic.configs])
        return TopicChangesResult(
            {topic.name: error for topic in topics if topic.configs}, frozenset()
        )

    def request_auto_creation(self, names: Collection[str]) -> frozenset[str]:
        return frozenset()


@pytest.mark.parametrize("rejection", [TopicConfigRejected, TopicRejected])
def test_a_service_that_rejects_configs_gets_topics_without_them(
    rejection: type[TopicRejected],
) -> None:
    service = ServiceWithoutConfigs("B")
    service.rejection = rejection
    assert create_remote_topics(service, [REMOTE]) == {}
    assert ensure_internal_topic(service, HEARTBEATS, 1) is None
    assert [(topic.name, topic.configs) for topic in service.created] == [
        ("A.orders", {}),
        ("heartbeats", {}),
    ]


@pytest.mark.parametrize("rejection", [TopicExists, TooFewBrokers])
def test_a_topic_that_is_not_rejected_for_its_configs_is_not_tried_without_them(
    rejection: type[TopicRejected],
) -> None:
    service = ServiceWithoutConfigs("B")
    service.rejection = rejection
    assert create_remote_topics(service, [REMOTE]).keys() == {"A.orders"}
    assert service.created == []


def test_kafka_that_rejects_a_config_creates_no_topic() -> None:
    kafka = ServiceWithoutConfigs("B")
    kafka.alters_configs = True
    assert create_remote_topics(kafka, [REMOTE]).keys() == {"A.orders"}
    assert kafka.created == []
