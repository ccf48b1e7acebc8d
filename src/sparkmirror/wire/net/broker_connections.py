"""Connections of one thread to the brokers of one cluster, one to each, opened when needed."""

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
"""Even at the last moment an attempt gets this long, or it would be no attempt."""


class BrokerConnections:
    """Open connections by address. A connection that failed is dropped, never used again."""

    def __init__(self, client: ClientConfig, request_timeout_s: float) -> None:
        self.client = client
        self._request_timeout_s = request_timeout_s
        self._open: dict[Address, BrokerConnection] = {}

    def connected_addresses(self) -> Collection[Address]:
        """Where we are connected to."""
        return {address for address, link in self._open.items() if not link.is_closed}

    def get(self, address: Address, deadline: float) -> BrokerConnection:
        """Return the connection to an address, opening it if there is none."""
        link = self._open.get(address)
        if link is None or link.is_closed:
            link = BrokerConnection.open(
                self.client, address, timeout_s=self.attempt_timeout_s(deadline)
            )
            self._open[address] = link
        return link

    def attempt_timeout_s(self, deadline: float) -> float:
        """How long one attempt may take: no broker gets all the time there is."""
        return min(self._request_timeout_s, max(deadline - time.monotonic(), MIN_ATTEMPT_S))

    def request_all(
        self,
        requests: Mapping[Address, Callable[[BrokerConnection], ClientRequest[T]]],
        deadline: float,
    ) -> dict[Address, T | ClusterError]:
        """Ask several brokers at once, so that one that is slow or dead costs its time only once.

        Every address gets an entry: the answer, or why there is none. Brokers that we are connected
        to already hear first: opening may take a while.
        """
        settled: dict[Address, T | ClusterError] = {}
        connected = self.connected_addresses()
        for address in sorted(requests, key=lambda address: address not in connected):
            settle = partial(settled.__setitem__, address)
            try:
                link = self.get(address, deadline)
                ends = time.monotonic() + self.attempt_timeout_s(deadline)
                link.send(requests[address](link), then=settle, lost=settle, deadline=ends)
            except ClusterError as error:
                settle(error)
        while len(settled) < len(requests):
            self._poll([self._open[address] for address in requests if address not in settled])
        return settled

    @staticmethod
    def _poll(links: Collection[BrokerConnection]) -> None:
        """Wait until some links can do something, and let them; a loss is told to who asked."""
        with selectors.DefaultSelector() as selector:
            for link in links:
                write = selectors.EVENT_WRITE if link.wants_write else 0
                selector.register(link, selectors.EVENT_READ | write, link)
            first = min(link.next_deadline for link in links)
            ready = selector.select(max(first - time.monotonic(), 0.0))
        now = time.monotonic()
        for key, _ in ready:
            _run_ignoring_loss(key.data.on_writable)
            _run_ignoring_loss(key.data.on_readable)
        for link in links:
            _run_ignoring_loss(partial(link.close_if_expired, now))

    def disconnect(self, address: Address) -> None:
        """Close the connection to an address, if there is one."""
        link = self._open.pop(address, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Close all connections."""
        for address in list(self._open):
            self.disconnect(address)


def _run_ignoring_loss(step: Callable[[], None]) -> None:
    try:
        step()
    except ClusterError:
        return  # every request of that link has been told
