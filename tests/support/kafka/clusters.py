"""Clusters for tests, started here or outside, and their topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import (
    ConsumerRecord,
    ProducerRecord,
    produce_records,
    read_topic,
)
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from tests.support.waiting import wait_until

StartCluster = Callable[[ClusterSpec], Cluster]
"""Starts a cluster. The fixture removes it at the end of the test or the module."""

UniqueName = Callable[[str], str]
"""Returns a name for a topic or a group that no other test uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCluster:
    """A cluster tests may use but not stop. Its topics are shared, so use unique names."""

    name: str
    properties: Mapping[str, str] = field(repr=False)

    @property
    def bootstrap(self) -> str:
        """Its brokers, as `bootstrap.servers`."""
        return self.properties["bootstrap.servers"]

    @property
    def access(self) -> ClusterAccess:
        """The access of sparkmirror's clients."""
        return ClusterAccess.from_properties(self.name, self.properties)


def create_topic(
    access: ClusterAccess,
    name: str,
    partitions: int = 1,
    replicas: int = -1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and wait until its leaders answer."""
    with Admin(access) as admin:
        admin.create_topic(
            NewTopic(
                name=name,
                partitions=partitions,
                replication_factor=replicas,
                configs=configs or {},
            )
        )
    wait_for_leaders(access, [TopicPartition(name, index) for index in range(partitions)])


def read_acl(topic: str) -> AclBinding:
    """Return the ACL that lets Carol read a topic."""
    return AclBinding(
        resource_type="TOPIC",
        resource_name=topic,
        pattern_type="LITERAL",
        principal="User:carol",
        host="*",
        operation="READ",
        permission="ALLOW",
    )


def wait_for_leaders(
    access: ClusterAccess, partitions: Sequence[TopicPartition], timeout_s: float = 60.0
) -> None:
    """Wait until the leaders answer. A leader is in metadata before it opens its log."""
    router = access.new_router()

    def are_served() -> bool:
        found = list_offsets(router, dict.fromkeys(partitions, LATEST))
        return all(outcome.code is ErrorCode.NONE for outcome in found.values())

    try:
        wait_until(are_served, f"{partitions} to be served", timeout_s)
    finally:
        router.close()


def write_values(access: ClusterAccess, topic: str, *values: bytes) -> None:
    """Write records without keys to partition 0, in order."""
    produce_records(access, topic, [ProducerRecord(value=value, partition=0) for value in values])


def read_values(access: ClusterAccess, topic: str) -> list[bytes | None]:
    """Read the values of a topic."""
    records: list[ConsumerRecord] = read_topic(access, topic)
    return [record.value for record in records]
