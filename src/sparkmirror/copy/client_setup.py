"""From client properties in Java's names to what the wire room needs to talk to a cluster.

Placeholders (`${file:/run/secrets/kafka.properties:password}`) are resolved here and nowhere
before: what travels to drivers and executors is the placeholder, and each of them fetches the value
where it runs, with the providers that the properties declare. What such a provider lacks is an
error; text that only looks like a placeholder stays as it is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.secrets import providers, variables
from sparkmirror.errors import ConfigError
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig


def resolve_client(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    environment: Mapping[str, str] = os.environ,
) -> tuple[ClientConfig, list[Address]]:
    """Who we are to a cluster, and where it is. ConfigError names what cannot be resolved here."""
    access = _resolve_access(alias, properties, environment)
    client = ClientConfig(
        cluster=alias, security=access.security.client_kwargs(), client_id=client_id
    )
    return client, list(access.bootstrap_servers)


def _resolve_access(
    alias: str, raw: Mapping[str, str], environment: Mapping[str, str]
) -> ClusterAccess:
    """Resolve and read; no fault quotes what was fetched."""
    where = f"{alias} on {socket.gethostname()}"
    values: Mapping[str, str] = raw
    try:
        demanding = providers.create_providers(raw, environment).strict()
        values = variables.expand_variables(raw, demanding.by_name).values
        return ClusterAccess.from_properties(alias, values)
    except ConfigError as error:
        faults = [variables.redact_fault(fault, raw, values) for fault in error.faults]
        raise ConfigError(faults, where=where) from error
