"""Connects to both clusters of a copy, reads what planning needs, and creates topics.

1. connect            both clusters answer, or an error within seconds says why not
2. describe_clusters  brokers and topics of both
3. complete_plan      the configs of new topics
4. apply_plan         creates topics and adds partitions; never deletes or shrinks anything
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
"""After this long the operator gets a line that a cluster does not answer."""
CLEANUP_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAdmins:
    """One admin client per cluster."""

    source: Admin
    target: Admin


@contextmanager
def connect(request: CopyRequest, notify: Callable[[str], None]) -> Iterator[ClusterAdmins]:
    """Connect to both clusters. Raises ClusterError after CONNECT_TIMEOUT_S; warns before."""
    source = request.source.access(request.flow.source)
    target = request.target.access(request.flow.target)
    for access in (source, target):
        _await_cluster(access, notify)
    with Admin(source) as source_admin, Admin(target) as target_admin:
        yield ClusterAdmins(source=source_admin, target=target_admin)


def _await_cluster(access: ClusterAccess, notify: Callable[[str], None]) -> None:
    try:
        wait_for_cluster(access, NOTICE_AFTER_S)
    except (ClusterUnavailable, ClusterTimeout) as error:
        notify(f"Waiting for cluster {error}")
        wait_for_cluster(access, CONNECT_TIMEOUT_S - NOTICE_AFTER_S)


def describe_clusters(admins: ClusterAdmins) -> ClusterDescriptions:
    """Return brokers and topics of both clusters."""
    return ClusterDescriptions(
        source=admins.source.describe_cluster(),
        target=admins.target.describe_cluster(),
        source_topics=admins.source.describe_topics(),
        target_topics=admins.target.describe_topics(),
    )


def complete_plan(request: CopyRequest, plan: CopyPlan, admins: ClusterAdmins) -> CopyPlan:
    """Add the configs of new topics. Raises TopicRejected if the offsets topic is not compacted."""
    if plan.offsets_topic is None:
        _require_compacted(request, admins.target)
    wanted = [new.source_topic for new in plan.topics.new_topics]
    configs: dict[str, Mapping[str, str]] = {}
    for topic, described in admins.source.describe_configs(wanted).items():
        if isinstance(described, ClusterError):
            raise described
        configs[topic] = creation_configs(described, request.config_filter)
    return replace(plan, topics=plan.topics.with_configs(configs))


def apply_plan(plan: CopyPlan, admins: ClusterAdmins) -> None:
    """Create topics and add partitions. Raises one error for all that the target rejects."""
    new = [_new_topic(topic) for topic in plan.topics.new_topics]
    if plan.offsets_topic is not None:
        new.append(plan.offsets_topic)
    not_created = admins.target.create_topics(new).failed
    not_grown = admins.target.create_partitions(
        {grown.name: grown.partitions for grown in plan.topics.new_partitions}
    )
    errors = [*not_created.values(), *not_grown.values()]
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
    described = target.describe_configs([name])[name]
    if isinstance(described, ClusterError):
        raise described
    policy = next((entry.value for entry in described if entry.name == CLEANUP_POLICY), None)
    if policy != "compact":
        raise TopicRejected(
            request.flow.target,
            f"{name} stores the positions of this mirror and has {CLEANUP_POLICY}={policy}, so the"
            f" broker deletes them in time; set {CLEANUP_POLICY}=compact",
        )
