"""One question to one broker: do you let me in, and whom do you know?

The client library retries a refused login until its time is up and then says "unable to
bootstrap". This asks once, on a connection of the wire room, and says within milliseconds what is
wrong: nobody there, not TLS, wrong certificate, wrong password.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import METADATA
from sparkmirror.wire.protocol.metadata import metadata_request, read_metadata

_CLIENT_ID = "sparkmirror-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one broker said: which cluster it is of, and the brokers it takes for alive."""

    cluster_id: str
    brokers: frozenset[int]


def probe(access: ClusterAccess, address: Address, timeout_s: float) -> ProbeResult:
    """Ask one broker for the cluster's brokers.

    Raises ClusterUnavailable or ClusterTimeout if it may come right by waiting, NotAuthorized if
    it will not: wrong certificate, wrong mechanism, wrong password.
    """
    client = ClientConfig(
        cluster=access.cluster, security=access.security.client_kwargs(), client_id=_CLIENT_ID
    )
    deadline = time.monotonic() + timeout_s
    connection = BrokerConnection.open(client, address, timeout_s=timeout_s)
    try:
        left_s = max(deadline - time.monotonic(), 0.1)
        answer = connection.call(METADATA, metadata_request(()), timeout_s=left_s)
    finally:
        connection.close()
    known = read_metadata(answer)
    return ProbeResult(cluster_id=known.cluster_id, brokers=frozenset(known.brokers))
