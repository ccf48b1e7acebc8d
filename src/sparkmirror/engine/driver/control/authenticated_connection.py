"""Connections to the control server: a handshake first, then messages.

A client must prove within a few seconds that it knows the secret (`copy.control.handshake`). Until
then the server reads a limited number of bytes of it, and it delays no other client. The event loop
of the control server owns all objects of this module.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import ControlAuthenticationError
from sparkmirror.copy.control.handshake import ConnectionCipher, ControlHandshake
from sparkmirror.copy.control.message_json import MalformedMessage
from sparkmirror.copy.control.messages import ControlMessage, Hello, SlotHello

PEER = "task"
"""How errors name the other end."""


class Acceptor:
    """The listening socket."""

    def __init__(self, listener: socket.socket, on_accept: Callable[[socket.socket], None]) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._on_accept = on_accept
        self.wants_write = False

    def fileno(self) -> int:
        """For the selector."""
        return self._listener.fileno()

    def on_readable(self) -> None:
        """Accept one connection."""
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # the client has gone, or no file descriptor is free: keep the open connections
        self._on_accept(sock)

    def on_writable(self) -> None:
        """No-op."""

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


class Handshake:
    """A connection that has not yet proved that it knows the secret."""

    def __init__(
        self,
        sock: socket.socket,
        handshake: ControlHandshake,
        deadline: float,
        on_authenticated: Callable[[Handshake, socket.socket, ConnectionCipher], None],
    ) -> None:
        sock.setblocking(False)
        self.deadline = deadline
        self.wants_write = False
        self.peer = _peer_name(sock)
        self._socket = sock
        self._handshake = handshake
        self._on_authenticated = on_authenticated
        with contextlib.suppress(OSError):  # if the client has gone, the next read raises
            sock.send(handshake.begin())

    def fileno(self) -> int:
        """For the selector."""
        return self._socket.fileno()

    def on_readable(self) -> None:
        """Read more of the handshake, never a byte beyond it. Raises ControlConnectionLost."""
        try:
            received = self._socket.recv(self._handshake.bytes_wanted)
        except BlockingIOError:
            return
        except OSError as error:
            raise ControlConnectionLost(PEER, str(error)) from error
        if not received:
            raise ControlConnectionLost(PEER, "connection closed during the handshake")
        try:
            # At most 2 KB, into an empty send buffer.
            self._socket.sendall(self._handshake.receive(received))
        except (ControlAuthenticationError, OSError) as error:
            raise ControlConnectionLost(PEER, str(error)) from error
        if not self._handshake.bytes_wanted:
            self._on_authenticated(self, self._socket, self._handshake.cipher())

    def on_writable(self) -> None:
        """No-op."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class AuthenticatedConnection:
    """A connection that knows the secret: of a task attempt, of a slot, or of Spark's planner."""

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[AuthenticatedConnection, ControlMessage], None],
        cipher: ConnectionCipher,
    ) -> None:
        self.hello: Hello | None = None
        """The first message of a task attempt; None for a slot and for the planner."""
        self.slot: SlotHello | None = None
        """The first message of a slot."""
        self._connection = ControlConnection(
            sock, lambda message: on_message(self, message), cipher
        )

    def fileno(self) -> int:
        """For the selector."""
        return self._connection.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether bytes wait to be sent."""
        return self._connection.wants_write

    def on_readable(self) -> None:
        """Read messages. Raises ControlConnectionLost, also for a malformed message."""
        try:
            self._connection.on_readable()
        except MalformedMessage as error:
            self._connection.close()
            raise ControlConnectionLost(PEER, str(error)) from error

    def on_writable(self) -> None:
        """Send waiting bytes."""
        self._connection.on_writable()

    def send(self, message: ControlMessage) -> None:
        """Send a message. Raises ControlConnectionLost."""
        self._connection.send(message)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _peer_name(sock: socket.socket) -> str:
    """Host and port of the other end, for the log."""
    try:
        host, port, *_ = sock.getpeername()
    except (OSError, ValueError):  # the name may be empty, not a pair
        return "a closed connection"
    return f"{host}:{port}"
