"""The REST part of a worker's file, made into what the server takes.

Knows the names of the keys, and where Java looks for the file of users. TLS settings are all or
nothing: if one key begins with `listeners.https.`, the plain `ssl.*` keys are the clients' alone.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.cluster.tls import server_context
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.errors import ConfigError
from sparkmirror.rest.http.basic_auth import EXTENSION, BasicAuthUsers, load_users_from_jaas
from sparkmirror.rest.http.cors import Cors
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.response_headers import ResponseHeaderRules
from sparkmirror.rest.options import RestOptions

_EXTENSIONS = "rest.extension.classes"
_JAAS_FLAG = re.compile(r"-Djava\.security\.auth\.login\.config=(\"[^\"]+\"|'[^']+'|\S+)")
_WILDCARD_HOSTS = ("", "0.0.0.0", "::")  # noqa: S104  recognised here, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """Where to listen and how, and what to tell others about it."""

    listeners: tuple[RestListener, ...]
    options: RestOptions
    advertised: RestListener

    @property
    def worker_id(self) -> str:
        """How statuses name this worker."""
        host = self.advertised.host
        return (
            f"[{host}]:{self.advertised.port}" if ":" in host else f"{host}:{self.advertised.port}"
        )


def rest_settings(
    config: Mapping[str, ParsedValue], properties: Mapping[str, str], environment: Mapping[str, str]
) -> RestSettings:
    """Read the parsed config; `properties` is the same as texts, placeholders replaced."""
    listeners = _listeners(config["listeners"])
    admin = config.get("admin.listeners")
    admin_listeners = None if admin is None else _listeners(admin)
    options = RestOptions(
        admin_listeners=admin_listeners,
        tls=_tls(listeners, properties, "listeners.https."),
        admin_tls=_tls(admin_listeners or (), properties, "admin.listeners.https."),
        users=_users(config.get(_EXTENSIONS), environment),
        cors=Cors(
            origin=_string_value(config, "access.control.allow.origin"),
            methods=_string_value(config, "access.control.allow.methods"),
        ),
        response_headers=ResponseHeaderRules.parse(
            _string_value(config, "response.http.headers.config"), time.time
        ),
    )
    return RestSettings(
        listeners=listeners, options=options, advertised=_advertised(listeners, config)
    )


def _listeners(value: ParsedValue) -> tuple[RestListener, ...]:
    assert isinstance(value, tuple)
    return tuple(RestListener.parse(text) for text in value)


def _string_value(config: Mapping[str, ParsedValue], key: str) -> str:
    value = config.get(key)
    return value.strip() if isinstance(value, str) else ""


def _tls(
    listeners: Sequence[RestListener], properties: Mapping[str, str], prefix: str
) -> ssl.SSLContext | None:
    if all(listener.protocol != "https" for listener in listeners):
        return None
    own = {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
    return server_context(own or {k: v for k, v in properties.items() if k.startswith("ssl.")})


def _users(extensions: ParsedValue, environment: Mapping[str, str]) -> BasicAuthUsers | None:
    if not isinstance(extensions, tuple) or not extensions:
        return None
    for extension in extensions:
        if extension.rpartition(".")[2] != EXTENSION.rpartition(".")[2]:
            raise ConfigError.of(
                _EXTENSIONS, f"{_EXTENSIONS}: {extension} is not known here; there is {EXTENSION}"
            )
    found = _JAAS_FLAG.search(environment.get("KAFKA_OPTS", ""))
    if found is None:
        raise ConfigError.of(
            _EXTENSIONS,
            f"{_EXTENSIONS}: say in KAFKA_OPTS where the users are: "
            "-Djava.security.auth.login.config=<JAAS file>",
        )
    return load_users_from_jaas(Path(found[1].strip("\"'")))


def _advertised(
    listeners: Sequence[RestListener], config: Mapping[str, ParsedValue]
) -> RestListener:
    """What others should call: the listener they asked for, else the first without TLS."""
    wanted = _string_value(config, "rest.advertised.listener").lower() or "http"
    ranked = sorted(listeners, key=lambda listener: listener.protocol != wanted)
    if not ranked:
        raise ConfigError.of("listeners", "listeners is empty: name at least one")
    host = _string_value(config, "rest.advertised.host.name") or ranked[0].host
    port = config.get("rest.advertised.port")
    return RestListener(
        protocol=ranked[0].protocol,
        host=socket.getfqdn() if host in _WILDCARD_HOSTS else host,
        port=port if isinstance(port, int) else ranked[0].port,
    )
