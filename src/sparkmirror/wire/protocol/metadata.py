"""What is known of a cluster: its brokers, its topics by name and id, who leads each partition.

A Metadata is a frozen picture. Brokers hear of changes at different moments, so a later answer may
be older news: of one and the same topic id the higher leader epoch is kept. A topic whose id
changed was deleted and created again, whatever its name says. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.leaders import (
    NO_LEADER_EPOCH,
    NO_NODE_ID,
    BrokerNode,
    LeaderAndEpoch,
)
from sparkmirror.wire.protocol.messages import MetadataRequest, MetadataResponse

_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """One partition: who leads it, who holds it."""

    leader: LeaderAndEpoch
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """One topic. `topic_id` is None where brokers are too old to give ids."""

    name: str
    topic_id: UUID | None = None
    is_internal: bool = False
    error_code: ErrorCode = ErrorCode.NONE
    partitions: Mapping[int, PartitionInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSnapshot:
    """A picture of a cluster, as far as somebody asked."""

    cluster_id: str = ""
    controller_id: int = NO_NODE_ID
    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)

    def leader_of(self, partition: TopicPartition) -> LeaderAndEpoch | None:
        """Who leads a partition, if anybody known does."""
        topic = self.topics.get(partition.topic)
        info = topic.partitions.get(partition.partition) if topic else None
        return None if info is None or info.leader.node_id not in self.brokers else info.leader

    def leader_node(self, partition: TopicPartition) -> BrokerNode | None:
        """The broker that leads a partition, if anybody known does."""
        leader = self.leader_of(partition)
        return None if leader is None else self.brokers[leader.node_id]

    def topic_id(self, name: str) -> UUID | None:
        """The id of a topic, if it is known and brokers give ids."""
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def merge_with(self, newer: MetadataSnapshot) -> MetadataSnapshot:
        """Take over an answer: its brokers all, its topics one by one."""
        topics = dict(self.topics)
        for name, topic in newer.topics.items():
            topics[name] = _newer_topic(topics[name], topic) if name in topics else topic
        return replace(newer, topics=topics)

    def with_new_leader(
        self, partition: TopicPartition, leader: LeaderAndEpoch, endpoints: Iterable[BrokerNode]
    ) -> MetadataSnapshot:
        """Take over what a broker that no longer leads said of its successor (KIP-951)."""
        topic = self.topics.get(partition.topic)
        info = topic.partitions.get(partition.partition) if topic else None
        if topic is None or info is None or info.leader.epoch >= leader.epoch:
            return self
        brokers = dict(self.brokers) | {broker.node_id: broker for broker in endpoints}
        partitions = dict(topic.partitions) | {partition.partition: replace(info, leader=leader)}
        topics = dict(self.topics) | {topic.name: replace(topic, partitions=partitions)}
        return replace(self, brokers=brokers, topics=topics)

    def without_controller(self) -> MetadataSnapshot:
        """Forget who controls the cluster."""
        return replace(self, controller_id=NO_NODE_ID)

    def without_broker(self, node_id: int) -> MetadataSnapshot:
        """Forget where a broker is."""
        return replace(self, brokers={n: b for n, b in self.brokers.items() if n != node_id})

    def without_leader(self, partition: TopicPartition) -> MetadataSnapshot:
        """Forget who leads a partition, so that nobody asks there again before looking anew."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition not in topic.partitions:
            return self
        info = topic.partitions[partition.partition]
        nobody = replace(info, leader=LeaderAndEpoch(NO_NODE_ID, info.leader.epoch))
        partitions = dict(topic.partitions) | {partition.partition: nobody}
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
    unknown = newer.leader.epoch == NO_LEADER_EPOCH
    if older is None or unknown or newer.leader.epoch >= older.leader.epoch:
        return newer
    return older


def metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    """Ask about some topics, or about all with None; never create one by asking."""
    wanted = None
    if topics is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def read_metadata(answer: MetadataResponse) -> MetadataSnapshot:
    """Take a broker's answer."""
    return MetadataSnapshot(
        cluster_id=answer.cluster_id or "",
        controller_id=answer.controller_id,
        brokers={
            broker.node_id: BrokerNode(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in answer.brokers
        },
        topics={topic.name: _read_topic(topic) for topic in answer.topics if topic.name},
    )


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
