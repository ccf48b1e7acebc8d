"""The topic of a record whose query computes `topic`. Pure.

    topic of the query ─▶ routes of the transformations by the name (RegexRouter) ─▶ topic

A record whose query leaves `topic` as it is goes the same way: the replication policy's name
becomes the name of the remote topic.

A topic may come from a record, so from every producer of the source. A record for an internal topic
fails: it could change the state of a worker, of a mirror or of Kafka itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.model import is_topic_name
from sparkmirror.transforms.record_transformer import ErrorStage, FailedRecord

_MAX_REMEMBERED: Final = 1000
_MAX_NAME: Final = 1000
"""No route makes a topic's name of a longer text."""
_MAX_QUOTED: Final = 250
_INTERNAL_PREFIX: Final = "__"
_INTERNAL_SUFFIXES: Final = (".internal", "-internal")


def invalid_topic(name: str) -> TransformError:
    """Java's error for a name that no topic can have. Of a long name it has the beginning."""
    quoted = name if len(name) <= _MAX_QUOTED else f"{name[:_MAX_QUOTED]}..."
    return _invalid_topic(f"Invalid topics: [{quoted}]")


def _invalid_topic(message: str) -> TransformError:
    return TransformError("org.apache.kafka.common.errors.InvalidTopicException", message)


class QueryTopics:
    """Finds the topics of records, and remembers them by what the query gave."""

    def __init__(self, route: Callable[[str], str], internal_topics: Collection[str] = ()) -> None:
        """`route` is that of the transformations beside the query.

        `internal_topics` are the worker's; Kafka's and MirrorMaker's are known by their names.
        """
        self._route = route
        self._internal_topics = frozenset(internal_topics)
        self._remembered = lru_cache(_MAX_REMEMBERED)(self._find)

    def find(self, topic: str | None) -> str | FailedRecord:
        """Return the topic of a record for which the query gave this one; why it fails, if so."""
        if topic is not None and len(topic) > _MAX_NAME:
            return _failed(invalid_topic(topic))
        return self._remembered(topic)

    def _find(self, topic: str | None) -> str | FailedRecord:
        if topic is None:
            return _failed(
                TransformError("java.lang.IllegalArgumentException", "Topic cannot be null.")
            )
        routed = self._route(topic)
        if not is_topic_name(routed):
            return _failed(invalid_topic(routed))
        if self._is_internal(routed):
            return _failed(_invalid_topic(f"{routed} is an internal topic"))
        return routed

    def _is_internal(self, topic: str) -> bool:
        return (
            topic in self._internal_topics
            or topic.startswith(_INTERNAL_PREFIX)
            or topic.endswith(_INTERNAL_SUFFIXES)
        )


def _failed(error: TransformError) -> FailedRecord:
    return FailedRecord(ErrorStage.TRANSFORMATION, error)
