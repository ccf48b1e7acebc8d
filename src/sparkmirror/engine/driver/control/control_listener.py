"""The port of the control server: accepts connections and lets each prove that it knows the secret.

A connection is passed on when its handshake is done. One that is too slow, wrong, or too much is
closed, and named in the log. The control server's event loop owns the listener.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable

from sparkmirror.copy.control.handshake import ConnectionCipher, ControlProtocol, driver_handshake
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.control.authenticated_connection import Acceptor, Handshake
from sparkmirror.engine.driver.control.pending_handshakes import PendingHandshakes, RejectionLog
from sparkmirror.errors import DriverLost, MirrorError

HANDSHAKE_TIMEOUT_S = 5.0
SECRET_BYTES = 32


class ControlListener:
    """Listens from its construction on. `endpoint` is its address, with a new secret."""

    def __init__(
        self,
        loop: EventLoop,
        on_connection: Callable[[socket.socket, ConnectionCipher], None],
        *,
        protocol: ControlProtocol,
        bind: str,
        host: str = "",
        port: int = 0,
    ) -> None:
        """Listen at `bind`; tasks connect to `host` if that is another name for it.

        `on_connection` gets each connection whose client knows the secret.
        """
        listening = _listen(_without_brackets(bind), port)
        self.endpoint = ControlEndpoint(
            host=_without_brackets(host or bind),
            port=listening.getsockname()[1],
            protocol=protocol,
            secret=secrets.token_hex(SECRET_BYTES).encode(),
        )
        self._loop = loop
        self._on_connection = on_connection
        self._acceptor = Acceptor(listening, self._on_accept)
        self._handshakes = PendingHandshakes()
        self._rejection_log = RejectionLog()

    def start(self) -> None:
        """Accept connections from now on. Requires the thread of the loop."""
        self._loop.register(self._acceptor, _raise)

    def reject_overdue(self, now: float) -> None:
        """Reject the connections that have not finished their handshake in time."""
        for handshake in self._handshakes.overdue(now):
            self._reject(handshake, f"no handshake within {HANDSHAKE_TIMEOUT_S:.0f} s")

    def close(self) -> None:
        """Close the port and the connections that have not finished their handshake."""
        for handshake in self._handshakes:
            handshake.close()
        self._acceptor.close()

    def _on_accept(self, sock: socket.socket) -> None:
        handshake = Handshake(
            sock,
            driver_handshake(self.endpoint.protocol, self.endpoint.secret),
            time.monotonic() + HANDSHAKE_TIMEOUT_S,
            self._on_authenticated,
        )
        self._loop.register(handshake, lambda error: self._reject(handshake, str(error)))
        oldest = self._handshakes.add(handshake)
        if oldest is not None:
            self._reject(oldest, "too many connections wait for their handshake")

    def _on_authenticated(
        self, handshake: Handshake, sock: socket.socket, cipher: ConnectionCipher
    ) -> None:
        self._loop.unregister(handshake)
        self._handshakes.discard(handshake)
        self._on_connection(sock, cipher)

    def _reject(self, handshake: Handshake, reason: str) -> None:
        self._rejection_log.write(handshake.peer, reason, time.monotonic())
        self._loop.unregister(handshake)
        self._handshakes.discard(handshake)
        handshake.close()


def _raise(error: MirrorError) -> None:
    raise error


def _without_brackets(host: str) -> str:
    """The host without the brackets that Spark writes around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise DriverLost(f"the control server cannot listen at {host}:{port}: {error}") from error
