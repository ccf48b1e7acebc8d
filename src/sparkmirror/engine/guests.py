"""Those who connect to the control channel: strangers first, guests once they know the secret.

A stranger is challenged and may send nothing but the answer (`copy.seal`), has a few seconds for
it, and never makes anybody wait.
Everything here belongs to the loop of the control server.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from sparkmirror.copy.link import Link, LinkLost
from sparkmirror.copy.messages import Hello, Message, MessageError
from sparkmirror.copy.seal import HALF, PROOF, SealBroken, Seals, challenge, check


class Door:
    """The listening socket."""

    def __init__(self, listener: socket.socket, knocked: Callable[[socket.socket], None]) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._knocked = knocked
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
        self._knocked(sock)

    def on_writable(self) -> None:
        """A door has nothing to say."""

    def close(self) -> None:
        """Listen no longer."""
        self._listener.close()


class Stranger:
    """A connection that has not proved yet that it knows the secret."""

    def __init__(
        self,
        sock: socket.socket,
        secret: bytes,
        deadline: float,
        admitted: Callable[[Stranger, socket.socket, Seals], None],
    ) -> None:
        sock.setblocking(False)
        self.deadline = deadline
        self.wants_write = False
        self._socket = sock
        self._secret = secret
        self._admitted = admitted
        self._challenged = challenge()
        self._answered = b""
        with contextlib.suppress(OSError):  # if it is gone already, reading will tell
            sock.send(self._challenged)

    def fileno(self) -> int:
        """For the selector."""
        return self._socket.fileno()

    def on_readable(self) -> None:
        """Take in some more of the answer; never a byte beyond it."""
        try:
            chunk = self._socket.recv(HALF + PROOF - len(self._answered))
        except BlockingIOError:
            return
        except OSError as error:
            raise LinkLost("task", str(error)) from error
        self._answered += chunk
        if not chunk:
            raise LinkLost("task", "a newcomer on the control channel hung up")
        if len(self._answered) == HALF + PROOF:
            self._admitted(self, self._socket, self._checked())

    def _checked(self) -> Seals:
        try:
            return check(self._secret, self._challenged, self._answered)
        except SealBroken as error:
            raise LinkLost("task", str(error)) from error

    def on_writable(self) -> None:
        """Nothing is said to strangers."""

    def close(self) -> None:
        """Turn it away."""
        self._socket.close()


class Guest:
    """A connection that knows the secret: a task attempt, or the query."""

    def __init__(
        self, sock: socket.socket, heard: Callable[[Guest, Message], None], seals: Seals
    ) -> None:
        self.hello: Hello | None = None
        """What it said of itself, if it is a task attempt."""
        self._link = Link(sock, lambda message: heard(self, message), seals)

    def fileno(self) -> int:
        """For the selector."""
        return self._link.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether something is still to be sent."""
        return self._link.wants_write

    def on_readable(self) -> None:
        """Take in what it says; whoever talks nonsense is sent away."""
        try:
            self._link.on_readable()
        except MessageError as error:
            self._link.close()
            raise LinkLost("task", str(error)) from error

    def on_writable(self) -> None:
        """Send what is still to be sent."""
        self._link.on_writable()

    def send(self, message: Message) -> None:
        """Say something to it; raises LinkLost if it is gone."""
        self._link.send(message)

    def close(self) -> None:
        """Send it away."""
        self._link.close()
