"""Keeps the TLS context of one config, and reads its stores again when their files change."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from sparkmirror.errors import ConfigError
from sparkmirror.security.tls.ssl_config import SslConfig
from sparkmirror.security.tls.ssl_context import build_client_context, build_server_context

log = logging.getLogger(__name__)

FileState = tuple[int, int, int, int] | None
"""Inode, size, time of modification and time of change; None: there is no such file."""


class ReloadingSslContext:
    """Supplies the context of the next connection. Used by several threads."""

    def __init__(self, config: SslConfig, build: Callable[[SslConfig], ssl.SSLContext]) -> None:
        """Build the first context. Raises ConfigError."""
        self._config = config
        self._build = build
        self._lock = threading.Lock()
        self._files = file_states(config.store_locations)
        self._context = build(config)

    def current(self) -> ssl.SSLContext:
        """Return the context. It is a new one if a file has changed and can be read.

        A changed file that cannot be read is tried again when it changes again.
        """
        with self._lock:
            files = file_states(self._config.store_locations)
            if files == self._files:
                return self._context
            self._files = files
            try:
                self._context = self._build(self._config)
            except ConfigError as error:
                log.warning(
                    "A changed store cannot be used, so connections go on with the previous"
                    " certificates: %s",
                    error,
                )
            else:
                log.info("Stores changed and were read again: %s", self._config.store_locations)
            return self._context


def client_ssl_factory(config: SslConfig) -> ReloadingSslContext:
    """Return the contexts of clients. Raises ConfigError."""
    return ReloadingSslContext(config, build_client_context)


def rotating_server_context(config: SslConfig) -> ssl.SSLContext:
    """Return the context of a listener. A changed store is used at the next handshake.

    Raises ConfigError.
    """
    factory = ReloadingSslContext(config, build_server_context)
    listener = factory.current()

    def use_current(connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        current = factory.current()
        if current is not listener:
            connection.context = current

    listener.sni_callback = use_current
    return listener


def file_states(locations: Sequence[str]) -> tuple[FileState, ...]:
    """Return what tells whether files have changed."""
    return tuple(_file_state(location) for location in locations)


def _file_state(location: str) -> FileState:
    try:
        found = Path(location).stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
