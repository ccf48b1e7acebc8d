"""The offsets topic as a ledger reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from sparkmirror.errors import ClusterUnavailable
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.store.offsets_topic import OffsetsTopic
from sparkmirror.store.topic_reader import ConsumedRecord
from sparkmirror.wire.net.routing import Router


def stored(number: int) -> StoredOffset:
    return StoredOffset(connector="c", partition={"topic": "t"}, offset={"offset": number})


class ScriptedReader:
    """Yields the records of one script after the other; an error ends a script."""

    def __init__(self, *scripts: list[StoredOffset | Exception]) -> None:
        self._scripts = iter(scripts)

    def read_to_end(self) -> Iterator[ConsumedRecord]:
        for number, one in enumerate(next(self._scripts)):
            if isinstance(one, Exception):
                raise one
            yield ConsumedRecord("offsets", 0, number, one.encode(), False)

    def move_end(self) -> None:
        """No-op."""

    def close(self) -> None:
        """No-op."""


def test_records_that_were_read_before_an_error_are_returned_by_the_next_call() -> None:
    """A lost record would hide that another conductor has claimed a partition."""
    gone = ClusterUnavailable("A", "no leader")
    reader = ScriptedReader([], [stored(1), gone], [stored(2)], [stored(3)])
    topic = OffsetsTopic(cast("Router", None), "offsets", lambda *_: reader)
    topic.load(is_followed=True)
    with pytest.raises(ClusterUnavailable):
        topic.load_new()
    assert topic.load_new() == [stored(1), stored(2)]
    assert topic.load_new() == [stored(3)]
