"""Which remote topics to create or extend, so that every source partition has a remote partition.

Remote topics never lose partitions and are never deleted. The caller carries out the plan and reads
the configs of new topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRemoteTopic:
    """A remote topic to create. Replication factor -1 is the default of the target's brokers."""

    source_topic: str
    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.partitions > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRemotePartitions:
    """A remote topic to extend to `partitions` partitions."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """The changes on the target, in the order of the source topics' names."""

    new_topics: tuple[NewRemoteTopic, ...] = ()
    new_partitions: tuple[NewRemotePartitions, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is a change."""
        return bool(self.new_topics or self.new_partitions)

    def with_configs(self, configs: Mapping[str, Mapping[str, str]]) -> TopicPlan:
        """Return the plan with configs for new topics. `configs` are by source topic."""
        create = tuple(replace(new, configs=configs[new.source_topic]) for new in self.new_topics)
        return replace(self, new_topics=create)


def plan_topics(
    selection: TopicSelection,
    *,
    source: Iterable[TopicPartition],
    target: Iterable[TopicPartition],
    replication_factor: int,
) -> TopicPlan:
    """Return the changes that the selected partitions of both clusters require."""
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
