"""Topics of a cluster: a topic to create, a description, and the error for a topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from sparkmirror.backoff import Backoff
from sparkmirror.errors import (
    ClusterError,
    RequestRefused,
    TooFewBrokers,
    TopicConfigRejected,
    TopicExists,
    TopicMissing,
    TopicRejected,
)
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Router
from sparkmirror.wire.protocol.apis import METADATA, Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import MetadataRequest, MetadataResponse
from sparkmirror.wire.protocol.topics.metadata_if_changed import metadata_if_changed
from sparkmirror.wire.protocol.topics.metadata_snapshot import metadata_request, read_brokers

T = TypeVar("T")

_Topic = MetadataResponse.MetadataResponseTopic
_Partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition


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


def describe_topics(
    router: Router, names: Collection[str] | None = None, *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, TopicDescription]:
    """Describe the topics named, or all. A topic that does not exist is not in the result."""
    if names is not None and not names:
        return {}
    listed = _request(router, None if names is None else sorted(names), timeout_s)
    return _descriptions(listed)


class TopicListing(NamedTuple):
    """The topics of a cluster. Equal listings have equal digests."""

    digest: bytes
    topics: Mapping[str, TopicDescription] | None
    """None if they are those of the listing whose digest the caller knows."""


class RecentListings:
    """The listings that this process has decoded last, by digest. Any thread may call it.

    Connectors that start together list the same topics: one of them decodes the answer.
    """

    def __init__(self, size: int = 4) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._topics: dict[bytes, Mapping[str, TopicDescription]] = {}

    def by_digest(self) -> dict[bytes, Mapping[str, TopicDescription]]:
        """Return all of them, oldest first."""
        with self._lock:
            return dict(self._topics)

    def add(self, digest: bytes, topics: Mapping[str, TopicDescription]) -> None:
        """Keep a listing, and drop the oldest one if there are too many."""
        with self._lock:
            self._topics.pop(digest, None)
            self._topics[digest] = topics
            while len(self._topics) > self._size:
                del self._topics[next(iter(self._topics))]


RECENT_LISTINGS = RecentListings()


def list_topics(
    router: Router,
    known_digest: bytes = b"",
    *,
    timeout_s: float = CALL_TIMEOUT_S,
    recent: RecentListings = RECENT_LISTINGS,
) -> TopicListing:
    """Describe all topics, unless nothing has changed since the listing with a known digest.

    A listing of very many topics that is known, or `recent`, costs a fraction of `describe_topics`.
    """
    decoded = recent.by_digest()
    api = metadata_if_changed({known_digest, *decoded})
    listed = _request(router, None, timeout_s, api)
    digest = api.received.digest
    if digest == known_digest:
        return TopicListing(digest, None)
    topics = decoded.get(digest)
    if topics is None:
        topics = MappingProxyType(_descriptions(listed))
        recent.add(digest, topics)
    return TopicListing(digest, topics)


def find_hidden_topics(
    router: Router, names: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, ClusterError]:
    """Return the topics that this user may not describe, with the error of each.

    A broker leaves such topics out of a list of all topics, whether they exist or not.
    """
    if not names:
        return {}
    cluster, code = router.client.cluster, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {
        topic.name: topic_error(cluster, METADATA.name, topic.name, code)
        for topic in _request(router, sorted(names), timeout_s)
        if topic.name and topic.error_code == code
    }


def describe_topic(
    router: Router, name: str, *, timeout_s: float = CALL_TIMEOUT_S
) -> TopicDescription:
    """Describe one topic. Raises TopicMissing or NotAuthorized."""
    (topic,) = _request(router, [name], timeout_s)
    if topic.error_code:
        raise topic_error(router.client.cluster, METADATA.name, name, ErrorCode(topic.error_code))
    return _description(topic)


def await_new_topic(find: Callable[[], T], wait_s: float) -> T:
    """Return the result of `find` for a topic that may be new: brokers learn of it one by one.

    Calls `find` again while it raises TopicMissing or a retriable error. After `wait_s` raises the
    last error. Blocks.
    """
    deadline = time.monotonic() + wait_s
    backoff = Backoff()
    while True:
        try:
            return find()
        except ClusterError as error:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not (error.retriable or isinstance(error, TopicMissing)):
                raise
        time.sleep(min(backoff.next_delay_s(), left_s))


def _request(
    router: Router,
    names: Sequence[str] | None,
    timeout_s: float,
    api: Api[MetadataRequest, MetadataResponse] = METADATA,
) -> list[_Topic]:
    answer = router.call(
        api,
        lambda: metadata_request(names),
        AnyBroker(),
        codes=lambda answer: (answer.error_code or 0,),
        timeout_s=timeout_s,
    )
    router.update_brokers(read_brokers(answer))
    return answer.topics


def _descriptions(listed: Iterable[_Topic]) -> dict[str, TopicDescription]:
    return {
        topic.name: _description(topic) for topic in listed if topic.name and not topic.error_code
    }


def _description(topic: _Topic) -> TopicDescription:
    return TopicDescription(
        name=topic.name or "",
        topic_id=str(topic.topic_id),
        is_internal=bool(topic.is_internal),
        partitions=tuple(
            sorted(map(_partition_info, topic.partitions), key=lambda partition: partition.index)
        ),
    )


def _partition_info(partition: _Partition) -> TopicPartitionInfo:
    has_leader = partition.leader_id >= 0 and not partition.error_code
    return TopicPartitionInfo(
        index=partition.partition_index,
        leader=partition.leader_id if has_leader else None,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
    )


_REJECTIONS: Mapping[ErrorCode, type[TopicRejected]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExists,
    ErrorCode.INVALID_CONFIG: TopicConfigRejected,
    ErrorCode.INVALID_REPLICATION_FACTOR: TooFewBrokers,
}


def topic_error(
    cluster: str, api: str, topic: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Return the error for a code that a broker gave for a topic.

    TOPIC_ALREADY_EXISTS becomes TopicExists, INVALID_CONFIG TopicConfigRejected,
    INVALID_REPLICATION_FACTOR TooFewBrokers, a code without a class of its own TopicRejected.
    """
    error = error_for_code(cluster, api, code, f"{topic}: {message}" if message else topic)
    if isinstance(error, RequestRefused):
        reason = f": {message}" if message else ""
        rejected = _REJECTIONS.get(code, TopicRejected)
        return rejected(
            cluster,
            f"{api} answered {code} for {topic}{reason}; correct the topic's name or settings",
        )
    return error
