"""One of the two clusters as a task sees it: who leads what, and an open connection to each leader.

Everything here belongs to the task's loop. Connections are opened and metadata is asked for in the
background; until an answer is there, `node_of` and `connection` say None, and the partitions
concerned wait while all others go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from sparkmirror.backoff import Backoff
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.errors import MirrorError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffers import BufferPool, MemoryBudget
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.leaders import BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.metadata import MetadataSnapshot
from sparkmirror.wire.protocol.topic_key import TopicKey

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
METADATA_MAX_AGE_S = 300.0


@dataclass(slots=True)
class _BrokerConnection:
    """The connection to one broker: open, being opened, or shut until a while has passed."""

    connection: BrokerConnection | None = None
    is_opening: bool = False
    retry_at: float = 0.0
    error: str = ""
    """Why it is shut."""
    backoff: Backoff = field(default_factory=Backoff)


class ClusterConnections:
    """Metadata and connections of one cluster, inside a task's loop."""

    def __init__(
        self,
        loop: EventLoop,
        client: ClientConfig,
        bootstrap: Sequence[Address],
        budget: MemoryBudget,
    ) -> None:
        self.loop = loop
        self.budget = budget
        self.metadata_error = ""
        """Why nothing is known of the cluster, as long as that is so."""
        self.on_metadata_update: Callable[[], None] = lambda: None
        """Told whenever more is known of who leads what."""
        self._client = client
        self._router = Router(client, bootstrap)
        self._metadata = MetadataSnapshot()
        self._pool = BufferPool(budget)
        self._brokers: dict[int, _BrokerConnection] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._topics: set[str] = set()
        self._stale_topics: set[str] = set()
        self._is_refreshing = False
        self._refreshed_at = float("-inf")
        self._retry_at = 0.0
        self._backoff = Backoff()

    def add_topic(self, topic: str) -> None:
        """Know who leads this topic from now on."""
        if topic not in self._topics:
            self._topics.add(topic)
            self._stale_topics.add(topic)

    def request_metadata_update(self, topic: str) -> None:
        """What is known of this topic is outdated."""
        self._stale_topics.add(topic)

    def update_leader(
        self,
        partition: TopicPartition,
        leader: LeaderAndEpoch | None,
        endpoints: Sequence[BrokerNode],
    ) -> None:
        """Believe a broker that names its successor, before the metadata tell."""
        if leader:
            self._metadata = self._metadata.with_new_leader(partition, leader, endpoints)
            self.on_metadata_update()

    def leader_node(self, partition: TopicPartition) -> int | None:
        """The broker that leads a partition, if it is known."""
        leader = self._metadata.leader_of(partition)
        if leader is None:
            self._stale_topics.add(partition.topic)
            return None
        return leader.node_id

    def error_for(self, partition: TopicPartition) -> str:
        """Why a partition's leader cannot be talked to now; empty if it can, or may soon."""
        leader = self._metadata.leader_of(partition)
        if leader is None:
            return self.metadata_error
        door = self._brokers.get(leader.node_id)
        return "" if door is None or door.connection else door.error or self.metadata_error

    def topic_key(self, name: str, topic_id: str, *, by_id: bool) -> TopicKey:
        """How a request names a topic."""
        if not by_id:
            return name
        if topic_id not in self._topic_ids:
            self._topic_ids[topic_id] = UUID(hex=topic_id)
        return self._topic_ids[topic_id]

    def connection(self, node_id: int) -> BrokerConnection | None:
        """The connection to a broker; without one, it is opened meanwhile."""
        door = self._brokers.get(node_id)
        if door is None:
            door = self._brokers[node_id] = _BrokerConnection()
        if door.connection is None and not door.is_opening and time.monotonic() >= door.retry_at:
            self._open(node_id, door)
        return door.connection

    def is_unreachable(self, node_id: int) -> bool:
        """Whether a broker was tried and could not be reached, or was lost."""
        door = self._brokers.get(node_id)
        return door is not None and door.connection is None and bool(door.error)

    def poll(self, now: float) -> None:
        """Ask for metadata where it is missing, outdated or old; end what is overdue."""
        if now - self._refreshed_at > METADATA_MAX_AGE_S:
            self._stale_topics |= self._topics
        if self._stale_topics and not self._is_refreshing and now >= self._retry_at:
            self._refresh_metadata(now)
        for door in self._brokers.values():
            connection = door.connection
            if connection and connection.has_expired(now):
                self.loop.run_guarded(connection, partial(connection.close_if_expired, now))

    def close(self) -> None:
        """Close every connection."""
        for door in self._brokers.values():
            if door.connection:
                self.loop.unregister(door.connection)
                door.connection.close()

    # -- metadata ------------------------------------------------------------------------------

    def _refresh_metadata(self, now: float) -> None:
        topics, self._stale_topics = self._stale_topics, set()
        self._is_refreshing, self._refreshed_at = True, now
        self.loop.run_in_executor(
            lambda: self._router.refresh(topics, timeout_s=CONNECT_TIMEOUT_S),
            self._apply_metadata,
            lambda error: self._on_metadata_error(error, topics),
        )

    def _apply_metadata(self, metadata: MetadataSnapshot) -> None:
        self._is_refreshing, self.metadata_error = False, ""
        self._metadata = self._metadata.merge_with(metadata)  # which may be older than a hint
        self.on_metadata_update()
        pause_s = self._backoff.next_delay_s() if self._stale_topics else 0.0
        if not self._stale_topics:
            self._backoff.reset()
        self._retry_at = time.monotonic() + pause_s
        for node_id in list(self._brokers):
            if node_id not in metadata.brokers:
                self._remove(node_id)

    def _on_metadata_error(self, error: MirrorError, topics: set[str]) -> None:
        self._is_refreshing, self.metadata_error = False, str(error)
        self._stale_topics |= topics
        self._retry_at = time.monotonic() + self._backoff.next_delay_s()
        log.warning("%s", error)

    # -- connections ---------------------------------------------------------------------------

    def _open(self, node_id: int, door: _BrokerConnection) -> None:
        broker = self._metadata.brokers.get(node_id)
        if broker is None:
            return
        door.is_opening = True
        self.loop.run_in_executor(
            lambda: BrokerConnection.open(
                self._client, broker.address, timeout_s=CONNECT_TIMEOUT_S, pool=self._pool
            ),
            lambda connection: self._on_opened(node_id, door, connection),
            lambda error: self._on_lost(door, error),
        )

    def _on_opened(
        self, node_id: int, door: _BrokerConnection, connection: BrokerConnection
    ) -> None:
        door.is_opening, door.error = False, ""
        door.backoff.reset()
        if self._brokers.get(node_id) is not door:
            connection.close()
            return
        door.connection = connection
        self.loop.register(connection, lambda error: self._on_lost(door, error))

    def _on_lost(self, door: _BrokerConnection, error: MirrorError) -> None:
        """Keep a broker's door shut for a while; who leads its partitions may have changed."""
        door.is_opening, door.connection, door.error = False, None, str(error)
        door.retry_at = time.monotonic() + door.backoff.next_delay_s()
        self._stale_topics |= self._topics
        log.info("%s", error)

    def _remove(self, node_id: int) -> None:
        door = self._brokers.pop(node_id)
        if door.connection:
            self.loop.unregister(door.connection)
            door.connection.close()
