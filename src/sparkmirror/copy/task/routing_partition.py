"""A leased partition whose records go to several topics: one that is leased, others that only send.

`RoutingPartition` is the leased partition, with the queue of the remote topic. For each other topic
a `RoutedPartition` sends what is queued for it: it has a remote partition and a backoff of its own,
and whatever ends it ends the lease. `produce.routing_queue` has the rules.

A group is begun only when the brokers of all its topics are known and none of them is in a backoff.
A topic without a leader then delays the partition, and not the transaction of all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.copy.control.messages import NO_CODEC, LeaseEndReason
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.model import TopicPartition

ROUTE_TIMEOUT_S: Final = 10.0
"""How long a group waits for a topic without a leader before the driver looks at the topic."""

LEADERLESS_WAIT_S: Final = 0.1
"""How long fetches of other partitions may at least wait at the broker meanwhile."""


@dataclass(slots=True, eq=False, kw_only=True)
class RoutedPartition(LeasedPartition):
    """Sends the records of a leased partition that go to one other topic."""

    routing: RoutingPartition

    @property
    def leased(self) -> LeasedPartition:
        """The partition that is leased."""
        return self.routing

    @property
    def can_send(self) -> bool:
        """Whether the leased partition may still send."""
        return self.routing.can_send

    def may_begin(self, leader_node: Callable[[TopicPartition], int | None], now: float) -> bool:
        """Whether its batches may be sent, as far as other topics are concerned."""
        return self.routing.may_begin(leader_node, now)

    def mark_changed(self) -> None:
        """Record that the leased partition may have changed."""
        self.routing.mark_changed()

    def end_now(self, reason: LeaseEndReason, message: str, refused_codec: int = NO_CODEC) -> None:
        """End the lease of the leased partition."""
        self.routing.end_now(reason, message, refused_codec)


@dataclass(slots=True, eq=False, kw_only=True)
class RoutingPartition(LeasedPartition):
    """A leased partition that sends records to other topics too."""

    routing_queue: RoutingQueue
    forget_topic: Callable[[str], None]
    """Called with a topic that must be looked at before the next record goes there."""
    _routed: dict[str, RoutedPartition] = field(init=False, default_factory=dict)
    _leaderless: TopicPartition | None = field(init=False, default=None)
    """A remote partition without a leader for which a group waits."""
    _leaderless_since: float = field(init=False, default=0.0)
    _asked_at: float = field(init=False, default=-1.0)
    _may_begin: bool = field(init=False, default=False)
    """The answer for `_asked_at`: every topic of a group asks."""

    def senders(self) -> Iterable[LeasedPartition]:
        """Itself, and one more for each other topic that records went to."""
        for topic, queue in self.routing_queue.routes.items():
            if topic not in self._routed:
                self._routed[topic] = RoutedPartition(
                    queue=queue, converter=self.converter, routing=self
                )
        return (self, *self._routed.values())

    @property
    def send_reason(self) -> str:
        """Why nothing is sent for the moment; empty if nothing prevents it."""
        if self._leaderless:
            return f"target: {self._leaderless} has no leader, or does not exist"
        return next((one.send_backoff.reason for one in self._all if one.send_backoff.reason), "")

    @property
    def is_waiting(self) -> bool:
        """Whether a backoff will end without an event from a socket."""
        return bool(
            self.fetch_backoff.reason
            or self._leaderless
            or any(one.send_backoff.reason or one.needs_sequence_check for one in self._all)
        )

    @property
    def backoff_ends(self) -> tuple[float, ...]:
        """When the task may fetch and when it may send to each topic."""
        return self.fetch_backoff.until, *(one.send_backoff.until for one in self._all)

    def fetchable_at(self, max_queued_bytes: int) -> float:
        """Return the earliest moment at which a request may name the partition.

        A group waits for the backoffs of all its topics. How long a topic has no leader is unknown.
        """
        fetchable_at = LeasedPartition.fetchable_at(self, max_queued_bytes)
        if not self.routing_queue.has_group:
            return fetchable_at
        fetchable_at = max(fetchable_at, *(one.send_backoff.until for one in self._all))
        if self._leaderless:
            fetchable_at = max(fetchable_at, time.monotonic() + LEADERLESS_WAIT_S)
        return fetchable_at

    @property
    def _all(self) -> tuple[LeasedPartition, ...]:
        return (self, *self._routed.values())

    def may_begin(self, leader_node: Callable[[TopicPartition], int | None], now: float) -> bool:
        """Whether its batches may be sent: the group is begun, or could be sent to its end now.

        Ends the lease if a topic has no leader for too long: it may have been deleted.
        """
        if self.routing_queue.is_group_begun:
            return True
        if now != self._asked_at:
            self._asked_at, self._may_begin = now, self._find_may_begin(leader_node, now)
        return self._may_begin

    def _find_may_begin(
        self, leader_node: Callable[[TopicPartition], int | None], now: float
    ) -> bool:
        waiting = [one for one in self._all if one.queue.ready]
        leaderless = [one.target for one in waiting if leader_node(one.target) is None]
        if not leaderless:
            self._leaderless = None
            return all(now >= one.send_backoff.until for one in waiting)
        if self._leaderless is None:
            self._leaderless_since = now
            self.mark_changed()
        self._leaderless = leaderless[-1]
        if now - self._leaderless_since > ROUTE_TIMEOUT_S and self._leaderless != self.target:
            self._end_for_leaderless(self._leaderless.topic)
        return False

    def _end_for_leaderless(self, topic: str) -> None:
        """Return the lease without what is queued: the driver must look at the topic first."""
        if self.can_send:
            self.forget_topic(topic)
            self.wanted_topic = topic
            self.end_now(LeaseEndReason.TOPIC_WANTED, f"{topic} has no leader, or does not exist")
