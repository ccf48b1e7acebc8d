"""The REST settings of a worker's config.

The TLS settings of a listener all have the same prefix: if one key begins with `listeners.https.`,
the plain `ssl.*` keys are used for Kafka clients only. The file of users is found as Java finds it.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.tables.additions import METRICS_LISTENER
from sparkmirror.errors import ConfigError
from sparkmirror.rest.authentication import bearer_tokens
from sparkmirror.rest.authentication.basic_auth import (
    EXTENSION,
    BasicAuthUsers,
    load_users_from_jaas,
)
from sparkmirror.rest.authentication.bearer_tokens import BearerTokens
from sparkmirror.rest.client.rest_client import RestClient
from sparkmirror.rest.http.cors import Cors
from sparkmirror.rest.http.listener import WILDCARD_HOSTS, RestListener
from sparkmirror.rest.http.response_headers import ResponseHeaderRules
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.security.tls.reloading_ssl_context import rotating_server_context
from sparkmirror.security.tls.ssl_config import SslConfig

_EXTENSIONS = "rest.extension.classes"
_JAAS_FLAG = re.compile(r"-Djava\.security\.auth\.login\.config=(\"[^\"]+\"|'[^']+'|\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """The listeners and options of the server, and the address it advertises."""

    listeners: tuple[RestListener, ...]
    options: RestOptions
    advertised: RestListener
    ssl_config: SslConfig | None = None
    """The stores of the listeners; None without TLS."""

    def with_ports(self) -> RestSettings:
        """Return the settings with the ports that the operating system chooses for port 0.

        The server listens on them from now on: the worker id has the port before the server starts.
        """
        listeners = tuple(listener.with_port() for listener in self.listeners)
        advertised = self.advertised
        if not advertised.port:
            port = next(one.port for one in listeners if one.protocol == advertised.protocol)
            advertised = replace(advertised, port=port)
        return replace(self, listeners=listeners, advertised=advertised)

    @property
    def worker_id(self) -> str:
        """The worker id in statuses: the advertised host and port."""
        host = self.advertised.host
        return (
            f"[{host}]:{self.advertised.port}" if ":" in host else f"{host}:{self.advertised.port}"
        )


def advertised_url(advertised: RestListener, address: str) -> str:
    """Return the address for other workers; `address` is where the server listens.

    If the operating system has chosen the port, that port.
    """
    port = advertised.port or RestListener.parse(address).port
    return str(replace(advertised, port=port))


def rest_settings(
    config: Mapping[str, ParsedValue], properties: Mapping[str, str], environment: Mapping[str, str]
) -> RestSettings:
    """Read a parsed worker config. `properties` are its raw values with placeholders replaced.

    Raises ConfigError.
    """
    listeners = _listeners(config["listeners"])
    admin = config.get("admin.listeners")
    admin_listeners = None if admin is None else _listeners(admin)
    metrics_listeners = _metrics_listeners(properties)
    has_https = _has_https((*listeners, *metrics_listeners))
    ssl_config = _ssl_config(properties, "listeners.https.") if has_https else None
    options = RestOptions(
        admin_listeners=admin_listeners,
        metrics_listeners=metrics_listeners,
        tls=None if ssl_config is None else rotating_server_context(ssl_config),
        admin_tls=_tls(admin_listeners or (), properties, "admin.listeners.https."),
        users=_users(config.get(_EXTENSIONS), environment),
        tokens=_tokens(properties),
        cors=Cors(
            origin=_string_value(config, "access.control.allow.origin"),
            methods=_string_value(config, "access.control.allow.methods"),
        ),
        response_headers=ResponseHeaderRules.parse(
            _string_value(config, "response.http.headers.config"), time.time
        ),
        client=RestClient(
            _ssl_config(properties, "listeners.https.") if _has_https(listeners) else None
        ),
    )
    return RestSettings(
        listeners=listeners,
        options=options,
        advertised=_advertised(listeners, config),
        ssl_config=ssl_config,
    )


def _listeners(value: ParsedValue) -> tuple[RestListener, ...]:
    assert isinstance(value, tuple)
    return tuple(RestListener.parse(text) for text in value)


def _metrics_listeners(properties: Mapping[str, str]) -> tuple[RestListener, ...]:
    texts = (text.strip() for text in properties.get(METRICS_LISTENER, "").split(","))
    return tuple(RestListener.parse(text, METRICS_LISTENER) for text in texts if text)


def _string_value(config: Mapping[str, ParsedValue], key: str) -> str:
    value = config.get(key)
    return value.strip() if isinstance(value, str) else ""


def _tls(
    listeners: Sequence[RestListener], properties: Mapping[str, str], prefix: str
) -> ssl.SSLContext | None:
    if not _has_https(listeners):
        return None
    return rotating_server_context(_ssl_config(properties, prefix))


def _has_https(listeners: Sequence[RestListener]) -> bool:
    return any(listener.protocol == "https" for listener in listeners)


def _ssl_config(properties: Mapping[str, str], prefix: str) -> SslConfig:
    own = {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
    plain = {k: v for k, v in properties.items() if k.startswith("ssl.")}
    return SslConfig.from_properties(own or plain)


def _users(extensions: ParsedValue, environment: Mapping[str, str]) -> BasicAuthUsers | None:
    if not isinstance(extensions, tuple) or not extensions:
        return None
    for extension in extensions:
        if extension.rpartition(".")[2] != EXTENSION.rpartition(".")[2]:
            raise ConfigError.of(
                _EXTENSIONS, f"{_EXTENSIONS}: {extension} is not supported; use {EXTENSION}"
            )
    found = _JAAS_FLAG.search(environment.get("KAFKA_OPTS", ""))
    if found is None:
        raise ConfigError.of(
            _EXTENSIONS,
            f"{_EXTENSIONS}: set the JAAS file of the users in KAFKA_OPTS: "
            "-Djava.security.auth.login.config=<JAAS file>",
        )
    return load_users_from_jaas(Path(found[1].strip("\"'")))


def _tokens(properties: Mapping[str, str]) -> BearerTokens | None:
    file = properties.get(bearer_tokens.KEY, "").strip()
    return BearerTokens(Path(file)) if file else None


def _advertised(
    listeners: Sequence[RestListener], config: Mapping[str, ParsedValue]
) -> RestListener:
    """The address for other workers: the first listener of the advertised protocol, else any.

    The default protocol is http.
    """
    protocol = _string_value(config, "rest.advertised.listener").lower() or "http"
    preferred = min(listeners, key=lambda listener: listener.protocol != protocol, default=None)
    if preferred is None:
        raise ConfigError.of("listeners", "listeners is empty: name at least one")
    host = _string_value(config, "rest.advertised.host.name") or preferred.host
    port = config.get("rest.advertised.port")
    return RestListener(
        protocol=preferred.protocol,
        host=socket.getfqdn() if host in WILDCARD_HOSTS else host,
        port=port if isinstance(port, int) else preferred.port,
    )
