"""Converts client properties with Java's names to the connection settings of `wire`.

Placeholders (`${file:/run/secrets/kafka.properties:password}`) are resolved only here. Drivers and
executors receive the placeholder, and each of them reads the value on its own host, with the config
providers that the properties declare. They read it again for each connection, so a connection uses
a password that has changed. A value that the provider lacks is an error. Text that only looks like
a placeholder stays unchanged.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import replace

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.secrets import providers, variables
from sparkmirror.errors import ConfigError
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig

log = logging.getLogger(__name__)


def resolve_client(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    environment: Mapping[str, str] = os.environ,
) -> tuple[ClientConfig, list[Address]]:
    """Return the client config and the bootstrap servers. Raises ConfigError."""
    values = _expand(alias, properties, environment)
    access = _read_access(alias, properties, values)
    if values != properties:
        source = ProvidedSecurity(alias, properties, environment, values, access)
        access = replace(access, security=source)
    client = ClientConfig(cluster=alias, security=access.security, client_id=client_id)
    return client, list(access.bootstrap_servers)


class ProvidedSecurity:
    """Security settings with values of config providers, which each connection reads again."""

    def __init__(
        self,
        alias: str,
        properties: Mapping[str, str],
        environment: Mapping[str, str],
        values: Mapping[str, str],
        access: ClusterAccess,
    ) -> None:
        """`values` and `access` are the properties as they are now."""
        self._alias = alias
        self._properties = properties
        self._environment = environment
        self._values = values
        self._access = access
        self._lock = threading.Lock()

    @property
    def protocol(self) -> str:
        """`security.protocol`."""
        return self._access.security.protocol

    def current(self) -> ClientSecurity:
        """Return the settings for the next connection. Raises ConfigError."""
        values = _expand(self._alias, self._properties, self._environment)
        with self._lock:
            if values != self._values:
                self._access = _read_access(self._alias, self._properties, values)
                self._values = values
                log.info("%s: new connections use changed values of providers", self._alias)
            security = self._access.security
        return security.current()


def _expand(
    alias: str, raw: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    try:
        strict = providers.create_providers(raw, environment).strict()
        return variables.expand_variables(raw, strict.by_name).values
    except ConfigError as error:
        raise ConfigError(error.faults, where=_where(alias)) from error


def _read_access(alias: str, raw: Mapping[str, str], values: Mapping[str, str]) -> ClusterAccess:
    """Read the properties with resolved values. No fault quotes a resolved value."""
    try:
        return ClusterAccess.from_properties(alias, values)
    except ConfigError as error:
        faults = [variables.redact_fault(fault, raw, values) for fault in error.faults]
        raise ConfigError(faults, where=_where(alias)) from error


def _where(alias: str) -> str:
    return f"{alias} on {socket.gethostname()}"
