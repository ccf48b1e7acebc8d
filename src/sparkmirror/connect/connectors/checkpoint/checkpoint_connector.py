"""MirrorCheckpointConnector: watches the source's consumer groups and deals them to tasks.

first refresh     1. create the checkpoints topic     a step that fails is logged, and tried again
                  2. list the groups of the source    with the next refresh
later             list the groups every few seconds
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.cluster.admin import Admin
from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_groups import CheckpointGroups
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.topic_creation import InternalTopicCreation
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.topics.routed_policy import RoutedPolicy
from sparkmirror.mirror.topics.task_assignment import checkpoint_task_configs

log = logging.getLogger(__name__)


class MirrorCheckpointConnector:
    """Plans whose offsets are translated. `checkpoint_task` does the work."""

    def __init__(
        self, name: str, context: ConnectorContext, reports: GroupReports | None = None
    ) -> None:
        """`reports` gets what explains the groups that the connector does not follow."""
        self._name = name
        self._context = context
        self._reports = reports or GroupReports()
        self._refresher: _GroupRefresher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Start to refresh. Raises ConfigError, or a ClusterError that is not retriable."""
        parsed = MirrorCheckpointConfig.parse(config)
        if not parsed.shared.is_enabled or parsed.emit_checkpoints_s is None:
            log.info("Connector %s is disabled and does nothing", self._name)
            return
        self._refresher = _GroupRefresher(parsed, self._context)
        self._reports.set_exclusion_reason(self._name, self._refresher.groups.exclusion_reason)
        self._refresher.watcher.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the known groups to tasks. Raises TasksNotPlanned before the first refresh."""
        if self._refresher is None:
            return ()
        return checkpoint_task_configs(
            self._refresher.config.shared.originals,
            self._refresher.require_groups(),
            tasks_max=max_tasks,
        )

    def stop(self) -> None:
        """Stop the refresh and close the clients."""
        if self._refresher is not None:
            self._reports.set_exclusion_reason(self._name, None)
            self._refresher.watcher.stop()
            self._refresher = None

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Reject offsets that no checkpoint of this connector can have."""
        rules = offset_alterations.CHECKPOINT_RULES
        offset_alterations.validate_alterations(alterations, rules)
        if offset_alterations.is_removal(alterations):
            return True
        parsed = MirrorCheckpointConfig.parse(config)
        policy, source = parsed.shared.policy, parsed.shared.flow.source
        is_routed = isinstance(policy, RoutedPolicy)  # then any topic may be a remote topic

        def foreign_reason(partition: Mapping[str, str]) -> str:
            group, topic = partition["group"], partition["topic"]
            if not parsed.group_filter.should_replicate_group(group):
                return f"groups and groups.exclude do not select group {group}"
            if not is_routed and policy.topic_source(topic) != source:
                remote = policy.format_remote_topic(source, topic)
                return f"{topic} is no remote topic of {source}; topic {topic} has {remote}"
            return ""

        offset_alterations.require_own_partitions(alterations, rules, foreign_reason)
        return True


class _GroupRefresher:
    """What a checkpoint connector's watcher does, with its clients for both clusters."""

    def __init__(self, config: MirrorCheckpointConfig, context: ConnectorContext) -> None:
        shared = config.shared
        self.config = config
        self._context = context
        source = shared.access(ClusterSide.SOURCE, role="checkpoint-source-admin").new_router()
        target = Admin(
            shared.access(ClusterSide.TARGET, role="checkpoint-target-admin"),
            shared.admin_timeout_s,
        )
        self.groups = CheckpointGroups(config, source)
        self._checkpoints_topic = InternalTopicCreation(
            target, config.checkpoints_topic, config.checkpoints_factor
        )
        self.watcher = ClusterWatcher(
            "MirrorCheckpointConnector",
            shared,
            context,
            description="refreshing consumer groups",
            refresh=self._refresh,
            clients=(source, target.router),
            find_problem=self._find_problem,
        )
        self.watcher.refresh_every(config.refresh_groups_s)

    def require_groups(self) -> Sequence[str]:
        """Return the groups that get checkpoints. Raises TasksNotPlanned if not known yet."""
        groups = self.groups.groups
        if groups is None:
            raise self.watcher.not_planned()
        return groups

    def _find_problem(self) -> str:
        return "; ".join(filter(None, (self._checkpoints_topic.problem, self.groups.problem)))

    def _refresh(self) -> float:
        self._checkpoints_topic.ensure()
        has_changed = self.groups.refresh()
        if not self.watcher.has_refreshed:
            name, groups = self.config.shared.name, self.groups.groups or ()
            log.info("Started %s with %d consumer groups.", name, len(groups))
        if has_changed:
            self._context.request_task_reconfiguration()
        return self.groups.refresh_took_s
