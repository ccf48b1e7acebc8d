"""Connect's offsets topic, read to its end, and written. The format is Java's.

The ledger of the driver uses it, with its own router. `offset_backing_store` follows the topic.
`mirror.connect_topics.connect_offsets` interprets the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.connect_topics.connect_offsets import OffsetsState, StoredOffset
from sparkmirror.mirror.connect_topics.partitioner import KeyPartitions
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.keyed_append import append_keyed
from sparkmirror.store.topic_reader import ConsumedRecord, TopicReader
from sparkmirror.wire.net.routing import Router


class RecordReader(Protocol):
    """Reads a topic to its end (`topic_reader`)."""

    def read_to_end(self) -> Iterator[ConsumedRecord]:
        """Yield the records up to the end. Blocks."""
        ...

    def move_end(self) -> None:
        """Take the present end of the topic as the end. Blocks."""
        ...

    def close(self) -> None:
        """Read no more. The router stays open."""
        ...


CreateReader: TypeAlias = Callable[[Router, str, Callable[[bytes], bool]], RecordReader]
"""Makes the reader of a topic with a router. It may leave out records with unwanted keys."""


def _is_any(_key: bytes) -> bool:
    return True


def _read_all(router: Router, topic: str, _is_wanted: Callable[[bytes], bool]) -> RecordReader:
    return TopicReader(router, topic)


class OffsetsTopic:
    """The offsets topic of one worker group. All calls block, in the thread of the router."""

    def __init__(
        self,
        router: Router,
        topic: str,
        create_reader: CreateReader = _read_all,
    ) -> None:
        self._router = router
        self._topic = topic
        self._create_reader = create_reader
        self._reader: RecordReader | None = None
        self._is_wanted: Callable[[bytes], bool] = _is_any
        self._unreturned: list[StoredOffset] = []
        """What `load_new` has read before an error: the next call returns it."""
        self._key_partitions = KeyPartitions()

    def load(
        self, is_wanted: Callable[[bytes], bool] = _is_any, *, is_followed: bool = False
    ) -> OffsetsState:
        """Read the topic to its end and return its offsets; only those with a wanted key.

        If `is_followed`, `load_new` returns later ones with such a key.
        """
        state = OffsetsState()
        self._close_reader()
        self._is_wanted = is_wanted
        self._reader = self._create_reader(self._router, self._topic, is_wanted)
        try:
            for consumed in self._reader.read_to_end():
                if is_wanted(consumed.record.key or b""):
                    state.apply(consumed.record, location=consumed)
        finally:
            if not is_followed:
                self._close_reader()
        return state

    def _close_reader(self) -> None:
        self._unreturned.clear()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def load_new(self) -> list[StoredOffset]:
        """Return the records behind those of the last call or of `load`, in the order of the log.

        Reads to the end of the topic as it is now. Requires a followed `load` first. After an error
        the next call returns what this one has read, too.
        """
        assert self._reader is not None, "a followed load comes first"
        self._reader.move_end()
        state = OffsetsState()
        for consumed in self._reader.read_to_end():
            if self._is_wanted(consumed.record.key or b""):
                stored = state.apply(consumed.record, location=consumed)
                if stored:
                    self._unreturned.append(stored)
        found, self._unreturned = self._unreturned, []
        return found

    def save(self, offsets: Iterable[StoredOffset], now_ms: int) -> None:
        """Append offsets, each to the partition in which Connect expects its key."""
        append_keyed(self._router, self._topic, (offset.encode() for offset in offsets), now_ms)

    def append(self, records: Iterable[RecordBytes], now_ms: int) -> None:
        """Append records as `save` does. Remembers the partition of each key."""
        find_partition = self._key_partitions.partition_for
        append_keyed(self._router, self._topic, records, now_ms, find_partition)

    def set_on_retry(self, on_retry: Callable[[ClusterError], None]) -> None:
        """Call back with every error after which a call is tried again."""
        self._router.on_retry = on_retry

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self._router.cancel()

    def close(self) -> None:
        """Close the reader and the router."""
        self._close_reader()
        self._router.close()
