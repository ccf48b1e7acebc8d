"""The source's topics, and creation of the remote topics that the target lacks.

A refresh is cheap: one request for all topics of the source. The target is listed only if the
source has changed, if a topic could not be created the last time, or if MirrorMaker 2's interval
has passed; the last case recreates remote topics that an operator deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import TopicDescription
from sparkmirror.config.warn_once import warn_once
from sparkmirror.connect.connectors.shared import topic_creation
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterError, TopicRejected, UnsupportedByBroker
from sparkmirror.mirror.topics.routed_policy import merged_topics
from sparkmirror.mirror.topics.selection_counts import (
    TopicCategory,
    count_topics,
    explain_nothing_selected,
)
from sparkmirror.mirror.topics.task_assignment import sorted_unique
from sparkmirror.mirror.topics.topic_configs import creation_configs
from sparkmirror.mirror.topics.topic_plan import TopicPlan, plan_topics
from sparkmirror.mirror.topics.topic_selection import TopicPartitionDiff, diff_topic_partitions
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

RETRY_CREATE_S = 10.0
"""The pause before topics that could not be created are tried again."""

Partitions = frozenset[TopicPartition]


class SourceTopics:
    """The known partitions of one flow. Belongs to one thread at a time."""

    def __init__(
        self,
        config: MirrorSourceConfig,
        source: Admin,
        target: Admin,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._source = source
        self._target = target
        self._clock = clock
        self._created_at: float | None = time.monotonic()
        """For the first load, listings that other connectors have asked for since are enough."""
        self._known: Partitions = frozenset()
        self._on_target: Partitions = frozenset()
        self._missing: Partitions = frozenset()
        self._listed: Mapping[str, bool] = {}
        """The topics of the last listing of the source, and whether each is internal."""
        self._selected: Partitions = frozenset()
        """The partitions of the last listing of the source that the flow selects."""
        self._listing_digest = b""
        """The digest of that listing: an equal one is not decoded again."""
        self._failed_creations: Mapping[str, ClusterError] = {}
        """The remote topics that could not be created or enlarged, with the error of each."""
        self._hidden: Mapping[str, ClusterError] = {}
        """The known topics that the source no longer lets this user describe."""
        self._merged: Mapping[str, tuple[str, ...]] = {}
        """The remote topics to which several selected topics are routed, with those topics."""
        self._has_logged_heartbeats = False
        self._has_changes = False
        self._next_target_list_at = float("-inf")
        self.refresh_took_s = 0.0
        """How long the last listing of the source took."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The source partitions to copy, in a stable order."""
        return sorted_unique(self._known)

    def synced_topics(self) -> dict[str, str]:
        """Return the topics that exist on both sides: source name → remote name."""
        present = {partition.topic for partition in self._on_target}
        flow, policy = self._config.shared.flow, self._config.shared.policy
        remotes = {
            topic: policy.format_remote_topic(flow.source, topic)
            for topic in sorted({partition.topic for partition in self._known})
        }
        return {topic: remote for topic, remote in remotes.items() if remote in present}

    def find_problem(self) -> str:
        """Return what the last refresh found wrong, as text for operators; empty if nothing."""
        problems = [
            f"topics {' and '.join(topics)} are all routed to {remote}, so that none of them is "
            "copied; change transforms, topics or topics.exclude"
            for remote, topics in self._merged.items()
        ]
        if not self._known and not problems:
            counts = count_topics(self._config.selection, self._listed)
            return explain_nothing_selected(
                self._config.shared.flow.source, counts, self._config.topics_key
            )
        if self._failed_creations:
            names, error = _first_of(self._failed_creations)
            problems.append(f"remote topic {names} cannot be created or enlarged: {error}")
        if self._hidden:
            names, error = _first_of(self._hidden)
            problems.append(
                f"topic {names} cannot be described: {error}; if it was deleted, restart the"
                " connector"
            )
        return "; ".join(problems)

    def load(self) -> None:
        """List both clusters for the first time and create what the target lacks. Blocks."""
        since, self._created_at = self._created_at, None
        self._known = self._list_source(since)
        self._reject_self_copy()
        self._list_target(since)
        self._create_missing()

    def refresh(self) -> bool:
        """List again and create what is missing; return whether task configs must change."""
        source = self._keep_until_missing_twice(self._list_source())
        is_same = source is self._known or source == self._known
        is_quiet = is_same and self._clock() < self._next_target_list_at
        if is_quiet and not self._has_changes:
            return False
        self._list_target()
        found = self._compare(source)
        if found.new or found.deleted:
            log.info("%s", found)
            self._has_changes = True  # kept until this method returns it: the target may fail below
        self._failed_creations = {}
        if found.needs_reconfiguration:
            self._known = source
            self._create_missing()
        has_changes, self._has_changes = self._has_changes, False
        return has_changes

    def _keep_until_missing_twice(self, source: Partitions) -> Partitions:
        """Keep a known partition until two listings in a row lack it.

        A broker that was down for a while may not know all topics yet. A topic that this user may
        not describe any more is kept: it is no reason to stop copying it without a word.
        """
        missing = frozenset() if source is self._known else self._known - source
        if not missing:
            self._missing, self._hidden = missing, {}
            return source
        gone = {partition.topic for partition in missing & self._missing}
        self._hidden = self._source.find_hidden_topics(gone)
        hidden = {partition for partition in missing if partition.topic in self._hidden}
        kept = source | (missing - self._missing) | hidden
        self._missing = missing
        return kept

    def _reject_self_copy(self) -> None:
        """Raise TopicRejected if a topic would be copied onto itself, and so grow without end."""
        selection = self._config.selection
        same = sorted({p.topic for p in self._known if selection.remote_partition(p) == p})
        if not same:
            return
        source, target = self._source.describe_cluster(), self._target.describe_cluster()
        if source.cluster_id == target.cluster_id:
            raise TopicRejected(
                self._target.cluster,
                f"{self._source.cluster} is the same cluster, and {same[0]} would be copied onto"
                " itself for ever; name another target, or use a policy that renames topics",
            )

    def _list_source(self, since: float | None = None) -> Partitions:
        began = self._clock()
        if since is None:
            digest, topics = self._source.list_topics(self._listing_digest)
        else:
            digest, topics = self._source.list_topics_since(since)
        self.refresh_took_s = self._clock() - began
        if topics is None:
            return self._selected
        self._listed = {topic.name: topic.is_internal for topic in topics.values()}
        selected = self._without_merged(
            self._config.selection.filter_source_partitions(_partitions(topics.values()))
        )
        self._log_if_only_heartbeats(selected)
        self._selected = self._known if selected == self._known else selected
        self._listing_digest = digest
        return self._selected

    def _without_merged(self, selected: Partitions) -> Partitions:
        """Leave out topics that share a remote topic: it has one source partition for each of its
        partitions."""
        self._merged = merged_topics(
            self._config.shared.policy,
            self._config.shared.flow.source,
            (partition.topic for partition in selected),
        )
        merged = {topic for topics in self._merged.values() for topic in topics}
        if not merged:
            return selected
        return frozenset(partition for partition in selected if partition.topic not in merged)

    def _log_if_only_heartbeats(self, selected: Partitions) -> None:
        policy = self._config.shared.policy
        has_only_heartbeats = bool(selected) and all(
            policy.is_heartbeats_topic(partition.topic) for partition in selected
        )
        if has_only_heartbeats and not self._has_logged_heartbeats:
            counts = count_topics(self._config.selection, self._listed)
            log.warning(
                "Only heartbeats of %s are mirrored: of its other topics none matches %s (%d are "
                "not matched, %d are excluded by topics.exclude)",
                self._source.cluster, self._config.topics_key,
                counts.get(TopicCategory.NOT_MATCHED, 0), counts.get(TopicCategory.EXCLUDED, 0),
            )  # fmt: skip
        self._has_logged_heartbeats = has_only_heartbeats

    def _list_target(self, since: float | None = None) -> None:
        selection = self._config.selection
        target = self._target
        listing = target.list_topics() if since is None else target.list_topics_since(since)
        topics = listing.topics
        assert topics is not None, "no listing is known"
        listed = _partitions(topics.values())
        self._on_target = selection.filter_target_partitions(listed)
        # A policy such as IdentityReplicationPolicy cannot recognise remote topics by their names.
        named = {selection.remote_partition(partition) for partition in self._known}
        self._on_target |= named & frozenset(listed)
        self._next_target_list_at = self._clock() + (self._config.refresh_topics_s or 0.0)

    def _compare(self, source: Partitions) -> TopicPartitionDiff:
        return diff_topic_partitions(
            self._config.selection, known_source=self._known, source=source, target=self._on_target
        )

    def _create_missing(self) -> None:
        """Create missing topics and partitions, then list the target again."""
        plan = plan_topics(
            self._config.selection,
            source=self._known,
            target=self._on_target,
            replication_factor=self._config.replication_factor,
        )
        if not plan:
            return
        plan, failed = self._with_configs(plan)
        failed |= topic_creation.create_remote_topics(self._target, plan.new_topics)
        failed |= topic_creation.add_remote_partitions(self._target, plan.new_partitions)
        self._failed_creations = failed
        self._list_target()
        if failed:
            self._next_target_list_at = min(
                self._next_target_list_at, self._clock() + RETRY_CREATE_S
            )

    def _with_configs(self, plan: TopicPlan) -> tuple[TopicPlan, dict[str, ClusterError]]:
        """Add the source's configs to new topics; leave out topics with unreadable configs."""
        configs: dict[str, Mapping[str, str]] = {}
        rejected: dict[str, ClusterError] = {}
        try:
            found = self._source.describe_configs([new.source_topic for new in plan.new_topics])
        except UnsupportedByBroker as error:
            warn_once(log, f"{error}, so remote topics are created without configs")
            return plan, {}
        for new in plan.new_topics:
            entries = found[new.source_topic]
            if isinstance(entries, ClusterError):
                log.warning("Could not create topic %s. %s", new.name, entries)
                rejected[new.name] = entries
            else:
                configs[new.source_topic] = creation_configs(entries, self._config.config_filter)
        create = tuple(new for new in plan.new_topics if new.name not in rejected)
        return replace(plan, new_topics=create).with_configs(configs), rejected


def _first_of(errors: Mapping[str, ClusterError]) -> tuple[str, ClusterError]:
    """Return the first topic with the number of the others, and its error."""
    name, error = min(errors.items())
    more = len(errors) - 1
    return (f"{name} and {more} more" if more else name), error


def _partitions(topics: Iterable[TopicDescription]) -> Collection[TopicPartition]:
    return [
        TopicPartition(topic.name, partition.index)
        for topic in topics
        if not topic.is_internal
        for partition in topic.partitions
    ]
