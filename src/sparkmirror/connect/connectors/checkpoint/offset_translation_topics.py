"""The inputs of a checkpoint task's offset translation, read from the clusters.

    checkpoints topic     earlier checkpoints, read once          (target)
    offset-syncs topic    MirrorMaker 2's offset syncs            (source or target)
    offsets topic         sparkmirror's exact run maps            (the worker's cluster)

Each topic may be missing: without checkpoints there are no earlier ones; without syncs or maps,
fewer offsets can be translated, and the outcome of each offset says so.
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
    """A set that contains every group: the groups of a task may change while it runs."""

    def __contains__(self, group: object) -> bool:
        return isinstance(group, str)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationSources:
    """The readers and the client that the inputs come from."""

    checkpoints: CompactedTopicReader
    syncs: CompactedTopicReader
    offsets: CompactedTopicReader
    target: Router


class OffsetTranslationTopics:
    """The translation state of one task. Belongs to the task's thread."""

    def __init__(self, sources: TranslationSources, source_alias: str) -> None:
        self._sources = sources
        self.memory = CheckpointStore(sources.checkpoints.topic)
        self._syncs = OffsetSyncStore()
        self._runs = RunMapsState(source_alias)
        self.translator = OffsetTranslator(self._syncs, self._runs)

    def load(self) -> None:
        """Read all inputs from the beginning. Blocks; raises a retriable ClusterError."""
        was_read = self.memory.load(_AllGroups(), self._read_checkpoints())
        self._syncs = OffsetSyncStore(must_read_to_end=not was_read)
        self.translator = OffsetTranslator(self._syncs, self._runs)
        self.refresh()

    def _read_checkpoints(self) -> Iterable[RecordBytes]:
        """Read earlier checkpoints. An error that is not retriable is raised by the iterator."""
        try:
            return list(_empty_if_missing(self._sources.checkpoints.read_all()))
        except ClusterError as error:
            if error.retriable:
                raise
            return _raise_on_read(error)

    def refresh(self) -> None:
        """Read new offset syncs and run maps. Blocks; raises a ClusterError."""
        for record in _empty_if_missing(self._sources.syncs.read_new()):
            self._add_sync(record)
        self._syncs.mark_read_to_end()
        for record in _empty_if_missing(self._sources.offsets.read_new()):
            self._add_runs(record)

    def refresh_topic_ids(self, copies: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Look up the ids of the remote topics: run maps of deleted topics are invalid."""
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
            topic = self._sources.syncs.topic
            log.warning("Ignored a malformed record of offset-syncs topic %s: %s", topic, error)

    def _add_runs(self, record: RecordBytes) -> None:
        if record.key is None or _RUNS_KEY_PREFIX not in record.key:
            return
        try:
            self._runs.apply(StoredOffset.decode(record))
        except RecordError as error:
            topic = self._sources.offsets.topic
            log.warning("Ignored a malformed run map of offsets topic %s: %s", topic, error)


def _empty_if_missing(records: Iterator[RecordBytes]) -> Iterator[RecordBytes]:
    """Yield the records; none if the topic does not exist."""
    try:
        yield from records
    except TopicMissing as error:
        log.debug("%s", error)


def _raise_on_read(error: ClusterError) -> Iterator[RecordBytes]:
    yield from ()
    raise error
