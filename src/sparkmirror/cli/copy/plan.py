"""The plan of a copy: which topics, their remote topics, what to create, and the tasks. Pure.

    request + descriptions of both clusters  ->  plan  ->  job for the engine

The rules of selection, naming, creation and assignment are in `mirror`. This module applies them in
order and raises errors for requests that cannot be carried out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cluster.describe_cluster import DescribeClusterResult
from sparkmirror.cluster.describe_topics import NewTopic, TopicDescription
from sparkmirror.config.suggestions import closest_name
from sparkmirror.copy.job import CopyJob, ExistingRecordsPolicy, StartPosition
from sparkmirror.copy.settings import CopySettings, rate_per_task
from sparkmirror.errors import BadRequest, NotFound
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.mirror.topics.task_assignment import assign_round_robin, sorted_unique
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic, TopicPlan, plan_topics
from sparkmirror.model import TopicPartition

MAX_REPLICATION_FACTOR = 3
MAX_NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescriptions:
    """Brokers and topics of both clusters at the time of planning."""

    source: DescribeClusterResult
    target: DescribeClusterResult
    source_topics: Mapping[str, TopicDescription]
    target_topics: Mapping[str, TopicDescription]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """What a copy does."""

    remote_topics: Mapping[str, str]
    """Source topic → remote topic, in the order of names."""
    topics: TopicPlan
    offsets_topic: NewTopic | None
    """The topic that stores positions, if it must be created."""
    tasks: tuple[tuple[TopicPartition, ...], ...]
    skipped_topics: tuple[str, ...] = ()
    """Topics that match a pattern and are never copied: internal ones, copies of the target's."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions to copy, sorted."""
        return sorted_unique(partition for task in self.tasks for partition in task)

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Return the partition that a source partition is copied to."""
        return partition._replace(topic=self.remote_topics[partition.topic])


def plan_copy(request: CopyRequest, clusters: ClusterDescriptions) -> CopyPlan:
    """Return the plan. Raises NotFound or BadRequest for a request that cannot be carried out."""
    selection = request.selection
    partitions = sorted_unique(
        selection.filter_source_partitions(_partitions(clusters.source_topics.values()))
    )
    skipped = tuple(
        name
        for name in sorted(clusters.source_topics)
        if request.topic_filter.should_replicate_topic(name)
        and not selection.should_replicate_topic(name)
    )
    if not partitions:
        raise _no_match_error(request, clusters)
    remote_topics = {
        topic: request.policy.format_remote_topic(request.flow.source, topic)
        for topic in sorted({partition.topic for partition in partitions})
    }
    _reject_collisions(request, clusters, remote_topics)
    topics = plan_topics(
        selection,
        source=partitions,
        target=_partitions(clusters.target_topics.values()),
        replication_factor=_replication_factor(request, clusters),
    )
    return CopyPlan(
        remote_topics=remote_topics,
        topics=replace(
            topics,
            new_topics=tuple(_with_source_replication(new, clusters) for new in topics.new_topics),
        ),
        offsets_topic=_offsets_topic(request, clusters),
        tasks=assign_round_robin(partitions, request.tasks_max),
        skipped_topics=skipped,
    )


def _partitions(topics: Iterable[TopicDescription]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition.index)
        for topic in topics
        for partition in topic.partitions
    ]


def _no_match_error(request: CopyRequest, clusters: ClusterDescriptions) -> NotFound:
    wanted = ", ".join(request.patterns)
    matcher = compile_pattern_list(request.patterns)
    rejected = sorted(name for name in clusters.source_topics if matcher.matches(name))
    if rejected:
        return NotFound(
            f"On {request.flow.source}, {wanted!r} matches only {_join_names(rejected)}:"
            " topics that are internal, excluded or copied from the target are not copied."
        )
    names = sorted(name for name, topic in clusters.source_topics.items() if not topic.is_internal)
    closest = closest_name(wanted, names)
    advice = f"did you mean {closest}?" if closest else "a pattern must match the whole name."
    existing = _join_names(names) or "no topic that this user may see"
    return NotFound(f"{request.flow.source} has no topic {wanted!r}, only {existing}; {advice}")


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - MAX_NAMES_SHOWN
    return ", ".join(names[:MAX_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _reject_collisions(
    request: CopyRequest, clusters: ClusterDescriptions, remote_topics: Mapping[str, str]
) -> None:
    """Raise BadRequest if a topic would be copied onto itself, or two topics into one."""
    if clusters.source.cluster_id == clusters.target.cluster_id:
        same_names = [topic for topic, remote in remote_topics.items() if topic == remote]
        if same_names:
            raise BadRequest(
                f"{request.flow.source} and {request.flow.target} are the same cluster"
                f" ({clusters.source.cluster_id}), so {', '.join(same_names)} would be copied onto"
                " itself; name another target, or use --policy default."
            )
    for remote, count in Counter(remote_topics.values()).items():
        if count > 1:
            several = ", ".join(topic for topic, name in remote_topics.items() if name == remote)
            raise BadRequest(f"{several} would all be copied into {remote}; use another --policy.")


def _replication_factor(request: CopyRequest, clusters: ClusterDescriptions) -> int:
    """Return the requested factor, checked; -1 stands for the source topic's."""
    wanted, brokers = request.replication_factor, len(clusters.target.brokers)
    if wanted is None:
        return -1
    if wanted > brokers:
        raise BadRequest(
            f"--replication-factor {wanted}: {request.flow.target} has {brokers} broker(s) only."
        )
    return wanted


def _with_source_replication(new: NewRemoteTopic, clusters: ClusterDescriptions) -> NewRemoteTopic:
    """Give a new topic as many replicas as its source has, limited by the number of brokers."""
    if new.replication_factor != -1:
        return new
    replicas = len(clusters.source_topics[new.source_topic].partitions[0].replicas)
    return replace(new, replication_factor=min(replicas, len(clusters.target.brokers)))


def _offsets_topic(request: CopyRequest, clusters: ClusterDescriptions) -> NewTopic | None:
    topic = request.offsets_topic
    if topic.name in clusters.target_topics:
        return None
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=min(MAX_REPLICATION_FACTOR, len(clusters.target.brokers)),
        configs={"cleanup.policy": "compact"},
    )


def make_job(request: CopyRequest, plan: CopyPlan) -> CopyJob:
    """Return the job that the engine runs."""
    return CopyJob(
        connector=request.connector,
        group_id=request.group_id,
        settings=_job_settings(request, len(plan.tasks)),
        offsets_topic=request.offsets_topic.name,
        remote_topics=plan.remote_topics,
        tasks=dict(enumerate(plan.tasks)),
        task_count=len(plan.tasks),
        start=request.start or StartPosition(),
        on_loss=request.on_loss,
        # The command asks before it appends, and --start says where it starts.
        on_existing=ExistingRecordsPolicy.APPEND,
        delivery=request.delivery,
        commit_interval_s=request.commit_interval_s,
    )


def _job_settings(request: CopyRequest, tasks: int) -> CopySettings:
    return CopySettings(
        source_alias=request.flow.source,
        target_alias=request.flow.target,
        source=request.source.with_absolute_paths(),
        target=request.target.with_absolute_paths(),
        read_committed=request.read_committed,
        rack=request.source.expanded.get("client.rack", ""),
        bytes_per_s=rate_per_task(request.bytes_per_s, tasks),
    )
