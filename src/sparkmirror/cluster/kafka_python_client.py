"""Clients of the library, begun in a way that fails soon and says why.

1. Probe the bootstrap brokers in turn until one lets us in, so that a mute host or a wrong
   password is told apart and told quickly.
2. Bootstrap the client from that broker, in attempts of a few seconds.
3. If that fails, close what the library left open, and begin again while there is time.

Also keeps the library's own loggers quiet: it logs one lost connection a hundred times.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafka.net.compat import KafkaNetClient

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.error_translation import translating_errors
from sparkmirror.cluster.kafka_python_sockets import PROXY_URL
from sparkmirror.cluster.probe import probe
from sparkmirror.errors import ClusterError, ClusterTimeout, ClusterUnavailable
from sparkmirror.wire.net.address import Address

log = logging.getLogger(__name__)

_ATTEMPT_S = 5.0
_PAUSE_S = 0.1
_NOISY_LOGGERS = ("kafka.net", "kafka.cluster", "kafka.coordinator", "kafka.client", "kafka.admin")
_NetClient: Any = KafkaNetClient

# A broker that comes back should be noticed within a second, not within the library's half minute.
CLIENT_CONFIGS = {
    "proxy_url": PROXY_URL,
    "reconnect_backoff_max_ms": 1000,
    "metadata_max_age_ms": 60_000,
    "request_timeout_ms": 8_000,
}


def connect_client(
    make: Callable[..., Any], access: ClusterAccess, timeout_s: float, **settings: Any
) -> Any:
    """Make one of the library's clients, bootstrapped, or raise one of our errors."""
    _silence_loggers()
    deadline = time.monotonic() + timeout_s
    while True:
        door = find_reachable_broker(access, deadline)
        try:
            return _bootstrap(make, access, door, settings)
        except ClusterTimeout:
            if time.monotonic() > deadline:
                raise


def _silence_loggers() -> None:
    """Silence the library, unless somebody has said how loud it should be."""
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)


def _bootstrap(
    make: Callable[..., Any], access: ClusterAccess, door: Address, settings: Mapping[str, Any]
) -> Any:
    """Make a client that learns of the cluster from one broker."""
    opened: list[Any] = []

    def network(**words: Any) -> Any:
        opened.append(_NetClient(**words))
        return opened[-1]

    try:
        with translating_errors(access.cluster):
            return make(
                bootstrap_servers=[str(door)],
                bootstrap_timeout_ms=int(_ATTEMPT_S * 1000),
                kafka_client=network,
                **{**CLIENT_CONFIGS, **access.security.client_kwargs(), **settings},
            )
    except ClusterError:
        for client in opened:
            _close_quietly(client)
        raise


def find_reachable_broker(access: ClusterAccess, deadline: float) -> Address:
    """Return a bootstrap broker that lets us in.

    Waits for one until the deadline, unless one of them refuses us for good and none is better.
    """
    while True:
        waiting: ClusterError | None = None
        refusal: ClusterError | None = None
        for address in access.bootstrap_servers:
            left = deadline - time.monotonic()
            try:
                probe(access, address, max(0.1, min(_ATTEMPT_S, left)))
            except (ClusterUnavailable, ClusterTimeout) as error:
                waiting = error
            except ClusterError as error:
                refusal = error
            else:
                return address
        if refusal is not None:
            raise refusal
        if time.monotonic() + _PAUSE_S > deadline:
            raise waiting or ClusterUnavailable(access.cluster, "no bootstrap broker is named")
        time.sleep(_PAUSE_S)


def _close_quietly(client: Any) -> None:
    """Close a half-made client; it may complain about being half-made."""
    try:
        client.close()
        client._net.stop()
    except (AttributeError, OSError, RuntimeError) as error:
        log.debug("While closing a failed client: %s", error)
