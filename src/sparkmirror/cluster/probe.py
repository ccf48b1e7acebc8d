"""A question to one broker or to the bootstrap brokers: can this client connect?

The answer comes within milliseconds and names the reason: no broker there, not TLS, wrong
certificate, wrong password.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.backoff import seconds_left
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.apis import METADATA
from sparkmirror.wire.protocol.topics.metadata_snapshot import metadata_request, read_metadata

_CLIENT_ID = "sparkmirror-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The cluster of one broker, and the brokers that it knows as alive."""

    cluster_id: str
    brokers: frozenset[int]


def probe(access: ClusterAccess, address: Address, timeout_s: float) -> ProbeResult:
    """Ask one broker for the cluster's brokers, once.

    Raises ClusterUnavailable or ClusterTimeout if waiting may help, NotAuthorized if it does not:
    wrong certificate, wrong mechanism, wrong password.
    """
    client = access.client_config(_CLIENT_ID)
    deadline = time.monotonic() + timeout_s
    connection = BrokerConnection.open(client, address, timeout_s=timeout_s)
    try:
        left_s = seconds_left(deadline, 0.1)
        answer = connection.call(METADATA, metadata_request(()), timeout_s=left_s)
    finally:
        connection.close()
    metadata = read_metadata(answer)
    return ProbeResult(cluster_id=metadata.cluster_id, brokers=frozenset(metadata.brokers))


def wait_for_cluster(access: ClusterAccess, timeout_s: float) -> None:
    """Wait until a bootstrap broker answers.

    Raises the last ClusterUnavailable or ClusterTimeout after the timeout, NotAuthorized at once.
    """
    router = access.new_router(_CLIENT_ID)
    try:
        router.refresh(timeout_s=timeout_s)
    finally:
        router.close()
