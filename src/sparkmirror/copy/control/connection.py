"""A control channel's end: messages over a socket, each behind its length.

Both ends use it: the task inside its loop, the driver in its server. Whoever connects proves first
that it knows the run's secret, and everything said is sealed (`seal`). Non-blocking; a link that is
lost raises LinkLost once and is closed from then on.
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
    CipherPair,
    ControlAuthenticationError,
    answer_challenge,
)
from sparkmirror.copy.control.messages import ControlMessage, decode, encode
from sparkmirror.errors import ClusterUnavailable

_LENGTH = struct.Struct(">I")
MAX_MESSAGE_BYTES = 64 << 20
_CHUNK = 1 << 18
CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0


class ControlConnectionLost(ClusterUnavailable):
    """The control channel is gone; the lease ends by itself."""


class ControlConnection:
    """One end of a control channel."""

    def __init__(
        self, sock: socket.socket, heard: Callable[[ControlMessage], None], seals: CipherPair
    ) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self.on_message = heard
        """Told every message; may be replaced by whoever takes the link over."""
        self._ciphers = seals
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        self.is_closed = False

    @classmethod
    def connect(
        cls, address: tuple[str, int], secret: bytes, heard: Callable[[ControlMessage], None]
    ) -> ControlConnection:
        """Open the task's end and prove that we know the secret. Blocks while connecting."""
        try:
            sock = socket.create_connection(address, timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            raise ControlConnectionLost(
                "driver", f"cannot be reached at {address}: {error}"
            ) from error
        try:
            answered, seals = answer_challenge(secret, _receive_exactly(sock, NONCE_BYTES))
            sock.sendall(answered)
        except OSError as error:
            sock.close()
            raise ControlConnectionLost(
                "driver", f"does not talk to us at {address}: {error}"
            ) from error
        return cls(sock, heard, seals)

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether a selector should watch for writing too."""
        return bool(self._out)

    def send(self, message: ControlMessage) -> None:
        """Queue a message and send what goes."""
        if self.is_closed:
            raise ControlConnectionLost("driver", "the control channel is closed")
        payload = self._ciphers.outgoing.encrypt(encode(message))
        self._out.append(memoryview(_LENGTH.pack(len(payload)) + payload))
        self.on_writable()

    def on_writable(self) -> None:
        """Send what the socket takes."""
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
        """Receive what is there and hand over every complete message."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(str(error))
        if not chunk:
            self._fail("closed by the other end")
        self._in += chunk
        for frame in self.pop_frames():
            self.on_message(decode(self._decrypt(frame)))

    def _decrypt(self, frame: bytes) -> bytes:
        try:
            return self._ciphers.incoming.decrypt(frame)
        except ControlAuthenticationError as error:
            self._fail(str(error))

    def pop_frames(self) -> list[bytes]:
        """Take every complete frame out of what was received."""
        taken: list[bytes] = []
        at = 0
        while len(self._in) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._in, at)
            if size > MAX_MESSAGE_BYTES:
                self._fail(f"a message of {size} bytes is announced")
            if len(self._in) - at < _LENGTH.size + size:
                break
            at += _LENGTH.size
            taken.append(bytes(self._in[at : at + size]))
            at += size
        del self._in[:at]
        return taken

    def close_gracefully(self) -> None:
        """Say no more, and wait until the other end has heard it all and hung up.

        Closing at once would throw away what is still on its way, whenever the other end happens
        to be saying something, too.
        """
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while (left_s := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                if not self._socket.recv(_CHUNK):
                    return
        except OSError:
            return  # it is gone, or too slow; nothing more can be done about it

    def close(self) -> None:
        """End the channel. May be called again."""
        if not self.is_closed:
            self.is_closed = True
            self._socket.close()

    def _fail(self, why: str) -> NoReturn:
        self.close()
        raise ControlConnectionLost("driver", f"the control channel is lost: {why}")


def _receive_exactly(sock: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            raise ConnectionResetError("the other end of the control channel hung up")
        got += chunk
    return got
