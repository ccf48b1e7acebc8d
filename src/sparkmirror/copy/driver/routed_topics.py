"""Topics, besides the remote topics, that transformations send records to.

A task that meets a record for a topic that it does not know gives the lease back and names the
topic. Before the next grant the topic is created as the remote topic of the partition is: with as
many partitions as the source topic has, and with the replicas and configs of the remote topic. A
topic that has fewer partitions than the source topic gets more. Every grant names the topics that
tasks have asked for and that exist, so one that was deleted is asked for and created again.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.cluster.config_resources import describe_configs
from sparkmirror.cluster.describe_topics import NewTopic, TopicDescription, describe_topics
from sparkmirror.cluster.topic_changes import create_partitions, create_topics
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.errors import ClusterError, TopicExists, TopicMissing, UnsupportedByBroker
from sparkmirror.mirror.topics.topic_configs import ConfigEntry, ConfigSource

log = logging.getLogger(__name__)

CREATE_TIMEOUT_S = 10.0


class WantedTopic(NamedTuple):
    """A topic that a task asks for: how many partitions it needs, and whose records it gets."""

    name: str
    partitions: int
    source_topic: str
    remote_topic: str


class RoutedTopicsFound(NamedTuple):
    """The topics that exist, with their numbers of partitions, and the errors of the others."""

    partitions: dict[str, int]
    errors: dict[str, ClusterError]


def missing_topics(
    wanted: Collection[WantedTopic], existing: Mapping[str, int]
) -> tuple[dict[str, WantedTopic], dict[str, int]]:
    """Return which topics must be created, and which need so many partitions. Pure."""
    new: dict[str, WantedTopic] = {}
    grown: dict[str, int] = {}
    for topic in wanted:
        count = existing.get(topic.name)
        if count is None:
            known = new.get(topic.name)
            if known is None or known.partitions < topic.partitions:
                new[topic.name] = topic
        elif count < topic.partitions:
            grown[topic.name] = max(topic.partitions, grown.get(topic.name, 0))
    return new, grown


def own_configs(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    """Return the configs that are set on the topic itself. Pure."""
    return {
        entry.name: entry.value
        for entry in entries
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        and entry.value is not None
        and not (entry.sensitive or entry.read_only)
    }


@dataclass(slots=True)
class RoutedTopics:
    """Knows the topics that tasks have asked for, and creates them."""

    clusters: ClusterQueries
    _names: set[str] = field(default_factory=set)

    @property
    def names(self) -> Collection[str]:
        """The topics that tasks have asked for."""
        return self._names

    def find(self, partitions: Iterable[TrackedPartition]) -> RoutedTopicsFound:
        """Create what these partitions ask for; return what exists, and why the rest does not.

        Raises ClusterError.
        """
        asking = [tracked for tracked in partitions if tracked.wanted_topic]
        self._names |= {tracked.wanted_topic for tracked in asking}
        if not self._names:
            return RoutedTopicsFound({}, {})
        existing = self._existing()
        new, grown = missing_topics(self._wanted(asking), existing)
        if not (new or grown):
            return RoutedTopicsFound(existing, {})
        errors = self._create(new)
        if grown:
            errors |= create_partitions(self.clusters.target, grown, timeout_s=CREATE_TIMEOUT_S)
        return RoutedTopicsFound(self._existing(), errors)

    def _existing(self) -> dict[str, int]:
        described = describe_topics(self.clusters.target, self._names, timeout_s=CREATE_TIMEOUT_S)
        return {name: len(topic.partitions) for name, topic in described.items()}

    def _wanted(self, asking: Collection[TrackedPartition]) -> list[WantedTopic]:
        sources = {tracked.source.topic for tracked in asking}
        described = describe_topics(self.clusters.source, sources, timeout_s=CREATE_TIMEOUT_S)
        counts = {name: len(topic.partitions) for name, topic in described.items()}
        return [
            WantedTopic(
                tracked.wanted_topic,
                max(counts.get(tracked.source.topic, 0), tracked.source.partition + 1),
                tracked.source.topic,
                tracked.target.topic,
            )
            for tracked in asking
        ]

    def _create(self, new: Mapping[str, WantedTopic]) -> dict[str, ClusterError]:
        if not new:
            return {}
        target = self.clusters.target
        remotes = {topic.remote_topic for topic in new.values()}
        described = describe_topics(target, remotes, timeout_s=CREATE_TIMEOUT_S)
        configs = self._configs(remotes)
        topics: list[NewTopic] = []
        errors: dict[str, ClusterError] = {}
        for name, topic in new.items():
            found = configs.get(topic.remote_topic, {})
            if topic.remote_topic not in described:
                errors[name] = TopicMissing(
                    target.client.cluster, f"the remote topic {topic.remote_topic} does not exist"
                )
            elif isinstance(found, ClusterError):
                errors[name] = found
            else:
                topics.append(
                    NewTopic(
                        name=name,
                        partitions=topic.partitions,
                        replication_factor=_replicas(described[topic.remote_topic]),
                        configs=found,
                    )
                )
        failed, _ = create_topics(target, topics, timeout_s=CREATE_TIMEOUT_S)
        for one in topics:
            if one.name not in failed:
                log.info(
                    "Created topic %s with %d partitions: transforms send records of %s there",
                    *(one.name, one.partitions, new[one.name].source_topic),
                )
        return errors | {
            name: error for name, error in failed.items() if not isinstance(error, TopicExists)
        }

    def _configs(self, topics: Collection[str]) -> dict[str, dict[str, str] | ClusterError]:
        """Return the configs of remote topics, or the error; none if the target describes none."""
        try:
            described = describe_configs(self.clusters.target, topics, timeout_s=CREATE_TIMEOUT_S)
        except UnsupportedByBroker:
            return {}
        return {
            name: entries if isinstance(entries, ClusterError) else own_configs(entries)
            for name, entries in described.items()
        }


def _replicas(topic: TopicDescription) -> int:
    """The replicas of a topic; -1, the cluster's default, if it has no partition."""
    return min((len(partition.replicas) for partition in topic.partitions), default=-1)
