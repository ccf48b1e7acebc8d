"""The admin client, and topics that are written and read completely."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin, ListOffsetsSpec
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records, read_topic
from sparkmirror.errors import (
    ClusterTimeout,
    ClusterUnavailable,
    TopicExists,
    TopicMissing,
    TopicRejected,
)
from sparkmirror.model import TopicPartition
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.wire.net.address import Address
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic
from tests.support.timing import fastest_run_s


@pytest.fixture
def admin(primary: SharedCluster) -> Iterator[Admin]:
    with Admin(primary.access) as made:
        yield made


@pytest.fixture
def silent_host() -> Iterator[Address]:
    """A host that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Address(*server.getsockname())


def test_each_topic_that_cannot_be_created_has_its_error(
    admin: Admin, unique_name: UniqueName
) -> None:
    good, twice = unique_name("good"), unique_name("twice")
    admin.create_topic(NewTopic(name=twice, partitions=1))
    failed, _ = admin.create_topics(
        [
            NewTopic(name=good, partitions=2, configs={"retention.ms": "1000"}),
            NewTopic(name=twice),
            NewTopic(name="no blanks please"),
            NewTopic(name=unique_name("many"), replication_factor=9),
            NewTopic(name=unique_name("odd"), configs={"retention.ms": "soon"}),
        ]
    )
    assert len(failed) == 4
    assert {name for name, error in failed.items() if type(error) is TopicExists} == {twice}
    assert all(isinstance(error, TopicRejected) for error in failed.values())
    assert "TOPIC_ALREADY_EXISTS" in str(failed[twice])
    assert "INVALID_TOPIC" in str(failed["no blanks please"])
    assert len(admin.describe_topics([good])[good].partitions) == 2


def test_a_created_topic_has_leaders_at_once_and_a_deleted_one_is_missing(
    admin: Admin, topic: str
) -> None:
    admin.create_topic(NewTopic(name=topic, partitions=3))
    found = admin.describe_topics([topic])[topic]
    assert [partition.index for partition in found.partitions] == [0, 1, 2]
    assert found.has_leaders
    assert not found.is_internal
    assert admin.delete_topics([topic]) == {}
    assert admin.describe_topics([topic]) == {}


def test_a_topic_that_does_not_exist_is_missing(
    admin: Admin, primary: SharedCluster, topic: str
) -> None:
    assert admin.describe_topics([topic]) == {}
    assert topic not in admin.describe_topics()
    assert isinstance(admin.delete_topics([topic])[topic], TopicMissing)
    with pytest.raises(TopicMissing):
        admin.list_offsets([TopicPartition(topic, 0)], ListOffsetsSpec.LATEST)
    with pytest.raises(TopicMissing):
        read_topic(primary.access, topic)
    with pytest.raises(TopicMissing):
        produce_records(primary.access, topic, [ProducerRecord(value=b"x")])


def test_records_are_read_as_they_were_written(primary: SharedCluster, topic: str) -> None:
    create_topic(primary.access, topic, partitions=2)
    written = [
        ProducerRecord(partition=1, key=b"k", value=b"v", headers=(("h", b"1"), ("h", b""))),
        ProducerRecord(partition=0, key=None, value=b"", timestamp_ms=1_600_000_000_000),
        ProducerRecord(partition=1, key=b"", value=None, timestamp_ms=0),
    ]
    assert produce_records(primary.access, topic, written) == [(1, 0), (0, 0), (1, 1)]
    read = read_topic(primary.access, topic)
    assert [(one.partition, one.offset) for one in read] == [(0, 0), (1, 0), (1, 1)]
    assert [(one.key, one.value, one.headers) for one in read] == [
        (None, b"", ()),
        (b"k", b"v", (("h", b"1"), ("h", b""))),
        (b"", None, ()),
    ]
    assert [one.timestamp_ms for one in read][::2] == [1_600_000_000_000, 0]


def test_the_earliest_and_latest_offsets_of_partitions_are_listed(
    admin: Admin, primary: SharedCluster, topic: str
) -> None:
    create_topic(primary.access, topic, partitions=2)
    produce_records(primary.access, topic, [ProducerRecord(value=b"x", partition=0)] * 7)
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert admin.list_offsets(both, ListOffsetsSpec.EARLIEST) == dict.fromkeys(both, 0)
    assert admin.list_offsets(both, ListOffsetsSpec.LATEST) == {both[0]: 7, both[1]: 0}


def test_an_empty_topic_is_read_at_once(primary: SharedCluster, topic: str) -> None:
    create_topic(primary.access, topic)
    assert read_topic(primary.access, topic) == []


def test_a_silent_host_does_not_prevent_a_connection_to_another(
    primary: SharedCluster, silent_host: Address
) -> None:
    access = ClusterAccess(
        cluster="primary",
        bootstrap_servers=(silent_host, *primary.access.bootstrap_servers),
        security=primary.access.security,
    )
    with Admin(access, timeout_s=60) as admin:
        assert admin.describe_cluster().brokers


def test_silent_hosts_alone_end_in_a_timeout(silent_host: Address) -> None:
    access = ClusterAccess(
        cluster="nowhere", bootstrap_servers=(silent_host,), security=ClientSecurity()
    )

    def ask() -> None:
        with pytest.raises(ClusterTimeout, match="no answer to ApiVersions in time"):
            Admin(access, timeout_s=0.5).describe_topics()

    assert fastest_run_s(ask) < 5


def test_an_unreachable_broker_is_named_with_its_address() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound, so no other process listens there
        gone = Address(*silent.getsockname())
        access = ClusterAccess(
            cluster="nowhere", bootstrap_servers=(gone,), security=ClientSecurity()
        )
        with pytest.raises(ClusterUnavailable, match=f"nowhere: .*{gone}: connection refused"):
            Admin(access, timeout_s=0.2).describe_topics()


def test_many_threads_share_one_admin(admin: Admin, topic: str) -> None:
    admin.create_topic(NewTopic(name=topic, partitions=1))
    answers: list[bool] = []

    def ask() -> None:
        answers.extend(topic in admin.describe_topics() for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert answers == [True] * 60
