"""Reads a compacted topic from time to time: first everything, then what is new.

    reader = CompactedTopicReader(router, topic)
    reader.read_all()     from the beginning to the current end
    reader.read_new()     from there to the end at that time

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.topic_reader import TopicReader, end_offsets, has_reached, topic_partitions
from sparkmirror.wire.net.routing import Router


class CompactedTopicReader:
    """The read position in one topic."""

    def __init__(self, router: Router, topic: str) -> None:
        self._router = router
        self.topic = topic
        self._reader: TopicReader | None = None

    def read_all(self) -> Iterator[RecordBytes]:
        """Read the whole topic. Raises a ClusterError; TopicMissing if it does not exist."""
        self._reader = None
        reader = TopicReader(self._router, self.topic)
        for entry in reader.read_to_end():
            yield entry.record
        self._reader = reader

    def read_new(self) -> Iterator[RecordBytes]:
        """Read what is new; everything if no earlier read reached the end."""
        if self._reader is None:
            yield from self.read_all()
            return
        ends = end_offsets(self._router, topic_partitions(self._router, self.topic))
        while not has_reached(self._reader.positions(), ends):
            before = self._reader.positions()
            entries, error = self._reader.poll(ends)
            for entry in entries:
                yield entry.record
            if self._reader.positions() == before:
                _raise_if_any(error)
                return


def _raise_if_any(error: ClusterError | None) -> None:
    if error is not None:
        raise error
