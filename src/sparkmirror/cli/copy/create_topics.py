"""Creates the topics that a copy needs and adds partitions. Deletes and shrinks nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from sparkmirror.cli.copy.cluster_admins import ClusterAdmins
from sparkmirror.cli.copy.plan import CopyPlan
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ClusterError, TopicRejected, UnsupportedByBroker
from sparkmirror.mirror.topics.topic_configs import creation_configs
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic

log = logging.getLogger(__name__)

CLEANUP_POLICY = "cleanup.policy"


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
    try:
        described = target.describe_configs([name])[name]
    except UnsupportedByBroker as error:
        warn_once(log, f"{error}, so it is unknown whether {name} is compacted")
        return
    if isinstance(described, ClusterError):
        raise described
    policy = next((entry.value for entry in described if entry.name == CLEANUP_POLICY), None)
    if policy != "compact":
        raise TopicRejected(
            request.flow.target,
            f"{name} stores the positions of this mirror and has {CLEANUP_POLICY}={policy}, so the"
            f" broker deletes them in time; set {CLEANUP_POLICY}=compact",
        )
