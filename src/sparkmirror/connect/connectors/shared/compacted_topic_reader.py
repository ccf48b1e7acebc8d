"""A compacted topic followed from time to time: everything at first, then what is new.

    followed = Followed(router, topic)
    followed.history()     from the beginning to the end there is now
    followed.news()        from there to the end there is then

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store.topic_reader import TopicReader, end_offsets, has_reached, topic_partitions
from sparkmirror.wire.net.routing import Router


class CompactedTopicReader:
    """Where we stand in one topic."""

    def __init__(self, router: Router, topic: str) -> None:
        self._router = router
        self._topic = topic
        self._reader: TopicReader | None = None

    def read_all(self) -> Iterator[RecordBytes]:
        """Read what there is. Raises a ClusterError, TopicMissing if there is no such topic."""
        self._reader = None
        tail = TopicReader(self._router, self._topic)
        for entry in tail.read_to_end():
            yield entry.record
        self._reader = tail

    def read_new(self) -> Iterator[RecordBytes]:
        """Read what has come since; all of it, if nothing was ever read to the end."""
        if self._reader is None:
            yield from self.read_all()
            return
        ends = end_offsets(self._router, topic_partitions(self._router, self._topic))
        while not has_reached(self._reader.positions(), ends):
            before = self._reader.positions()
            entries, trouble = self._reader.poll()
            for entry in entries:
                yield entry.record
            if self._reader.positions() == before:
                _raise_if_any(trouble)
                return


def _raise_if_any(trouble: ClusterError | None) -> None:
    if trouble is not None:
        raise trouble
