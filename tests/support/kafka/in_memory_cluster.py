"""The admin client of a cluster in memory: its topics and their configs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.config_resources import TopicConfigs
from sparkmirror.cluster.describe_cluster import DescribeClusterResult
from sparkmirror.cluster.describe_topics import (
    NewTopic,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
)
from sparkmirror.cluster.topic_changes import TopicChangesResult
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized


class InMemoryCluster(Admin):
    """Topics by name, each with a number of partitions. `is_down` makes calls fail."""

    def __init__(self, alias: str, **partitions: int) -> None:
        super().__init__(ClusterAccess.from_properties(alias, {"bootstrap.servers": "127.0.0.1:1"}))
        self.partitions = dict(partitions)
        self.configs: dict[str, TopicConfigs] = {}
        self.created: list[NewTopic] = []
        self.creation_errors: dict[str, ClusterError] = {}
        """The topics that cannot be created."""
        self.unauthorized_topics: set[str] = set()
        self.is_down = False
        self.topic_listings = 0
        self.unchanged_listings = 0
        self.listed_since: list[float] = []
        """For each listing that may be another client's, since when it may have been asked for."""

    def describe_cluster(self) -> DescribeClusterResult:
        self._check_available()
        return DescribeClusterResult(cluster_id=self.cluster, controller_id=0, brokers=())

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

    def list_topics(self, known_digest: bytes = b"") -> TopicListing:
        topics = self.describe_topics()
        digest = repr(topics).encode()
        if digest == known_digest:
            self.unchanged_listings += 1
            return TopicListing(digest, None)
        return TopicListing(digest, topics)

    def list_topics_since(self, sent_after: float) -> TopicListing:
        self.listed_since.append(sent_after)
        return self.list_topics()

    def find_hidden_topics(self, names: Collection[str]) -> dict[str, ClusterError]:
        self._check_available()
        hidden = self.unauthorized_topics.intersection(names)
        return {name: NotAuthorized(self.cluster, f"{name} is hidden") for name in sorted(hidden)}

    def can_alter_configs(self) -> bool:
        """As Apache Kafka."""
        return True

    def create_topics(self, topics: Sequence[NewTopic]) -> TopicChangesResult:
        self._check_available()
        created = [topic for topic in topics if topic.name not in self.creation_errors]
        self.created += created
        self.partitions |= {topic.name: topic.partitions for topic in created}
        names = {topic.name for topic in topics}
        failed = {name: error for name, error in self.creation_errors.items() if name in names}
        return TopicChangesResult(failed, frozenset())

    def create_partitions(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]:
        self._check_available()
        self.partitions |= partitions
        return {}

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        self._check_available()
        return {
            name: NotAuthorized(self.cluster, f"{name} is hidden")
            if name in self.unauthorized_topics
            else self.configs.get(name, ())
            for name in names
        }

    def _check_available(self) -> None:
        if self.is_down:
            raise ClusterUnavailable(self.cluster, "down")
