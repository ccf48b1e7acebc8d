"""A topic to create, a topic that exists, and the error for a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.errors import ClusterError, RequestRefused, TopicRejected
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.response_errors import error_for_code


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. With -1 the cluster's default applies."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionInfo:
    """One partition. `leader` is None while no broker leads it."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic that exists. Partitions are in order of their number."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]

    @property
    def has_leaders(self) -> bool:
        """Whether every partition has a leader."""
        return bool(self.partitions) and all(
            partition.leader is not None for partition in self.partitions
        )


def topic_error(
    cluster: str, api: str, topic: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Return the error for a code that a broker gave for a topic.

    A code without a class of its own becomes TopicRejected.
    """
    error = error_for_code(cluster, api, code, f"{topic}: {message}" if message else topic)
    if isinstance(error, RequestRefused):
        reason = f": {message}" if message else ""
        return TopicRejected(
            cluster,
            f"{api} answered {code} for {topic}{reason}; correct the topic's name or settings",
        )
    return error
