"""The two clusters of a copy, looked at and made ready: the only part of planning that does things.

1. open      both clusters let us in, or it is said within seconds why not
2. look      what topics there are
3. complete  the settings that new topics start with
4. carry out create and grow what the target lacks; nothing is ever shrunk or deleted
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sparkmirror.cli.copy.plan import ClusterDescriptions, CopyPlan
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.probe import wait_for_cluster
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    TopicRejected,
)
from sparkmirror.mirror.topics.topic_configs import creation_configs
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic

CONNECT_TIMEOUT_S = 5.0
NOTICE_AFTER_S = 1.0
"""So long nobody is told that a cluster is waited for."""
CLEANUP_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAdmins:
    """Hands on both clusters."""

    source: Admin
    target: Admin


@contextmanager
def connect(request: CopyRequest, say: Callable[[str], None]) -> Iterator[ClusterAdmins]:
    """Reach both clusters, or raise within seconds what is wrong; `say` is told of waiting."""
    source = request.source.access(request.flow.source)
    target = request.target.access(request.flow.target)
    for access in (source, target):
        _await_cluster(access, say)
    with Admin(source) as one, Admin(target) as other:
        yield ClusterAdmins(source=one, target=other)


def _await_cluster(access: ClusterAccess, say: Callable[[str], None]) -> None:
    """Wait for a cluster, not in silence."""
    try:
        wait_for_cluster(access, NOTICE_AFTER_S)
    except (ClusterUnavailable, ClusterTimeout) as error:
        say(f"Waiting for cluster {error}")
        wait_for_cluster(access, CONNECT_TIMEOUT_S - NOTICE_AFTER_S)


def describe_clusters(sides: ClusterAdmins) -> ClusterDescriptions:
    """List what both clusters hold."""
    return ClusterDescriptions(
        source=sides.source.describe_cluster(),
        target=sides.target.describe_cluster(),
        source_topics=sides.source.describe_topics(),
        target_topics=sides.target.describe_topics(),
    )


def complete_plan(request: CopyRequest, plan: CopyPlan, sides: ClusterAdmins) -> CopyPlan:
    """Give new topics their settings; check that positions would be safe where they are kept."""
    if plan.offsets_topic is None:
        _require_compacted(request, sides.target)
    wanted = [new.source_topic for new in plan.topics.new_topics]
    configs: dict[str, Mapping[str, str]] = {}
    for topic, found in sides.source.describe_configs(wanted).items():
        if isinstance(found, ClusterError):
            raise found
        configs[topic] = creation_configs(found, request.config_filter)
    return replace(plan, topics=plan.topics.with_configs(configs))


def apply_plan(plan: CopyPlan, sides: ClusterAdmins) -> None:
    """Create and grow topics; whatever is refused is raised, all of it at once."""
    new = [_new_topic(topic) for topic in plan.topics.new_topics]
    if plan.offsets_topic is not None:
        new.append(plan.offsets_topic)
    failed = sides.target.create_topics(new)
    failed |= sides.target.create_partitions(
        {grown.name: grown.partitions for grown in plan.topics.new_partitions}
    )
    errors = list(failed.values())
    if len(errors) > 1:
        first = errors[0]
        raise TopicRejected(first.cluster, "; ".join(map(str, errors)))
    for error in errors:
        raise error


def _new_topic(new: NewRemoteTopic) -> NewTopic:
    return NewTopic(
        name=new.name,
        partitions=new.partitions,
        replication_factor=new.replication_factor,
        configs=new.configs,
    )


def _require_compacted(request: CopyRequest, target: Admin) -> None:
    name = request.offsets_topic.name
    found = target.describe_configs([name])[name]
    if isinstance(found, ClusterError):
        raise found
    policy = next((entry.value for entry in found if entry.name == CLEANUP_POLICY), None)
    if policy != "compact":
        raise TopicRejected(
            request.flow.target,
            f"{name} keeps the positions of this mirror and has {CLEANUP_POLICY}={policy}, which"
            f" forgets them in time; set {CLEANUP_POLICY}=compact",
        )
