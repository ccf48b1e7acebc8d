"""What a checkpoint task translates with, read from the clusters and kept up to date.

    the checkpoints topic     what was said before, read once        (target)
    the offset-syncs topic    MirrorMaker 2's way                    (source or target)
    the offsets topic         our own exact maps                     (the worker's)

None of them need be there: without checkpoints nothing was said before, without syncs or maps less
can be translated, and the outcome of each offset says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkmirror.connect.connectors.shared.compacted_topic_reader import CompactedTopicReader
from sparkmirror.errors import ClusterError, RecordError, TopicMissing
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.offsets.checkpoints import CheckpointStore
from sparkmirror.mirror.offsets.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.offsets.offset_translation import OffsetTranslator
from sparkmirror.mirror.offsets.records import OffsetSync, RecordBytes
from sparkmirror.mirror.offsets.run_map_records import RUNS_KEY_PREFIX, RunMapsState
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

_RUNS_KEY_PREFIX = RUNS_KEY_PREFIX.encode()


class _AllGroups:
    """A set of groups that holds all: which ones a task follows may change while it runs."""

    def __contains__(self, group: object) -> bool:
        return isinstance(group, str)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationSources:
    """Where to read."""

    checkpoints: CompactedTopicReader
    syncs: CompactedTopicReader
    offsets: CompactedTopicReader
    target: Router


class TranslationInputs:
    """Translates for one task. Belongs to the task's thread."""

    def __init__(self, sources: TranslationSources, source_alias: str) -> None:
        self._sources = sources
        self.memory = CheckpointStore()
        self._syncs = OffsetSyncStore()
        self._runs = RunMapsState(source_alias)
        self.translator = OffsetTranslator(self._syncs, self._runs)

    def load(self) -> None:
        """Read everything from the beginning; raises a ClusterError if it is worth another try."""
        was_read = self.memory.load(_AllGroups(), self._read_checkpoints())
        self._syncs = OffsetSyncStore(must_read_to_end=not was_read)
        self.translator = OffsetTranslator(self._syncs, self._runs)
        self.refresh()

    def _read_checkpoints(self) -> Iterable[RecordBytes]:
        """Read earlier checkpoints; what will never be readable is passed on as it is."""
        try:
            return list(_empty_if_missing(self._sources.checkpoints.read_all()))
        except ClusterError as error:
            if error.retriable:
                raise
            return _raise_on_read(error)

    def refresh(self) -> None:
        """Read what is new."""
        for record in _empty_if_missing(self._sources.syncs.read_new()):
            self._add_sync(record)
        self._syncs.mark_read_to_end()
        for record in _empty_if_missing(self._sources.offsets.read_new()):
            self._add_runs(record)

    def refresh_topic_ids(self, copies: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Find out which topics the copies are: maps into deleted ones are void."""
        pairs = list(copies)
        topics = {remote.topic for _, remote in pairs}
        known = self._sources.target.refresh(topics) if topics else self._sources.target.metadata
        ids = {topic: known.topic_id(topic) for topic in topics}
        self._runs.set_target_topic_ids(
            {source: topic_id.hex for source, remote in pairs if (topic_id := ids[remote.topic])}
        )

    def _add_sync(self, record: RecordBytes) -> None:
        if record.key is None or record.value is None:
            return
        try:
            self._syncs.add(OffsetSync.decode(record))
        except RecordError as error:
            log.warning("Ignored a record of the offset-syncs topic: %s", error)

    def _add_runs(self, record: RecordBytes) -> None:
        if record.key is None or _RUNS_KEY_PREFIX not in record.key:
            return
        try:
            self._runs.apply(StoredOffset.decode(record))
        except RecordError as error:
            log.warning("Ignored a map of what was copied: %s", error)


def _empty_if_missing(records: Iterator[RecordBytes]) -> Iterator[RecordBytes]:
    """A topic that does not exist holds nothing."""
    try:
        yield from records
    except TopicMissing as error:
        log.debug("%s", error)


def _raise_on_read(error: ClusterError) -> Iterator[RecordBytes]:
    yield from ()
    raise error
