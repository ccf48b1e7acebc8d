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

from sparkmirror.connect.connectors.followed import Followed
from sparkmirror.errors import ClusterError, RecordError, TopicMissing
from sparkmirror.mirror.checkpoints import CheckpointMemory
from sparkmirror.mirror.connect_offsets import StoredOffset
from sparkmirror.mirror.offset_sync_store import OffsetSyncStore
from sparkmirror.mirror.records import OffsetSync, RecordBytes
from sparkmirror.mirror.run_records import PREFIX, KnownRuns
from sparkmirror.mirror.translation import Translator
from sparkmirror.model import TopicPartition
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

_OURS = PREFIX.encode()


class _EveryGroup:
    """A set of groups that holds all: which ones a task follows may change while it runs."""

    def __contains__(self, group: object) -> bool:
        return isinstance(group, str)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where to read."""

    checkpoints: Followed
    syncs: Followed
    offsets: Followed
    target: Router


class Translating:
    """Translates for one task. Belongs to the task's thread."""

    def __init__(self, sources: Sources, source_alias: str) -> None:
        self._sources = sources
        self.memory = CheckpointMemory()
        self._syncs = OffsetSyncStore()
        self._runs = KnownRuns(source_alias)
        self.translator = Translator(self._syncs, self._runs)

    def load(self) -> None:
        """Read everything from the beginning; raises a ClusterError if it is worth another try."""
        was_read = self.memory.load(_EveryGroup(), self._said_before())
        self._syncs = OffsetSyncStore(must_read_to_end=not was_read)
        self.translator = Translator(self._syncs, self._runs)
        self.refresh()

    def _said_before(self) -> Iterable[RecordBytes]:
        """Read earlier checkpoints; what will never be readable is passed on as it is."""
        try:
            return list(_or_nothing(self._sources.checkpoints.history()))
        except ClusterError as error:
            if error.retriable:
                raise
            return _raising(error)

    def refresh(self) -> None:
        """Read what is new."""
        for record in _or_nothing(self._sources.syncs.news()):
            self._add_sync(record)
        self._syncs.reached_end()
        for record in _or_nothing(self._sources.offsets.news()):
            self._add_runs(record)

    def look_at_copies(self, copies: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Find out which topics the copies are: maps into deleted ones are void."""
        pairs = list(copies)
        topics = {remote.topic for _, remote in pairs}
        known = self._sources.target.refresh(topics) if topics else self._sources.target.metadata
        ids = {topic: known.topic_id(topic) for topic in topics}
        self._runs.believe(
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
        if record.key is None or _OURS not in record.key:
            return
        try:
            self._runs.apply(StoredOffset.decode(record))
        except RecordError as error:
            log.warning("Ignored a map of what was copied: %s", error)


def _or_nothing(records: Iterator[RecordBytes]) -> Iterator[RecordBytes]:
    """A topic that does not exist holds nothing."""
    try:
        yield from records
    except TopicMissing as error:
        log.debug("%s", error)


def _raising(error: ClusterError) -> Iterator[RecordBytes]:
    yield from ()
    raise error
