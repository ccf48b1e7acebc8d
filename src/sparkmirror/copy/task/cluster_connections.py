"""Metadata of one cluster and the task's connections to its brokers.

Belongs to the task's thread. Connections are opened and metadata is requested in the background.
Until the result is there, `leader_node` and `connection` return None. The partitions concerned
wait; all others continue.

The task keeps a connection to the leader of every leased partition (`connect_leaders`), also while
it has nothing to send. So the selector notices a broker that closes the connection, and
`error_for` says why it cannot be opened again. Brokers close connections that are idle for long:
a lost connection is an error only when the next one cannot be opened at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sparkmirror.backoff import Backoff
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.errors import MirrorError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import BufferPool, MemoryBudget
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.topics.current_leader import NO_NODE_ID, BrokerNode, LeaderAndEpoch
from sparkmirror.wire.protocol.topics.metadata_snapshot import MetadataSnapshot
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
METADATA_MAX_AGE_S: Final = 300.0
REOPEN_GRACE_S = 2.0
"""How long a lost connection may take to be opened again before the loss is an error."""
NO_LEADER_INTERVAL_S: Final = 0.5
"""How often to request metadata of a topic that has a partition without a leader."""
STABLE_CONNECTION_S: Final = 5.0
"""After a connection of this length the pause before the next one is short again."""


@dataclass(slots=True)
class _BrokerState:
    """The state of the connection to one broker: open, opening, or closed until `retry_at`."""

    connection: BrokerConnection | None = None
    is_opening: bool = False
    opened_at: float = 0.0
    retry_at: float = 0.0
    lost_at: float = 0.0
    lost_error: str = ""
    """Why the last connection was lost; empty while there is one."""
    open_error: str = ""
    """Why the last attempt to open a connection failed; empty after a success."""
    backoff: Backoff = field(default_factory=Backoff)

    def error(self, now: float) -> str:
        """Return why there is no connection; empty while another one may soon be open."""
        if self.open_error or now < self.lost_at + REOPEN_GRACE_S:
            return self.open_error
        return self.lost_error


class ClusterConnections:
    """Metadata and connections of one cluster."""

    def __init__(
        self,
        loop: EventLoop,
        client: ClientConfig,
        bootstrap: Sequence[Address],
        budget: MemoryBudget,
        *,
        is_urgent: bool = True,
    ) -> None:
        """Answers of a cluster that is not urgent may wait (`EventLoop.run_once`)."""
        self.loop = loop
        self._is_urgent = is_urgent
        self.budget = budget
        self.metadata_error = ""
        """Why the last metadata request failed; empty if it succeeded."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after every change of the metadata, and when a broker cannot be reached."""
        self._client = client
        self._router = Router(client, bootstrap)
        self._metadata = MetadataSnapshot()
        self._metadata_changes = 0
        self._pool = BufferPool(budget)
        self._brokers: dict[int, _BrokerState] = {}
        self._last_leaders: dict[TopicPartition, int] = {}
        self._are_leaders_current = False
        self._leader_nodes: set[int] = set()
        """The leaders of the partitions that `connect_leaders` got, as far as they are known."""
        self._leaderless_topics: set[str] = set()
        self._ask_again_at = 0.0
        """When to request metadata of the topics without a leader again."""
        """When `connect_leaders` last visited the leaders."""
        self._removed_errors: dict[int, str] = {}
        """Why brokers were unreachable that the cluster no longer names."""
        self._topic_ids: dict[str, bytes] = {}
        self._topics: set[str] = set()
        self._stale_topics: set[str] = set()
        self.is_refreshing = False
        self._is_closed = False
        self._refreshed_at = float("-inf")
        self._retry_at = 0.0
        self._backoff = Backoff()

    @property
    def client_id(self) -> str:
        """The client id in every request."""
        return self._client.client_id

    def add_topic(self, topic: str) -> None:
        """Include the topic in metadata requests from now on."""
        if topic not in self._topics:
            self._topics.add(topic)
            self._stale_topics.add(topic)

    def request_metadata_update(self, topic: str) -> None:
        """Request metadata of this topic at the next poll."""
        self._stale_topics.add(topic)

    def update_leader(
        self,
        partition: TopicPartition,
        leader: LeaderAndEpoch | None,
        endpoints: Sequence[BrokerNode],
    ) -> None:
        """Use the leader that a broker named in its response, before the next metadata request."""
        if leader:
            before = self._metadata
            self._metadata = before.with_new_leader(partition, leader, endpoints)
            if self._metadata is not before:
                self._on_metadata_change()

    def leader_node(self, partition: TopicPartition) -> int | None:
        """Return the leader of a partition; None, and a metadata request, if it is unknown."""
        leader = self._metadata.leader_of(partition)
        if leader is None:
            self._stale_topics.add(partition.topic)
            return None
        return leader.node_id

    def invalidate_leaders(self) -> None:
        """Look at the partitions again at the next `connect_leaders`: there are new ones."""
        self._are_leaders_current = False

    def connect_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Start to open a connection to every leader that has none; sends no request.

        Looks at the partitions only if they or the metadata have changed since the last call.
        Requests metadata of the topics that have a partition without a leader.
        """
        now = time.monotonic()
        if not self._are_leaders_current:
            self._find_leaders(partitions)
        if self._leaderless_topics and now >= self._ask_again_at:
            self._stale_topics |= self._leaderless_topics
            self._ask_again_at = now + NO_LEADER_INTERVAL_S
        for node_id in self._leader_nodes:
            self.connection(node_id)

    def next_turn_at(self, now: float) -> float:
        """Return when the task must look at the cluster although no event arrives.

        `now` is when its last turn began.

        That is when a pause ends (before a metadata request, an attempt to connect, or because the
        broker throttles), or when a response is overdue.
        """
        moments = [self._retry_at] if self._stale_topics and not self.is_refreshing else []
        if self._leaderless_topics:
            moments.append(self._ask_again_at)
        for state in self._brokers.values():
            if state.connection:
                moments.append(state.connection.next_deadline)
                if state.connection.throttled_until > now:
                    moments.append(state.connection.throttled_until)
            elif not state.is_opening and state.retry_at > now:
                moments.append(state.retry_at)
        return min(moments, default=float("inf"))

    def error_for(self, partition: TopicPartition) -> str:
        """Return why the leader of a partition is unreachable; empty if it is not.

        The text names the cluster and, if one is known, the address of the broker.
        """
        leader = self._metadata.leader_of(partition)
        if leader is None:
            return self.metadata_error or self._no_leader_text(partition)
        state = self._brokers.get(leader.node_id)
        if state is None or state.connection:
            return ""
        return state.error(time.monotonic()) or self.metadata_error

    def reachability_state(self) -> object:
        """Return a value that changes whenever `error_for` of any known partition may change."""
        now = time.monotonic()
        brokers = tuple(
            (node_id, None if state.connection else state.error(now))
            for node_id, state in self._brokers.items()
        )
        removed = tuple(self._removed_errors.items())
        return self._metadata_changes, self.metadata_error, brokers, removed

    def _no_leader_text(self, partition: TopicPartition) -> str:
        """Return that a partition has no leader; empty before the metadata has the partition."""
        topic = self._metadata.topics.get(partition.topic)
        if topic is None or partition.partition not in topic.partitions:
            return ""
        broker_error = self._removed_errors.get(self._last_leaders.get(partition, NO_NODE_ID))
        if broker_error:
            return f"{broker_error}; {partition} has no leader"
        return (
            f"{self._client.cluster}: {partition} has no leader; check whether all brokers are up"
            " and can be reached"
        )

    def topic_key(self, name: str, topic_id: str, *, by_id: bool) -> TopicKey:
        """Return the name or the id by which a request names a topic."""
        if not by_id:
            return name
        if topic_id not in self._topic_ids:
            self._topic_ids[topic_id] = bytes.fromhex(topic_id)
        return self._topic_ids[topic_id]

    def connection(self, node_id: int) -> BrokerConnection | None:
        """Return the connection to a broker; without one, start to open it and return None."""
        state = self._brokers.get(node_id)
        if state is None:
            state = self._brokers[node_id] = _BrokerState()
        if state.connection is None and not state.is_opening and time.monotonic() >= state.retry_at:
            self._open(node_id, state)
        return state.connection

    def reopen(self, node_id: int) -> None:
        """Close the connection to a broker and start to open another one.

        The requests in flight get an error. It is no error of the broker.
        """
        state = self._brokers.get(node_id)
        if state and state.connection:
            connection, state.connection = state.connection, None
            self.loop.unregister(connection)
            connection.close()
            self._open(node_id, state)

    def is_unreachable(self, node_id: int) -> bool:
        """Whether the last attempt to connect failed, or the connection was lost.

        Also if the metadata does not have the broker; then requests metadata.
        """
        if node_id not in self._metadata.brokers:
            self._stale_topics |= self._topics
            return True
        state = self._brokers.get(node_id)
        return (
            state is not None
            and state.connection is None
            and bool(state.open_error or state.lost_error)
        )

    def poll(self, now: float) -> None:
        """Request metadata that is missing or old; close connections with overdue responses."""
        if now - self._refreshed_at > METADATA_MAX_AGE_S:
            self._stale_topics |= self._topics
        if self._stale_topics and not self.is_refreshing and now >= self._retry_at:
            self._refresh_metadata(now)
        for state in self._brokers.values():
            connection = state.connection
            if connection and connection.has_expired(now):
                self.loop.run_guarded(connection, partial(connection.close_if_expired, now))

    def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        if not self.is_refreshing:  # else a background thread uses the router, and closes it
            self._router.close()
        for state in self._brokers.values():
            if state.connection:
                self.loop.unregister(state.connection)
                state.connection.close()

    # -- metadata ------------------------------------------------------------------------------

    def _on_metadata_change(self) -> None:
        self._metadata_changes += 1
        self.invalidate_leaders()
        self.on_change()

    def _find_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Remember the leaders of these partitions, and the topics that lack one."""
        self._are_leaders_current = True
        self._leader_nodes, self._leaderless_topics = set(), set()
        for partition in partitions:
            leader = self._metadata.leader_of(partition)
            if leader is None:
                self._leaderless_topics.add(partition.topic)
            else:
                self._last_leaders[partition] = leader.node_id
                self._leader_nodes.add(leader.node_id)

    def _refresh_metadata(self, now: float) -> None:
        topics, self._stale_topics = self._stale_topics, set()
        self.is_refreshing, self._refreshed_at = True, now
        self.loop.run_in_executor(
            lambda: self._request_metadata(topics),
            self._apply_metadata,
            lambda error: self._on_metadata_error(error, topics),
        )

    def _request_metadata(self, topics: set[str]) -> MetadataSnapshot:
        try:
            return self._router.refresh(topics, timeout_s=CONNECT_TIMEOUT_S)
        finally:
            if self._is_closed:
                self._router.close()

    def _apply_metadata(self, metadata: MetadataSnapshot) -> None:
        self.is_refreshing, self.metadata_error = False, ""
        before = self._metadata
        # It may be older than a response that named a leader.
        self._metadata = before.merge_with(metadata)
        if self._metadata.brokers != before.brokers or any(
            self._metadata.topics[name] != before.topics.get(name) for name in metadata.topics
        ):
            self._on_metadata_change()
        delay_s = self._backoff.next_delay_s() if self._stale_topics else 0.0
        if not self._stale_topics:
            self._backoff.reset()
        self._retry_at = time.monotonic() + delay_s
        for node_id in list(self._brokers):
            if node_id not in metadata.brokers:
                self._remove(node_id)

    def _on_metadata_error(self, error: MirrorError, topics: set[str]) -> None:
        self.is_refreshing, self.metadata_error = False, str(error)
        self._stale_topics |= topics
        self._retry_at = time.monotonic() + self._backoff.next_delay_s()
        log.warning("Metadata request failed, another one follows: %s", error)

    # -- connections ---------------------------------------------------------------------------

    def _open(self, node_id: int, state: _BrokerState) -> None:
        broker = self._metadata.brokers.get(node_id)
        if broker is None:
            return
        state.is_opening = True
        self.loop.run_in_executor(
            lambda: BrokerConnection.open(
                self._client, broker.address, timeout_s=CONNECT_TIMEOUT_S, pool=self._pool
            ),
            lambda connection: self._on_opened(node_id, state, connection),
            lambda error: self._on_open_failed(state, error),
        )

    def _on_opened(self, node_id: int, state: _BrokerState, connection: BrokerConnection) -> None:
        state.is_opening, state.open_error, state.lost_error = False, "", ""
        if self._brokers.get(node_id) is not state:
            connection.close()
            return
        self._removed_errors.pop(node_id, None)
        state.connection, state.opened_at = connection, time.monotonic()
        self.loop.register(
            connection, lambda error: self._on_lost(state, error), is_urgent=self._is_urgent
        )

    def _on_open_failed(self, state: _BrokerState, error: MirrorError) -> None:
        if str(error) != state.open_error:
            log.info("Cannot connect to a broker, another attempt follows: %s", error)
        was_unreachable = bool(state.open_error or state.lost_error)
        state.is_opening, state.open_error = False, str(error)
        self._retry_later(state)
        if not was_unreachable:
            self.on_change()

    def _on_lost(self, state: _BrokerState, error: MirrorError) -> None:
        log.info("Lost a broker connection, another attempt follows: %s", error)
        now = time.monotonic()
        state.connection, state.lost_error, state.lost_at = None, str(error), now
        if now - state.opened_at >= STABLE_CONNECTION_S:
            state.backoff.reset()
        self._retry_later(state)
        self.on_change()

    def _retry_later(self, state: _BrokerState) -> None:
        """Wait before the next attempt to connect; the leaders may have changed."""
        state.retry_at = time.monotonic() + state.backoff.next_delay_s()
        self._stale_topics |= self._topics

    def _remove(self, node_id: int) -> None:
        state = self._brokers.pop(node_id)
        self._removed_errors[node_id] = state.open_error or state.lost_error
        if state.connection:
            self.loop.unregister(state.connection)
            state.connection.close()
