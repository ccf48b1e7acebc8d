"""The checkpoint connector: watches groups of the source, and says which task follows which.

at first        1. the checkpoints topic     a step that fails is logged, and tried again
                2. the groups of the source
from then on    look for groups every few seconds
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sparkmirror.config.clients import Side
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.checkpoint_config import CheckpointConfig
from sparkmirror.connect.connectors.checkpoint_groups import CheckpointGroups
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.connect.connectors.lookout import Lookout
from sparkmirror.connect.connectors.topic_making import ensure_internal_topic
from sparkmirror.mirror import offset_alterations
from sparkmirror.mirror.offset_alterations import Alteration
from sparkmirror.mirror.tasks import checkpoint_task_configs

log = logging.getLogger(__name__)


class CheckpointConnector:
    """Plans whose offsets are translated. The tasks are `checkpoint_task`'s."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._watch: _Watch | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Begin to watch. Raises ConfigError, and what a cluster says that will not pass."""
        parsed = CheckpointConfig.parse(config)
        if not parsed.shared.is_enabled or parsed.emit_checkpoints_s is None:
            log.info("%s is disabled and does nothing", self._name)
            return
        self._watch = _Watch(parsed, self._context)
        self._watch.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Cut the groups known by now into tasks. Raises ClusterTimeout until some look was had."""
        watch = self._watch
        if watch is None:
            return ()
        originals, groups = watch.config.shared.originals, watch.groups.groups
        return checkpoint_task_configs(originals, groups, tasks_max=max_tasks)

    def stop(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def alter_offsets(self, config: ExpandedConfig, alterations: Sequence[Alteration]) -> bool:
        """Refuse offsets that no checkpoint can have."""
        del config
        offset_alterations.check(alterations, offset_alterations.CHECKPOINT)
        return True


class _Watch:
    """A checkpoint connector at work: its hands on both clusters, and its lookout."""

    def __init__(self, config: CheckpointConfig, context: ConnectorContext) -> None:
        shared = config.shared
        self.config = config
        self._context = context
        self._source = shared.access(Side.SOURCE, role="checkpoint-source-admin").router()
        self._target = Hands.on(
            shared.access(Side.TARGET, role="checkpoint-target-admin"), shared.admin_timeout_s
        )
        self.groups = CheckpointGroups(config, self._source)
        self._has_topic = False
        self._lookout = Lookout(
            "MirrorCheckpointConnector", shared, "refreshing consumer groups", self._look
        )
        self._lookout.look_again(config.refresh_groups_s)

    def start(self) -> None:
        """Begin, and wait for the first look."""
        self._lookout.start(self._context)

    def stop(self) -> None:
        """End; what a call is still about ends by itself."""
        if self._lookout.stop():
            self._source.close()
            self._target.close()

    def _look(self) -> float:
        self._ensure_topic()
        has_changed = self.groups.refresh()
        if not self._lookout.has_looked:
            name, groups = self.config.shared.name, self.groups.groups or ()
            log.info("Started %s with %d consumer groups.", name, len(groups))
        if has_changed:
            self._context.request_task_reconfiguration()
        return self.groups.look_took_s

    def _ensure_topic(self) -> None:
        if not self._has_topic:
            topic, factor = self.config.checkpoints_topic, self.config.checkpoints_factor
            ensure_internal_topic(self._target, topic, factor)
            self._has_topic = True
