"""The clients of tasks: made from the options of the user, and left to the next task.

Placeholders are resolved in the process that connects, so that a secret need not travel.

Spark runs the tasks of all micro-batches in a few Python processes. A client of its own would cost
each task connections with TLS and login, and in the sink a producer id, which brokers remember for
a day. Spark's own Kafka source and sink have such pools, too. Any thread may use a pool; a client
belongs to one task at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from sparkmirror.copy.client_config_resolver import resolve_client, resolve_producer_limits
from sparkmirror.datasource.options import ClientOptions
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.net.routing import Router

IDLE_S = 180.0
"""How long a client waits for the next task: less than brokers and load balancers keep an idle
connection."""


class Closeable(Protocol):
    """A client."""

    def close(self) -> None:
        """Close its connections."""
        ...


C = TypeVar("C", bound=Closeable)


class ClientPool(Generic[C]):
    """Clients that no task uses, by their options."""

    def __init__(self, idle_s: float = IDLE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = idle_s
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[tuple[Hashable, float, C]] = []

    @contextmanager
    def lend(self, identity: Hashable, make: Callable[[], C]) -> Iterator[C]:
        """Lend a client with these options, a new one if there is none.

        A client whose task fails is closed: what it has sent is not known.
        """
        client = self._take(identity) or make()
        try:
            yield client
        except BaseException:
            client.close()
            raise
        with self._lock:
            self._idle.append((identity, self._clock() + self._idle_s, client))

    def close(self) -> None:
        """Close the clients that no task uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, _, client in idle:
            client.close()

    def _take(self, identity: Hashable) -> C | None:
        """Return the client that was used last, and close those that waited for too long."""
        now = self._clock()
        with self._lock:
            expired = [client for _, until, client in self._idle if until <= now]
            self._idle = [one for one in self._idle if one[1] > now]
            found = [one for one in self._idle if one[0] == identity]
            if found:
                self._idle.remove(found[-1])
        for client in expired:
            client.close()
        return found[-1][2] if found else None


ROUTERS: ClientPool[Router] = ClientPool()
"""The routers of the tasks of this process that read."""


def new_router(client: ClientOptions) -> Router:
    """Return a router for one thread. It connects with its first call. Raises ConfigError."""
    config, bootstrap = resolve_client(client.cluster, client.properties, client.client_id)
    return Router(config, bootstrap)


def producer_codec(client: ClientOptions) -> CompressionType:
    """Return the codec that `compression.type` names. Raises ConfigError."""
    return resolve_producer_limits(client.cluster, client.properties).fallback_codec
