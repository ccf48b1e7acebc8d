"""Calls to the right broker of a cluster: any, a partition's leader, a coordinator, the controller.

Every call has an end in time. Until then what may pass by itself is tried again, on a broker found
anew, with growing pauses: brokers that die, restart, move or do not know yet. What will not pass is
raised at once: a login or a certificate refused. Blocks; one Router belongs to one thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn, TypeAlias

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.broker_connections import BrokerConnections
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import FIND_COORDINATOR, METADATA, A, Api, Q
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from sparkmirror.wire.protocol.metadata import MetadataSnapshot, metadata_request, read_metadata
from sparkmirror.wire.protocol.response_errors import error_for_code

CALL_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 8.0
CONNECT_TIMEOUT_S = 3.0
"""How long one broker may take to let us in while we look for any that does."""
MIN_REFRESH_INTERVAL_S = 0.1
"""Metadata is asked for no more often than this."""


class CoordinatorType(IntEnum):
    """What a coordinator coordinates."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Whichever broker answers."""


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """The leader of a partition."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class CoordinatorOf:
    """The coordinator of a group or of a transactional id."""

    coordinator_type: CoordinatorType
    key: str


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller, or under KRaft a broker that forwards to it."""


@dataclass(frozen=True, slots=True)
class NodeWithId:
    """One certain broker."""

    node_id: int


Destination: TypeAlias = AnyBroker | LeaderOf | CoordinatorOf | Controller | NodeWithId


class Router:
    """Finds the broker a request belongs to, and keeps what it learned of the cluster."""

    def __init__(
        self,
        client: ClientConfig,
        bootstrap: Sequence[Address],
        *,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self.client = client
        self.metadata = MetadataSnapshot()
        self.connections = BrokerConnections(client, request_timeout_s)
        self._bootstrap = list(bootstrap)
        self._coordinators: dict[CoordinatorOf, Address] = {}
        self._refreshed_at = float("-inf")

    def call(
        self,
        api: Api[Q, A],
        make: Callable[[], Q],
        to: Destination,
        *,
        codes: Callable[[A], Iterable[int]],
        known: Sequence[int] | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> A:
        """Ask until the answer holds no code that may pass by itself, or the time is up.

        `make` builds the message, anew for each try; `codes` picks the error codes out of an
        answer. At the end of the time the last answer is returned with its codes, or the last
        error raised. A topic that does not exist is the caller's business, not a reason to wait.
        """
        deadline = time.monotonic() + timeout_s
        backoff = Backoff()
        while True:
            address = None
            try:
                address = self.find_address(to, deadline)
                link = self.connections.get(address, deadline)
                patience_s = self.connections.attempt_timeout_s(deadline)
                answer = link.call(api, make(), known=known, timeout_s=patience_s)
                passing = [code for code in map(ErrorCode, codes(answer)) if _is_retriable(code)]
                if not passing or time.monotonic() >= deadline:
                    return answer
                self._handle_codes(passing, to)
            except ClusterError as error:
                if not error.retriable or time.monotonic() >= deadline:
                    raise
                if address is not None:
                    self.connections.disconnect(address)
                self.invalidate(to)
            time.sleep(min(backoff.next_delay_s(), max(deadline - time.monotonic(), 0.0)))

    def refresh(
        self, topics: Iterable[str] | None = (), *, timeout_s: float = CALL_TIMEOUT_S
    ) -> MetadataSnapshot:
        """Ask for brokers and some topics (all with None), and return what is known now."""
        wanted = None if topics is None else list(topics)
        deadline = time.monotonic() + timeout_s
        time.sleep(max(self._refreshed_at + MIN_REFRESH_INTERVAL_S - time.monotonic(), 0.0))
        answer = self.call(
            METADATA,
            lambda: metadata_request(wanted),
            AnyBroker(),
            codes=lambda answer: (answer.error_code or 0,),
            timeout_s=max(deadline - time.monotonic(), 0.0),
        )
        self._refreshed_at = time.monotonic()
        self.metadata = self.metadata.merge_with(read_metadata(answer))
        return self.metadata

    def find_address(self, to: Destination, deadline: float) -> Address:
        """Find where a request belongs, asking around if need be."""
        if isinstance(to, AnyBroker):
            return self.find_any_broker(deadline)
        if isinstance(to, CoordinatorOf):
            return self._coordinator_address(to, deadline)
        if isinstance(to, LeaderOf):
            return self._leader_address(to.partition, deadline)
        node_id = self._node_id_of(to)
        if node_id not in self.metadata.brokers:
            self._refresh_until(deadline)
            node_id = self._node_id_of(to)
        broker = self.metadata.brokers.get(node_id)
        return (
            broker.address if broker else self._raise_unavailable(f"no broker {node_id} is known")
        )

    def invalidate(self, to: Destination) -> None:
        """Take what we believed about a destination for outdated."""
        if isinstance(to, LeaderOf):
            self.metadata = self.metadata.without_leader(to.partition)
        elif isinstance(to, CoordinatorOf):
            self._coordinators.pop(to, None)
        elif isinstance(to, Controller):
            self.metadata = self.metadata.without_controller()
        elif isinstance(to, NodeWithId):
            self.metadata = self.metadata.without_broker(to.node_id)

    def find_any_broker(self, deadline: float) -> Address:
        """Find a broker that lets us in: one we talk to, one we know, one we were told of."""
        refused: ClusterError | None = None
        for address in self._candidates():
            try:
                self.connections.get(address, min(deadline, time.monotonic() + CONNECT_TIMEOUT_S))
            except ClusterError as error:
                # "Wrong password" says more than "not there", whichever came last.
                refused = error if refused is None or refused.retriable else refused
            else:
                return address
        if refused is None:
            self._raise_unavailable("no broker is known")
        raise refused

    def connection_to(
        self, to: Destination, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> BrokerConnection:
        """Return an open connection to a destination, or raise why there is none now."""
        deadline = time.monotonic() + timeout_s
        return self.connections.get(self.find_address(to, deadline), deadline)

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    def _handle_codes(self, codes: Iterable[ErrorCode], to: Destination) -> None:
        if any(code.is_wrong_broker for code in codes):
            self.invalidate(to)
        if ErrorCode.REBOOTSTRAP_REQUIRED in codes:
            # All we know of the cluster is of another one by now: begin anew (KIP-1102).
            self.connections.close()
            self.metadata = MetadataSnapshot()

    def _candidates(self) -> Iterator[Address]:
        known = [broker.address for broker in self.metadata.brokers.values()]
        connected = self.connections.connected_addresses()
        seen: set[Address] = set()
        for group in (
            [address for address in known if address in connected],
            [address for address in known if address not in connected],
            self._bootstrap,
        ):
            for address in random.sample(group, len(group)):
                if address not in seen:
                    seen.add(address)
                    yield address

    def _leader_address(self, partition: TopicPartition, deadline: float) -> Address:
        broker = self.metadata.leader_node(partition)
        if broker is None:
            self._refresh_until(deadline, [partition.topic])
            broker = self.metadata.leader_node(partition)
        return broker.address if broker else self._raise_unavailable(f"{partition} has no leader")

    def _coordinator_address(self, to: CoordinatorOf, deadline: float) -> Address:
        if to not in self._coordinators:
            link = self.connections.get(self.find_any_broker(deadline), deadline)
            question = FindCoordinatorRequest(
                key=to.key, key_type=int(to.coordinator_type), coordinator_keys=[to.key]
            )
            patience_s = self.connections.attempt_timeout_s(deadline)
            answer = link.call(FIND_COORDINATOR, question, timeout_s=patience_s)
            self._coordinators[to] = self._read_coordinator(answer)
        return self._coordinators[to]

    def _read_coordinator(self, answer: FindCoordinatorResponse) -> Address:
        # From version 4 on one request asks for many.
        found = answer.coordinators[0] if answer.coordinators else answer
        code = ErrorCode(found.error_code)
        if code is not ErrorCode.NONE:
            raise error_for_code(
                self.client.cluster, FIND_COORDINATOR.name, code, found.error_message
            )
        return Address(found.host, found.port)

    def _node_id_of(self, to: Controller | NodeWithId) -> int:
        return to.node_id if isinstance(to, NodeWithId) else self.metadata.controller_id

    def _refresh_until(self, deadline: float, topics: Iterable[str] = ()) -> None:
        self.refresh(topics, timeout_s=max(deadline - time.monotonic(), 0.0))

    def _raise_unavailable(self, what: str) -> NoReturn:
        raise ClusterUnavailable(
            self.client.cluster, f"{what}; check whether all brokers are up and can be reached"
        )


def _is_retriable(code: ErrorCode) -> bool:
    return code.is_retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
