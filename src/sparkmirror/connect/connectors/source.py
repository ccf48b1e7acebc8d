"""The source connector: watches topics of the source, and says which task copies what.

at first        1. the offset-syncs topic        a step that fails is logged, and tried again
                2. what is on both clusters      with the next look
                3. what the target lacks
from then on    look at the source every few seconds; sync settings and rights at intervals
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.config.clients import Side
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.connect.connectors.lookout import Lookout
from sparkmirror.connect.connectors.source_config import SourceConfig
from sparkmirror.connect.connectors.source_topics import SourceTopics
from sparkmirror.connect.connectors.source_upkeep import SourceUpkeep
from sparkmirror.connect.connectors.topic_making import ensure_internal_topic
from sparkmirror.mirror import offset_alterations
from sparkmirror.mirror.offset_alterations import Alteration
from sparkmirror.mirror.tasks import source_task_configs

log = logging.getLogger(__name__)


class SourceConnector:
    """Plans what is copied. Its tasks are run elsewhere, with `source_job`."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._watch: _Watch | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Begin to watch. Raises ConfigError, and what a cluster says that will not pass."""
        parsed = SourceConfig.parse(config)
        if not parsed.shared.is_enabled:
            log.info("%s is disabled and does nothing", self._name)
            return
        self._watch = _Watch(parsed, self._context)
        self._watch.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the partitions known by now to tasks. Raises ClusterError until there was a look."""
        watch = self._watch
        if watch is None:
            return ()
        watch.check()
        partitions = watch.topics.partitions
        return source_task_configs(watch.config.shared.originals, partitions, tasks_max=max_tasks)

    def stop(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def alter_offsets(self, config: ExpandedConfig, alterations: Sequence[Alteration]) -> bool:
        """Refuse offsets that no source partition can have."""
        del config
        offset_alterations.check(alterations, offset_alterations.SOURCE)
        return True


class _Watch:
    """A source connector at work: its hands on both clusters, and its lookout."""

    def __init__(self, config: SourceConfig, context: ConnectorContext) -> None:
        shared = config.shared
        self.config = config
        self._context = context
        self._hands = {
            side: Hands.on(
                shared.access(side, role=f"replication-{side}-admin"), shared.admin_timeout_s
            )
            for side in Side
        }
        source, target = self._hands[Side.SOURCE], self._hands[Side.TARGET]
        self.topics = SourceTopics(config, source, target)
        self._upkeep = SourceUpkeep(config, source, target)
        self._has_syncs_topic = not config.emits_offset_syncs
        self._is_loaded = False
        self._lookout = Lookout("MirrorSourceConnector", shared, "refreshing topics", self._look)
        self._lookout.look_again(config.refresh_topics_s)
        self._lookout.also(config.sync_acls_s, "syncing topic ACLs", self._upkeep.sync_acls)
        self._lookout.also(config.sync_configs_s, "syncing topic configs", self._sync_configs)

    def start(self) -> None:
        """Begin, and wait for the first look."""
        self._lookout.start(self._context)

    def check(self) -> None:
        """Raise what has kept the clusters from being looked at, if they were not yet."""
        if not self._is_loaded:
            raise self._lookout.trouble

    def stop(self) -> None:
        """End; what a call is still about ends by itself."""
        if self._lookout.stop():
            for hands in self._hands.values():
                hands.close()

    def _look(self) -> float:
        self._ensure_syncs_topic()
        if self._lookout.has_looked:
            has_changed = self.topics.refresh()
        else:
            self.topics.load()
            self._is_loaded = True
            count, name = len(self.topics.partitions), self.config.shared.name
            log.info("Started %s with %d topic-partitions.", name, count)
            has_changed = True
        if has_changed:
            self._context.request_task_reconfiguration()
        return self.topics.look_took_s

    def _ensure_syncs_topic(self) -> None:
        if not self._has_syncs_topic:
            hands = self._hands[self.config.offset_syncs_side]
            topic, factor = self.config.offset_syncs_topic, self.config.offset_syncs_factor
            ensure_internal_topic(hands, topic, factor)
            self._has_syncs_topic = True

    def _sync_configs(self) -> None:
        self._upkeep.sync_configs(self.topics.synced_topics())
