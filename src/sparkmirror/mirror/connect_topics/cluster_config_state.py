"""The state of the config topic after its records are applied in order.

The rules, and the effect of compaction:

- A connector config takes effect at once. Without a target state the connector is STARTED.
- Task configs take effect with the commit record that names their number n. Compaction may have
  removed some of an older set: a commit without all of the tasks 0..n-1 makes the connector
  *inconsistent*, and it has no tasks until a complete set is written. Compaction may also leave
  tasks of an older, larger set before the commit: they have no effect.
- Task configs of a connector without a config are left over from its deletion, and ignored.
- Each commit requires a round of fencing; a task count record says that it was done. Its count
  outlives the connector, because producers of its tasks may too.
- Requests (restart, logger level) that were in the topic before the first read are ignored.
- A record that cannot be decoded has no effect. If it is a connector config or a target state, it
  is a problem until a later record of its key is read: after compaction nothing else is left.
"""

from __future__ import annotations

import logging

from sparkmirror.errors import RecordError
from sparkmirror.mirror.connect_topics.connect_configs import (
    CONNECTOR_PREFIX,
    TARGET_STATE_PREFIX,
    ClusterLoggerLevel,
    ConfigProperties,
    ConfigRecord,
    ConnectorConfig,
    ConnectorTargetState,
    RestartRequest,
    SessionKey,
    TargetState,
    TaskConfig,
    TaskCountRecord,
    TasksCommit,
    decode_config_record,
)
from sparkmirror.mirror.offsets.records import RecordBytes

log = logging.getLogger(__name__)


class ClusterConfigState:
    """Connectors, their tasks and target states, as of the last applied record."""

    def __init__(self) -> None:
        self.session_key: SessionKey | None = None
        self._connectors: dict[str, ConfigProperties] = {}
        self._target_states: dict[str, TargetState] = {}
        self._tasks: dict[str, dict[int, ConfigProperties]] = {}
        self._task_counts: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._deferred_task_configs: dict[str, dict[int, ConfigProperties]] = {}
        self._inconsistent: set[str] = set()
        self._task_count_records: dict[str, int] = {}
        self._pending_fencing: set[str] = set()
        self._unreadable: dict[bytes, str] = {}
        """The problem of each key whose last record cannot be decoded."""

    # -- reading ---------------------------------------------------------------------------

    def connectors(self) -> tuple[str, ...]:
        """Return the names of all connectors."""
        return tuple(self._connectors)

    def connector_config(self, name: str) -> ConfigProperties | None:
        """Return a connector's properties."""
        return self._connectors.get(name)

    def target_state(self, name: str) -> TargetState | None:
        """Return the target state of a connector."""
        return self._target_states.get(name)

    def task_configs(self, name: str) -> tuple[ConfigProperties, ...]:
        """Return the effective task configs, in order; none while inconsistent."""
        if name in self._inconsistent:
            return ()
        configs = self._tasks.get(name, {})
        return tuple(configs[task] for task in range(self._task_counts.get(name, 0)))

    def task_count(self, name: str) -> int:
        """Return the number of tasks in the last commit, consistent or not."""
        return self._task_counts.get(name, 0)

    def task_config_generation(self, name: str) -> int | None:
        """Return the number of the task set: 0 for the first that took effect."""
        return self._generations.get(name)

    def is_inconsistent(self, name: str) -> bool:
        """Return whether the last commit had an incomplete set of task configs."""
        return name in self._inconsistent

    def task_count_record(self, name: str) -> int | None:
        """Return the task count of the last round of fencing; None if there was none."""
        return self._task_count_records.get(name)

    def is_pending_fencing(self, name: str) -> bool:
        """Return whether tasks were committed since the last round of fencing."""
        return name in self._pending_fencing

    def unreadable_records(self) -> tuple[str, ...]:
        """Return a text for each record that cannot be decoded: where it is, and what to do."""
        return tuple(self._unreadable.values())

    def copy(self) -> ClusterConfigState:
        """Return a copy. It shares the properties, which never change in place.

        The copy has no task configs without a commit.
        """
        copied = ClusterConfigState()
        copied.session_key = self.session_key
        copied._connectors = dict(self._connectors)
        copied._target_states = dict(self._target_states)
        copied._tasks = dict(self._tasks)
        copied._task_counts = dict(self._task_counts)
        copied._generations = dict(self._generations)
        copied._inconsistent = set(self._inconsistent)
        copied._task_count_records = dict(self._task_count_records)
        copied._pending_fencing = set(self._pending_fencing)
        copied._unreadable = dict(self._unreadable)
        return copied

    # -- applying records ------------------------------------------------------------------

    def apply(
        self, record: RecordBytes, *, first_read: bool = False, location: str = "the config topic"
    ) -> ConfigRecord | None:
        """Apply one record. Return it if the herder must act on it.

        `first_read` marks records that were in the topic before this worker followed it. A record
        that cannot be decoded is logged with its location and has no effect.
        """
        try:
            change = decode_config_record(record)
        except RecordError as error:
            log.error("Ignored a record of %s: %s", location, error)
            remedy = _remedy(record.key or b"")
            if remedy:
                text = f"the record of {location} cannot be read: {error}; {remedy}"
                self._unreadable[record.key or b""] = text
            return None
        self._unreadable.pop(record.key or b"", None)
        return change if self._apply_record(change, first_read=first_read) else None

    def _apply_record(self, change: ConfigRecord, *, first_read: bool) -> bool:
        match change:
            case ConnectorTargetState():
                return self._apply_target_state(change)
            case ConnectorConfig():
                return self._apply_connector(change)
            case TaskConfig():
                self._deferred_task_configs.setdefault(change.connector, {})[change.task] = (
                    change.properties
                )
                return False
            case TasksCommit():
                return self._apply_commit(change)
            case TaskCountRecord():
                self._task_count_records[change.connector] = change.task_count
                self._pending_fencing.discard(change.connector)
                return True
            case SessionKey():
                self.session_key = change
                return True
            case RestartRequest() | ClusterLoggerLevel():
                return not first_read

    def _apply_target_state(self, change: ConnectorTargetState) -> bool:
        if change.state is None:
            self._target_states.pop(change.connector, None)
            return False  # the herder acts on the deletion of the config, which comes with it
        before = self._target_states.get(change.connector)
        self._target_states[change.connector] = change.state
        return change.state is not before

    def _apply_connector(self, change: ConnectorConfig) -> bool:
        if change.properties is None:
            self._remove_connector(change.connector)
            return True
        self._connectors[change.connector] = change.properties
        self._target_states.setdefault(change.connector, TargetState.STARTED)
        return True

    def _apply_commit(self, change: TasksCommit) -> bool:
        name = change.connector
        deferred = self._deferred_task_configs.pop(name, {})
        if name not in self._connectors:
            self._remove_connector(name)
            return False
        if deferred.keys() >= set(range(change.tasks)):
            self._inconsistent.discard(name)
            self._tasks[name] = {task: deferred[task] for task in range(change.tasks)}
            self._generations[name] = self._generations.get(name, -1) + 1
        else:
            log.debug("Incomplete task configs for connector %s, probably due to compaction", name)
            self._inconsistent.add(name)
        self._task_counts[name] = change.tasks
        self._pending_fencing.add(name)
        return True

    def _remove_connector(self, name: str) -> None:
        for by_connector in (
            self._connectors,
            self._tasks,
            self._task_counts,
            self._deferred_task_configs,
        ):
            by_connector.pop(name, None)


def _remedy(key: bytes) -> str:
    """Return what replaces a record that cannot be decoded; empty if it is replaced anyway."""
    text = key.decode("utf-8", errors="replace")
    if text.startswith(CONNECTOR_PREFIX):
        name = text.removeprefix(CONNECTOR_PREFIX)
        return f"connector {name} is missing or has an older config: write its config again"
    if text.startswith(TARGET_STATE_PREFIX):
        name = text.removeprefix(TARGET_STATE_PREFIX)
        return f"connector {name} may have the wrong state: pause, stop or resume it again"
    return ""
