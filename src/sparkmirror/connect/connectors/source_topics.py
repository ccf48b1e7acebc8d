"""What the source holds and the target lacks: looked at often, acted on when something changed.

Looking is cheap: one question for all topics of the source. The target is looked at only when the
source has changed, when something was missing the last time, or when MirrorMaker 2's own interval
is over, which brings back what somebody deleted there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from sparkmirror.cluster.topics import Topic
from sparkmirror.connect.connectors import topic_making
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.connect.connectors.source_config import SourceConfig
from sparkmirror.errors import ClusterError, TopicRejected
from sparkmirror.mirror.selection import Refresh, refresh
from sparkmirror.mirror.tasks import in_order
from sparkmirror.mirror.topic_configs import creation_configs
from sparkmirror.mirror.topic_plan import TopicPlan, plan_topics
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

TRY_AGAIN_S = 30.0
"""How soon another try is made for topics that could not be created."""

Partitions = frozenset[TopicPartition]


class SourceTopics:
    """The partitions of one flow, as known. Belongs to one thread at a time."""

    def __init__(
        self,
        config: SourceConfig,
        source: Hands,
        target: Hands,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._source = source
        self._target = target
        self._clock = clock
        self._known: Partitions = frozenset()
        self._on_target: Partitions = frozenset()
        self._vanished: Partitions = frozenset()
        self._has_news = False
        self._look_at_target_at = float("-inf")
        self.look_took_s = 0.0
        """How long the last look at the source took."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The source partitions to copy, in a stable order."""
        return in_order(self._known)

    def synced_topics(self) -> dict[str, str]:
        """Topics that are on both sides: source name → remote name."""
        present = {partition.topic for partition in self._on_target}
        flow, policy = self._config.shared.flow, self._config.shared.policy
        remotes = {
            topic: policy.format_remote_topic(flow.source, topic)
            for topic in sorted({partition.topic for partition in self._known})
        }
        return {topic: remote for topic, remote in remotes.items() if remote in present}

    def load(self) -> None:
        """Look at both clusters for the first time, and create what the target lacks."""
        self._known = self._look_at_source()
        self._refuse_circle()
        self._look_at_target()
        self._complete_target()

    def refresh(self) -> bool:
        """Look again; create what is missing. Return whether tasks must be dealt anew."""
        source = self._but_for_what_just_vanished(self._look_at_source())
        is_quiet = source == self._known and self._clock() < self._look_at_target_at
        if is_quiet and not self._has_news:
            return False
        self._look_at_target()
        found = self._compare(source)
        if found.new or found.deleted:
            log.info("%s", found)
            self._has_news = True  # until it was told, though the target may be down just now
        if found.calls_for_action:
            self._known = source
            self._complete_target()
        news, self._has_news = self._has_news, False
        return news

    def _but_for_what_just_vanished(self, source: Partitions) -> Partitions:
        """Believe that something is gone when it is missing twice in a row.

        A broker that has been away for a while may know less than the others.
        """
        missing = self._known - source
        believed = source | (missing - self._vanished)
        self._vanished = missing
        return believed

    def _refuse_circle(self) -> None:
        """A topic that is its own copy would grow for ever."""
        selection = self._config.selection
        same = sorted({p.topic for p in self._known if selection.remote_partition(p) == p})
        if not same:
            return
        here, there = self._source.admin.describe_cluster(), self._target.admin.describe_cluster()
        if here.cluster_id == there.cluster_id:
            raise TopicRejected(
                self._target.alias,
                f"{self._source.alias} is the same cluster, and {same[0]} would be copied onto"
                " itself for ever; name another target, or use a policy that renames topics",
            )

    def _look_at_source(self) -> Partitions:
        began = self._clock()
        listed = _partitions(self._source.admin.topics().values())
        self.look_took_s = self._clock() - began
        return self._config.selection.source_partitions(listed)

    def _look_at_target(self) -> None:
        selection = self._config.selection
        listed = _partitions(self._target.admin.topics().values())
        self._on_target = selection.target_partitions(listed)
        # A policy that knows no way back does not recognise its own copies by their names.
        named = {selection.remote_partition(partition) for partition in self._known}
        self._on_target |= named & frozenset(listed)
        self._look_at_target_at = self._clock() + (self._config.refresh_topics_s or 0.0)

    def _compare(self, source: Partitions) -> Refresh:
        return refresh(
            self._config.selection, known_source=self._known, source=source, target=self._on_target
        )

    def _complete_target(self) -> None:
        """Create and grow what is lacking, and look at what came of it."""
        plan = plan_topics(
            self._config.selection,
            source=self._known,
            target=self._on_target,
            replication_factor=self._config.replication_factor,
        )
        if not plan:
            return
        plan, failed = self._with_configs(plan)
        failed |= topic_making.create_remote_topics(self._target, plan.create)
        failed |= topic_making.grow_remote_topics(self._target, plan.grow)
        self._look_at_target()
        if failed:
            self._look_at_target_at = min(self._look_at_target_at, self._clock() + TRY_AGAIN_S)

    def _with_configs(self, plan: TopicPlan) -> tuple[TopicPlan, dict[str, ClusterError]]:
        """Fetch what new topics start with. One whose settings are hidden from us is not made."""
        configs: dict[str, Mapping[str, str]] = {}
        refused: dict[str, ClusterError] = {}
        found = self._source.admin.topic_configs([new.source_topic for new in plan.create])
        for new in plan.create:
            entries = found[new.source_topic]
            if isinstance(entries, ClusterError):
                log.warning("Could not create topic %s. %s", new.name, entries)
                refused[new.name] = entries
            else:
                configs[new.source_topic] = creation_configs(entries, self._config.config_filter)
        create = tuple(new for new in plan.create if new.name not in refused)
        return replace(plan, create=create).with_configs(configs), refused


def _partitions(topics: Iterable[Topic]) -> Collection[TopicPartition]:
    return [
        TopicPartition(topic.name, one.index)
        for topic in topics
        if not topic.internal
        for one in topic.partitions
    ]
