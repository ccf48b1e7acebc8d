"""Connect's offsets topic: read it to its end, write to it; Java reads ours, we read Java's.

For who has a connection of his own and asks once: the ledger of the driver. Who wants to follow the
topic takes `connector_offsets`. What a record means is `mirror.connect_topics.connect_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.mirror.connect_topics.connect_offsets import OffsetsState, StoredOffset
from sparkmirror.store.keyed_append import append_keyed
from sparkmirror.store.topic_reader import TopicReader
from sparkmirror.wire.net.routing import Router


class OffsetsTopic:
    """The offsets topic of one worker group. Blocks; belongs to the thread of its router."""

    def __init__(self, router: Router, topic: str) -> None:
        self._router = router
        self._topic = topic

    def load(self) -> OffsetsState:
        """Everything the topic says, as of now."""
        state = OffsetsState()
        for entry in TopicReader(self._router, self._topic).read_to_end():
            state.apply(entry.record, place=str(entry))
        return state

    def save(self, offsets: Iterable[StoredOffset], now_ms: int) -> None:
        """Append offsets, each to the partition where Connect looks for it."""
        append_keyed(self._router, self._topic, [offset.encode() for offset in offsets], now_ms)

    def close(self) -> None:
        """Hang up."""
        self._router.close()
