"""Syncs configs and ACLs of source topics to their remote topics.

Unlike MirrorMaker 2, it does not send again what the target already has.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.admin import Admin
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterError, NotAuthorized, UnsupportedByBroker
from sparkmirror.mirror.topics.acls import AclBinding, target_acl_bindings
from sparkmirror.mirror.topics.topic_configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigSource,
    effective_operations,
    sync_operations,
)

log = logging.getLogger(__name__)

Entries = Iterable[ConfigEntry]


class TopicSync:
    """Syncs one flow. Belongs to one thread at a time."""

    def __init__(self, config: MirrorSourceConfig, source: Admin, target: Admin) -> None:
        self._config = config
        self._source = source
        self._target = target
        self._has_logged_no_authorizer = False

    def sync_configs(self, topics: Mapping[str, str]) -> None:
        """Alter the configs of remote topics that differ; `topics` maps source to remote names."""
        at_source = self._source.describe_configs(topics.keys())
        at_target = self._target.describe_configs(topics.values())
        changes: dict[str, tuple[AlterConfigOp, ...]] = {}
        present: dict[str, Entries] = {}
        for topic, remote in topics.items():
            source_configs, target_configs = at_source.get(topic), at_target.get(remote)
            if source_configs is None or isinstance(source_configs, ClusterError):
                log.warning(
                    "Could not read the configuration of topic %s. %s", topic, source_configs
                )
                continue
            operations = sync_operations(source_configs, self._config.config_filter)
            if target_configs is None or isinstance(target_configs, ClusterError):
                changes[remote] = operations  # unknown: send everything, as MirrorMaker 2 does
            elif changed := effective_operations(operations, target_configs):
                changes[remote], present[remote] = changed, target_configs
        for remote, error in self._alter_configs(changes, present).items():
            log.warning("Could not alter configuration of topic %s. %s", remote, error)

    def _alter_configs(
        self, changes: Mapping[str, tuple[AlterConfigOp, ...]], present: Mapping[str, Entries]
    ) -> dict[str, ClusterError]:
        try:
            return self._target.incremental_alter_configs(changes)
        except UnsupportedByBroker:
            # Brokers before 2.3 accept only the complete configs of a topic.
            complete = {
                remote: _full_configs(present[remote], changes[remote])
                for remote in changes
                if remote in present
            }
            return self._target.alter_configs(complete)

    def sync_acls(self) -> None:
        """Give readers of source topics read access to the remote topics."""
        listed = self._source.describe_topic_acls()
        if listed is None:
            level = logging.DEBUG if self._has_logged_no_authorizer else logging.INFO
            self._has_logged_no_authorizer = True
            log.log(
                level,
                "No ACL authorizer is configured on the source Kafka cluster %s, so no topic ACLs"
                " are synced",
                self._source.cluster,
            )
            return
        desired = target_acl_bindings(listed, self._config.selection)
        present = self._present_acls()
        new = [acl for acl in desired if acl not in present]
        for acl, error in self._target.create_acls(new).items():
            log.warning("Could not sync ACL of topic %s. %s", acl.resource_name, error)

    def _present_acls(self) -> frozenset[AclBinding]:
        try:
            return frozenset(self._target.describe_topic_acls() or ())
        except NotAuthorized:
            return frozenset()  # creating ACLs may be allowed all the same


def _full_configs(entries: Entries, operations: Iterable[AlterConfigOp]) -> dict[str, str]:
    complete = {
        entry.name: entry.value
        for entry in entries
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and entry.value is not None
    }
    for one in operations:
        if one.operation is AlterConfigOpType.DELETE:
            complete.pop(one.name, None)
        elif one.value is not None:
            complete[one.name] = one.value
    return complete
