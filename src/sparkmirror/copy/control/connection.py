"""A control connection: encrypted messages over a socket, each behind its length.

The task and the driver's control server use it inside their event loops. Both ends first prove that
they know the secret of the run, then all messages are encrypted (`encryption`). Non-blocking. A
lost connection raises ControlConnectionLost once and is closed from then on.

The end of the connection says nothing: a task has ended only if its `TaskDone` has arrived. So an
attacker who cuts the connection cannot make an unfinished task look finished.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NoReturn

from sparkmirror.copy.control.encryption import (
    NONCE_BYTES,
    PROOF_BYTES,
    CipherPair,
    ControlAuthenticationError,
    HandshakeKeys,
    answer_challenge,
    verify_driver,
)
from sparkmirror.copy.control.message_json import decode, encode
from sparkmirror.copy.control.messages import ControlMessage
from sparkmirror.errors import ClusterUnavailable

_LENGTH = struct.Struct(">I")
MAX_MESSAGE_BYTES = 64 << 20
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
        ciphers: CipherPair,
    ) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self.on_message = on_message
        """Called with every message; a new owner of the connection may replace it."""
        self._ciphers = ciphers
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        self.is_closed = False

    @classmethod
    def connect(
        cls, address: tuple[str, int], secret: bytes, on_message: Callable[[ControlMessage], None]
    ) -> ControlConnection:
        """Connect to the driver; each end authenticates the other. Blocks.

        Connecting and authenticating may take CONNECT_TIMEOUT_S each. Raises ControlConnectionLost.
        """
        try:
            sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            raise ControlConnectionLost(
                "driver", f"is unreachable at {address}: {error}"
            ) from error
        try:
            keys = _authenticate(sock, secret, time.monotonic() + CONNECT_TIMEOUT_S)
        except (OSError, ControlAuthenticationError) as error:
            sock.close()
            raise ControlConnectionLost(
                "driver", f"ends the handshake at {address}: {error}"
            ) from error
        return cls(sock, on_message, keys.task_ciphers())

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
        payload = self._ciphers.outgoing.encrypt(encode(message))
        self._out.append(memoryview(_LENGTH.pack(len(payload)) + payload))
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
        self._in += chunk
        for frame in self._pop_frames():
            self.on_message(decode(self._decrypt(frame)))

    def _decrypt(self, frame: bytes) -> bytes:
        try:
            return self._ciphers.incoming.decrypt(frame)
        except ControlAuthenticationError as error:
            self._fail(str(error))

    def _pop_frames(self) -> list[bytes]:
        """Remove and return every complete frame of the received bytes."""
        frames: list[bytes] = []
        at = 0
        while len(self._in) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._in, at)
            if size > MAX_MESSAGE_BYTES:
                self._fail(f"a message of {size} bytes is larger than {MAX_MESSAGE_BYTES}")
            if len(self._in) - at < _LENGTH.size + size:
                break
            at += _LENGTH.size
            frames.append(bytes(self._in[at : at + size]))
            at += size
        del self._in[:at]
        return frames

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


def _authenticate(sock: socket.socket, secret: bytes, deadline: float) -> HandshakeKeys:
    """Exchange proofs with the driver. Raises OSError or ControlAuthenticationError."""
    answer, keys = answer_challenge(secret, _receive_exactly(sock, NONCE_BYTES, deadline))
    sock.sendall(answer)
    verify_driver(keys, _receive_exactly(sock, PROOF_BYTES, deadline))
    return keys


def _receive_exactly(sock: socket.socket, size: int, deadline: float) -> bytes:
    received = b""
    while len(received) < size:
        sock.settimeout(max(deadline - time.monotonic(), _MIN_TIMEOUT_S))
        chunk = sock.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the other end closed the control connection")
        received += chunk
    return received
