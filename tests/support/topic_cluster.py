"""A cluster in memory, as far as topics go: for tests of those who look at topics and make them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import ClusterView
from sparkmirror.cluster.topic_configs import TopicConfigs
from sparkmirror.cluster.topics import NewTopic, Partition, Topic
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized


class TopicCluster:
    """Topics with so many partitions. It may be down, and hide settings."""

    def __init__(self, alias: str, **partitions: int) -> None:
        self.alias = alias
        self.partitions = dict(partitions)
        self.configs: dict[str, TopicConfigs] = {}
        self.created: list[NewTopic] = []
        self.hidden: set[str] = set()
        self.is_down = False
        self.looks = 0

    @property
    def hands(self) -> Hands:
        """What a connector gets hold of. Its router leads nowhere."""
        access = Access.from_properties(self.alias, {"bootstrap.servers": "127.0.0.1:1"})
        return Hands(alias=self.alias, admin=self, router=access.router())

    def describe_cluster(self) -> ClusterView:
        self._demand()
        return ClusterView(cluster_id=self.alias, controller_id=0, brokers=())

    def topics(self, names: Collection[str] | None = None) -> dict[str, Topic]:
        self._demand()
        self.looks += 1
        return {
            name: Topic(
                name=name,
                topic_id=name,
                internal=name.startswith("__"),
                partitions=tuple(
                    Partition(index=index, leader=0, replicas=(0,), in_sync=(0,))
                    for index in range(count)
                ),
            )
            for name, count in self.partitions.items()
            if names is None or name in names
        }

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, ClusterError]:
        self._demand()
        self.created += topics
        self.partitions |= {topic.name: topic.partitions for topic in topics}
        return {}

    def grow_topics(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]:
        self._demand()
        self.partitions |= partitions
        return {}

    def topic_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        self._demand()
        return {
            name: NotAuthorized(self.alias, f"{name} is hidden")
            if name in self.hidden
            else self.configs.get(name, ())
            for name in names
        }

    def close(self) -> None:
        pass

    def _demand(self) -> None:
        if self.is_down:
            raise ClusterUnavailable(self.alias, "down")
