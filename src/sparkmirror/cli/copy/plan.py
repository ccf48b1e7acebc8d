"""What a copy would do: topics and their copies, what the target lacks, who copies what.

Pure: two listings and a request in, a plan out. The rules of selection, naming, creation and
dealing are `mirror`'s; this module puts them in order and refuses what cannot be meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cluster.describe_cluster import DescribeClusterResult
from sparkmirror.cluster.topics import NewTopic, TopicDescription
from sparkmirror.config.suggestions import closest_name
from sparkmirror.errors import BadRequest, NotFound
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.mirror.topics.task_assignment import assign_round_robin, sorted_unique
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic, TopicPlan, plan_topics
from sparkmirror.model import TopicPartition

MAX_REPLICATION_FACTOR = 3
MAX_NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescriptions:
    """Both clusters as they were found."""

    source: DescribeClusterResult
    target: DescribeClusterResult
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """What is to be done."""

    remote_topics: Mapping[str, str]
    """Source topic → remote topic, in the order of names."""
    topics: TopicPlan
    offsets_topic: NewTopic | None
    """The topic that positions are kept in, if it must be created."""
    tasks: tuple[tuple[TopicPartition, ...], ...]
    skipped_topics: tuple[str, ...] = ()
    """Topics that were asked for and are never copied: internal ones, and what came from there."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions to copy, in order."""
        return sorted_unique(partition for task in self.tasks for partition in task)

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Where a source partition is copied to."""
        return partition._replace(topic=self.remote_topics[partition.topic])


def plan_copy(request: CopyRequest, survey: ClusterDescriptions) -> CopyPlan:
    """Decide everything that names and numbers decide; refuse what cannot be meant."""
    selection = request.selection
    partitions = sorted_unique(
        selection.filter_source_partitions(_partitions(survey.source_topics.values()))
    )
    left_out = tuple(
        name
        for name in sorted(survey.source_topics)
        if request.topic_filter.should_replicate_topic(name)
        and not selection.should_replicate_topic(name)
    )
    if not partitions:
        raise _no_match_error(request, survey)
    remote_topics = {
        topic: request.policy.format_remote_topic(request.flow.source, topic)
        for topic in sorted({partition.topic for partition in partitions})
    }
    _reject_collisions(request, survey, remote_topics)
    topics = plan_topics(
        selection,
        source=partitions,
        target=_partitions(survey.target_topics.values()),
        replication_factor=_replication_factor(request, survey),
    )
    return CopyPlan(
        remote_topics=remote_topics,
        topics=replace(
            topics,
            new_topics=tuple(_with_source_replication(new, survey) for new in topics.new_topics),
        ),
        offsets_topic=_offsets_topic(request, survey),
        tasks=assign_round_robin(partitions, request.tasks_max),
        skipped_topics=left_out,
    )


def _partitions(topics: Iterable[TopicDescription]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, one.index) for topic in topics for one in topic.partitions]


def _no_match_error(request: CopyRequest, survey: ClusterDescriptions) -> NotFound:
    wanted = ", ".join(request.patterns)
    matcher = compile_pattern_list(request.patterns)
    refused = sorted(name for name in survey.source_topics if matcher.matches(name))
    if refused:
        return NotFound(
            f"Of the topics of {request.flow.source}, {wanted!r} means only {_join_names(refused)}:"
            " what is internal, excluded, or came from the target is not copied."
        )
    names = sorted(name for name, topic in survey.source_topics.items() if not topic.is_internal)
    meant = closest_name(wanted, names)
    advice = f"did you mean {meant}?" if meant else "a pattern must match the whole name."
    has = _join_names(names) or "no topic that this user may see"
    return NotFound(f"{request.flow.source} has no topic {wanted!r}, only {has}; {advice}")


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES_SHOWN
    return ", ".join(names[:MAX_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _reject_collisions(
    request: CopyRequest, survey: ClusterDescriptions, remote_topics: Mapping[str, str]
) -> None:
    """No topic may be copied onto itself, and no two topics into one."""
    if survey.source.cluster_id == survey.target.cluster_id:
        itself = [topic for topic, remote in remote_topics.items() if topic == remote]
        if itself:
            raise BadRequest(
                f"{request.flow.source} and {request.flow.target} are the same cluster"
                f" ({survey.source.cluster_id}), so {', '.join(itself)} would be copied onto"
                " itself; name another target, or use --policy default."
            )
    for remote, count in Counter(remote_topics.values()).items():
        if count > 1:
            several = ", ".join(topic for topic, name in remote_topics.items() if name == remote)
            raise BadRequest(f"{several} would all be copied into {remote}; use another --policy.")


def _replication_factor(request: CopyRequest, survey: ClusterDescriptions) -> int:
    """Check what was asked for; -1 stands for "as at the source"."""
    wanted, brokers = request.replication_factor, len(survey.target.brokers)
    if wanted is None:
        return -1
    if wanted > brokers:
        raise BadRequest(
            f"--replication-factor {wanted}: {request.flow.target} has {brokers} broker(s) only."
        )
    return wanted


def _with_source_replication(new: NewRemoteTopic, survey: ClusterDescriptions) -> NewRemoteTopic:
    """Give a copy as many replicas as its source has, as far as there are brokers for them."""
    if new.replication_factor != -1:
        return new
    replicas = len(survey.source_topics[new.source_topic].partitions[0].replicas)
    return replace(new, replication_factor=min(replicas, len(survey.target.brokers)))


def _offsets_topic(request: CopyRequest, survey: ClusterDescriptions) -> NewTopic | None:
    topic = request.offsets_topic
    if topic.name in survey.target_topics:
        return None
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=min(MAX_REPLICATION_FACTOR, len(survey.target.brokers)),
        configs={"cleanup.policy": "compact"},
    )
