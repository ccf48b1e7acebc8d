"""A control channel's end: messages over a socket, each behind its length.

Both ends use it: the task inside its loop, the driver in its server. The first frame a task sends
is a shared secret; the driver compares it before it believes anything else. Non-blocking; a link
that is lost raises LinkLost once and is closed from then on.
"""

from __future__ import annotations

import hmac
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

from sparkmirror.copy.messages import Message, decode, encode
from sparkmirror.errors import ClusterUnavailable

_LENGTH = struct.Struct(">I")
LARGEST_MESSAGE = 64 << 20
_CHUNK = 1 << 18
FAREWELL_WITHIN_S = 5.0


class LinkLost(ClusterUnavailable):
    """The control channel is gone; the lease ends by itself."""


class Link:
    """One end of a control channel."""

    def __init__(self, sock: socket.socket, heard: Callable[[Message], None]) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self.heard = heard
        """Told every message; may be replaced by whoever takes the link over."""
        self._out: deque[memoryview] = deque()
        self._in = bytearray()
        self.is_closed = False

    @classmethod
    def connect(
        cls, address: tuple[str, int], secret: bytes, heard: Callable[[Message], None]
    ) -> Link:
        """Open the task's end and show the secret. Blocks while connecting."""
        try:
            sock = socket.create_connection(address, timeout=10)
        except OSError as error:
            raise LinkLost("driver", f"cannot be reached at {address}: {error}") from error
        link = cls(sock, heard)
        link._post(secret)
        return link

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether a selector should watch for writing too."""
        return bool(self._out)

    def send(self, message: Message) -> None:
        """Queue a message and send what goes."""
        self._post(encode(message))

    def _post(self, payload: bytes) -> None:
        if self.is_closed:
            raise LinkLost("driver", "the control channel is closed")
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
            self._lose(str(error))

    def on_readable(self) -> None:
        """Receive what is there and hand over every complete message."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(str(error))
            return
        if not chunk:
            self._lose("closed by the other end")
        self._in += chunk
        for payload in self.frames():
            self.heard(decode(payload))

    def frames(self) -> list[bytes]:
        """Take every complete frame out of what was received."""
        taken: list[bytes] = []
        at = 0
        while len(self._in) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._in, at)
            if size > LARGEST_MESSAGE:
                self._lose(f"a message of {size} bytes is announced")
            if len(self._in) - at < _LENGTH.size + size:
                break
            at += _LENGTH.size
            taken.append(bytes(self._in[at : at + size]))
            at += size
        del self._in[:at]
        return taken

    def finish(self) -> None:
        """Say no more, and wait until the other end has heard it all and hung up.

        Closing at once would throw away what is still on its way, whenever the other end happens
        to be saying something, too.
        """
        deadline = time.monotonic() + FAREWELL_WITHIN_S
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

    def _lose(self, why: str) -> None:
        self.close()
        raise LinkLost("driver", f"the control channel is lost: {why}")


def greeting(secret: bytes) -> bytes:
    """The bytes with which a newcomer begins, for a server that must not wait for them."""
    return _LENGTH.pack(len(secret)) + secret


def admit(sock: socket.socket, secret: bytes) -> None:
    """Read the secret that a newcomer shows, or refuse it. Blocks for as long as the socket may."""
    shown = _exactly(sock, _LENGTH.unpack(_exactly(sock, _LENGTH.size))[0])
    if not hmac.compare_digest(shown, secret):
        raise LinkLost("task", "a newcomer on the control channel does not know the secret")


def _exactly(sock: socket.socket, size: int) -> bytes:
    if size > 1024:
        raise LinkLost("task", f"a newcomer on the control channel shows {size} bytes")
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            raise LinkLost("task", "a newcomer on the control channel hung up")
        got += chunk
    return got
