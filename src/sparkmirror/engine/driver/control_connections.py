"""Those who connect to the control channel: strangers first, guests once they know the secret.

A stranger is challenged and may send nothing but the answer (`copy.control.encryption`), has a few
seconds for it, and never makes anybody wait. Everything here belongs to the loop of the control
server.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import (
    NONCE_BYTES,
    PROOF_BYTES,
    CipherPair,
    ControlAuthenticationError,
    new_challenge,
    verify_answer,
)
from sparkmirror.copy.control.messages import ControlMessage, Hello, MalformedMessage


class Acceptor:
    """The listening socket."""

    def __init__(self, listener: socket.socket, knocked: Callable[[socket.socket], None]) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._on_accept = knocked
        self.wants_write = False

    def fileno(self) -> int:
        """For the selector."""
        return self._listener.fileno()

    def on_readable(self) -> None:
        """Let whoever is there step in front of us."""
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # gone again, or no descriptor left for it: those who are inside go on
        self._on_accept(sock)

    def on_writable(self) -> None:
        """A door has nothing to say."""

    def close(self) -> None:
        """Listen no longer."""
        self._listener.close()


class Handshake:
    """A connection that has not proved yet that it knows the secret."""

    def __init__(
        self,
        sock: socket.socket,
        secret: bytes,
        deadline: float,
        admitted: Callable[[Handshake, socket.socket, CipherPair], None],
    ) -> None:
        sock.setblocking(False)
        self.deadline = deadline
        self.wants_write = False
        self._socket = sock
        self._secret = secret
        self._on_authenticated = admitted
        self._challenge = new_challenge()
        self._response = b""
        with contextlib.suppress(OSError):  # if it is gone already, reading will tell
            sock.send(self._challenge)

    def fileno(self) -> int:
        """For the selector."""
        return self._socket.fileno()

    def on_readable(self) -> None:
        """Take in some more of the answer; never a byte beyond it."""
        try:
            chunk = self._socket.recv(NONCE_BYTES + PROOF_BYTES - len(self._response))
        except BlockingIOError:
            return
        except OSError as error:
            raise ControlConnectionLost("task", str(error)) from error
        self._response += chunk
        if not chunk:
            raise ControlConnectionLost("task", "a newcomer on the control channel hung up")
        if len(self._response) == NONCE_BYTES + PROOF_BYTES:
            self._on_authenticated(self, self._socket, self._verify())

    def _verify(self) -> CipherPair:
        try:
            return verify_answer(self._secret, self._challenge, self._response)
        except ControlAuthenticationError as error:
            raise ControlConnectionLost("task", str(error)) from error

    def on_writable(self) -> None:
        """Nothing is said to strangers."""

    def close(self) -> None:
        """Turn it away."""
        self._socket.close()


class AuthenticatedConnection:
    """A connection that knows the secret: a task attempt, or the query."""

    def __init__(
        self,
        sock: socket.socket,
        heard: Callable[[AuthenticatedConnection, ControlMessage], None],
        seals: CipherPair,
    ) -> None:
        self.hello: Hello | None = None
        """What it said of itself, if it is a task attempt."""
        self._connection = ControlConnection(sock, lambda message: heard(self, message), seals)

    def fileno(self) -> int:
        """For the selector."""
        return self._connection.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether something is still to be sent."""
        return self._connection.wants_write

    def on_readable(self) -> None:
        """Take in what it says; whoever talks nonsense is sent away."""
        try:
            self._connection.on_readable()
        except MalformedMessage as error:
            self._connection.close()
            raise ControlConnectionLost("task", str(error)) from error

    def on_writable(self) -> None:
        """Send what is still to be sent."""
        self._connection.on_writable()

    def send(self, message: ControlMessage) -> None:
        """Say something to it; raises LinkLost if it is gone."""
        self._connection.send(message)

    def close(self) -> None:
        """Send it away."""
        self._connection.close()
