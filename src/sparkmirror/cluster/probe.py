"""One question to one broker: do you let me in, and whom do you know?

The client library retries a refused login until its time is up and then says "unable to
bootstrap". This asks once, on a connection of the wire room, and says within milliseconds what is
wrong: nobody there, not TLS, wrong certificate, wrong password.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.cluster.access import Access
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.messages import METADATA
from sparkmirror.wire.metadata import metadata_request, read_metadata
from sparkmirror.wire.place import Address

_CLIENT_ID = "sparkmirror-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What one broker said: which cluster it is of, and the brokers it takes for alive."""

    cluster_id: str
    brokers: frozenset[int]


def probe(access: Access, address: Address, timeout_s: float) -> Glimpse:
    """Ask one broker for the cluster's brokers.

    Raises ClusterUnavailable or ClusterTimeout if it may come right by waiting, NotAuthorized if
    it will not: wrong certificate, wrong mechanism, wrong password.
    """
    client = Client(
        cluster=access.cluster, security=access.security.keywords(), client_id=_CLIENT_ID
    )
    deadline = time.monotonic() + timeout_s
    connection = Connection.open(client, address, timeout_s=timeout_s)
    try:
        left_s = max(deadline - time.monotonic(), 0.1)
        answer = connection.call(METADATA, metadata_request(()), timeout_s=left_s)
    finally:
        connection.close()
    known = read_metadata(answer)
    return Glimpse(cluster_id=known.cluster_id, brokers=frozenset(known.brokers))
