"""Which checkpoints to emit for the committed offsets of a group.

A checkpoint says: a group at `upstream` in the source may continue at `downstream` in the target.
Each committed offset is translated and compared with the last checkpoint of the same group and
remote partition:

    no checkpoint yet                  emit
    the group went back upstream       emit; only here downstream may go back
    downstream is higher               emit
    downstream is the same, or lower   do not emit: a repetition, or a less exact translation

So the checkpoints of a consumer that only moves forward never go back. Every offset without a
checkpoint has a `CheckpointOutcome`, which tells operators why.

This is state without I/O: the caller lists groups and writes records.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from sparkmirror.errors import ClusterError, NotAuthorized, RecordError
from sparkmirror.mirror.offsets.offset_translation import OffsetTranslator, TranslationOutcome
from sparkmirror.mirror.offsets.records import Checkpoint, RecordBytes
from sparkmirror.mirror.topics.filters import TopicFilter
from sparkmirror.mirror.topics.replication_policy import ReplicationPolicy
from sparkmirror.model import OffsetAndMetadata, SourceAndTarget, TopicPartition

log = logging.getLogger(__name__)


class CheckpointOutcome(Enum):
    """The result for one committed offset."""

    EMITTED = "a checkpoint was emitted"
    NOT_COMMITTED = "the group has not committed an offset for the partition"
    TOPIC_FILTERED = "the topic is not mirrored"
    NOT_LOADED = "the checkpoints emitted before have not been read yet"
    NOT_READY = TranslationOutcome.NOT_READY.value
    NO_SYNC = TranslationOutcome.NO_SYNC.value
    TOO_OLD = TranslationOutcome.TOO_OLD.value
    UNCHANGED = "the last checkpoint says the same"
    WOULD_REWIND = "the last checkpoint is further, and the group did not go back"


_UNTRANSLATED_OUTCOMES = {
    TranslationOutcome.NOT_READY: CheckpointOutcome.NOT_READY,
    TranslationOutcome.NO_SYNC: CheckpointOutcome.NO_SYNC,
    TranslationOutcome.TOO_OLD: CheckpointOutcome.TOO_OLD,
}


class CheckpointStore:
    """The last checkpoint of each group and remote partition, across restarts."""

    def __init__(self, topic: str) -> None:
        """`topic` is the checkpoints topic, for log lines."""
        self._topic = topic
        self._by_group: dict[str, dict[TopicPartition, Checkpoint]] = {}
        self._is_loaded = False

    @property
    def is_loaded(self) -> bool:
        """Whether the checkpoints topic was read, or cannot be. No checkpoint is emitted before."""
        return self._is_loaded

    def load(self, groups: Collection[str], records: Iterable[RecordBytes]) -> bool:
        """Load the checkpoints of these groups. The latest record of each key wins.

        Return False if the topic could not be read to its end. The store is empty then, and the
        offset syncs must be read with `must_read_to_end`, so that translation does not go back
        behind the checkpoints of an earlier run.
        """
        try:
            for record in records:
                self._load_record(groups, record)
        except ClusterError as error:
            level = logging.WARNING if isinstance(error, NotAuthorized) else logging.INFO
            text = "Checkpoints topic %s cannot be read; its checkpoints are not used: %s"
            log.log(level, text, self._topic, error)
            self._by_group.clear()
            self._is_loaded = True
            return False
        self._is_loaded = True
        return True

    def _load_record(self, groups: Collection[str], record: RecordBytes) -> None:
        try:
            checkpoint = Checkpoint.decode(record)
        except RecordError as error:
            log.warning("Ignored a record of checkpoints topic %s: %s", self._topic, error)
            return
        if checkpoint.group in groups:
            self.update(checkpoint)

    def classify(self, checkpoint: Checkpoint) -> CheckpointOutcome:
        """Return EMITTED if a checkpoint is to be emitted, else the reason why not."""
        last = self._by_group.get(checkpoint.group, {}).get(checkpoint.partition)
        if last is None or checkpoint.upstream < last.upstream:
            return CheckpointOutcome.EMITTED
        if checkpoint.downstream > last.downstream:
            return CheckpointOutcome.EMITTED
        same = checkpoint.downstream == last.downstream
        return CheckpointOutcome.UNCHANGED if same else CheckpointOutcome.WOULD_REWIND

    def update(self, checkpoint: Checkpoint) -> None:
        """Set the last checkpoint of its group and remote partition."""
        self._by_group.setdefault(checkpoint.group, {})[checkpoint.partition] = checkpoint

    def groups(self) -> tuple[str, ...]:
        """Return the groups that have checkpoints."""
        return tuple(self._by_group)

    def of_group(self, group: str) -> Mapping[TopicPartition, Checkpoint]:
        """Return the last checkpoints of a group, by remote partition."""
        return MappingProxyType(self._by_group.get(group, {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointResult:
    """The checkpoints to write for a group, and the outcome of each committed offset."""

    checkpoints: tuple[Checkpoint, ...]
    outcomes: Mapping[TopicPartition, CheckpointOutcome]


class Checkpointer:
    """Computes the checkpoints of one flow."""

    def __init__(
        self,
        flow: SourceAndTarget,
        policy: ReplicationPolicy,
        topic_filter: TopicFilter,
        translator: OffsetTranslator,
        store: CheckpointStore,
    ) -> None:
        self._flow = flow
        self._policy = policy
        self._topic_filter = topic_filter
        self._translator = translator
        self._store = store

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Return the partition of the target that corresponds to a source partition.

        For a topic that was copied from the target it is the original topic.
        """
        if self._policy.topic_source(partition.topic) == self._flow.target:
            topic = self._policy.original_topic(partition.topic)
        else:
            topic = self._policy.format_remote_topic(self._flow.source, partition.topic)
        return TopicPartition(topic, partition.partition)

    def checkpoints_for_group(
        self, group: str, committed: Mapping[TopicPartition, OffsetAndMetadata | None]
    ) -> CheckpointResult:
        """Translate a group's committed offsets. Emitted checkpoints are put into the store."""
        checkpoints: list[Checkpoint] = []
        outcomes: dict[TopicPartition, CheckpointOutcome] = {}
        for partition, position in committed.items():
            result = self._checkpoint_or_outcome(group, partition, position)
            if isinstance(result, Checkpoint):
                self._store.update(result)
                checkpoints.append(result)
                outcomes[partition] = CheckpointOutcome.EMITTED
            else:
                outcomes[partition] = result
        return CheckpointResult(checkpoints=tuple(checkpoints), outcomes=outcomes)

    def _checkpoint_or_outcome(
        self, group: str, partition: TopicPartition, position: OffsetAndMetadata | None
    ) -> Checkpoint | CheckpointOutcome:
        """Return the checkpoint to emit, or the reason why there is none."""
        if not self._store.is_loaded:
            return CheckpointOutcome.NOT_LOADED
        if position is None:
            return CheckpointOutcome.NOT_COMMITTED
        if not self._topic_filter.should_replicate_topic(partition.topic):
            return CheckpointOutcome.TOPIC_FILTERED
        downstream, translation_outcome = self._translator.translate(partition, position.offset)
        if downstream is None:
            return _UNTRANSLATED_OUTCOMES[translation_outcome]
        checkpoint = Checkpoint(
            group=group,
            partition=self.remote_partition(partition),
            upstream=position.offset,
            downstream=downstream,
            metadata=position.metadata,
        )
        outcome = self._store.classify(checkpoint)
        return checkpoint if outcome is CheckpointOutcome.EMITTED else outcome
