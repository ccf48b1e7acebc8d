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

from sparkmirror.copy.loop import Loop
from sparkmirror.errors import MirrorError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.buffers import Budget, Pool
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.leaders import Broker, Leader
from sparkmirror.wire.metadata import Metadata
from sparkmirror.wire.place import Address
from sparkmirror.wire.routing import Router
from sparkmirror.wire.topickey import TopicKey

log = logging.getLogger(__name__)

OPEN_WITHIN_S = 10.0
METADATA_MAX_AGE_S = 300.0


@dataclass(slots=True)
class _Door:
    """The connection to one broker: open, being opened, or shut until a while has passed."""

    connection: Connection | None = None
    opening: bool = False
    not_before: float = 0.0
    trouble: str = ""
    """Why it is shut."""
    backoff: Backoff = field(default_factory=Backoff)


class Side:
    """Metadata and connections of one cluster, inside a task's loop."""

    def __init__(
        self, loop: Loop, client: Client, bootstrap: Sequence[Address], budget: Budget
    ) -> None:
        self.loop = loop
        self.budget = budget
        self.trouble = ""
        """Why nothing is known of the cluster, as long as that is so."""
        self.learned: Callable[[], None] = lambda: None
        """Told whenever more is known of who leads what."""
        self._client = client
        self._router = Router(client, bootstrap)
        self._metadata = Metadata()
        self._pool = Pool(budget)
        self._doors: dict[int, _Door] = {}
        self._ids: dict[str, UUID] = {}
        self._topics: set[str] = set()
        self._stale: set[str] = set()
        self._asking = False
        self._asked_at = float("-inf")
        self._not_before = 0.0
        self._backoff = Backoff()

    def follow(self, topic: str) -> None:
        """Know who leads this topic from now on."""
        if topic not in self._topics:
            self._topics.add(topic)
            self._stale.add(topic)

    def look_again(self, topic: str) -> None:
        """What is known of this topic is outdated."""
        self._stale.add(topic)

    def hear_of(
        self, partition: TopicPartition, leader: Leader | None, endpoints: Sequence[Broker]
    ) -> None:
        """Believe a broker that names its successor, before the metadata tell."""
        if leader:
            self._metadata = self._metadata.hinted(partition, leader, endpoints)
            self.learned()

    def node_of(self, partition: TopicPartition) -> int | None:
        """The broker that leads a partition, if it is known."""
        leader = self._metadata.leader_of(partition)
        if leader is None:
            self._stale.add(partition.topic)
            return None
        return leader.node_id

    def trouble_with(self, partition: TopicPartition) -> str:
        """Why a partition's leader cannot be talked to now; empty if it can, or may soon."""
        leader = self._metadata.leader_of(partition)
        if leader is None:
            return self.trouble
        door = self._doors.get(leader.node_id)
        return "" if door is None or door.connection else door.trouble or self.trouble

    def topic_key(self, name: str, topic_id: str, *, by_id: bool) -> TopicKey:
        """How a request names a topic."""
        if not by_id:
            return name
        if topic_id not in self._ids:
            self._ids[topic_id] = UUID(hex=topic_id)
        return self._ids[topic_id]

    def connection(self, node_id: int) -> Connection | None:
        """The connection to a broker; without one, it is opened meanwhile."""
        door = self._doors.get(node_id)
        if door is None:
            door = self._doors[node_id] = _Door()
        if door.connection is None and not door.opening and time.monotonic() >= door.not_before:
            self._open(node_id, door)
        return door.connection

    def is_shut(self, node_id: int) -> bool:
        """Whether a broker was tried and could not be reached, or was lost."""
        door = self._doors.get(node_id)
        return door is not None and door.connection is None and bool(door.trouble)

    def pump(self, now: float) -> None:
        """Ask for metadata where it is missing, outdated or old; end what is overdue."""
        if now - self._asked_at > METADATA_MAX_AGE_S:
            self._stale |= self._topics
        if self._stale and not self._asking and now >= self._not_before:
            self._ask(now)
        for door in self._doors.values():
            connection = door.connection
            if connection and connection.expired(now):
                self.loop.guard(connection, partial(connection.expire, now))

    def close(self) -> None:
        """Close every connection."""
        for door in self._doors.values():
            if door.connection:
                self.loop.forget(door.connection)
                door.connection.close()

    # -- metadata ------------------------------------------------------------------------------

    def _ask(self, now: float) -> None:
        topics, self._stale = self._stale, set()
        self._asking, self._asked_at = True, now
        self.loop.in_background(
            lambda: self._router.refresh(topics, timeout_s=OPEN_WITHIN_S),
            self._know,
            lambda error: self._in_the_dark(error, topics),
        )

    def _know(self, metadata: Metadata) -> None:
        self._asking, self.trouble = False, ""
        self._metadata = self._metadata.merged(metadata)  # which may be older than a hint
        self.learned()
        pause_s = self._backoff.pause_s() if self._stale else 0.0
        if not self._stale:
            self._backoff.reset()
        self._not_before = time.monotonic() + pause_s
        for node_id in list(self._doors):
            if node_id not in metadata.brokers:
                self._shut(node_id)

    def _in_the_dark(self, error: MirrorError, topics: set[str]) -> None:
        self._asking, self.trouble = False, str(error)
        self._stale |= topics
        self._not_before = time.monotonic() + self._backoff.pause_s()
        log.warning("%s", error)

    # -- connections ---------------------------------------------------------------------------

    def _open(self, node_id: int, door: _Door) -> None:
        broker = self._metadata.brokers.get(node_id)
        if broker is None:
            return
        door.opening = True
        self.loop.in_background(
            lambda: Connection.open(
                self._client, broker.address, timeout_s=OPEN_WITHIN_S, pool=self._pool
            ),
            lambda connection: self._opened(node_id, door, connection),
            lambda error: self._not_opened(door, error),
        )

    def _opened(self, node_id: int, door: _Door, connection: Connection) -> None:
        door.opening, door.trouble = False, ""
        door.backoff.reset()
        if self._doors.get(node_id) is not door:
            connection.close()
            return
        door.connection = connection
        self.loop.watch(connection, lambda error: self._not_opened(door, error))

    def _not_opened(self, door: _Door, error: MirrorError) -> None:
        """Keep a broker's door shut for a while; who leads its partitions may have changed."""
        door.opening, door.connection, door.trouble = False, None, str(error)
        door.not_before = time.monotonic() + door.backoff.pause_s()
        self._stale |= self._topics
        log.info("%s", error)

    def _shut(self, node_id: int) -> None:
        door = self._doors.pop(node_id)
        if door.connection:
            self.loop.forget(door.connection)
            door.connection.close()
