"""The source connector: watches topics of the source, and says which task copies what.

at first        1. the offset-syncs topic        a step that fails is logged, and tried again
                2. what is on both clusters      with the next look
                3. what the target lacks
from then on    look at the source every few seconds; sync settings and rights at intervals
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.shared.cluster_clients import ClusterClients
from sparkmirror.connect.connectors.shared.cluster_watcher import ClusterWatcher
from sparkmirror.connect.connectors.shared.topic_creation import ensure_internal_topic
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.source_topics import SourceTopics
from sparkmirror.connect.connectors.source.topic_sync import TopicSync
from sparkmirror.mirror.connect_topics import offset_alterations
from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration
from sparkmirror.mirror.topics.task_assignment import source_task_configs

log = logging.getLogger(__name__)


class MirrorSourceConnector:
    """Plans what is copied. Its tasks are run elsewhere, with `source_job`."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._watcher: _TopicWatcher | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Begin to watch. Raises ConfigError, and what a cluster says that will not pass."""
        parsed = MirrorSourceConfig.parse(config)
        if not parsed.shared.is_enabled:
            log.info("%s is disabled and does nothing", self._name)
            return
        self._watcher = _TopicWatcher(parsed, self._context)
        self._watcher.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the partitions known by now to tasks. Raises ClusterError until there was a look."""
        watch = self._watcher
        if watch is None:
            return ()
        watch.require_loaded()
        partitions = watch.topics.partitions
        return source_task_configs(watch.config.shared.originals, partitions, tasks_max=max_tasks)

    def stop(self) -> None:
        """End the watch."""
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Refuse offsets that no source partition can have."""
        del config
        offset_alterations.validate_alterations(alterations, offset_alterations.SOURCE_RULES)
        return True


class _TopicWatcher:
    """A source connector at work: its hands on both clusters, and its lookout."""

    def __init__(self, config: MirrorSourceConfig, context: ConnectorContext) -> None:
        shared = config.shared
        self.config = config
        self._context = context
        self._clients = {
            side: ClusterClients.create(
                shared.access(side, role=f"replication-{side}-admin"), shared.admin_timeout_s
            )
            for side in ClusterSide
        }
        source, target = self._clients[ClusterSide.SOURCE], self._clients[ClusterSide.TARGET]
        self.topics = SourceTopics(config, source, target)
        self._topic_sync = TopicSync(config, source, target)
        self._has_syncs_topic = not config.emits_offset_syncs
        self._is_loaded = False
        self._cluster_watcher = ClusterWatcher(
            "MirrorSourceConnector", shared, "refreshing topics", self._refresh
        )
        self._cluster_watcher.refresh_every(config.refresh_topics_s)
        self._cluster_watcher.run_every(
            config.sync_acls_s, "syncing topic ACLs", self._topic_sync.sync_acls
        )
        self._cluster_watcher.run_every(
            config.sync_configs_s, "syncing topic configs", self._sync_configs
        )

    def start(self) -> None:
        """Begin, and wait for the first look."""
        self._cluster_watcher.start(self._context)

    def require_loaded(self) -> None:
        """Raise what has kept the clusters from being looked at, if they were not yet."""
        if not self._is_loaded:
            raise self._cluster_watcher.last_error

    def stop(self) -> None:
        """End; what a call is still about ends by itself."""
        if self._cluster_watcher.stop():
            for hands in self._clients.values():
                hands.close()

    def _refresh(self) -> float:
        self._ensure_syncs_topic()
        if self._cluster_watcher.has_refreshed:
            has_changed = self.topics.refresh()
        else:
            self.topics.load()
            self._is_loaded = True
            count, name = len(self.topics.partitions), self.config.shared.name
            log.info("Started %s with %d topic-partitions.", name, count)
            has_changed = True
        if has_changed:
            self._context.request_task_reconfiguration()
        return self.topics.refresh_took_s

    def _ensure_syncs_topic(self) -> None:
        if not self._has_syncs_topic:
            hands = self._clients[self.config.offset_syncs_side]
            topic, factor = self.config.offset_syncs_topic, self.config.offset_syncs_factor
            ensure_internal_topic(hands, topic, factor)
            self._has_syncs_topic = True

    def _sync_configs(self) -> None:
        self._topic_sync.sync_configs(self.topics.synced_topics())
