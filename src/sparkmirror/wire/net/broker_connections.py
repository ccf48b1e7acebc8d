"""The connections of one thread to the brokers of a cluster, one per broker, opened on demand."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.address import Address
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
        results: dict[Address, T | ClusterError] = {}
        connected = self.connected_addresses()
        for address in sorted(requests, key=lambda address: address not in connected):
            set_result = partial(results.__setitem__, address)
            try:
                connection = self.get(address, deadline)
                ends = time.monotonic() + self.attempt_timeout_s(deadline, attempt_s)
                connection.send(
                    requests[address](connection),
                    on_response=set_result,
                    on_error=set_result,
                    deadline=ends,
                )
            except ClusterError as error:
                set_result(error)
        while len(results) < len(requests):
            self._poll([self._open[address] for address in requests if address not in results])
        return results

    @staticmethod
    def _poll(connections: Collection[BrokerConnection]) -> None:
        """Wait until some connections are ready, then send and receive on them."""
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                write = selectors.EVENT_WRITE if connection.wants_write else 0
                selector.register(connection, selectors.EVENT_READ | write, connection)
            first = min(connection.next_deadline for connection in connections)
            ready = selector.select(max(first - time.monotonic(), 0.0))
        now = time.monotonic()
        for key, _ in ready:
            _run_ignoring_error(key.data.on_writable)
            _run_ignoring_error(key.data.on_readable)
        for connection in connections:
            _run_ignoring_error(partial(connection.close_if_expired, now))

    def disconnect(self, address: Address) -> None:
        """Close the connection to an address, if there is one."""
        connection = self._open.pop(address, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._open):
            self.disconnect(address)


def _run_ignoring_error(step: Callable[[], None]) -> None:
    try:
        step()
    except ClusterError:
        return  # on_error has been called for every request of the connection
