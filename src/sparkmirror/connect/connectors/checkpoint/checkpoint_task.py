"""MirrorCheckpointTask: translates the offsets of its groups and writes checkpoints to the target.

    every emit.checkpoints.interval.seconds    1. list what the groups have committed
                                               2. read new offset syncs and run maps
                                               3. write the checkpoints that have changed
    every sync.group.offsets.interval.seconds  write offsets to target groups without members

An error of one group does not affect the others. The task's problem has one text per cause, and
group offsets are synced again soon. A target without an API of groups gets no group offsets, which
is said once; the task tries again every ten minutes. `GroupReports` has the outcome of every
offset.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from sparkmirror.cluster.groups import CommittedOffsets, list_consumer_group_offsets
from sparkmirror.config.warn_once import warn_once
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointKey
from sparkmirror.connect.connectors.checkpoint.clients import CheckpointClients
from sparkmirror.connect.connectors.checkpoint.group_report import (
    GroupPartitionReport,
    GroupReports,
)
from sparkmirror.connect.connectors.checkpoint.group_sync import SyncOutcomes, sync_group
from sparkmirror.connect.connectors.checkpoint.offset_translation_topics import (
    OffsetTranslationTopics,
    TranslationSources,
)
from sparkmirror.connect.connectors.shared.checkpoint_and_heartbeat_offsets import (
    CheckpointAndHeartbeatOffsets,
)
from sparkmirror.connect.connectors.shared.compacted_topic_reader import CompactedTopicReader
from sparkmirror.connect.connectors.shared.errors_by_cause import describe_errors_by_cause
from sparkmirror.connect.connectors.shared.scheduler import MIN_INTERVAL_S
from sparkmirror.connect.connectors.shared.source_task_stats import HerderTaskStats
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.errors import ClusterError, UnsupportedByBroker
from sparkmirror.mirror.connect_topics.source_record import SourceRecord, checkpoint_record
from sparkmirror.mirror.offsets.checkpoints import Checkpointer, CheckpointOutcome
from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.mirror.topics.task_assignment import (
    ASSIGNED_GROUPS,
    TASK_INDEX,
    assigned_groups,
)
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_records

log = logging.getLogger(__name__)

RETRY_SYNC_S = 10.0
"""When the offsets of groups are synced again after the target has refused some."""
RETRY_UNSUPPORTED_S = 600.0
"""When they are synced again after the target lacked an API: it may have been upgraded."""
MAX_BATCH_RECORDS = 1000
"""The highest number of checkpoints in one batch."""
NEVER = float("inf")


class MirrorCheckpointTask:
    """One checkpoint task. Runs as a thread of the worker (`shared.thread_tasks`)."""

    def __init__(
        self,
        config: ExpandedConfig,
        worker: WorkerClientConfig,
        reports: GroupReports,
        task_stats: HerderTaskStats | None = None,
    ) -> None:
        """`reports` gets what became of each offset, `task_stats` what the task has written."""
        self._originals = dict(config)
        self._config = parsed = MirrorCheckpointConfig.parse(config)
        self._groups = assigned_groups(config)
        self._reports = reports
        self._topic = parsed.checkpoints_topic.name
        self._clients = clients = CheckpointClients.create(parsed, worker)
        self._task_stats = task_stats or HerderTaskStats()
        self._stats = self._task_stats.start(parsed.shared.name, int(config.get(TASK_INDEX, "0")))
        self._record_offsets = CheckpointAndHeartbeatOffsets(
            parsed.shared.name, config, worker, self._stats
        )
        self._translation = OffsetTranslationTopics(
            TranslationSources(
                checkpoints=CompactedTopicReader(clients.checkpoints, self._topic),
                syncs=CompactedTopicReader(clients.syncs, parsed.offset_syncs_topic.name),
                offsets=CompactedTopicReader(clients.offsets, worker.offsets_topic(config)),
                target=clients.target,
            ),
            parsed.shared.flow.source,
        )
        self._pending: list[tuple[CheckpointKey, SourceRecord]] = []
        self._committed: dict[str, CommittedOffsets] = {}
        self._outcomes: dict[str, Mapping[TopicPartition, CheckpointOutcome]] = {}
        self._sync_outcomes: dict[str, SyncOutcomes] = {}
        self._source_errors: dict[str, ClusterError] = {}
        self._sync_errors: dict[str, ClusterError] = {}
        self._written_topics: frozenset[str] = frozenset()
        self._emit_at = time.monotonic()
        self._sync_at = NEVER
        if parsed.sync_group_offsets_s is not None:
            self._sync_at = time.monotonic() + parsed.sync_group_offsets_s

    # -- PeriodicTask ---------------------------------------------------------------------------

    def start(self) -> None:
        """Read earlier checkpoints, offset syncs and run maps. Raises a ClusterError."""
        self._translation.load()

    def run_due(self) -> None:
        """Emit checkpoints and sync group offsets, whichever is due. Raises a ClusterError.

        Group offsets are synced even if checkpoints cannot be written.
        """
        now = time.monotonic()
        self._record_offsets.save_unsaved()
        try:
            if now >= self._emit_at:
                self._emit()
                self._emit_at = _next_due(self._emit_at, self._config.emit_checkpoints_s)
        finally:
            if now >= self._sync_at:
                self._sync_at = _next_due(self._sync_at, self._config.sync_group_offsets_s)
                self._sync()
                if self._sync_errors:
                    self._sync_at = min(self._sync_at, time.monotonic() + RETRY_SYNC_S)

    def next_run_in_s(self) -> float:
        """Return the seconds until something is due."""
        return max(min(self._emit_at, self._sync_at) - time.monotonic(), 0.0)

    def current_problem(self) -> str:
        """Return the groups with errors, one text per cause."""
        texts = {
            "offsets of groups cannot be read": describe_errors_by_cause(
                self._source_errors, "group"
            ),
            "offsets of groups cannot be synced": describe_errors_by_cause(
                self._sync_errors, "group"
            ),
        }
        return "; ".join(f"{what}: {text}" for what, text in texts.items() if text)

    def written_topics(self) -> frozenset[str]:
        """Return the checkpoints topic after the first write."""
        return self._written_topics

    def clients(self) -> Sequence[Router]:
        """Return all routers."""
        return *self._clients.routers(), self._record_offsets.router

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Follow other groups. Any other change needs a new instance."""
        if _without_groups(config) != _without_groups(self._originals):
            return False
        groups = assigned_groups(config)
        self._reports.remove(self._config.shared.name, set(self._groups) - set(groups))
        self._originals, self._groups = dict(config), groups
        self._emit_at = time.monotonic()
        return True

    def close(self) -> None:
        """Close the connections and remove the reports."""
        self._reports.remove(self._config.shared.name, self._groups)
        self._task_stats.end(self._stats)
        self._clients.close()
        self._record_offsets.close()

    # -- checkpoints ----------------------------------------------------------------------------

    def _emit(self) -> None:
        self._write()
        listed_at_ms = time.time_ns() // 1_000_000
        answers = list_consumer_group_offsets(
            self._clients.source, self._groups, timeout_s=self._config.shared.admin_timeout_s
        )
        self._committed, self._source_errors = _split_errors(answers)
        self._translation.refresh()
        checkpointer = self._checkpointer()
        self._translation.refresh_topic_ids(
            (partition, checkpointer.remote_partition(partition))
            for committed in self._committed.values()
            for partition in committed
            if self._config.topic_filter.should_replicate_topic(partition.topic)
        )
        rounds = {
            g: checkpointer.checkpoints_for_group(g, offsets)
            for g, offsets in self._committed.items()
        }
        self._outcomes = {group: found.outcomes for group, found in rounds.items()}
        made = [
            (self._key(checkpoint), checkpoint_record(self._topic, checkpoint, listed_at_ms))
            for found in rounds.values()
            for checkpoint in found.checkpoints
        ]
        self._pending += made
        self._stats.on_made(len(made))
        self._update_reports()
        self._write()

    def _checkpointer(self) -> Checkpointer:
        shared = self._config.shared
        return Checkpointer(
            shared.flow,
            shared.policy,
            self._config.topic_filter,
            self._translation.translator,
            self._translation.memory,
        )

    def _write(self) -> None:
        """Write pending checkpoints, also those of an earlier write that failed."""
        while self._pending:
            batch = self._pending[:MAX_BATCH_RECORDS]
            append_records(
                self._clients.producer,
                TopicPartition(self._topic, 0),
                [Record(0, record.timestamp_ms, *record.record) for _, record in batch],
            )
            del self._pending[:MAX_BATCH_RECORDS]
            self._stats.on_written(len(batch))
            self._written_topics = frozenset({self._topic})
            self._measure(batch)
            self._record_offsets.save([record for _, record in batch])

    def _key(self, checkpoint: Checkpoint) -> CheckpointKey:
        shared = self._config.shared
        return CheckpointKey(shared.name, shared.flow, checkpoint.group, checkpoint.partition)

    def _measure(self, written: Sequence[tuple[CheckpointKey, SourceRecord]]) -> None:
        now_ms = time.time_ns() // 1_000_000
        keys_by_time: dict[int, list[CheckpointKey]] = {}
        for key, record in written:
            keys_by_time.setdefault(record.timestamp_ms, []).append(key)
        for listed_at_ms, keys in keys_by_time.items():
            self._reports.latencies.record(keys, now_ms - listed_at_ms)

    # -- group offsets --------------------------------------------------------------------------

    def _sync(self) -> None:
        self._sync_outcomes, self._sync_errors = {}, {}
        for group in self._groups:
            checkpoints = self._translation.memory.of_group(group)
            if not checkpoints:
                continue
            try:
                synced = sync_group(self._clients.target, group, checkpoints)
            except UnsupportedByBroker as error:
                flow = self._config.shared.flow
                warn_once(log, f"{error}, so no group offsets are synced ({flow})")
                self._sync_at = max(self._sync_at, time.monotonic() + RETRY_UNSUPPORTED_S)
                break
            except ClusterError as error:
                self._sync_errors[group] = error
                continue
            self._sync_outcomes[group] = synced.outcomes
            if synced.refusal is not None:
                self._sync_errors[group] = synced.refusal
        self._update_reports()

    # -- reports --------------------------------------------------------------------------------

    def _update_reports(self) -> None:
        connector = self._config.shared.name
        for group in self._committed:
            self._reports.update(connector, group, self._group_report(group))

    def _group_report(self, group: str) -> list[GroupPartitionReport]:
        checkpointer, memory = self._checkpointer(), self._translation.memory
        last, written = memory.of_group(group), self._sync_outcomes.get(group, {})
        reports = []
        for partition, outcome in sorted(self._outcomes.get(group, {}).items()):
            position = self._committed[group].get(partition)
            is_mirrored = outcome not in (
                CheckpointOutcome.TOPIC_FILTERED,
                CheckpointOutcome.NOT_COMMITTED,
            )
            remote = checkpointer.remote_partition(partition) if is_mirrored else None
            found = last.get(remote) if remote else None
            translation = ""
            if position is not None and remote is not None:
                translation = self._translation.translator.translate(
                    partition, position.offset
                ).outcome.value
            reports.append(
                GroupPartitionReport(
                    group=group,
                    partition=partition,
                    remote=remote,
                    upstream=position.offset if position else None,
                    downstream=found.downstream if found else None,
                    checkpoint=outcome.value,
                    translated=translation,
                    written=written.get(remote, "") if remote else "",
                )
            )
        return reports


def _next_due(at: float, interval_s: float | None) -> float:
    """Return the next time of a job that was due at `at`; missed intervals are skipped."""
    return max(at + max(interval_s or 0.0, MIN_INTERVAL_S), time.monotonic())


def _split_errors(
    answers: Mapping[str, CommittedOffsets | ClusterError],
) -> tuple[dict[str, CommittedOffsets], dict[str, ClusterError]]:
    committed = {g: a for g, a in answers.items() if not isinstance(a, ClusterError)}
    errors = {g: a for g, a in answers.items() if isinstance(a, ClusterError)}
    return committed, errors


def _without_groups(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key != ASSIGNED_GROUPS}
