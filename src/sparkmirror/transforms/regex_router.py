"""RegexRouter: a new topic name for records whose topic matches a regular expression."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from sparkmirror.javaregex.pattern import compile_java_pattern
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.regex_replacement import expand_replacement, parse_replacement
from sparkmirror.transforms.transformation import RecordPart

_MAX_TOPICS: Final = 10_000
_TOPIC: Final = frozenset({RecordPart.TOPIC})


class RegexRouter:
    """The whole name must match, but only the first match in it is replaced, as in Java."""

    reads = _TOPIC
    writes = _TOPIC
    drops = False

    def __init__(self, regex: str, replacement: str) -> None:
        self.regex = regex
        self.replacement = replacement
        self._pattern = compile_java_pattern(regex)
        self._cached_route = lru_cache(_MAX_TOPICS)(self.route)

    def check_replacement(self) -> None:
        """Raise the TransformError with which every record of a matching topic would fail."""
        parse_replacement(self._pattern, self.replacement)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record, routed."""
        topic = self._cached_route(record.topic)
        return record if topic == record.topic else record.with_topic(topic)

    def route(self, topic: str) -> str:
        """The new name of a topic. Raises TransformError for a bad replacement."""
        if not self._pattern.fullmatch(topic):
            return topic
        first = self._pattern.search(topic)
        if first is None:
            return topic
        expanded = expand_replacement(first, self.replacement)
        return topic[: first.start()] + expanded + topic[first.end() :]
