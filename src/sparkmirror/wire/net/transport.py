"""A connected socket, plain or TLS: bytes out from where they lie, bytes in to where they belong.

Connecting blocks, up to a deadline. Afterwards nothing here blocks: `send` and `receive_into` do
what can be done at once. Knows no Kafka; what goes wrong is an OSError.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import Protocol

from sparkmirror.wire.batch.header import BytesLike


def _kernel_release(text: str) -> tuple[int, ...]:
    """The numbers that a kernel's release begins with."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


MAX_BUFFERS_PER_CALL = min(os.sysconf("SC_IOV_MAX"), 1024)
"""How many buffers one system call takes."""
LOW_WATERMARK_GROWS_BUFFER = platform.system() == "Linux" and _kernel_release(
    platform.release()
) >= (5, 12)
"""Whether a socket that is to wait for so many bytes makes room for them, and wakes when that is
not enough. Where it does not, it could wait for ever for more than it holds."""
TLS_JOIN_BYTES = 1 << 16
"""Under TLS, buffers are joined up to this: a copy costs less than a record and a system call."""


class Transport(Protocol):
    """What a connection needs of a socket."""

    @property
    def wants_write(self) -> bool:
        """Whether receiving can only go on once the socket takes bytes (a habit of TLS)."""

    def fileno(self) -> int:
        """For a selector."""

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket takes now, and remove it there."""

    def receive_into(self, view: memoryview) -> int:
        """Receive into the view what is there now: 0 bytes if nothing is. Raises at the end."""

    def set_low_watermark(self, size: int) -> None:
        """Become readable only when so many bytes are there, as far as the socket can do that."""

    def close(self) -> None:
        """Let go of the socket. May be called again."""


def connect(host: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> Transport:
    """Connect, and agree on TLS if a context is given; `deadline` is on the monotonic clock."""
    plain = _connect_first(host, port, deadline)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
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


def _connect_first(host: str, port: int, deadline: float) -> socket.socket:
    """Try each address the name stands for; none gets more than its share of the time."""
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
    raise last or OSError(f"{host} stands for no address")


def _remaining_s(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _discard_sent(queue: deque[BytesLike], sent: int) -> None:
    """Remove so many bytes from the front of a queue."""
    while sent:
        size = len(queue[0])
        if sent < size:
            queue[0] = memoryview(queue[0])[sent:]
            return
        sent -= size
        queue.popleft()


class PlaintextTransport:
    """A plain socket: many buffers go out in one system call, none is copied here."""

    wants_write = False

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._low_watermark = 1

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def set_low_watermark(self, size: int) -> None:
        """Become readable only when so many bytes are there, or the end is."""
        if size != self._low_watermark and LOW_WATERMARK_GROWS_BUFFER:
            self._low_watermark = size
            with suppress(OSError):  # a wish, not a condition
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket takes now, and remove it there."""
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
        """Receive into the view what is there now: 0 bytes if nothing is. Raises at the end."""
        try:
            received = self._socket.recv_into(view)
        except BlockingIOError:
            return 0
        if received == 0:
            raise ConnectionResetError("it closed the connection")
        return received

    def close(self) -> None:
        """Let go of the socket. May be called again."""
        self._socket.close()


class TlsTransport:
    """A TLS socket: it takes one buffer at a time, so small ones are joined first."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self.wants_write = False

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def set_low_watermark(self, size: int) -> None:
        """Do nothing: how much of it was received and not yet decrypted, nobody knows."""

    def send(self, queue: deque[BytesLike]) -> None:
        """Send from the front of the queue what the socket takes now, and remove it there.

        What could not be sent must be offered again as it was, or longer: so the joined buffer
        stays at the front.
        """
        while queue:
            _join_small_buffers(queue)
            try:
                sent = self._socket.send(queue[0])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            _discard_sent(queue, sent)

    def receive_into(self, view: memoryview) -> int:
        """Receive into the view what is there now: 0 bytes if nothing is. Raises at the end."""
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
        """Let go of the socket. May be called again."""
        self._socket.close()


def _join_small_buffers(queue: deque[BytesLike]) -> None:
    """Join the buffers at the front as long as they are small together."""
    count = size = 0
    for part in queue:
        if size + len(part) > TLS_JOIN_BYTES:
            break
        size += len(part)
        count += 1
    if count > 1:
        queue.appendleft(b"".join([queue.popleft() for _ in range(count)]))
