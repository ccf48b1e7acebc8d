"""The connections of one thread to the brokers of a cluster, one per broker, opened on demand."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Generic, TypeVar

from sparkmirror.errors import CallCancelled, ClusterError
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.cancel_signal import CancelSignal
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.request import ClientRequest

T = TypeVar("T")

MIN_ATTEMPT_S = 0.1
"""The shortest timeout of an attempt, also right before the deadline."""


class BrokerConnections:
    """Open connections by address. A closed connection is never used again."""

    def __init__(self, client: ClientConfig, request_timeout_s: float) -> None:
        self.client = client
        self._request_timeout_s = request_timeout_s
        self._open: dict[Address, BrokerConnection] = {}

    def connected_addresses(self) -> Collection[Address]:
        """The addresses with an open connection."""
        return {address for address, connection in self._open.items() if not connection.is_closed}

    def get(self, address: Address, deadline: float) -> BrokerConnection:
        """Return the connection to an address; open it if there is none. Raises ClusterError."""
        connection = self._open.get(address)
        if connection is None or connection.is_closed:
            connection = BrokerConnection.open(
                self.client, address, timeout_s=self.attempt_timeout_s(deadline)
            )
            self._open[address] = connection
        return connection

    def attempt_timeout_s(self, deadline: float, attempt_s: float | None = None) -> float:
        """The timeout of one attempt: a part of the time, so that one broker cannot use it all."""
        left_s = max(deadline - time.monotonic(), MIN_ATTEMPT_S)
        return min(attempt_s or self._request_timeout_s, left_s)

    def request_all(
        self,
        requests: Mapping[Address, Callable[[BrokerConnection], ClientRequest[T]]],
        deadline: float,
        *,
        attempt_s: float | None = None,
    ) -> dict[Address, T | ClusterError]:
        """Send requests to several brokers at once. Blocks until each has responded or failed.

        Every address has an entry: the response or the error. Brokers with an open connection come
        first, because opening one may take a while. `attempt_s` is the longest time for a response
        if it is not that of other requests.
        """
        outstanding = OutstandingRequests[T](self)
        connected = self.connected_addresses()
        for address in sorted(requests, key=lambda address: address not in connected):
            outstanding.send(address, requests[address], deadline, attempt_s=attempt_s)
        results: dict[Address, T | ClusterError] = {}
        while len(results) < len(requests):
            results |= outstanding.take()
        return results

    def disconnect(self, address: Address) -> None:
        """Close the connection to an address, if there is one."""
        connection = self._open.pop(address, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._open):
            self.disconnect(address)


class OutstandingRequests(Generic[T]):
    """Requests to several brokers, at most one to each, whose responses are taken as they come."""

    def __init__(self, connections: BrokerConnections, cancel: CancelSignal | None = None) -> None:
        """`cancel` ends `take`, if it is given."""
        self._connections = connections
        self._cancel = cancel
        self._waiting: dict[Address, BrokerConnection] = {}
        self._results: dict[Address, T | ClusterError] = {}

    def send(
        self,
        address: Address,
        build: Callable[[BrokerConnection], ClientRequest[T]],
        deadline: float,
        *,
        attempt_s: float | None = None,
    ) -> None:
        """Send a request. Opens a connection if there is none, which blocks. An error is a result.

        The broker may have no other request of this object.
        """
        assert address not in self._waiting and address not in self._results
        set_result = partial(self._set_result, address)
        try:
            connection = self._connections.get(address, deadline)
            ends = time.monotonic() + self._connections.attempt_timeout_s(deadline, attempt_s)
            self._waiting[address] = connection
            connection.send(
                build(connection), on_response=set_result, on_error=set_result, deadline=ends
            )
        except ClusterError as error:
            set_result(error)

    def take(self, timeout_s: float | None = None) -> dict[Address, T | ClusterError]:
        """Return the results that are there. Blocks until there is one, up to `timeout_s`.

        Returns at once if no request is outstanding. Raises CallCancelled on the signal.
        """
        ends = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        self._raise_if_cancelled()
        while self._waiting and not self._results and time.monotonic() < ends:
            self._poll(ends)
        results, self._results = self._results, {}
        return results

    def _set_result(self, address: Address, result: T | ClusterError) -> None:
        self._waiting.pop(address, None)
        self._results[address] = result

    def _raise_if_cancelled(self) -> None:
        if self._cancel is not None and self._cancel.is_set():
            raise CallCancelled(self._connections.client.cluster)

    def _poll(self, ends: float) -> None:
        """Wait until some connections are ready, then send and receive on them."""
        connections = list(self._waiting.values())
        with selectors.DefaultSelector() as selector:
            if self._cancel is not None:
                selector.register(self._cancel, selectors.EVENT_READ)
            for connection in connections:
                write = selectors.EVENT_WRITE if connection.wants_write else 0
                selector.register(connection, selectors.EVENT_READ | write, connection)
            first = min(ends, *(connection.next_deadline for connection in connections))
            ready = selector.select(max(first - time.monotonic(), 0.0))
        self._raise_if_cancelled()
        now = time.monotonic()
        for key, _ in ready:
            _run_ignoring_error(key.data.on_writable)
            _run_ignoring_error(key.data.on_readable)
        for connection in connections:
            _run_ignoring_error(partial(connection.close_if_expired, now))


def _run_ignoring_error(step: Callable[[], None]) -> None:
    try:
        step()
    except ClusterError:
        return  # on_error has been called for every request of the connection
