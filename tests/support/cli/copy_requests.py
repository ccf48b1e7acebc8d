"""Requests and cluster descriptions for tests of `copy`, with defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparkmirror.cli.copy.plan import ClusterDescriptions
from sparkmirror.cli.copy.request import ClientFile, CopyRequest
from sparkmirror.cluster.describe_cluster import BrokerDescription, DescribeClusterResult
from sparkmirror.cluster.describe_topics import TopicDescription, TopicPartitionInfo
from sparkmirror.mirror.topics.filters import DefaultConfigPropertyFilter, DefaultTopicFilter
from sparkmirror.mirror.topics.replication_policy import IdentityReplicationPolicy
from sparkmirror.model import SourceAndTarget


def copy_request(*patterns: str, exclude: tuple[str, ...] = (), **overrides: Any) -> CopyRequest:
    """A request to copy some topics from A to B under their own names."""
    properties = {"bootstrap.servers": "localhost:9092"}
    request = CopyRequest(
        flow=SourceAndTarget("A", "B"),
        source=ClientFile(raw=properties, expanded=properties),
        target=ClientFile(raw=properties, expanded=properties),
        policy=IdentityReplicationPolicy(source_alias="A"),
        topic_filter=DefaultTopicFilter.of(patterns, exclude),
        config_filter=DefaultConfigPropertyFilter.of([]),
        patterns=patterns,
        tasks_max=2,
    )
    return replace(request, **overrides)


def cluster_view(name: str, brokers: int = 1) -> DescribeClusterResult:
    """A cluster with this number of brokers."""
    return DescribeClusterResult(
        cluster_id=name,
        controller_id=1,
        brokers=tuple(
            BrokerDescription(node_id=number, host="localhost", port=9091 + number, fenced=False)
            for number in range(1, brokers + 1)
        ),
    )


def topic_view(name: str, partitions: int = 1, replicas: int = 1) -> TopicDescription:
    """The description of a topic."""
    nodes = tuple(range(1, replicas + 1))
    return TopicDescription(
        name=name,
        topic_id="",
        is_internal=name.startswith("__"),
        partitions=tuple(
            TopicPartitionInfo(index=index, leader=1, replicas=nodes, isr=nodes)
            for index in range(partitions)
        ),
    )


def cluster_descriptions(
    source: list[TopicDescription], target: list[TopicDescription], brokers: int = 1
) -> ClusterDescriptions:
    """The descriptions of A and B."""
    return ClusterDescriptions(
        source=cluster_view("id of A", 3),
        target=cluster_view("id of B", brokers),
        source_topics={topic.name: topic for topic in source},
        target_topics={topic.name: topic for topic in target},
    )
