"""A compacted topic followed from time to time: everything at first, then what is new.

    followed = Followed(router, topic)
    followed.history()     from the beginning to the end there is now
    followed.news()        from there to the end there is then

Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.errors import ClusterError
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.store.tail import Tail, ends_of, has_read, partitions_of
from sparkmirror.wire.routing import Router


class Followed:
    """Where we stand in one topic."""

    def __init__(self, router: Router, topic: str) -> None:
        self._router = router
        self._topic = topic
        self._tail: Tail | None = None

    def history(self) -> Iterator[RecordBytes]:
        """Read what there is. Raises a ClusterError, TopicMissing if there is no such topic."""
        self._tail = None
        tail = Tail(self._router, self._topic)
        for entry in tail.history():
            yield entry.record
        self._tail = tail

    def news(self) -> Iterator[RecordBytes]:
        """Read what has come since; all of it, if nothing was ever read to the end."""
        if self._tail is None:
            yield from self.history()
            return
        ends = ends_of(self._router, partitions_of(self._router, self._topic))
        while not has_read(self._tail.positions(), ends):
            before = self._tail.positions()
            entries, trouble = self._tail.poll()
            for entry in entries:
                yield entry.record
            if self._tail.positions() == before:
                _raise(trouble)
                return


def _raise(trouble: ClusterError | None) -> None:
    if trouble is not None:
        raise trouble
