"""Which remote topics must be created or grown so that every source partition has a copy.

Remote topics are never shrunk and never deleted. The plan is a value: carrying it out, and
fetching the settings a new topic starts with, is done elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRemoteTopic:
    """A remote topic to create. A replication factor of -1 leaves it to the target's brokers."""

    source_topic: str
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.partitions > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRemotePartitions:
    """A remote topic to be given more partitions, up to `partitions` in all."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """What is to be done on the target, in the order of source topics' names."""

    new_topics: tuple[NewRemoteTopic, ...] = ()
    new_partitions: tuple[NewRemotePartitions, ...] = ()

    def __bool__(self) -> bool:
        """Say whether there is anything to do."""
        return bool(self.new_topics or self.new_partitions)

    def with_configs(self, configs: Mapping[str, Mapping[str, str]]) -> TopicPlan:
        """Give new topics the settings found for their source topics, by source topic."""
        create = tuple(replace(new, configs=configs[new.source_topic]) for new in self.new_topics)
        return replace(self, new_topics=create)


def plan_topics(
    selection: TopicSelection,
    *,
    source: Iterable[TopicPartition],
    target: Iterable[TopicPartition],
    replication_factor: int,
) -> TopicPlan:
    """Compare the selected partitions of both clusters, topic by topic."""
    present = Counter(partition.topic for partition in target)
    create: list[NewRemoteTopic] = []
    grow: list[NewRemotePartitions] = []
    for topic, partitions in sorted(Counter(partition.topic for partition in source).items()):
        name = selection.policy.format_remote_topic(selection.flow.source, topic)
        if name not in present:
            create.append(
                NewRemoteTopic(
                    source_topic=topic,
                    name=name,
                    partitions=partitions,
                    replication_factor=replication_factor,
                )
            )
        elif present[name] < partitions:
            grow.append(NewRemotePartitions(name=name, partitions=partitions))
    return TopicPlan(new_topics=tuple(create), new_partitions=tuple(grow))
