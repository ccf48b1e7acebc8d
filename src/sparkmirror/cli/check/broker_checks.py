"""What a login to a cluster shows: its brokers, their release, round trip, clock, certificates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.cli.check.clock_difference import clock_difference_s
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.net.transport import TlsSession
from sparkmirror.wire.protocol.apis import METADATA
from sparkmirror.wire.protocol.topics.metadata_snapshot import metadata_request, read_metadata

CLIENT_ID = "sparkmirror-check"
ROUND_TRIPS = 3
_FETCH = 1
_RELEASES = (
    (18, "4.1"),
    (17, "3.9"),
    (16, "3.7"),
    (15, "3.5"),
    (13, "3.1"),
    (12, "2.7"),
    (11, "2.3"),
    (10, "2.1"),
)
"""The first release that has a version of Fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCheck:
    """One address: the error, or what the connection to it shows."""

    address: Address
    is_bootstrap: bool
    error: ClusterError | None = None
    release: str = ""
    """The first Kafka release with the broker's API versions."""
    round_trip_ms: float = 0.0
    tls: TlsSession | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnectivity:
    """The addresses of a cluster: of `bootstrap.servers`, then those that brokers advertise."""

    cluster_id: str
    brokers: tuple[BrokerCheck, ...]
    clock_difference_s: float | None
    """By how many seconds the cluster's clock is ahead; None if unknown."""

    @property
    def errors(self) -> tuple[ClusterError, ...]:
        """The errors of all addresses."""
        return tuple(broker.error for broker in self.brokers if broker.error is not None)

    @property
    def is_reachable(self) -> bool:
        """Whether a bootstrap server answered."""
        return any(b.is_bootstrap and b.error is None for b in self.brokers)


def check_brokers(access: ClusterAccess, router: Router, timeout_s: float) -> ClusterConnectivity:
    """Connect to every bootstrap server and to every broker. Raises no ClusterError."""
    client = access.client_config(CLIENT_ID)
    advertised: dict[Address, None] = {}
    cluster_id = ""
    brokers = []
    for address in dict.fromkeys(access.bootstrap_servers):
        check, snapshot = _check_broker(client, address, timeout_s, is_bootstrap=True)
        brokers.append(check)
        advertised |= dict.fromkeys(snapshot)
        cluster_id = cluster_id or snapshot.get(address, "") or next(iter(snapshot.values()), "")
    known = {broker.address for broker in brokers}
    brokers += [
        _check_broker(client, address, timeout_s, is_bootstrap=False)[0]
        for address in advertised
        if address not in known
    ]
    reachable = any(broker.error is None for broker in brokers)
    return ClusterConnectivity(
        cluster_id=cluster_id,
        brokers=tuple(brokers),
        clock_difference_s=clock_difference_s(router, timeout_s=timeout_s) if reachable else None,
    )


def release_of(ranges: Mapping[int, tuple[int, int]]) -> str:
    """Return the first Kafka release whose broker supports these versions of Fetch."""
    lowest, highest = ranges.get(_FETCH, (0, 0))
    release = next((name for version, name in _RELEASES if highest >= version), "")
    # Kafka 4.0 removed the versions of Fetch below 4.
    return "4.0" if lowest >= 4 and release < "4.0" else release


def _check_broker(
    client: ClientConfig, address: Address, timeout_s: float, *, is_bootstrap: bool
) -> tuple[BrokerCheck, Mapping[Address, str]]:
    """Return the check, and the cluster id by advertised address."""
    try:
        connection = BrokerConnection.open(client, address, timeout_s=timeout_s)
    except ClusterError as error:
        return BrokerCheck(address=address, is_bootstrap=is_bootstrap, error=error), {}
    try:
        times, answers = [], []
        for _ in range(ROUND_TRIPS):
            began = time.monotonic()
            answers.append(connection.call(METADATA, metadata_request(()), timeout_s=timeout_s))
            times.append(time.monotonic() - began)
        metadata = read_metadata(answers[-1])
        check = BrokerCheck(
            address=address,
            is_bootstrap=is_bootstrap,
            release=release_of(connection.api_versions.ranges),
            round_trip_ms=min(times) * 1000,
            tls=connection.tls_session,
        )
        return check, {b.address: metadata.cluster_id for b in metadata.brokers.values()}
    except ClusterError as error:
        return BrokerCheck(address=address, is_bootstrap=is_bootstrap, error=error), {}
    finally:
        connection.close()
