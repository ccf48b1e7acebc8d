"""A connected socket, plain or TLS. It sends from and receives into buffers of the caller.

`connect` blocks up to a deadline. After that nothing blocks: `send` and `receive_into` do what is
possible at once. Errors are OSErrors. Knows nothing of Kafka.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from sparkmirror.wire.batch.header import BytesLike


def _kernel_release(text: str) -> tuple[int, ...]:
    """The first two numbers of a kernel release."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


MAX_BUFFERS_PER_CALL: Final = min(os.sysconf("SC_IOV_MAX"), 1024)
"""The most buffers in one system call."""
LOW_WATERMARK_GROWS_BUFFER: Final = platform.system() == "Linux" and _kernel_release(
    platform.release()
) >= (5, 12)
"""Whether SO_RCVLOWAT enlarges the receive buffer. Without that, a socket could wait forever for
more bytes than its buffer holds."""
KEEP_ALIVE_OPTIONS: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""After how many seconds of idling an empty packet is sent, how far apart the next ones are, and
how many without an answer end the connection. Load balancers forget connections that idle for
minutes, four in Azure, and tell no side: a request would then wait for its time limit."""
TLS_JOIN_BYTES: Final = 1 << 16
"""TLS joins buffers up to this size: a copy costs less than a TLS record and a system call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSession:
    """What a TLS handshake agreed on, and the broker's certificate as the ssl module shows it."""

    version: str
    cipher: str
    certificate: Mapping[str, Any]


class Transport(Protocol):
    """A socket as a channel uses it."""

    is_drained_by_short_read: bool
    """Whether a read of less than the view holds means that nothing more is there now."""

    @property
    def wants_write(self) -> bool:
        """Whether receiving must wait until the socket is writable (TLS)."""

    def fileno(self) -> int:
        """For a selector."""

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket accepts now, and remove it."""

    def receive_into(self, view: memoryview) -> int:
        """Receive into the view; return 0 if nothing is there. Raises OSError at the end."""

    def set_low_watermark(self, size: int) -> None:
        """Become readable only when so many bytes are there, if the socket can do that."""

    @property
    def tls_session(self) -> TlsSession | None:
        """The TLS session; None on a plain socket."""

    def close(self) -> None:
        """Close the socket. May be called again."""


def connect(host: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> Transport:
    """Connect, with TLS if a context is given. `deadline` is on the monotonic clock."""
    plain = _connect_first(host, port, deadline)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(plain)
        plain.settimeout(_remaining_s(deadline))
        if tls is None:
            plain.setblocking(False)
            return PlaintextTransport(plain)
        secured = tls.wrap_socket(plain, server_hostname=host)
        secured.setblocking(False)
        return TlsTransport(secured)
    except BaseException:
        plain.close()
        raise


def _keep_alive(sock: socket.socket) -> None:
    """Keep an idle connection known to everything between both ends, where the system can."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE_OPTIONS.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _connect_first(host: str, port: int, deadline: float) -> socket.socket:
    """Try each address of the host; each gets an equal share of the time."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last: OSError | None = None
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        attempt = socket.socket(family, kind, protocol)
        try:
            attempt.settimeout(_remaining_s(deadline) / (len(found) - tried))
            attempt.connect(address)
        except OSError as error:
            attempt.close()
            last = error
        else:
            return attempt
    raise last or OSError(f"{host} has no address")


def _remaining_s(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _discard_sent(queue: deque[BytesLike], sent: int) -> None:
    """Remove the bytes sent from the front of the queue."""
    while sent:
        size = len(queue[0])
        if sent < size:
            queue[0] = memoryview(queue[0])[sent:]
            return
        sent -= size
        queue.popleft()


class PlaintextTransport:
    """A plain socket: many buffers in one system call, none is copied."""

    is_drained_by_short_read = True
    wants_write = False
    tls_session = None

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._low_watermark = 1

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def set_low_watermark(self, size: int) -> None:
        """Become readable only when so many bytes are there, or at the end."""
        if size != self._low_watermark and LOW_WATERMARK_GROWS_BUFFER:
            self._low_watermark = size
            with suppress(OSError):  # an optimization only
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket accepts now, and remove it."""
        while queue:
            parts = list(islice(queue, MAX_BUFFERS_PER_CALL))
            try:
                sent = self._socket.sendmsg(parts)
            except BlockingIOError:
                return
            _discard_sent(queue, sent)
            if sent < sum(map(len, parts)):
                return

    def receive_into(self, view: memoryview) -> int:
        """Receive into the view; return 0 if nothing is there. Raises OSError at the end."""
        try:
            received = self._socket.recv_into(view)
        except BlockingIOError:
            return 0
        if received == 0:
            raise ConnectionResetError("it closed the connection")
        return received

    def close(self) -> None:
        """Close the socket. May be called again."""
        self._socket.close()


class TlsTransport:
    """A TLS socket: it accepts one buffer at a time, so small ones are joined first."""

    is_drained_by_short_read = False
    """A read returns the rest of one TLS record; the next one may be decrypted already."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self.wants_write = False

    @property
    def tls_session(self) -> TlsSession:
        """The session of the handshake."""
        cipher = self._socket.cipher()
        return TlsSession(
            version=self._socket.version() or "",
            cipher=cipher[0] if cipher else "",
            certificate=self._socket.getpeercert() or {},
        )

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def set_low_watermark(self, size: int) -> None:
        """No-op: the number of decrypted bytes in the socket is unknown."""

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket takes now, and remove it there.

        OpenSSL requires that bytes not sent are offered again unchanged, so the joined buffer stays
        at the front.
        """
        while queue:
            _join_small_buffers(queue)
            try:
                sent = self._socket.send(queue[0])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            _discard_sent(queue, sent)

    def receive_into(self, view: memoryview) -> int:
        """Receive into the view; return 0 if nothing is there. Raises OSError at the end."""
        self.wants_write = False
        try:
            received = self._socket.recv_into(view)
        except ssl.SSLWantReadError:
            return 0
        except ssl.SSLWantWriteError:
            self.wants_write = True
            return 0
        if received == 0:
            raise ConnectionResetError("it closed the connection")
        return received

    def close(self) -> None:
        """Close the socket. May be called again."""
        self._socket.close()


def _join_small_buffers(queue: deque[BytesLike]) -> None:
    """Join the buffers at the front up to TLS_JOIN_BYTES."""
    count = size = 0
    for part in queue:
        if size + len(part) > TLS_JOIN_BYTES:
            break
        size += len(part)
        count += 1
    if count > 1:
        queue.appendleft(b"".join([queue.popleft() for _ in range(count)]))
