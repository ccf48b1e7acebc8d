"""The checkpoint connector: watches groups of the source, and says which task follows which.

at first        1. the checkpoints topic     a step that fails is logged, and tried again
                2. the groups of the source
from then on    look for groups every few seconds
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_groups import CheckpointGroups
from sparkmirror.connect.connectors.shared.cluster_clients import ClusterClients
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.topic_creation import ensure_internal_topic
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.topics.task_assignment import checkpoint_task_configs

log = logging.getLogger(__name__)


class MirrorCheckpointConnector:
    """Plans whose offsets are translated. The tasks are `checkpoint_task`'s."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._watcher: _GroupWatcher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Begin to watch. Raises ConfigError, and what a cluster says that will not pass."""
        parsed = MirrorCheckpointConfig.parse(config)
        if not parsed.shared.is_enabled or parsed.emit_checkpoints_s is None:
            log.info("%s is disabled and does nothing", self._name)
            return
        self._watcher = _GroupWatcher(parsed, self._context)
        self._watcher.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Cut the groups known by now into tasks. Raises ClusterTimeout until some look was had."""
        watch = self._watcher
        if watch is None:
            return ()
        originals, groups = watch.config.shared.originals, watch.groups.groups
        return checkpoint_task_configs(originals, groups, tasks_max=max_tasks)

    def stop(self) -> None:
        """End the watch."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Refuse offsets that no checkpoint can have."""
        del config
        offset_alterations.validate_alterations(alterations, offset_alterations.CHECKPOINT_RULES)
        return True


class _GroupWatcher:
    """A checkpoint connector at work: its hands on both clusters, and its lookout."""

    def __init__(self, config: MirrorCheckpointConfig, context: ConnectorContext) -> None:
        shared = config.shared
        self.config = config
        self._context = context
        self._source = shared.access(
            ClusterSide.SOURCE, role="checkpoint-source-admin"
        ).new_router()
        self._target = ClusterClients.create(
            shared.access(ClusterSide.TARGET, role="checkpoint-target-admin"),
            shared.admin_timeout_s,
        )
        self.groups = CheckpointGroups(config, self._source)
        self._has_topic = False
        self._cluster_watcher = ClusterWatcher(
            "MirrorCheckpointConnector", shared, "refreshing consumer groups", self._refresh
        )
        self._cluster_watcher.refresh_every(config.refresh_groups_s)

    def start(self) -> None:
        """Begin, and wait for the first look."""
        self._cluster_watcher.start(self._context)

    def stop(self) -> None:
        """End; what a call is still about ends by itself."""
        if self._cluster_watcher.stop():
            self._source.close()
            self._target.close()

    def _refresh(self) -> float:
        self._ensure_topic()
        has_changed = self.groups.refresh()
        if not self._cluster_watcher.has_refreshed:
            name, groups = self.config.shared.name, self.groups.groups or ()
            log.info("Started %s with %d consumer groups.", name, len(groups))
        if has_changed:
            self._context.request_task_reconfiguration()
        return self.groups.refresh_took_s

    def _ensure_topic(self) -> None:
        if not self._has_topic:
            topic, factor = self.config.checkpoints_topic, self.config.checkpoints_factor
            ensure_internal_topic(self._target, topic, factor)
            self._has_topic = True
