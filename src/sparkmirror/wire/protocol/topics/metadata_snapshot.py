"""Metadata of a cluster: its brokers, its topics by name, the leader of each partition.

A snapshot is frozen. Brokers learn of changes at different times, so a later response may be older:
for the same topic id, the higher leader epoch is kept. A topic with another id is another topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import MetadataRequest, MetadataResponse
from sparkmirror.wire.protocol.topics.current_leader import (
    NO_LEADER_EPOCH,
    NO_NODE_ID,
    BrokerNode,
    LeaderAndEpoch,
)

_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """The leader and the replicas of one partition."""

    leader: LeaderAndEpoch
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """One topic. `topic_id` is None on brokers without topic ids."""

    name: str
    topic_id: UUID | None = None
    is_internal: bool = False
    error_code: ErrorCode = ErrorCode.NONE
    partitions: Mapping[int, PartitionInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSnapshot:
    """The brokers of a cluster and the topics requested so far."""

    cluster_id: str = ""
    controller_id: int = NO_NODE_ID
    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)

    def leader_of(self, partition: TopicPartition) -> LeaderAndEpoch | None:
        """The leader of a partition; None if it has none or its broker is unknown."""
        topic = self.topics.get(partition.topic)
        info = topic.partitions.get(partition.partition) if topic else None
        return None if info is None or info.leader.node_id not in self.brokers else info.leader

    def leader_node(self, partition: TopicPartition) -> BrokerNode | None:
        """The broker that leads a partition; None if it is unknown."""
        leader = self.leader_of(partition)
        return None if leader is None else self.brokers[leader.node_id]

    def topic_id(self, name: str) -> UUID | None:
        """The id of a topic; None if the topic or its id is unknown."""
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def merge_with(self, newer: MetadataSnapshot) -> MetadataSnapshot:
        """Return a snapshot with the brokers of `newer`, and the newer state of each topic."""
        topics = dict(self.topics)
        for name, topic in newer.topics.items():
            topics[name] = _newer_topic(topics[name], topic) if name in topics else topic
        return replace(newer, topics=topics)

    def with_new_leader(
        self, partition: TopicPartition, leader: LeaderAndEpoch, endpoints: Iterable[BrokerNode]
    ) -> MetadataSnapshot:
        """Return a snapshot with a leader that a former leader has named (KIP-951)."""
        topic = self.topics.get(partition.topic)
        info = topic.partitions.get(partition.partition) if topic else None
        if topic is None or info is None or info.leader.epoch >= leader.epoch:
            return self
        brokers = dict(self.brokers) | {broker.node_id: broker for broker in endpoints}
        partitions = dict(topic.partitions) | {partition.partition: replace(info, leader=leader)}
        topics = dict(self.topics) | {topic.name: replace(topic, partitions=partitions)}
        return replace(self, brokers=brokers, topics=topics)

    def without_controller(self) -> MetadataSnapshot:
        """Return a snapshot without the controller."""
        return replace(self, controller_id=NO_NODE_ID)

    def without_broker(self, node_id: int) -> MetadataSnapshot:
        """Return a snapshot without one broker."""
        return replace(self, brokers={n: b for n, b in self.brokers.items() if n != node_id})

    def without_leader(self, partition: TopicPartition) -> MetadataSnapshot:
        """Return a snapshot without the leader of a partition, so that it is looked up again."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition not in topic.partitions:
            return self
        info = topic.partitions[partition.partition]
        leaderless = replace(info, leader=LeaderAndEpoch(NO_NODE_ID, info.leader.epoch))
        partitions = dict(topic.partitions) | {partition.partition: leaderless}
        topics = dict(self.topics) | {topic.name: replace(topic, partitions=partitions)}
        return replace(self, topics=topics)


def _newer_topic(older: TopicInfo, newer: TopicInfo) -> TopicInfo:
    if (
        newer.error_code.action is ErrorAction.REFRESH
        and newer.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ):
        return older
    if newer.topic_id is None or older.topic_id != newer.topic_id:
        return newer
    partitions = {
        index: _newer_partition(older.partitions.get(index), info)
        for index, info in newer.partitions.items()
    }
    return replace(newer, partitions=partitions)


def _newer_partition(older: PartitionInfo | None, newer: PartitionInfo) -> PartitionInfo:
    has_no_epoch = newer.leader.epoch == NO_LEADER_EPOCH
    if older is None or has_no_epoch or newer.leader.epoch >= older.leader.epoch:
        return newer
    return older


def metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    """Build a request for some topics (None: all). It does not create topics."""
    wanted = None
    if topics is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def read_metadata(answer: MetadataResponse) -> MetadataSnapshot:
    """Read a response."""
    return MetadataSnapshot(
        cluster_id=answer.cluster_id or "",
        controller_id=answer.controller_id,
        brokers={broker.node_id: broker for broker in read_brokers(answer)},
        topics={topic.name: _read_topic(topic) for topic in answer.topics if topic.name},
    )


def read_brokers(answer: MetadataResponse) -> list[BrokerNode]:
    """Read the brokers of a response."""
    return [
        BrokerNode(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in answer.brokers
    ]


def _read_topic(topic: MetadataResponse.MetadataResponseTopic) -> TopicInfo:
    return TopicInfo(
        name=topic.name or "",
        topic_id=None if topic.topic_id in (None, _NO_ID) else topic.topic_id,
        is_internal=bool(topic.is_internal),
        error_code=ErrorCode(topic.error_code),
        partitions={
            partition.partition_index: PartitionInfo(
                leader=LeaderAndEpoch(partition.leader_id, partition.leader_epoch),
                replicas=tuple(partition.replica_nodes),
                isr=tuple(partition.isr_nodes),
                offline_replicas=tuple(partition.offline_replicas or ()),
            )
            for partition in topic.partitions
        },
    )
