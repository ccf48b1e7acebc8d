"""A topic that another worker creates at the same time is awaited, then verified."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.config_resources import TopicConfigs
from sparkmirror.cluster.describe_topics import NewTopic, TopicDescription, TopicPartitionInfo
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ConfigError,
    TooFewBrokers,
    TopicConfigRejected,
    TopicExists,
    TopicMissing,
    TopicRejected,
    UnsupportedByBroker,
)
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource
from sparkmirror.store import topic_setup
from sparkmirror.store.storage_topic_settings import StorageKind, StorageTopic
from sparkmirror.store.topic_setup import create_or_verify_topic

TOPIC = StorageTopic(
    kind=StorageKind.CONFIGS, name="connect-configs", partitions=1, replication_factor=-1
)


class RacingAdmin(Admin):
    """The cluster rejects the topic as existing. Its brokers know the topic after some requests."""

    def __init__(
        self,
        unknown_for: int,
        partitions: int = 1,
        *,
        loses_response: bool = False,
        rejection: TopicRejected | None = None,
    ) -> None:
        exists = f"CreateTopics answered TOPIC_ALREADY_EXISTS for {TOPIC.name}"
        self.rejection = rejection or TopicExists("west", exists)
        self.loses_response = loses_response
        self.unknown_for = unknown_for
        self.partitions = partitions
        self.descriptions = 0

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        self.descriptions += 1
        if self.descriptions <= self.unknown_for:
            return {}
        partitions = tuple(
            TopicPartitionInfo(index=index, leader=1, replicas=(1,), isr=(1,))
            for index in range(self.partitions)
        )
        return {
            TOPIC.name: TopicDescription(
                name=TOPIC.name, topic_id="id", is_internal=False, partitions=partitions
            )
        }

    def describe_topic(self, name: str) -> TopicDescription:
        found = self.describe_topics([name])
        if not found:
            raise TopicMissing("west", f"there is no topic {name}; create it")
        return found[name]

    def can_alter_configs(self) -> bool:
        return True

    def create_topic(self, topic: NewTopic) -> bool:
        if self.loses_response:
            return False
        raise self.rejection

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        return dict.fromkeys(names, ())


@pytest.fixture(autouse=True)
def _one_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_setup, "_count_brokers", lambda _: 1)


def test_a_topic_that_exists_but_is_not_yet_known_to_the_broker_is_awaited() -> None:
    admin = RacingAdmin(unknown_for=4)
    create_or_verify_topic(admin, TOPIC, new_topic_wait_s=50.0)
    assert admin.descriptions == 5


def test_an_awaited_topic_is_verified() -> None:
    with pytest.raises(ConfigError, match="single partition"):
        create_or_verify_topic(RacingAdmin(unknown_for=2, partitions=3), TOPIC)


def test_a_topic_that_exists_after_a_lost_response_is_verified() -> None:
    admin = RacingAdmin(unknown_for=1, partitions=3, loses_response=True)
    with pytest.raises(ConfigError, match="single partition"):
        create_or_verify_topic(admin, TOPIC)


@pytest.mark.parametrize("loses_response", [False, True])
def test_an_existing_topic_that_brokers_do_not_list_is_a_retriable_error(
    loses_response: bool,
) -> None:
    admin = RacingAdmin(unknown_for=10**9, loses_response=loses_response)
    with pytest.raises(ClusterTimeout, match="connect-configs exists") as raised:
        create_or_verify_topic(admin, TOPIC, new_topic_wait_s=0.05)
    assert raised.value.retriable


def test_a_topic_that_the_cluster_refuses_is_an_error() -> None:
    admin = RacingAdmin(unknown_for=10**9, rejection=TopicRejected("west", "POLICY_VIOLATION"))
    with pytest.raises(TopicRejected, match="POLICY_VIOLATION") as raised:
        create_or_verify_topic(admin, TOPIC, new_topic_wait_s=0.05)
    assert not raised.value.retriable


class ServiceAdmin(RacingAdmin):
    """A cluster that compacts no topic. `alters_configs` says whether clients may set configs."""

    def __init__(self, *, unknown_for: int = 0, alters_configs: bool = False) -> None:
        super().__init__(unknown_for=unknown_for)
        self.alters_configs = alters_configs
        self.describes_configs = True
        self.created: list[NewTopic] = []
        self.config_rejection: TopicRejected = TopicConfigRejected("west", "INVALID_CONFIG")

    def can_alter_configs(self) -> bool:
        return self.alters_configs

    def create_topic(self, topic: NewTopic) -> bool:
        if topic.configs:
            raise self.config_rejection
        self.created.append(topic)
        return True

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        if not self.describes_configs:
            raise UnsupportedByBroker("west", "the broker does not support DescribeConfigs")
        policy = ConfigEntry(
            name="cleanup.policy", value="delete", source=ConfigSource.DEFAULT_CONFIG
        )
        return dict.fromkeys(names, (policy,))


@pytest.mark.parametrize(
    "rejection",
    [TopicConfigRejected("west", "INVALID_CONFIG"), TopicRejected("west", "INVALID_REQUEST")],
    ids=str,
)
def test_a_service_that_rejects_compaction_gets_the_topic_without_it_and_a_warning(
    caplog: pytest.LogCaptureFixture, rejection: TopicRejected
) -> None:
    admin = ServiceAdmin(unknown_for=1)
    admin.config_rejection = rejection
    create_or_verify_topic(admin, TOPIC)
    assert [topic.configs for topic in admin.created] == [{}]
    assert "connect-configs is created without cleanup.policy=compact" in caplog.text


def test_kafka_that_rejects_compaction_is_an_error() -> None:
    with pytest.raises(TopicRejected, match="INVALID_CONFIG"):
        create_or_verify_topic(
            ServiceAdmin(unknown_for=10**9, alters_configs=True), TOPIC, new_topic_wait_s=0.05
        )


def test_a_topic_that_no_client_can_compact_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    create_or_verify_topic(ServiceAdmin(), TOPIC)
    assert "connect-configs has cleanup.policy=delete" in caplog.text
    with pytest.raises(ConfigError, match="required to have 'cleanup.policy=compact'"):
        create_or_verify_topic(ServiceAdmin(alters_configs=True), TOPIC)


def test_a_service_that_describes_no_configs_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admin = ServiceAdmin()
    admin.describes_configs = False
    create_or_verify_topic(admin, TOPIC)
    assert "Could not verify that topic connect-configs is compacted" in caplog.text


class StartingAdmin(RacingAdmin):
    """A cluster with one broker. It rejects more replicas, unless it has replicas of its own."""

    def __init__(self, *, rejections: int) -> None:
        super().__init__(unknown_for=10**9)
        self.rejections = rejections
        self.requests = 0

    def create_topic(self, topic: NewTopic) -> bool:
        self.requests += 1
        if self.requests <= self.rejections:
            raise TooFewBrokers("west", "INVALID_REPLICATION_FACTOR")
        return True


def test_a_service_that_is_one_broker_may_accept_more_replicas() -> None:
    admin = StartingAdmin(rejections=0)
    create_or_verify_topic(admin, replace(TOPIC, replication_factor=3), broker_wait_s=0.0)
    assert admin.requests == 1


def test_a_cluster_that_starts_gets_the_topic_when_it_has_its_brokers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counts = iter([1, 2, 3])
    monkeypatch.setattr(topic_setup, "_count_brokers", lambda _: next(counts))
    monkeypatch.setattr(topic_setup, "POLL_INTERVAL_S", 0.0)
    admin = StartingAdmin(rejections=1)
    create_or_verify_topic(admin, replace(TOPIC, replication_factor=3), broker_wait_s=50.0)
    assert admin.requests == 2
    assert "needs 3 brokers for its replicas, but there are 1. Waiting" in caplog.text
