"""A control connection: encrypted messages over a socket.

The task and the driver's control server use it inside their event loops. Both ends first prove that
they know the secret of the run, then all messages are encrypted (`handshake`). Non-blocking. A lost
connection raises ControlConnectionLost once and is closed from then on.

The end of the connection says nothing: a task has ended only if its `TaskDone` has arrived. So an
attacker who cuts the connection cannot make an unfinished task look finished.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from sparkmirror.copy.control.encryption import ControlAuthenticationError
from sparkmirror.copy.control.frames import OversizedFrame
from sparkmirror.copy.control.handshake import (
    ConnectionCipher,
    ControlProtocol,
    ControlProtocolUnsupported,
    task_handshake,
)
from sparkmirror.copy.control.message_json import decode, encode
from sparkmirror.copy.control.messages import ControlMessage
from sparkmirror.errors import ClusterUnavailable

_RECEIVE_BYTES = 1 << 18
CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
_MIN_TIMEOUT_S = 0.001
"""A timeout of 0 would make the socket non-blocking."""


class ControlConnectionLost(ClusterUnavailable):
    """The control connection is lost. The task stops when its lease times out."""


class ControlConnection:
    """One end of a control connection."""

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[ControlMessage], None],
        cipher: ConnectionCipher,
    ) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self.on_message = on_message
        """Called with every message; a new owner of the connection may replace it."""
        self._cipher = cipher
        self._out: deque[memoryview] = deque()
        self.is_closed = False

    @classmethod
    def connect(
        cls,
        address: tuple[str, int],
        protocol: ControlProtocol,
        secret: bytes,
        on_message: Callable[[ControlMessage], None],
    ) -> ControlConnection:
        """Connect to the driver; each end authenticates the other. Blocks.

        `protocol` is the one that the driver uses. Connecting and authenticating may take
        CONNECT_TIMEOUT_S each. Raises ControlConnectionLost.
        """
        try:
            sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            raise ControlConnectionLost(
                "driver", f"is unreachable at {address}: {error}"
            ) from error
        try:
            cipher = _authenticate(sock, protocol, secret, time.monotonic() + CONNECT_TIMEOUT_S)
        except (OSError, ControlAuthenticationError, ControlProtocolUnsupported) as error:
            sock.close()
            raise ControlConnectionLost(
                "driver", f"ends the handshake at {address}: {error}"
            ) from error
        return cls(sock, on_message, cipher)

    def fileno(self) -> int:
        """Return the file descriptor for a selector."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether queued messages wait for the socket."""
        return bool(self._out)

    def send(self, message: ControlMessage) -> None:
        """Queue a message and send what the socket takes. Raises ControlConnectionLost."""
        if self.is_closed:
            raise ControlConnectionLost("driver", "the control connection is closed")
        self._out.append(memoryview(self._cipher.wrap(encode(message))))
        self.on_writable()

    def on_writable(self) -> None:
        """Send queued messages, as far as the socket takes them."""
        try:
            while self._out:
                sent = self._socket.send(self._out[0])
                if sent < len(self._out[0]):
                    self._out[0] = self._out[0][sent:]
                    return
                self._out.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(str(error))

    def on_readable(self) -> None:
        """Receive, and pass every complete message to `on_message`."""
        try:
            chunk = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(str(error))
        if not chunk:
            self._fail("closed by the other end")
        try:
            for message in self._cipher.unwrap(chunk):
                self.on_message(decode(message))
        except (ControlAuthenticationError, OversizedFrame) as error:
            self._fail(str(error))

    def close_gracefully(self) -> None:
        """Send no more, and wait until the other end has received everything and closes. Blocks.

        An immediate close loses messages in transit if the other end is sending too: TCP then
        resets the connection.
        """
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while (remaining_s := deadline - time.monotonic()) > 0:
                self._socket.settimeout(remaining_s)
                if not self._socket.recv(_RECEIVE_BYTES):
                    return
        except OSError:
            return  # lost or too slow: the driver handles it like a lost task

    def close(self) -> None:
        """Close the socket. May be called again."""
        if not self.is_closed:
            self.is_closed = True
            self._socket.close()

    def _fail(self, reason: str) -> NoReturn:
        self.close()
        raise ControlConnectionLost("driver", f"the control connection is lost: {reason}")


def _authenticate(
    sock: socket.socket, protocol: ControlProtocol, secret: bytes, deadline: float
) -> ConnectionCipher:
    """Do the handshake with the driver, and return the cipher of the connection.

    Raises OSError, ControlAuthenticationError or ControlProtocolUnsupported.
    """
    handshake = task_handshake(protocol, secret)
    sock.sendall(handshake.begin())  # of no bytes, if the driver begins
    while size := handshake.bytes_wanted:
        sock.settimeout(max(deadline - time.monotonic(), _MIN_TIMEOUT_S))
        received = sock.recv(size)
        if not received:
            raise ConnectionResetError("the other end closed the control connection")
        sock.sendall(handshake.receive(received))
    return handshake.cipher()
