"""One checkpoint task: translates its groups' offsets, and tells the target.

    every emit.checkpoints.interval.seconds    1. ask what the groups have committed
                                               2. read what is new to translate with
                                               3. write the checkpoints that are news
    every sync.group.offsets.interval.seconds  put them into groups that nobody is in

A group that cannot be asked for does not keep the others from being served; why is in the task's
remark. What became of every single offset is in `explanations`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from sparkmirror.cluster.groups import Committed, committed_offsets
from sparkmirror.connect.connector import ExpandedConfig
from sparkmirror.connect.connectors.checkpoint_config import CheckpointConfig
from sparkmirror.connect.connectors.checkpoint_routes import CheckpointRoutes
from sparkmirror.connect.connectors.explanations import Explanation, Explanations
from sparkmirror.connect.connectors.followed import Followed
from sparkmirror.connect.connectors.group_sync import Written, sync_group
from sparkmirror.connect.connectors.offsets_noted import OffsetsNoted
from sparkmirror.connect.connectors.scheduler import SHORTEST_S
from sparkmirror.connect.connectors.translating import Sources, Translating
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.checkpoints import Checkpointer, Outcome
from sparkmirror.mirror.outgoing import OutgoingRecord, checkpoint_record
from sparkmirror.mirror.tasks import ASSIGNED_GROUPS, assigned_groups
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append
from sparkmirror.wire.records import Record

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""Checkpoints in one batch."""
NEVER = float("inf")


class CheckpointWork:
    """The work of one task."""

    def __init__(
        self, config: ExpandedConfig, worker: WorkerSide, explanations: Explanations
    ) -> None:
        self._originals = dict(config)
        self._config = parsed = CheckpointConfig.parse(config)
        self._groups = assigned_groups(config)
        self._explanations = explanations
        self._topic = parsed.checkpoints_topic.name
        self._routes = routes = CheckpointRoutes.of(parsed, worker)
        self._noted = OffsetsNoted(parsed.shared.name, config, worker)
        self._translating = Translating(
            Sources(
                checkpoints=Followed(routes.checkpoints, self._topic),
                syncs=Followed(routes.syncs, parsed.offset_syncs_topic.name),
                offsets=Followed(routes.offsets, worker.offsets_topic(config)),
                target=routes.target,
            ),
            parsed.shared.flow.source,
        )
        self._unwritten: list[OutgoingRecord] = []
        self._committed: dict[str, Committed] = {}
        self._outcomes: dict[str, Mapping[TopicPartition, Outcome]] = {}
        self._written: dict[str, Written] = {}
        self._troubles: dict[str, str] = {}
        self._topics: frozenset[str] = frozenset()
        self._emit_at = time.monotonic()
        self._sync_at = NEVER
        if parsed.sync_group_offsets_s is not None:
            self._sync_at = time.monotonic() + parsed.sync_group_offsets_s

    # -- Work -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Read what was said before, and what to translate with."""
        self._translating.load()

    def turn(self) -> None:
        """Emit checkpoints and put offsets into groups, whichever is due.

        Groups are served even if checkpoints cannot be written just now.
        """
        now = time.monotonic()
        try:
            if now >= self._emit_at:
                self._emit()
                self._emit_at = _next(self._emit_at, self._config.emit_checkpoints_s)
        finally:
            if now >= self._sync_at:
                self._sync()
                self._sync_at = _next(self._sync_at, self._config.sync_group_offsets_s)

    def pause_s(self) -> float:
        """Say how long until something is due."""
        return max(min(self._emit_at, self._sync_at) - time.monotonic(), 0.0)

    def remark(self) -> str:
        """Say which groups cannot be served."""
        return "; ".join(f"group {group}: {why}" for group, why in sorted(self._troubles.items()))

    def topics(self) -> frozenset[str]:
        """Name the checkpoints topic, once it was written to."""
        return self._topics

    def take(self, config: ExpandedConfig) -> bool:
        """Follow other groups from now on; anything else takes a new beginning."""
        if _but_groups(config) != _but_groups(self._originals):
            return False
        groups = assigned_groups(config)
        self._explanations.forget(self._config.shared.name, set(self._groups) - set(groups))
        self._originals, self._groups = dict(config), groups
        self._emit_at = time.monotonic()
        return True

    def end(self) -> None:
        """Hang up."""
        self._explanations.forget(self._config.shared.name, self._groups)
        self._routes.close()
        self._noted.close()

    # -- checkpoints ----------------------------------------------------------------------------

    def _emit(self) -> None:
        self._write()
        looked_at_ms = time.time_ns() // 1_000_000
        answers = committed_offsets(
            self._routes.source, self._groups, timeout_s=self._config.shared.admin_timeout_s
        )
        self._committed, self._troubles = _sorted_out(answers)
        self._translating.refresh()
        checkpointer = self._checkpointer()
        self._translating.look_at_copies(
            (partition, checkpointer.remote_partition(partition))
            for committed in self._committed.values()
            for partition in committed
            if self._config.topic_filter.should_replicate_topic(partition.topic)
        )
        rounds = {g: checkpointer.look_at(g, offsets) for g, offsets in self._committed.items()}
        self._outcomes = {group: found.outcomes for group, found in rounds.items()}
        self._unwritten += [
            checkpoint_record(self._topic, checkpoint, looked_at_ms)
            for found in rounds.values()
            for checkpoint in found.checkpoints
        ]
        self._explain()
        self._write()

    def _checkpointer(self) -> Checkpointer:
        shared = self._config.shared
        return Checkpointer(
            shared.flow,
            shared.policy,
            self._config.topic_filter,
            self._translating.translator,
            self._translating.memory,
        )

    def _write(self) -> None:
        """Write what is news, and what could not be written the last time."""
        while self._unwritten:
            batch = self._unwritten[:AT_ONCE]
            append(
                self._routes.producer,
                TopicPartition(self._topic, 0),
                [Record(0, one.timestamp_ms, *one.record) for one in batch],
            )
            del self._unwritten[:AT_ONCE]
            self._topics = frozenset({self._topic})
            self._noted.note(batch)

    # -- groups of the target -------------------------------------------------------------------

    def _sync(self) -> None:
        self._written = {}
        for group in self._groups:
            checkpoints = self._translating.memory.of_group(group)
            if not checkpoints:
                continue
            try:
                self._written[group] = sync_group(self._routes.target, group, checkpoints)
            except ClusterError as error:
                self._troubles[group] = str(error)
        self._explain()

    # -- why ------------------------------------------------------------------------------------

    def _explain(self) -> None:
        connector = self._config.shared.name
        for group in self._committed:
            self._explanations.put(connector, group, self._explained(group))

    def _explained(self, group: str) -> list[Explanation]:
        checkpointer, memory = self._checkpointer(), self._translating.memory
        last, written = memory.of_group(group), self._written.get(group, {})
        explained = []
        for partition, outcome in sorted(self._outcomes.get(group, {}).items()):
            position = self._committed[group].get(partition)
            is_mirrored = outcome not in (Outcome.TOPIC_FILTERED, Outcome.NOT_COMMITTED)
            remote = checkpointer.remote_partition(partition) if is_mirrored else None
            found = last.get(remote) if remote else None
            how = ""
            if position is not None and remote is not None:
                how = self._translating.translator.translate(partition, position.offset).found.value
            explained.append(
                Explanation(
                    group=group,
                    partition=partition,
                    remote=remote,
                    upstream=position.offset if position else None,
                    downstream=found.downstream if found else None,
                    checkpoint=outcome.value,
                    translated=how,
                    written=written.get(remote, "") if remote else "",
                )
            )
        return explained


def _next(at: float, every_s: float | None) -> float:
    """When something is due again that was due then; what was missed is not made up for."""
    return max(at + max(every_s or 0.0, SHORTEST_S), time.monotonic())


def _sorted_out(
    answers: Mapping[str, Committed | ClusterError],
) -> tuple[dict[str, Committed], dict[str, str]]:
    committed = {g: a for g, a in answers.items() if not isinstance(a, ClusterError)}
    troubles = {g: str(a) for g, a in answers.items() if isinstance(a, ClusterError)}
    return committed, troubles


def _but_groups(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key != ASSIGNED_GROUPS}
