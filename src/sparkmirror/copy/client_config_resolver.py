"""Converts client properties with Java's names to the connection settings of `wire`.

A worker resolves the placeholders of connector configs itself, and its jobs declare no providers.
For `sparkmirror copy`, placeholders (`${file:/run/secrets/kafka.properties:password}`) are resolved
only here. Drivers and executors receive the placeholder, and each of them reads the value on its
own host, with the config providers that the operator's client files declare. They read it again for
each connection, so a connection uses a password that has changed. A value that the provider lacks
is an error at the start; later the last good settings are used. Text that only looks like a
placeholder stays unchanged.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.secrets import providers, variables
from sparkmirror.copy.producer_limits import ProducerLimits
from sparkmirror.errors import ConfigError
from sparkmirror.security.security_with_config_providers import SecurityWithConfigProviders
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig


def resolve_client(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    environment: Mapping[str, str] = os.environ,
    *,
    file_prefix: str | None = None,
) -> tuple[ClientConfig, list[Address]]:
    """Return the client config and the bootstrap servers. Raises ConfigError.

    `file_prefix` is that of the properties in a worker's file; None if they are not in that file.
    """
    values = _expand(alias, properties, environment)
    access = _read_access(alias, properties, values)
    if values != properties:
        security = SecurityWithConfigProviders(
            alias,
            lambda: _expand(alias, properties, environment),
            lambda expanded: _read_access(alias, properties, expanded).security,
        )
        access = replace(access, security=security)
    client = replace(access, file_prefix=file_prefix).client_config(client_id)
    return client, list(access.bootstrap_servers)


def resolve_properties(
    alias: str, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> Mapping[str, str]:
    """Return the properties with the value of each placeholder. Raises ConfigError."""
    return _expand(alias, properties, environment)


def resolve_producer_limits(
    alias: str, properties: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> ProducerLimits:
    """Return the limits of the target's producer. Raises ConfigError."""
    values = _expand(alias, properties, environment)
    with _redacted_faults(alias, properties, values):
        return ProducerLimits.from_properties(values)


def _expand(
    alias: str, raw: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    try:
        strict = providers.create_providers(raw, environment).strict()
        return variables.expand_variables(raw, strict.by_name).values
    except ConfigError as error:
        raise ConfigError(error.faults, where=_where(alias)) from error


def _read_access(alias: str, raw: Mapping[str, str], values: Mapping[str, str]) -> ClusterAccess:
    """Read the properties with resolved values."""
    with _redacted_faults(alias, raw, values):
        return ClusterAccess.from_properties(alias, values)


@contextmanager
def _redacted_faults(
    alias: str, raw: Mapping[str, str], values: Mapping[str, str]
) -> Iterator[None]:
    """Raise a ConfigError again with the host; no fault quotes a resolved value."""
    try:
        yield
    except ConfigError as error:
        faults = [variables.redact_fault(fault, raw, values) for fault in error.faults]
        raise ConfigError(faults, where=_where(alias)) from error


def _where(alias: str) -> str:
    return f"{alias} on {socket.gethostname()}"
