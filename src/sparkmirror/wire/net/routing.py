"""Calls to the right broker of a cluster: any, a partition's leader, a coordinator, the controller.

Every call ends within its timeout. Until then a retriable error is retried with growing pauses, and
the broker is looked up again: brokers stop, restart, and leaders move. `on_retry` gets each such
error, so that an operator learns why a call takes long. Other errors are raised at once, for
example a refused login or certificate. Blocks; a Router belongs to one thread, except for `cancel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NoReturn, TypeAlias

from sparkmirror.backoff import JITTER, Backoff, seconds_left
from sparkmirror.errors import (
    CallCancelled,
    ClusterError,
    ClusterUnavailable,
    UnsupportedByBroker,
)
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.broker_connections import BrokerConnections
from sparkmirror.wire.net.cancel_signal import CancelSignal
from sparkmirror.wire.net.channel import ignore_error
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import FIND_COORDINATOR, METADATA, A, Api, Q
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from sparkmirror.wire.protocol.topics.current_leader import NO_NODE_ID, BrokerNode
from sparkmirror.wire.protocol.topics.metadata_snapshot import (
    MetadataSnapshot,
    metadata_request,
    read_metadata,
)

_MANY_KEYS_VERSIONS = (4,)
"""The versions of FindCoordinator that name several keys."""
CALL_TIMEOUT_S = 30.0
REQUEST_TIMEOUT_S = 8.0
CONNECT_TIMEOUT_S = 3.0
"""How long one broker may take to accept a connection while any broker will do."""
MIN_REFRESH_INTERVAL_S = 0.1
"""The shortest interval between two metadata requests."""


class CoordinatorType(IntEnum):
    """What a coordinator is responsible for."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Any broker that responds."""


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
    """The broker with this id."""

    node_id: int


Destination: TypeAlias = AnyBroker | LeaderOf | CoordinatorOf | Controller | NodeWithId


class Router:
    """Finds the broker for a request. Keeps metadata and connections."""

    def __init__(
        self,
        client: ClientConfig,
        bootstrap: Sequence[Address],
        *,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self.client = client
        self.metadata = MetadataSnapshot()
        self.connections = BrokerConnections(client, client.request_timeout_s or request_timeout_s)
        self.on_retry: Callable[[ClusterError], None] = ignore_error
        """Called with every error after which a call is tried again."""
        self._bootstrap = list(bootstrap)
        self._coordinators: dict[CoordinatorOf, Address] = {}
        self._refreshed_at = float("-inf")
        self.cancel_signal = CancelSignal()
        """Set by `cancel`."""
        self._deadline = float("inf")

    @property
    def cluster(self) -> str:
        """The alias of the cluster."""
        return self.client.cluster

    def cancel(self) -> None:
        """End the running call after its current attempt, and all later calls: CallCancelled.

        Any thread may call this.
        """
        self.cancel_signal.set()

    @contextmanager
    def time_limit(self, timeout_s: float) -> Iterator[None]:
        """End every call of the block within `timeout_s` from now, whatever its own timeout."""
        before, self._deadline = self._deadline, time.monotonic() + timeout_s
        try:
            yield
        finally:
            self._deadline = before

    def deadline_after(self, timeout_s: float) -> float:
        """Return when a call with this timeout must end, within the time limit of the block."""
        return min(time.monotonic() + timeout_s, self._deadline)

    def pause(self, seconds: float) -> None:
        """Wait before the next try. Raises CallCancelled at once if the router is cancelled."""
        self.cancel_signal.wait(seconds)
        self._raise_if_cancelled()

    def call(
        self,
        api: Api[Q, A],
        build_message: Callable[[], Q],
        to: Destination,
        *,
        codes: Callable[[A], Iterable[int]],
        versions: Sequence[int] | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> A:
        """Send a request until the response has no retriable error code, or the time is up.

        `build_message` runs for each try: a message belongs to one request. `codes` returns the
        error codes of a response. After the timeout this returns the last response with its codes,
        or raises the last error. UNKNOWN_TOPIC_OR_PARTITION is not retried: the caller decides.
        """
        deadline = self.deadline_after(timeout_s)
        backoff = Backoff()
        while True:
            self._raise_if_cancelled()
            address = None
            try:
                address = self.find_address(to, deadline)
                connection = self.connections.get(address, deadline)
                attempt_s = self.connections.attempt_timeout_s(deadline)
                answer = connection.call(
                    api, build_message(), versions=versions, timeout_s=attempt_s
                )
                retriable = [code for code in map(ErrorCode, codes(answer)) if _is_retriable(code)]
                if not retriable or time.monotonic() >= deadline:
                    return answer
                self._handle_codes(retriable, to)
            except ClusterError as error:
                if not error.retriable or time.monotonic() >= deadline:
                    raise
                self.on_retry(error)
                if address is not None:
                    self.connections.disconnect(address)
                self.invalidate(to)
            self.pause(min(backoff.next_delay_s(), seconds_left(deadline)))

    def refresh(
        self, topics: Iterable[str] | None = (), *, timeout_s: float = CALL_TIMEOUT_S
    ) -> MetadataSnapshot:
        """Request metadata of brokers and some topics (None: all). Returns the merged snapshot."""
        wanted = None if topics is None else list(topics)
        deadline = self.deadline_after(timeout_s)
        time.sleep(max(self._refreshed_at + MIN_REFRESH_INTERVAL_S - time.monotonic(), 0.0))
        answer = self.call(
            METADATA,
            lambda: metadata_request(wanted),
            AnyBroker(),
            codes=lambda answer: (answer.error_code or 0,),
            timeout_s=seconds_left(deadline),
        )
        self._refreshed_at = time.monotonic()
        self.metadata = self.metadata.merge_with(read_metadata(answer))
        return self.metadata

    def update_brokers(self, brokers: Iterable[BrokerNode]) -> None:
        """Replace the known brokers by those of a response. Ignores an empty list."""
        by_id = {broker.node_id: broker for broker in brokers}
        if by_id:
            self.metadata = replace(self.metadata, brokers=by_id)

    def find_address(self, to: Destination, deadline: float) -> Address:
        """Return the address of a destination. Requests metadata if it is unknown."""
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
        if broker is None:
            has_none = node_id == NO_NODE_ID
            self._raise_unavailable(
                "the cluster has no controller at the moment"
                if has_none
                else f"broker {node_id} is unknown"
            )
        return broker.address

    def find_coordinators(self, coordinator_type: CoordinatorType, keys: Collection[str]) -> None:
        """Look up the coordinators of keys with one request, so that calls to them need none.

        Leaves out those that cannot be found in this way: a call to one looks it up alone.
        """
        deadline = self.deadline_after(CALL_TIMEOUT_S)
        known = {to.key for to in self._coordinators if to.coordinator_type is coordinator_type}
        wanted = [key for key in keys if key not in known]
        if not wanted:
            return
        message = FindCoordinatorRequest(key_type=int(coordinator_type), coordinator_keys=wanted)
        address = None
        try:
            address = self.find_any_broker(deadline)
            answer = self.connections.get(address, deadline).call(
                FIND_COORDINATOR,
                message,
                versions=_MANY_KEYS_VERSIONS,
                timeout_s=self.connections.attempt_timeout_s(deadline),
            )
        except UnsupportedByBroker:
            return
        except ClusterError:
            if address is not None:
                self.connections.disconnect(address)
            return
        for found in answer.coordinators:
            if ErrorCode(found.error_code) is ErrorCode.NONE:
                to = CoordinatorOf(coordinator_type, found.key)
                self._coordinators[to] = Address(found.host, found.port)

    def invalidate(self, to: Destination) -> None:
        """Forget the address of a destination: the next call looks it up."""
        if isinstance(to, LeaderOf):
            self.metadata = self.metadata.without_leader(to.partition)
        elif isinstance(to, CoordinatorOf):
            self._coordinators.pop(to, None)
        elif isinstance(to, Controller):
            self.metadata = self.metadata.without_controller()
        elif isinstance(to, NodeWithId):
            self.metadata = self.metadata.without_broker(to.node_id)

    def find_any_broker(self, deadline: float) -> Address:
        """Return a broker that accepts connections: first connected, then known, then bootstrap."""
        first_error: ClusterError | None = None
        for address in self._candidates():
            self._raise_if_cancelled()
            try:
                self.connections.get(address, min(deadline, time.monotonic() + CONNECT_TIMEOUT_S))
            except ClusterError as error:
                # A refused login explains more than an unreachable broker.
                if first_error is None or first_error.retriable:
                    first_error = error
                if time.monotonic() >= deadline:
                    break
            else:
                return address
        if first_error is None:
            self._raise_unavailable("no broker is configured")
        raise first_error

    def connection_to(
        self, to: Destination, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> BrokerConnection:
        """Return an open connection to a destination. Raises ClusterError."""
        deadline = self.deadline_after(timeout_s)
        return self.connections.get(self.find_address(to, deadline), deadline)

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()
        self.cancel_signal.close()

    def _raise_if_cancelled(self) -> None:
        if self.cancel_signal.is_set():
            raise CallCancelled(self.cluster)

    def _handle_codes(self, codes: Iterable[ErrorCode], to: Destination) -> None:
        if any(code.is_wrong_broker for code in codes):
            self.invalidate(to)
        if ErrorCode.REBOOTSTRAP_REQUIRED in codes:
            # The metadata is of another cluster: start again from bootstrap.servers (KIP-1102).
            self.connections.close()
            self.metadata = MetadataSnapshot()

    def _candidates(self) -> Iterator[Address]:
        known = [broker.address for broker in self.metadata.brokers.values()]
        connected = list(self.connections.connected_addresses())
        seen: set[Address] = set()
        for group in (connected, known, self._bootstrap):
            for address in JITTER.sample(group, len(group)):
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
            connection = self.connections.get(self.find_any_broker(deadline), deadline)
            message = FindCoordinatorRequest(
                key=to.key, key_type=int(to.coordinator_type), coordinator_keys=[to.key]
            )
            attempt_s = self.connections.attempt_timeout_s(deadline)
            answer = connection.call(FIND_COORDINATOR, message, timeout_s=attempt_s)
            self._coordinators[to] = self._read_coordinator(answer)
        return self._coordinators[to]

    def _read_coordinator(self, answer: FindCoordinatorResponse) -> Address:
        # From version 4 on one request names several keys.
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
        self.refresh(topics, timeout_s=seconds_left(deadline))

    def _raise_unavailable(self, what: str) -> NoReturn:
        raise ClusterUnavailable(
            self.client.cluster, f"{what}; check whether all brokers are up and can be reached"
        )


def _is_retriable(code: ErrorCode) -> bool:
    return code.is_retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
