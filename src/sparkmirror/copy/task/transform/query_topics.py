"""The topic of a record whose query computes `topic`. Pure.

    topic of the query ─▶ routes of the transformations by the name (RegexRouter) ─▶ topic

A record whose query leaves `topic` as it is goes the same way: the replication policy's name
becomes the name of the remote topic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.model import is_topic_name
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord

_MAX_REMEMBERED: Final = 1000


def invalid_topic(name: str) -> TransformError:
    """Java's error for a name that no topic can have."""
    return TransformError(
        "org.apache.kafka.common.errors.InvalidTopicException", f"Invalid topics: [{name}]"
    )


class QueryTopics:
    """Finds the topics of records, and remembers them by what the query gave."""

    def __init__(self, route: Callable[[str], str]) -> None:
        """`route` is that of the transformations beside the query."""
        self._route = route
        self._remembered = lru_cache(_MAX_REMEMBERED)(self._find)

    def find(self, topic: str | None) -> str | FailedRecord:
        """Return the topic of a record for which the query gave this one; why it fails, if so."""
        return self._remembered(topic)

    def _find(self, topic: str | None) -> str | FailedRecord:
        if topic is None:
            error = TransformError("java.lang.IllegalArgumentException", "Topic cannot be null.")
            return FailedRecord(ErrorStage.TRANSFORMATION, error)
        routed = self._route(topic)
        if not is_topic_name(routed):
            return FailedRecord(ErrorStage.TRANSFORMATION, invalid_topic(routed))
        return routed
