"""TopicNameMatches: true for records of topics that match a regular expression."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_MAX_TOPICS: Final = 10_000


class TopicNameMatches:
    """True if the whole name matches. Remembers the answer for each topic."""

    reads = frozenset({RecordPart.TOPIC})

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.matches = lru_cache(_MAX_TOPICS)(compile_pattern_list([pattern]).matches)

    def test(self, record: ConnectRecord) -> bool:
        """Whether the name of the record's topic matches."""
        return self.matches(record.topic)
