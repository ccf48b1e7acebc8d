"""A cluster in memory, as far as topics go: for tests of those who look at topics and make them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import DescribeClusterResult
from sparkmirror.cluster.describe_configs import TopicConfigs
from sparkmirror.cluster.topics import NewTopic, TopicDescription, TopicPartitionInfo
from sparkmirror.connect.connectors.shared.cluster_clients import ClusterClients
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized


class InMemoryCluster:
    """Topics with so many partitions. It may be down, and hide settings."""

    def __init__(self, alias: str, **partitions: int) -> None:
        self.alias = alias
        self.partitions = dict(partitions)
        self.configs: dict[str, TopicConfigs] = {}
        self.created: list[NewTopic] = []
        self.unauthorized_topics: set[str] = set()
        self.is_down = False
        self.topic_listings = 0

    @property
    def clients(self) -> ClusterClients:
        """What a connector gets hold of. Its router leads nowhere."""
        access = ClusterAccess.from_properties(self.alias, {"bootstrap.servers": "127.0.0.1:1"})
        return ClusterClients(alias=self.alias, admin=self, router=access.new_router())

    def describe_cluster(self) -> DescribeClusterResult:
        self._check_available()
        return DescribeClusterResult(cluster_id=self.alias, controller_id=0, brokers=())

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        self._check_available()
        self.topic_listings += 1
        return {
            name: TopicDescription(
                name=name,
                topic_id=name,
                is_internal=name.startswith("__"),
                partitions=tuple(
                    TopicPartitionInfo(index=index, leader=0, replicas=(0,), isr=(0,))
                    for index in range(count)
                ),
            )
            for name, count in self.partitions.items()
            if names is None or name in names
        }

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, ClusterError]:
        self._check_available()
        self.created += topics
        self.partitions |= {topic.name: topic.partitions for topic in topics}
        return {}

    def create_partitions(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]:
        self._check_available()
        self.partitions |= partitions
        return {}

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        self._check_available()
        return {
            name: NotAuthorized(self.alias, f"{name} is hidden")
            if name in self.unauthorized_topics
            else self.configs.get(name, ())
            for name in names
        }

    def close(self) -> None:
        pass

    def _check_available(self) -> None:
        if self.is_down:
            raise ClusterUnavailable(self.alias, "down")
