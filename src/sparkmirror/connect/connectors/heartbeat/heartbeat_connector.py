"""MirrorHeartbeatConnector: creates the heartbeats topic and has one task, `heartbeat_task`.

Like MirrorMaker 2's, it ignores `enabled`: only `emit.heartbeats.*` decides whether it has a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.cluster.admin import Admin
from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.topic_creation import (
    RETRY_INTERVAL_S,
    InternalTopicCreation,
)
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.topics.task_assignment import heartbeat_task_configs


class MirrorHeartbeatConnector:
    """Creates the heartbeats topic on the target and plans the one task."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._config: MirrorHeartbeatConfig | None = None
        self._watcher: ClusterWatcher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Create the topic if it does not exist. Raises ConfigError, or a ClusterError."""
        self._config = parsed = MirrorHeartbeatConfig.parse(config)
        access = parsed.shared.access(ClusterSide.TARGET, role="heartbeats-target-admin")
        admin = Admin(access, parsed.shared.admin_timeout_s)
        topic = InternalTopicCreation(admin, parsed.heartbeats_topic, parsed.heartbeats_factor)

        def refresh() -> float:
            topic.ensure()
            return 0.0

        self._watcher = ClusterWatcher(
            "MirrorHeartbeatConnector",
            parsed.shared,
            self._context,
            description="creating internal topics",
            refresh=refresh,
            clients=[admin.router],
            find_problem=lambda: topic.problem,
        )
        self._watcher.refresh_every(RETRY_INTERVAL_S)
        self._watcher.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the config of the one task; nothing if heartbeats are disabled."""
        assert max_tasks > 0
        if self._config is None:
            return ()
        emits = self._config.emit_heartbeats_s is not None
        return heartbeat_task_configs(self._config.shared.originals, emit_heartbeats=emits)

    def stop(self) -> None:
        """Stop the watcher."""
        if self._watcher is not None:
            self._watcher.stop()

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Reject offsets that no heartbeat of this connector can have."""
        rules = offset_alterations.HEARTBEAT_RULES
        offset_alterations.validate_alterations(alterations, rules)
        if offset_alterations.is_removal(alterations):
            return True
        flow = MirrorHeartbeatConfig.parse(config).shared.flow

        def foreign_reason(partition: Mapping[str, str]) -> str:
            named = (partition["sourceClusterAlias"], partition["targetClusterAlias"])
            own = (flow.source, flow.target)
            return "" if named == own else f"its heartbeats are those of {flow}"

        offset_alterations.require_own_partitions(alterations, rules, foreign_reason)
        return True
