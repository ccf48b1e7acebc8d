"""From client properties in Java's names to what the wire room needs to talk to a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.cluster.access import Access
from sparkmirror.wire.connection import Client
from sparkmirror.wire.place import Address


def dial(alias: str, properties: Mapping[str, str], client_id: str) -> tuple[Client, list[Address]]:
    """Who we are to a cluster, and where it is."""
    access = Access.from_properties(alias, properties)
    client = Client(cluster=alias, security=access.security.keywords(), client_id=client_id)
    return client, list(access.bootstrap)
