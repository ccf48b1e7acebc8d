"""Requests and clusters for tests of `copy`, with everything chosen that a test does not say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparkmirror.cli.copy_plan import Survey
from sparkmirror.cli.copy_request import ClientFile, CopyRequest
from sparkmirror.cluster.admin import BrokerView, ClusterView
from sparkmirror.cluster.topics import Partition, Topic
from sparkmirror.mirror.filters import DefaultConfigPropertyFilter, DefaultTopicFilter
from sparkmirror.mirror.naming import IdentityPolicy
from sparkmirror.model import SourceAndTarget


def request(*patterns: str, exclude: tuple[str, ...] = (), **said: Any) -> CopyRequest:
    """A request to copy some topics from A to B under their own names."""
    properties = {"bootstrap.servers": "localhost:9092"}
    made = CopyRequest(
        flow=SourceAndTarget("A", "B"),
        source=ClientFile(raw=properties, expanded=properties),
        target=ClientFile(raw=properties, expanded=properties),
        policy=IdentityPolicy(source_alias="A"),
        topic_filter=DefaultTopicFilter.of(patterns, exclude),
        config_filter=DefaultConfigPropertyFilter.of([]),
        patterns=patterns,
        tasks_max=2,
    )
    return replace(made, **said)


def cluster(name: str, brokers: int = 1) -> ClusterView:
    """A cluster of so many brokers."""
    return ClusterView(
        cluster_id=name,
        controller_id=1,
        brokers=tuple(
            BrokerView(node_id=number, host="localhost", port=9091 + number, fenced=False)
            for number in range(1, brokers + 1)
        ),
    )


def topic(name: str, partitions: int = 1, replicas: int = 1) -> Topic:
    """A topic as a listing shows it."""
    nodes = tuple(range(1, replicas + 1))
    return Topic(
        name=name,
        topic_id="",
        internal=name.startswith("__"),
        partitions=tuple(
            Partition(index=index, leader=1, replicas=nodes, in_sync=nodes)
            for index in range(partitions)
        ),
    )


def survey(source: list[Topic], target: list[Topic], brokers: int = 1) -> Survey:
    """What was found on A and B."""
    return Survey(
        source=cluster("id of A", 3),
        target=cluster("id of B", brokers),
        source_topics={one.name: one for one in source},
        target_topics={one.name: one for one in target},
    )
