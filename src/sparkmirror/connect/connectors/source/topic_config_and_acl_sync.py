"""Syncs configs and ACLs of source topics to their remote topics.

Unlike MirrorMaker 2, it does not send again what the target already has. Each sync returns what it
could not do, one text per cause. A topic that is missing on one side is no failure: the refresh of
topics reports it. A cluster without the API of a sync has nothing to sync: that is said once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.admin import Admin
from sparkmirror.config.warn_once import warn_once
from sparkmirror.connect.connectors.shared.errors_by_cause import describe_errors_by_cause
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterError, NotAuthorized, TopicMissing, UnsupportedByBroker
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


class TopicConfigAndAclSync:
    """Syncs one flow. Belongs to one thread at a time."""

    def __init__(self, config: MirrorSourceConfig, source: Admin, target: Admin) -> None:
        self._config = config
        self._source = source
        self._target = target
        self._without_authorizer: frozenset[str] = frozenset()

    def sync_configs(self, topics: Mapping[str, str]) -> str:
        """Alter the configs of remote topics that differ; `topics` maps source to remote names.

        Returns what could not be read or altered, and why; empty if everything could.
        """
        try:
            return self._sync_configs(topics)
        except UnsupportedByBroker as error:
            warn_once(log, f"{error}, so no topic configs are synced ({self._config.shared.flow})")
            return ""

    def _sync_configs(self, topics: Mapping[str, str]) -> str:
        at_source = self._source.describe_configs(topics.keys())
        at_target = self._target.describe_configs(topics.values())
        changes: dict[str, tuple[AlterConfigOp, ...]] = {}
        present: dict[str, Entries] = {}
        unreadable: dict[str, ClusterError] = {}
        hidden: dict[str, ClusterError] = {}
        for topic, remote in topics.items():
            source_configs, target_configs = at_source.get(topic), at_target.get(remote)
            if source_configs is None or isinstance(source_configs, ClusterError):
                log.warning(
                    "Could not read the configuration of topic %s. %s", topic, source_configs
                )
                if source_configs is not None:
                    unreadable[topic] = source_configs
                continue
            operations = sync_operations(source_configs, self._config.config_filter)
            if target_configs is None or isinstance(target_configs, ClusterError):
                changes[remote] = operations  # unknown: send everything, as MirrorMaker 2 does
                if target_configs is not None:
                    hidden[remote] = target_configs
            elif changed := effective_operations(operations, target_configs):
                changes[remote], present[remote] = changed, target_configs
        unaltered = self._alter_configs(changes, present, hidden)
        for remote, error in unaltered.items():
            log.warning("Could not alter configuration of topic %s. %s", remote, error)
        return _join_texts(
            {
                "configs cannot be read": unreadable,
                "configs cannot be altered": unaltered,
            }
        )

    def _alter_configs(
        self,
        changes: Mapping[str, tuple[AlterConfigOp, ...]],
        present: Mapping[str, Entries],
        hidden: Mapping[str, ClusterError],
    ) -> dict[str, ClusterError]:
        """Alter the configs of remote topics. Returns the errors by remote topic.

        `present` has the configs that they have now, `hidden` why those of others are not known.
        """
        try:
            return self._target.incremental_alter_configs(changes)
        except UnsupportedByBroker:
            # Brokers before 2.3 accept only the complete configs of a topic.
            complete = {
                remote: _full_configs(present[remote], changes[remote])
                for remote in changes
                if remote in present
            }
            unknown = {remote: hidden[remote] for remote in changes if remote in hidden}
            return self._target.alter_configs(complete) | unknown

    def sync_acls(self) -> str:
        """Give readers of source topics read access to the remote topics.

        Returns which ACLs could not be created, and why; empty if all could.
        """
        try:
            return self._sync_acls()
        except UnsupportedByBroker as error:
            warn_once(log, f"{error}, so no topic ACLs are synced ({self._config.shared.flow})")
            return ""

    def _sync_acls(self) -> str:
        listed = self._source.describe_topic_acls()
        if listed is None:
            self._log_no_authorizer("source", self._source.cluster)
            return ""
        desired = target_acl_bindings(listed, self._config.selection)
        present = self._present_acls()
        if present is None:
            self._log_no_authorizer("target", self._target.cluster)
            return ""
        failed = self._target.create_acls([acl for acl in desired if acl not in present])
        for acl, error in failed.items():
            log.warning("Could not sync ACL of topic %s. %s", acl.resource_name, error)
        by_topic = {acl.resource_name: error for acl, error in failed.items()}
        return _join_texts({"ACLs cannot be created": by_topic})

    def _present_acls(self) -> frozenset[AclBinding] | None:
        """Return the ACLs of the target; None if it has no authorizer."""
        try:
            found = self._target.describe_topic_acls()
        except NotAuthorized:
            return frozenset()  # creating ACLs may be allowed all the same
        return None if found is None else frozenset(found)

    def _log_no_authorizer(self, side: str, cluster: str) -> None:
        level = logging.DEBUG if side in self._without_authorizer else logging.INFO
        self._without_authorizer |= {side}
        log.log(
            level,
            "No ACL authorizer is configured on the %s Kafka cluster %s, so no topic ACLs are"
            " synced",
            side,
            cluster,
        )


def _join_texts(failures: Mapping[str, Mapping[str, ClusterError]]) -> str:
    """Return a text per kind of failure and cause; leaves out topics that do not exist."""
    texts = {
        what: describe_errors_by_cause(
            {name: error for name, error in errors.items() if not isinstance(error, TopicMissing)},
            "topic",
        )
        for what, errors in failures.items()
    }
    return "; ".join(f"{what}: {text}" for what, text in texts.items() if text)


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
