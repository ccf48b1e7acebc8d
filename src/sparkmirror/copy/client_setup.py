"""Converts client properties with Java's names to the connection settings of `wire`.

Placeholders (`${file:/run/secrets/kafka.properties:password}`) are resolved only here. Drivers and
executors receive the placeholder, and each of them reads the value on its own host, with the config
providers that the properties declare. A value that the provider lacks is an error. Text that only
looks like a placeholder stays unchanged.
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
    """Return the client config and the bootstrap servers. Raises ConfigError."""
    access = _resolve_access(alias, properties, environment)
    client = ClientConfig(cluster=alias, security=access.security, client_id=client_id)
    return client, list(access.bootstrap_servers)


def _resolve_access(
    alias: str, raw: Mapping[str, str], environment: Mapping[str, str]
) -> ClusterAccess:
    """Resolve placeholders and read the properties. No fault quotes a resolved value."""
    where = f"{alias} on {socket.gethostname()}"
    values: Mapping[str, str] = raw
    try:
        strict = providers.create_providers(raw, environment).strict()
        values = variables.expand_variables(raw, strict.by_name).values
        return ClusterAccess.from_properties(alias, values)
    except ConfigError as error:
        faults = [variables.redact_fault(fault, raw, values) for fault in error.faults]
        raise ConfigError(faults, where=where) from error
