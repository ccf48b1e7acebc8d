"""MirrorSourceConnector: watches the topics of the source and deals their partitions to tasks.

first refresh     1. create the offset-syncs topic     a step that fails is logged, and tried again
                  2. list the topics of both clusters  with the next refresh
                  3. create what the target lacks
later             list the source's topics every few seconds; sync topic configs and ACLs at
                  their intervals
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sparkmirror.cluster.admin import Admin
from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.topic_creation import InternalTopicCreation
from sparkmirror.connect.connectors.source.dead_letter_topics import (
    DeadLetterTopicCreation,
    require_dead_letter_topic,
)
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.source_topics import SourceTopics
from sparkmirror.connect.connectors.source.topic_config_and_acl_sync import TopicConfigAndAclSync
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.topics.task_assignment import source_task_configs
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.error_settings import dead_letter_topic

log = logging.getLogger(__name__)


PartitionCounts = Callable[[str], Mapping[str, int]]
"""Returns how many partitions each source topic had in the last plan of a connector."""


class PlanningListener(Protocol):
    """What prepares for the tasks of a connector while it makes its first plan."""

    def on_planning(self, connector: str, config: ExpandedConfig) -> None:
        """The connector makes its first plan. Must not block."""
        ...

    def on_no_tasks(self, connector: str) -> None:
        """No task comes: there is no partition, or the connector has stopped."""
        ...


class MirrorSourceConnector:
    """Plans what is copied. `copy_job_builder` turns the plan into the job that Spark runs."""

    def __init__(
        self,
        name: str,
        context: ConnectorContext,
        partition_counts: PartitionCounts = lambda _connector: {},
        planning_listener: PlanningListener | None = None,
    ) -> None:
        self._name = name
        self._planning_listener = planning_listener
        self._context = context
        self._partition_counts = partition_counts
        self._refresher: _TopicRefresher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Start to refresh. Raises ConfigError, or a ClusterError that is not retriable."""
        parsed = MirrorSourceConfig.parse(config)
        if not parsed.shared.is_enabled:
            log.info("Connector %s is disabled and does nothing", self._name)
            return
        require_dead_letter_topic(parsed, {})
        self._refresher = _TopicRefresher(parsed, self._context, self._on_no_tasks)
        if self._planning_listener is not None:
            self._planning_listener.on_planning(self._name, config)
        self._refresher.watcher.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the known partitions to tasks. Raises TasksNotPlanned before the first refresh."""
        if self._refresher is None:
            return ()
        return source_task_configs(
            self._refresher.config.shared.originals,
            self._refresher.require_partitions(),
            tasks_max=max_tasks,
        )

    def stop(self) -> None:
        """Stop the refresh and close the clients."""
        if self._refresher is not None:
            self._refresher.watcher.stop()
            self._refresher = None
            self._on_no_tasks()

    def _on_no_tasks(self) -> None:
        if self._planning_listener is not None:
            self._planning_listener.on_no_tasks(self._name)

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Reject offsets that no source partition of this connector can have."""
        rules = offset_alterations.SOURCE_RULES
        offset_alterations.validate_alterations(alterations, rules)
        if offset_alterations.is_removal(alterations):
            return True
        selection = MirrorSourceConfig.parse(config).selection
        counts = self._partition_counts(self._name)

        def foreign_reason(partition: Mapping[str, str]) -> str:
            if partition["cluster"] != selection.flow.source:
                return f"source.cluster.alias is {selection.flow.source}"
            topic, number = partition["topic"], int(partition["partition"])
            if excluded := selection.exclusion_reason(topic):
                return excluded
            if topic in counts and number >= counts[topic]:
                return f"{topic} had {counts[topic]} partitions when the connector last ran"
            return ""

        offset_alterations.require_own_partitions(alterations, rules, foreign_reason)
        return True


class _TopicRefresher:
    """What a source connector's watcher does, with its clients for both clusters."""

    def __init__(
        self,
        config: MirrorSourceConfig,
        context: ConnectorContext,
        on_no_tasks: Callable[[], None],
    ) -> None:
        """`on_no_tasks` is called if the first refresh finds no partition."""
        self._on_no_tasks = on_no_tasks
        shared = config.shared
        self.config = config
        self._context = context
        self._admins = {
            side: Admin(
                shared.access(side, role=f"replication-{side}-admin"), shared.admin_timeout_s
            )
            for side in ClusterSide
        }
        source, target = self._admins[ClusterSide.SOURCE], self._admins[ClusterSide.TARGET]
        self._topics = SourceTopics(config, source, target)
        self._topic_sync = TopicConfigAndAclSync(config, source, target)
        self._syncs_topic = InternalTopicCreation(
            self._admins[config.offset_syncs_side],
            config.offset_syncs_topic,
            config.offset_syncs_factor,
        )
        self._dead_letters = _dead_letter_topic_creation(config, target)
        self._is_loaded = False
        self.watcher = ClusterWatcher(
            "MirrorSourceConnector",
            shared,
            context,
            description="refreshing topics",
            refresh=self._refresh,
            clients=[admin.router for admin in self._admins.values()],
            find_problem=self._find_problem,
        )
        self.watcher.refresh_every(config.refresh_topics_s)
        self.watcher.run_every(config.sync_acls_s, "syncing topic ACLs", self._topic_sync.sync_acls)
        self.watcher.run_every(config.sync_configs_s, "syncing topic configs", self._sync_configs)

    def require_partitions(self) -> Sequence[TopicPartition]:
        """Return the partitions to copy. Raises TasksNotPlanned if they are not known yet."""
        if not self._is_loaded:
            raise self.watcher.not_planned()
        return self._topics.partitions

    def _refresh(self) -> float:
        if self.config.emits_offset_syncs:
            self._syncs_topic.ensure()
        if self._dead_letters:
            self._dead_letters.ensure()
        if self.watcher.has_refreshed:
            has_changed = self._topics.refresh()
        else:
            self._topics.load()
            self._is_loaded = True
            count, name = len(self._topics.partitions), self.config.shared.name
            log.info("Started %s with %d topic-partitions.", name, count)
            has_changed = True
            if not count:
                self._on_no_tasks()
        if has_changed:
            self._context.request_task_reconfiguration()
        return self._topics.refresh_took_s

    def _find_problem(self) -> str:
        dead_letters = self._dead_letters.problem if self._dead_letters else ""
        problems = (self._topics.find_problem(), self._syncs_topic.problem, dead_letters)
        return "; ".join(filter(None, problems))

    def _sync_configs(self) -> str:
        return self._topic_sync.sync_configs(self._topics.synced_topics())


def _dead_letter_topic_creation(
    config: MirrorSourceConfig, target: Admin
) -> DeadLetterTopicCreation | None:
    originals = config.shared.originals
    topic = dead_letter_topic(originals) if originals.get("transforms", "").strip() else None
    return DeadLetterTopicCreation(target, topic) if topic else None
